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
    "^transport[.]tcp[.](attempts_do_not_|one_of_[235]_|one_is_stopped)"
    "^transport[.]tcp[.](a_message_of_|a_member_that_is|sends_drop_)"
    "^command[.](average|train_folders)[.]openmpi$"
    "^example[.]logistic[.]openmpi$"
    "[.]mpich([.]|$)")

# What is installed, packaged or built again.
set(lac_set_install "^(install|packages)([.]|$)" "^python[.]wheel$")

# The types of the Python package, and PyTorch beyond a short pass.
set(lac_set_python "^python[.](types|torch_)")

# Experiments, benchmarks, searches, a message of 5 GiB and a browser.
set(lac_set_long "^(experiments|bench)[.]"
    "^algorithm[.](gamma_best|memory_bytes)$"
    "^conformance[.]transports[.]tcp_long$" "^command[.]report_browser$")

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
    endforeach()
endfunction()
