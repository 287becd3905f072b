# The layer transport: the sources of the library, and the MPI modules. The
# modules are loaded when "mpi" is named; the library itself links no MPI.
set(LAC_MPI AUTO CACHE STRING
    "Build the MPI modules: ON, OFF, or AUTO for the MPIs that are found")
set_property(CACHE LAC_MPI PROPERTY STRINGS AUTO ON OFF)

find_package(Threads REQUIRED)
file(GLOB transport CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/transport/*.c)
target_sources(laconic_objects PRIVATE ${transport})
target_link_libraries(laconic_objects PUBLIC Threads::Threads ${CMAKE_DL_LIBS})

# lac_mpi_module(NAME PACKAGE): laconic_mpi_NAME.so from the pkg-config package.
function(lac_mpi_module name package)
    pkg_check_modules(MPI_${name} IMPORTED_TARGET ${package})
    if(NOT MPI_${name}_FOUND)
        if(LAC_MPI STREQUAL "ON")
            message(FATAL_ERROR "LAC_MPI is ON, but ${package} was not found")
        endif()
        return()
    endif()
    # Headers of MPI are not checked with our warnings. gcc takes MPICH's
    # MPI_STATUSES_IGNORE for an array that is too short.
    add_library(mpi_${name} INTERFACE)
    target_include_directories(mpi_${name} SYSTEM INTERFACE
        ${MPI_${name}_INCLUDE_DIRS})
    target_compile_options(mpi_${name} INTERFACE
        $<$<C_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
    target_link_libraries(mpi_${name} INTERFACE ${MPI_${name}_LINK_LIBRARIES})
    file(GLOB sources CONFIGURE_DEPENDS
         ${PROJECT_SOURCE_DIR}/src/transport/mpi/*.c)
    set(target laconic_mpi_${name})
    add_library(${target} MODULE ${sources})
    set_target_properties(${target} PROPERTIES PREFIX ""
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include
        ${PROJECT_BINARY_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${target} PRIVATE mpi_${name} Threads::Threads)
    include(GNUInstallDirs)
    install(TARGETS ${target} DESTINATION ${CMAKE_INSTALL_LIBDIR}/laconic)
    set_property(GLOBAL APPEND PROPERTY LAC_MPI_MODULES ${name})
endfunction()

if(NOT LAC_MPI STREQUAL "OFF")
    lac_mpi_module(openmpi ompi-c)
    lac_mpi_module(mpich mpich)
endif()
get_property(modules GLOBAL PROPERTY LAC_MPI_MODULES)
message(STATUS "MPI modules: ${modules}")
