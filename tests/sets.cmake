# The sets of tests. Every test has the label of one set: `make test` runs those
# with the label `test`, `make check` the others. CONTRIBUTING.md describes them.
#
# The first set with a pattern that matches the name of a test has it, `test`
# has the rest.
set(lac_sets kernels transports install python long)

# Portable C, and each set of fast kernels by name; `test` has the best ones.
set(lac_set_kernels "[.](portable|avx2|avx512|neon)(_prefetch_(on|off))?$")

# All worlds and cases over tcp and both MPIs, and peers that fail; `test` has a
# short pass over tcp and Open MPI.
set(lac_set_transports
    "^conformance[.][a-z_]+[.](tcp|openmpi|mpich)$"
    "^conformance[.]transports[.](tcp_clear|tcp_long)$"
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

# Experiments, benchmarks and searches.
set(lac_set_long "^(experiments|bench)[.]"
    "^algorithm[.](gamma_best|memory_bytes)$" "^command[.]report_browser$")

# lac_assign_sets(): adds the labels to the tests of this folder, which must all
# exist.
function(lac_assign_sets)
    get_property(tests DIRECTORY PROPERTY TESTS)
    foreach(name ${tests})
        set(label test)
        foreach(set ${lac_sets})
            string(JOIN "|" pattern ${lac_set_${set}})
            if(name MATCHES "${pattern}")
                set(label ${set})
                break()
            endif()
        endforeach()
        set_property(TEST ${name} APPEND PROPERTY LABELS ${label})
    endforeach()
endfunction()
