# The plug-ins that the pages add. follow_pages.py writes the files of the pages,
# and the lists with their lines, to ADDED. The new files and the two registries
# are compiled, with asserts. A program is linked from these, its own objects and
# the archive of the library, which provides the rest.
set(added ${CMAKE_CURRENT_BINARY_DIR}/added)
set(pages adding-a-compressor.md adding-an-algorithm.md
    adding-a-gradient-algorithm.md)
list(TRANSFORM pages PREPEND ${PROJECT_SOURCE_DIR}/docs/)
set(follow ${CMAKE_CURRENT_SOURCE_DIR}/follow_pages.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${pages} ${follow})
execute_process(
    COMMAND ${Python3_EXECUTABLE} ${follow} ${PROJECT_SOURCE_DIR} ${added}
            ${pages}
    COMMAND_ERROR_IS_FATAL ANY)

# The library finds its sources in the same way. The lists also name files that
# are not new.
file(RELATIVE_PATH folder ${CMAKE_CURRENT_SOURCE_DIR} ${added}/src)
lac_sources(new_compressors ${folder}/compress/compressors.def
            ${folder}/compress/)
lac_sources(new_algorithms ${folder}/algorithm/algorithms.def
            ${folder}/algorithm/)
set(new_sources)
foreach(file ${new_compressors} ${new_algorithms})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
        list(APPEND new_sources ${file})
    endif()
endforeach()
add_library(docs_added OBJECT ${new_sources}
    ${PROJECT_SOURCE_DIR}/src/compress/compressor.c
    ${PROJECT_SOURCE_DIR}/src/algorithm/framework/handle.c)
target_compile_options(docs_added PRIVATE -UNDEBUG)
target_compile_definitions(docs_added PRIVATE
    $<TARGET_PROPERTY:laconic_objects,COMPILE_DEFINITIONS>)
target_include_directories(docs_added PRIVATE ${added}/src
    $<TARGET_PROPERTY:laconic_objects,INCLUDE_DIRECTORIES>)
set_target_properties(docs_added PROPERTIES EXPORT_COMPILE_COMMANDS OFF)

# lac_added(TARGET LIBRARY...): the program of TARGET with the new plug-ins, and
# with LIBRARIES, in the folder ADDED.
function(lac_added target)
    add_executable(docs_${target} $<TARGET_OBJECTS:${target}>)
    set_target_properties(docs_${target} PROPERTIES
        LINKER_LANGUAGE C RUNTIME_OUTPUT_DIRECTORY ${added}
        OUTPUT_NAME ${target})
    target_link_libraries(docs_${target} PRIVATE
        docs_added ${ARGN} laconic_static Threads::Threads ${CMAKE_DL_LIBS})
    target_link_options(docs_${target} PRIVATE
        $<TARGET_PROPERTY:${target},LINK_OPTIONS>)
endfunction()
file(GLOB suites CONFIGURE_DEPENDS
     RELATIVE ${PROJECT_SOURCE_DIR}/tests/conformance
     ${PROJECT_SOURCE_DIR}/tests/conformance/test_gossip*.c
     ${PROJECT_SOURCE_DIR}/tests/conformance/test_gradient*.c)
list(TRANSFORM suites REPLACE "test_(.*)\\.c" "\\1")
foreach(name checked exchanges laws memories payloads resources ${suites})
    lac_added(test_conformance_${name} test_kernels_best cmocka)
endforeach()
foreach(name seeds decode spec)
    lac_added(fuzz_${name} laconic_fuzz)
endforeach()
lac_added(laconic_cli laconic_cli_objects)
set_target_properties(docs_laconic_cli PROPERTIES OUTPUT_NAME laconic)

add_test(NAME docs.adding_a_compressor COMMAND Python3::Interpreter
         ${CMAKE_CURRENT_SOURCE_DIR}/add_compressor.py ${PROJECT_SOURCE_DIR}
         ${added})
add_test(NAME docs.adding_an_algorithm COMMAND Python3::Interpreter
         ${CMAKE_CURRENT_SOURCE_DIR}/add_algorithm.py ${PROJECT_SOURCE_DIR}
         ${added})
set_tests_properties(docs.adding_a_compressor docs.adding_an_algorithm
    PROPERTIES TIMEOUT 600 LABELS once)
