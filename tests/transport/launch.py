# SPDX-License-Identifier: MIT
"""Starts the processes of each MPI, also as root; the one place that knows what
their versions differ in."""
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

SKIPPED = 77
HANG = 570  # seconds after which a job counts as hung: less than ctest's limit
LAUNCHERS = {
    "openmpi": ("mpirun.openmpi", ["--oversubscribe"]),
    "mpich": ("mpirun.mpich", []),
}
RANK = "${OMPI_COMM_WORLD_RANK-${PMI_RANK-0}}"


def launcher(library, workers, *options):
    """The words before a command; exits with SKIPPED without that MPI."""
    name, fixed = LAUNCHERS[library]
    if shutil.which(name) is None:
        print(f"skipped: {name} is not installed")
        sys.exit(SKIPPED)
    return [name, *fixed, *options, "-n", str(workers)]


def recovery(library):
    """Options with which the others go on when a process fails."""
    if library == "mpich":
        return ["-disable-auto-cleanup"]
    version = run([launcher(library, 1)[0], "--version"]).stdout
    if int(re.search(r"\) (\d+)\.", version)[1]) < 5:
        return ["--enable-recovery"]
    # Open MPI 5.0 would end the job after an exit code other than 0.
    return ["--enable-recovery", "--runtime-options",
            "error-nonzero-status=false"]


def run(command, **keywords):
    """What a command printed and returned. Callers must not return its code:
    mpirun of Open MPI 6 exits with SKIPPED when it has too few slots."""
    return subprocess.run(command, **{
        "env": environment(), "text": True, "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE, "timeout": HANG, "check": False,
        **keywords})


def is_failure(library, code):
    """Whether mpirun may return this code after workers have failed. That of
    MPICH 4.2 sometimes returns 0 when all end the job at once."""
    return code != 0 or library == "mpich"


def output_of(library, workers, program):
    """What a program prints as a job, which must succeed."""
    done = run([*launcher(library, workers), program],
               stderr=subprocess.STDOUT)
    print(done.stdout)
    assert done.returncode == 0, done.returncode
    return done.stdout


def output_to(path):
    """The words before a command that write the stdout of rank 0 to a file.
    Launchers and MPI libraries print warnings to the stdout of a job."""
    return ["sh", "-c", f'if [ "{RANK}" = 0 ]; then exec "$@" > "$0"; fi; '
            'exec "$@"', path]


@functools.lru_cache(maxsize=None)
def session_folder():
    """Removed at the end of this program. Open MPI names folders by the number
    of mpirun's process, leaves them behind when that is killed, and from 5.0 on
    does not start where one exists. In containers numbers come again soon."""
    return tempfile.TemporaryDirectory()


def environment(**more):
    return {**os.environ,
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            # All jobs run on one machine. Open MPI 5.0 does not find a way
            # between two processes over every other interface.
            "OMPI_MCA_btl_tcp_if_include": "lo",
            # With more processes than processors every call of Open MPI
            # yields. Beside others that compute, each yield takes 10 ms.
            "OMPI_MCA_mpi_yield_when_idle": "0",
            "TMPDIR": session_folder().name, **more}


class Listener:
    """Collects what a job prints, and waits for text instead of time."""

    def __init__(self, job):
        self.text, self.changed = "", threading.Condition()
        self.open = 2
        for stream in (job.stdout, job.stderr):
            threading.Thread(target=self.collect, args=(stream,),
                             daemon=True).start()

    def collect(self, stream):
        with stream:
            for line in stream:
                with self.changed:
                    self.text += line
                    self.changed.notify_all()
        with self.changed:
            self.open -= 1
            self.changed.notify_all()

    def wait_for(self, pattern, count):
        """The matches, once there are `count` of them, or the job has ended,
        or hangs."""
        def find():
            return re.findall(pattern, self.text)
        with self.changed:
            self.changed.wait_for(
                lambda: len(find()) >= count or self.open == 0, HANG / 3)
            return find()
