# Functions that make tests.

# All sets of fast kernels that this architecture may have. `make check-portable`
# runs the tests that depend on kernels with portable C.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(all_kernels neon)
else()
    set(all_kernels avx2 avx512)
endif()

add_library(test_kernels_best OBJECT
    ${PROJECT_SOURCE_DIR}/tests/support/kernels_best.c)
target_include_directories(test_kernels_best PRIVATE
    ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(test_kernels_best PRIVATE laconic_objects)

# lac_test(NAME FILE): one executable and one ctest entry, named after the tree.
# Tests link the objects of the library, so hidden functions are in reach.
function(lac_test name file)
    string(REPLACE "." "_" target test_${name})
    add_executable(${target} ${file})
    target_include_directories(${target} PRIVATE
        ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests/support)
    target_link_libraries(${target} PRIVATE
        laconic_objects test_kernels_best cmocka m)
    target_link_options(${target} PRIVATE
        -Wl,--wrap=calloc,--wrap=laci_kernels_best)
    add_test(NAME ${name} COMMAND ${target})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600)
endfunction()

# lac_short(NAME COMMAND...) adds NAME.short, which runs the command of the test
# NAME with few cases and at most three workers. Call it when the properties of
# NAME are set.
function(lac_short name)
    add_test(NAME ${name}.short COMMAND ${ARGN})
    set_tests_properties(${name}.short PROPERTIES SKIP_RETURN_CODE 77)
    foreach(property LABELS TIMEOUT PROCESSORS ENVIRONMENT)
        get_property(value TEST ${name} PROPERTY ${property})
        if(property STREQUAL "ENVIRONMENT")
            list(APPEND value LAC_TEST_SHORT=1)
        endif()
        if(value)
            set_property(TEST ${name}.short PROPERTY ${property} ${value})
        endif()
    endforeach()
endfunction()

# lac_test_kernels(NAME KERNELS...) runs a test again with other kernels, as
# NAME.avx2 and so on.
function(lac_test_kernels name)
    string(REPLACE "." "_" target test_${name})
    foreach(kernels ${ARGN})
        string(REGEX REPLACE ":prefetch=" "_prefetch_" suffix ${kernels})
        add_test(NAME ${name}.${suffix} COMMAND ${target})
        set_tests_properties(${name}.${suffix} PROPERTIES
            TIMEOUT 600 SKIP_RETURN_CODE 77 LABELS once
            ENVIRONMENT LACI_TEST_KERNELS=${kernels})
    endforeach()
endfunction()
