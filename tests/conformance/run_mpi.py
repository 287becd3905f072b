# SPDX-License-Identifier: MIT
"""Runs a conformance test of algorithms in the processes of an MPI job, three
if LAC_TEST_SHORT is in the environment.

usage: run_mpi.py LIBRARY PROGRAM
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "transport"))
import launch  # noqa: E402

PROCESSES = 3 if "LAC_TEST_SHORT" in os.environ else 8

if __name__ == "__main__":
    launch.output_of(sys.argv[1], PROCESSES, sys.argv[2])
