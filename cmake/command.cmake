# The command, and what it needs beyond the library.
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)

# Data sets for training. Tests link these objects too.
find_package(ZLIB REQUIRED)
file(GLOB data CONFIGURE_DEPENDS src/data/*.c)
add_library(laconic_data_objects OBJECT ${data})
target_compile_definitions(laconic_data_objects PRIVATE _XOPEN_SOURCE=700)
target_include_directories(laconic_data_objects
    PUBLIC include ${CMAKE_CURRENT_BINARY_DIR}/include PRIVATE src)
target_link_libraries(laconic_data_objects
    PUBLIC ZLIB::ZLIB laconic_xxhash Threads::Threads m)

# The command uses only the public interface of the library. Its parts are an
# object library, so that tests can link them.
lac_sources(cli src/cli/commands.def src/cli/cmd_ src/cli/main.c)
list(REMOVE_ITEM cli src/cli/main.c)
file(GLOB cli_parts CONFIGURE_DEPENDS src/cli/*/*.c)
if(NOT LAC_SMPI)
    list(REMOVE_ITEM cli_parts
         ${PROJECT_SOURCE_DIR}/src/cli/launch/simulated.c)
endif()
# lac_text(OUT NAME FILE): appends the content of FILE to the C code in OUT, as
# the string NAME.
function(lac_text out name file)
    set(path ${PROJECT_SOURCE_DIR}/src/cli/${file})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(READ ${path} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    set(${out} "${${out}}const char ${name}[] = {${bytes}0};\n" PARENT_SCOPE)
endfunction()

# The style and the script of reports, and the scripts of completion, are files
# of their own, and strings in the command.
set(texts "#include \"cli/complete/scripts.h\"
#include \"cli/page/document.h\"\n")
lac_text(texts page_style page/style.css)
lac_text(texts page_script page/script.js)
foreach(shell bash zsh fish)
    lac_text(texts cli_script_${shell} complete/laconic.${shell})
endforeach()
file(CONFIGURE OUTPUT texts.c CONTENT "${texts}" @ONLY)
list(APPEND cli_parts ${CMAKE_CURRENT_BINARY_DIR}/texts.c)
# The command runs networks on oneDNN, which uses libgomp. find_package(dnnl)
# would also need the headers of OpenCL.
find_library(LAC_DNNL dnnl REQUIRED)
find_path(LAC_DNNL_HEADERS dnnl.h REQUIRED)
file(GLOB nn CONFIGURE_DEPENDS src/nn/*.c)
file(GLOB train CONFIGURE_DEPENDS src/train/*.c)
add_library(laconic_cli_objects OBJECT ${cli} ${cli_parts} ${nn} ${train})
target_compile_definitions(laconic_cli_objects PUBLIC _XOPEN_SOURCE=700)
if(LAC_AVX2 AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    target_compile_definitions(laconic_cli_objects PRIVATE LACI_HAVE_AVX2)
endif()
# `laconic version` names the build type, but no flags: those of a package have
# the path of its build folder.
set(build "${CMAKE_BUILD_TYPE}")
if(LAC_SANITIZE)
    string(APPEND build " with ${LAC_SANITIZE}")
endif()
set_source_files_properties(src/cli/cmd_version.c PROPERTIES
    COMPILE_DEFINITIONS "LACI_BUILD_TYPE=\"${build}\"")
# Nothing reads the floating-point exception flags, so vector code may raise
# them in another order.
set_source_files_properties(src/nn/lstm_kernels.c PROPERTIES
    COMPILE_OPTIONS -fno-trapping-math)
target_include_directories(laconic_cli_objects SYSTEM PUBLIC
    ${LAC_DNNL_HEADERS})
target_include_directories(laconic_cli_objects
    PUBLIC include ${CMAKE_CURRENT_BINARY_DIR}/include PRIVATE src)
target_link_libraries(laconic_cli_objects
    PUBLIC PkgConfig::CJSON laconic_xxhash ZLIB::ZLIB Threads::Threads m
           ${LAC_DNNL} gomp)
target_sources(laconic_cli_objects
    INTERFACE $<TARGET_OBJECTS:laconic_data_objects>)
add_executable(laconic_cli src/cli/main.c)
set_target_properties(laconic_cli PROPERTIES OUTPUT_NAME laconic)
target_include_directories(laconic_cli PRIVATE src)
target_link_libraries(laconic_cli PRIVATE laconic_cli_objects laconic)
if(LAC_SMPI)
    lac_smpi_program(laconic_cli)
endif()
