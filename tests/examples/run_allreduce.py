# SPDX-License-Identifier: MIT
"""Run the first program of docs/using-the-library.md under mpirun: every worker
must reach the mean of the ranks and send 1/16 of the bytes.

usage: run_allreduce.py LIBRARY PROGRAM
"""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "transport"))
import launch

WORKERS = 4

library, program = sys.argv[1:]
printed = launch.output_of(library, WORKERS, program)
for rank in range(WORKERS):
    assert f"worker {rank} has 1.500, sent 1/16" in printed
