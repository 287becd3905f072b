# The sets of tests. Every test has the label of one set: `make test` runs those
# with the label `test`, `make check` the others. CONTRIBUTING.md describes
# them. A test belongs to the first set with a pattern that matches its name,
# otherwise to `test`, as short passes do.
set(lac_sets kernels transports install python long)

# Each set of fast kernels by name; `test` has the best ones.
set(lac_set_kernels "[.](avx2|avx512|neon)(_prefetch_(on|off))?$")

# All worlds and cases over tcp and both MPIs, and peers that fail slowly. `test`
# has the transport suite and short passes.
set(lac_set_transports
    "^conformance[.](gossip|gradient|closed)[a-z_]*[.](tcp|openmpi|mpich)$"
    "^conformance[.]transports[.]tcp_clear$"
    "^conformance[.]transports[.]openmpi[.](steady[146]|eager4|end_|report_)"
    "^transport[.]openmpi[.](pending|threads_|worker_kill_beside)"
    "^transport[.]tcp[.](half_a_hello|a_wrong_hello|takes_|falls_|endless_)"
    "^transport[.]tcp[.](one_of_[0-9]_|one_is_stopped)"
    "^transport[.]tcp[.](a_message_of_|a_member_that_is|sends_drop_)"
    "^command[.](average|train_folders)[.]openmpi$"
    "^example[.]logistic[.]openmpi$"
    "[.]mpich([.]|$)")

# What is installed, packaged or built again.
set(lac_set_install "^(install|packages)([.]|$)" "^python[.]wheel$")

# The types of the Python package, and PyTorch beyond a short pass.
set(lac_set_python "^python[.](types|torch_)")

# Experiments, benchmarks, searches, a message of 5 GiB, a browser, and the
# outputs that documents show.
set(lac_set_long "^(experiments|bench)[.]" "^docs[.]outputs$"
    "^algorithm[.](gamma_best|memory_bytes)$"
    "^conformance[.]transports[.]tcp_long$" "^command[.]report_browser$")

# Tests that take long, and about how many seconds: they start first, so that
# none of them runs alone at the end. So do those with several processes, which
# do not fit beside each other. Later runs have measured it.
set(lac_seconds_60
    "^python[.](torch_hook|torch_examples|types|wheel)$"
    "^conformance[.]gossip[.]tcp$" "^algorithm[.]gamma_best$"
    "^command[.]train_folders[.]openmpi$")
set(lac_seconds_20
    "^python[.](numpy|torch|torch_gossip)$" "^install[.]" "^experiments[.]"
    "^command[.](train|train_runs|train_rate|train_stream|plan|bench|hashes)$"
    "^command[.](ssh|tcp|average[.][a-z]+|train_folders[.]mpich)$"
    "^conformance[.](gossip|gradient|transports)[a-z_]*[.]tcp"
    "^conformance[.](exchanges|laws)$" "^algorithm[.](outer|memory_bytes)$"
    "^docs[.](adding_an_algorithm|format)$")

# lac_assign_sets() adds the labels. Call it after all tests of a folder.
function(lac_assign_sets)
    get_property(tests DIRECTORY PROPERTY TESTS)
    foreach(name ${tests})
        set(label test)
        foreach(set ${lac_sets})
            string(JOIN "|" pattern ${lac_set_${set}})
            if(name MATCHES "${pattern}" AND NOT name MATCHES "[.]short$")
                set(label ${set})
                break()
            endif()
        endforeach()
        set_property(TEST ${name} APPEND PROPERTY LABELS ${label})
        get_property(processors TEST ${name} PROPERTY PROCESSORS)
        if(processors GREATER 1)
            set_property(TEST ${name} PROPERTY COST 10)
        endif()
        foreach(seconds 20 60)
            string(JOIN "|" pattern ${lac_seconds_${seconds}})
            if(name MATCHES "${pattern}" AND NOT name MATCHES "[.]short$")
                set_property(TEST ${name} PROPERTY COST ${seconds})
            endif()
        endforeach()
    endforeach()
endfunction()
