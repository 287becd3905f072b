# SPDX-License-Identifier: MIT
"""How the processes of each MPI are started, here and as root."""
import os
import shutil
import sys

SKIPPED = 77
LAUNCHERS = {
    "openmpi": ("mpirun.openmpi", ["--oversubscribe"]),
    "mpich": ("mpirun.mpich", []),
}


def launcher(library, workers, *options):
    """The words to put before a command, or an exit with SKIPPED."""
    name, fixed = LAUNCHERS[library]
    if shutil.which(name) is None:
        print(f"skipped: {name} is not installed")
        sys.exit(SKIPPED)
    return [name, *fixed, *options, "-n", str(workers)]


def environment():
    allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1",
             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**os.environ, **allow}
