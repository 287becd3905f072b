# SPDX-License-Identifier: MIT
"""Runs a duty of transports under mpirun: LIBRARY PROGRAM DUTY.

Duties of the conformance suite are named as there; "steady" runs all that end
well, "eager" with long messages in small pieces. Those of the programs that use
MPI themselves are "guest", "pending" and "threads_LEVEL". A name may end in the
number of workers, as in steady3.

Every worker must report success. After a failure, which most duties provoke,
MPI is not finalised, so the exit status of mpirun counts only for the others.
"""
import re
import sys

import launch

WORKERS = 4


def arguments(library, duty):
    """The arguments of the program, and whether mpirun must succeed."""
    if duty == "guest":
        return [], True
    if duty == "pending":
        return [], False
    if duty.startswith("threads_"):
        return [duty[len("threads_"):]], duty == "threads_serialized"
    spec = f"mpi:library={library}"
    if duty == "eager":
        return [f"{spec},eager=1000"], True
    return ([spec], True) if duty == "steady" else ([spec, duty], False)


def main(library, program, name):
    duty, workers = re.fullmatch(r"(\w+?)(\d?)", name).groups()
    workers = int(workers or WORKERS)
    words, must_succeed = arguments(library, duty)
    result = launch.run(
        [*launch.launcher(library, workers), program, *words])
    print(result.stdout, result.stderr)
    good = all(f"worker {rank} of {workers}: good" in result.stdout
               for rank in range(workers))
    if must_succeed and result.returncode != 0:
        good = False
    return 0 if good and "FAILED" not in result.stderr else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
