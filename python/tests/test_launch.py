# SPDX-License-Identifier: MIT
"""Means over processes that ``laconic launch`` starts, over tcp.

LACONIC_COMMAND is the path of the command. The job runs this file itself.
"""
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

import laconic

COMMAND = os.environ.get("LACONIC_COMMAND", "")


def average():
    averager = laconic.Averager("error-feedback", "sign")
    mean = averager.mean(np.float32([averager.rank, 3]))
    exact = laconic.Averager(transport=averager.transport).mean(
        np.array([averager.rank, 3.0]))
    if averager.rank == 0:
        print(averager.world, mean.tolist(), exact.tolist())
    # Nothing is closed here.


def connections():
    """Return the peers of all connected sockets."""
    found = []
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        try:
            with socket.socket(fileno=os.dup(descriptor)) as one:
                if one.family in (socket.AF_INET, socket.AF_INET6):
                    found.append(one.getpeername())
        except OSError:
            pass
    return found


def fork():
    averager = laconic.Averager()
    assert len(connections()) == averager.world - 1
    child = os.fork()
    if child == 0:
        os._exit(len(connections()))
    kept = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    mean = averager.mean(np.float32([averager.rank, kept]))
    if averager.rank == 0:
        print(mean.tolist())


def launch(part):
    if not os.path.exists(COMMAND):
        pytest.skip("no laconic command")
    done = subprocess.run(
        [COMMAND, "launch", "-n", "3", "--", sys.executable, __file__, part],
        text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_averager_finds_its_group():
    # sign sends the mean magnitude with each sign: 1.5, 2 and 2.5.
    assert launch("average").endswith("3 [2.0, 2.0] [1.0, 3.0]")


def test_forks_of_workers_have_no_connections():
    assert launch("fork").endswith("[1.0, 0.0]")


if __name__ == "__main__":
    {"average": average, "fork": fork}[sys.argv[1]]()
