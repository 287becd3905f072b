# SPDX-License-Identifier: MIT
"""Run the test of the Fortran module under mpirun.

usage: run_module.py LIBRARY [PROGRAM]; PROGRAM is absent if it was not built
"""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "transport"))
import launch

WORKERS = 4

library, program = sys.argv[1], "".join(sys.argv[2:])
if program == "":
    print("skipped: no Fortran compiler for this MPI")
    sys.exit(launch.SKIPPED)
printed = launch.output_of(library, WORKERS, program)
assert all(f"worker {rank} passed" in printed for rank in range(WORKERS))
