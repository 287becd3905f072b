# SPDX-License-Identifier: MIT
"""Ranks that end before the others, and programs that do not close."""
import ast
import subprocess
import sys

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed")

import launch  # noqa: E402


@pytest.mark.parametrize("how,transport,world", [
    ("kill", "tcp", 3), ("kill", "c10d", 2), ("fork", "tcp", 2),
    ("raise", "tcp", 2), ("backward", "tcp", 2), ("join", "tcp", 2)])
def test_the_others_notice(how, transport, world, record_property):
    *others, last = launch.launch("failing.py", world, how, transport)
    killed = how in ("kill", "fork", "join")
    assert last.code == (-9 if killed else 1), last
    if last.code == 1:
        assert "a mistake of the user" in last.err
    failed = float(last.out.split()[1])
    for rank, result in enumerate(others):
        assert result.code == 0, f"rank {rank}: {result.err}"
        word, when, message = result.out.split(" ", 2)
        assert word == "noticed"
        lost = f"worker {world - 1} {'was lost' if killed else 'has left'}"
        assert transport == "c10d" or lost in message, message
        record_property("seconds", float(when) - failed)
        print(f"{how} over {transport}: rank {rank} noticed after "
              f"{float(when) - failed:.3f} s: {message}")


def test_programs_end_without_close(tmp_path):
    done = subprocess.run(
        [sys.executable, str(launch.HERE / "exits.py"), str(tmp_path)],
        env=launch.environment(), capture_output=True, text=True,
        timeout=launch.SECONDS)
    assert done.returncode == 0, done.stderr
    ended = ast.literal_eval(done.stdout)
    # Negative: by a signal. 3: sys.exit(3). 1: an exception of its own, or of
    # the other rank's end.
    assert sum(ended.values()) == 50, ended
    assert set(ended) == {0, 1, 3} and ended[3] == 5 and ended[1] == 15, (
        ended, done.stderr)
