# The layer transport: the sources of the library, and the modules for MPI and
# tcp. They are loaded when they are named; the library itself links no MPI and
# no OpenSSL.
set(LAC_MPI AUTO CACHE STRING
    "Build the MPI modules: ON, OFF, or AUTO for the MPIs that are found")
set_property(CACHE LAC_MPI PROPERTY STRINGS AUTO ON OFF)

find_package(Threads REQUIRED)
file(GLOB transport CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/transport/*.c)
if(NOT LAC_SMPI)
    list(REMOVE_ITEM transport ${PROJECT_SOURCE_DIR}/src/transport/smpi.c)
endif()
target_sources(laconic_objects PRIVATE ${transport})
target_link_libraries(laconic_objects PUBLIC Threads::Threads ${CMAKE_DL_LIBS})

# lac_module(NAME FOLDER LIBRARY...): laconic_NAME.so from
# src/transport/FOLDER.
function(lac_module name folder)
    file(GLOB sources CONFIGURE_DEPENDS
         ${PROJECT_SOURCE_DIR}/src/transport/${folder}/*.c)
    set(target laconic_${name})
    add_library(${target} MODULE ${sources})
    set_target_properties(${target} PROPERTIES PREFIX ""
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include
        ${PROJECT_BINARY_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${target} PRIVATE ${ARGN} Threads::Threads)
    include(GNUInstallDirs)
    install(TARGETS ${target} DESTINATION ${CMAKE_INSTALL_LIBDIR}/laconic)
    set_property(GLOBAL APPEND PROPERTY LAC_MODULES ${name})
endfunction()

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
    lac_module(mpi_${name} mpi mpi_${name})
    set_property(GLOBAL APPEND PROPERTY LAC_MPI_MODULES ${name})
endfunction()

if(NOT LAC_MPI STREQUAL "OFF")
    lac_mpi_module(openmpi ompi-c)
    lac_mpi_module(mpich mpich)
endif()

option(LAC_TCP "Build the tcp module, which needs OpenSSL 3" ON)
if(LAC_TCP)
    find_package(OpenSSL 3.0 REQUIRED)
    lac_module(tcp tcp OpenSSL::SSL m)
    # The same sources for unit tests and fuzz targets.
    file(GLOB tcp_sources CONFIGURE_DEPENDS
         ${PROJECT_SOURCE_DIR}/src/transport/tcp/*.c)
    add_library(laconic_tcp_objects OBJECT EXCLUDE_FROM_ALL ${tcp_sources})
    target_include_directories(laconic_tcp_objects PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include
        ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(laconic_tcp_objects
        PUBLIC OpenSSL::SSL Threads::Threads m)
endif()

get_property(modules GLOBAL PROPERTY LAC_MODULES)
message(STATUS "Modules: ${modules}")
