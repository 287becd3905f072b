# SPDX-License-Identifier: MIT
"""Run the Fortran example under mpirun: every worker must print the mean.

usage: run_average.py LIBRARY [PROGRAM]; PROGRAM is absent if it was not built
"""
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "transport"))
import launch

WORKERS = 4


def run(library, program, *words):
    return launch.run([*launch.launcher(library, WORKERS), program, *words],
                      stderr=subprocess.STDOUT)


def main(library, program=""):
    if program == "":
        print("skipped: no Fortran compiler for this MPI")
        return launch.SKIPPED
    good = True
    for words in [], ["dpsgd"], ["choco:gamma=0.5", "sign"]:
        done = run(library, program, *words)
        print(done.stdout)
        good = good and done.returncode == 0 and all(
            f"worker {rank} has the mean   1.5000" in done.stdout
            for rank in range(WORKERS))
    wrong = run(library, program, "nothing")
    print(wrong.stdout)
    # A launcher that ends a job may drop its last output.
    good = good and launch.is_failure(library, wrong.returncode)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
