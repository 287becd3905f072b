# What the two libraries are called, export and bring along when installed:
# liblaconic.so, liblaconic.a, headers, laconic.pc and find_package(laconic).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(map ${CMAKE_CURRENT_SOURCE_DIR}/src/laconic.map)
target_link_options(laconic PRIVATE -Wl,--version-script=${map})
set_target_properties(laconic PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION 0
    LINK_DEPENDS ${map})

add_library(laconic_static STATIC $<TARGET_OBJECTS:laconic_objects>)
target_link_libraries(laconic_static INTERFACE m)
if(NOT LAC_XXHASH_INLINE)
    target_link_libraries(laconic_static INTERFACE PkgConfig::XXHASH)
    set(pc_requires libxxhash)
endif()
set_target_properties(laconic_static PROPERTIES
    OUTPUT_NAME laconic
    EXPORT_NAME static)

foreach(target laconic laconic_static)
    target_include_directories(${target} INTERFACE
        $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
        $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

install(DIRECTORY include/laconic ${CMAKE_CURRENT_BINARY_DIR}/include/laconic
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN *.h PATTERN *.hpp PATTERN *.f90)

# Two export sets: the static library needs xxhash where it is linked, the
# shared one has it already, and its users must not have to install it.
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/laconic)
install(TARGETS laconic EXPORT laconicTargets)
install(TARGETS laconic_static EXPORT laconicStaticTargets)
foreach(set laconicTargets laconicStaticTargets)
    install(EXPORT ${set} NAMESPACE laconic:: DESTINATION ${package})
endforeach()
configure_package_config_file(cmake/laconicConfig.cmake.in laconicConfig.cmake
    INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
# While the version is 0.x a minor step may break what was.
write_basic_package_version_file(laconicConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/laconicConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/laconicConfigVersion.cmake
        DESTINATION ${package})

# The prefix in laconic.pc is relative to the file, so that the tree may move.
file(RELATIVE_PATH pc_prefix
     /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(cmake/laconic.pc.in laconic.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/laconic.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The command finds the library beside it, wherever the tree is put.
if(TARGET laconic_cli)
    file(RELATIVE_PATH rpath /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
    set_target_properties(laconic_cli PROPERTIES
        INSTALL_RPATH "$ORIGIN/${rpath}")
    install(TARGETS laconic_cli)
    include(cmake/manual.cmake)
endif()
