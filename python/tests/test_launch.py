# SPDX-License-Identifier: MIT
"""Means over processes that ``laconic launch`` starts, over tcp.

LACONIC_COMMAND is the path of the command. The job runs this file itself.
"""
import os
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


@pytest.mark.skipif(not os.path.exists(COMMAND), reason="no laconic command")
def test_an_averager_finds_its_group():
    done = subprocess.run(
        [COMMAND, "launch", "-n", "3", "--", sys.executable, __file__],
        text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # sign sends the mean magnitude with each sign: 1.5, 2 and 2.5.
    assert done.stdout.strip().endswith("3 [2.0, 2.0] [1.0, 3.0]")


if __name__ == "__main__":
    average()
