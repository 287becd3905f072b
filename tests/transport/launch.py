# SPDX-License-Identifier: MIT
"""Starts the processes of each MPI, also as root."""
import os
import shutil
import subprocess
import sys

SKIPPED = 77
HANG = 570  # seconds after which a job counts as hung: less than ctest's limit
LAUNCHERS = {
    "openmpi": ("mpirun.openmpi", ["--oversubscribe"]),
    "mpich": ("mpirun.mpich", []),
}
# The others go on when a process fails.
RECOVERY = {"openmpi": ["--enable-recovery"],
            "mpich": ["-disable-auto-cleanup"]}
RANK = "${OMPI_COMM_WORLD_RANK-${PMI_RANK-0}}"


def launcher(library, workers, *options):
    """The words before a command; exits with SKIPPED without that MPI."""
    name, fixed = LAUNCHERS[library]
    if shutil.which(name) is None:
        print(f"skipped: {name} is not installed")
        sys.exit(SKIPPED)
    return [name, *fixed, *options, "-n", str(workers)]


def output_of(library, workers, program):
    """What a program prints as a job, which must succeed."""
    done = subprocess.run(
        [*launcher(library, workers), program], env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANG,
        check=False)
    print(done.stdout)
    assert done.returncode == 0
    return done.stdout


def output_to(path):
    """The words before a command that write the stdout of rank 0 to a file.
    Launchers and MPI libraries print warnings to the stdout of a job."""
    return ["sh", "-c", f'if [ "{RANK}" = 0 ]; then exec "$@" > "$0"; fi; '
            'exec "$@"', path]


def environment():
    allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1",
             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**os.environ, **allow}
