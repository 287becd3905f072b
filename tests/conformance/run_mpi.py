# SPDX-License-Identifier: MIT
"""Runs a conformance test of algorithms in the processes of an MPI job.

usage: run_mpi.py LIBRARY PROGRAM
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "transport"))
import launch  # noqa: E402

PROCESSES = 8


def main(library, program):
    result = subprocess.run([*launch.launcher(library, PROCESSES), program],
                            env=launch.environment(), text=True,
                            timeout=launch.HANG,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False)
    print(result.stdout)
    return result.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
