# The manual pages, which the command writes itself, and the scripts with which
# shells complete it. Another machine's command cannot run here without an
# emulator, nor one that smpirun loads; then there are no pages.
foreach(place laconic.bash=bash-completion/completions/laconic
              laconic.zsh=zsh/site-functions/_laconic
              laconic.fish=fish/vendor_completions.d/laconic.fish)
    string(REPLACE "=" ";" place ${place})
    list(GET place 0 script)
    list(GET place 1 path)
    cmake_path(GET path PARENT_PATH folder)
    cmake_path(GET path FILENAME name)
    install(FILES src/cli/complete/${script} RENAME ${name}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
endforeach()

if(LAC_SMPI OR (CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR))
    message(STATUS "Manual pages: none, the command cannot run here")
    return()
endif()
file(STRINGS src/cli/commands.def commands REGEX "^LAC_COMMAND\\(")
list(TRANSFORM commands REPLACE "^LAC_COMMAND\\(([a-z]+)\\)" "\\1")
set(folder ${CMAKE_CURRENT_BINARY_DIR}/man)
file(MAKE_DIRECTORY ${folder})
set(pages)
foreach(command "" ${commands})
    string(REGEX REPLACE "-$" "" page ${folder}/laconic-${command})
    set(page ${page}.1)
    add_custom_command(OUTPUT ${page}
        COMMAND laconic_cli manual ${command} > ${page}
        DEPENDS laconic_cli VERBATIM)
    list(APPEND pages ${page})
endforeach()
add_custom_target(manual ALL DEPENDS ${pages})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
