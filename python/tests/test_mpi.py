# SPDX-License-Identifier: MIT
"""Means over the processes of an MPI job, by communicators of mpi4py.

The jobs run this file itself and the example; the launcher must be that of
the MPI that mpi4py was built for.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import laconic

EXAMPLE = pathlib.Path(__file__).parents[1] / "examples" / "average_mpi.py"
SCRIPT = "import mpi4py; mpi4py.rc.initialize = False\n" \
         "from mpi4py import MPI; print(MPI.Get_library_version())"


def launcher():
    """Return the command that starts processes, or skip the test."""
    pytest.importorskip("mpi4py")
    version = subprocess.run([sys.executable, "-c", SCRIPT], text=True,
                             capture_output=True, check=True).stdout
    name = "openmpi" if "Open MPI" in version else "mpich"
    program = shutil.which(f"mpirun.{name}") or shutil.which("mpirun")
    if program is None:
        pytest.skip(f"no mpirun of {name}")
    return [program] + (["--oversubscribe"] if name == "openmpi" else [])


def run(processes, *words):
    environment = dict(
        os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl="self,vader",
        OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    done = subprocess.run(
        [*launcher(), "-n", str(processes), sys.executable, *words],
        env=environment, text=True, capture_output=True, timeout=300,
        stdin=subprocess.DEVNULL)
    if "there is no laconic_mpi" in done.stderr:
        pytest.skip("the library has no module for this MPI")
    return done


@pytest.mark.parametrize("processes", [1, 3])
def test_the_example_fits_its_model(processes):
    done = run(processes, str(EXAMPLE))
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"(\d) processes: relative error (\S+), (\d+) bytes "
                         r"sent for (\d+) of gradients\n", done.stdout)
    assert int(found[1]) == processes and float(found[2]) < 1e-3
    assert processes == 1 or int(found[3]) < int(found[4]) / 9


def averages():
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    half = world.Split(world.rank % 2, world.rank)
    with laconic.Averager(comm=world) as everyone, \
            laconic.Averager(comm=half, session=1 + world.rank % 2) as some:
        x = np.float32([world.rank, 1])
        assert everyone.mean(x).tolist() == [1.5, 1]
        # Two groups at once.
        assert some.mean(x).tolist() == [1 + world.rank % 2, 1]
        assert (some.rank, some.world) == (half.rank, 2)
        for wrong in (3, "world", None):
            try:
                laconic.Transport.mpi(wrong)
            except TypeError as error:
                assert "expected a communicator" in str(error)
            else:
                raise AssertionError(wrong)
    try:
        laconic.Averager(comm=MPI.COMM_NULL)
    except laconic.InvalidError as error:
        assert "comm is COMM_NULL" in str(error)
    else:
        raise AssertionError("COMM_NULL")
    # mpi4py still works, and a second averager of the same communicator.
    assert world.allreduce(1) == 4
    # Left open: the end of the program leaves before MPI is finalized.
    averages.kept = laconic.Averager(comm=world)
    averages.kept.mean(x)
    if world.rank == 0:
        print("done")


def test_communicators_and_an_exit_without_close():
    done = run(4, __file__)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


if __name__ == "__main__":
    averages()
