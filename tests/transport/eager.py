# SPDX-License-Identifier: MIT
"""Runs eager.c as two workers under mpirun: LIBRARY PROGRAM."""
import os
import sys
import tempfile

import launch

# No shared memory: its room for messages that nobody reads is small.
OPTIONS = {"openmpi": ["--mca", "btl", "tcp,self"], "mpich": []}
NETWORK = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}


def main(library, program):
    with tempfile.TemporaryDirectory() as folder:
        fifo = os.path.join(folder, "fifo")
        os.mkfifo(fifo)
        result = launch.run(
            [*launch.launcher(library, 2, *OPTIONS[library]), program,
             f"mpi:library={library},eager=1000", fifo],
            env=launch.environment(**NETWORK))
    print(result.stdout, result.stderr)
    good = all(f"worker {rank} of 2: good" in result.stdout
               for rank in range(2))
    return 0 if good and result.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
