# A build for SimGrid: smpirun loads the command, a shared object, and runs it
# for all ranks in one process, in simulated time. These are the options of
# smpicc, which cannot compile our sources: it includes system headers before
# they choose a version of POSIX. This build has no modules, and no tests that
# are programs.
pkg_check_modules(SIMGRID REQUIRED IMPORTED_TARGET simgrid)
add_compile_definitions(LACI_SMPI
    clock_gettime=smpi_clock_gettime nanosleep=smpi_nanosleep)
link_libraries(PkgConfig::SIMGRID)

# lac_smpi_program(TARGET): a program for smpirun, which finds its main.
function(lac_smpi_program target)
    set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET default)
    target_compile_options(${target} PRIVATE -fPIC)
    target_link_options(${target} PRIVATE -shared)
endfunction()

set(LAC_MPI OFF)
set(LAC_TCP OFF)
