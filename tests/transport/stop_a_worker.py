# SPDX-License-Identifier: MIT
"""Stops or kills worker 2 of 4 and listens to the others: PROGRAM LIBRARY HOW.

The others must say on their own stderr who was silent, its neighbours that it
was worker 2, and end with a status of their own, within the timeout of their
exchanges and a little more.
"""
import os
import re
import signal
import subprocess
import sys
import threading
import time

import launch

WORKERS, VICTIM, TIMEOUT, SLACK, FAILED = 4, 2, 2.0, 6.0, 3


def collect(stream, lines, event):
    for line in stream:
        lines.append(line)
        event.set()
    event.set()


def command_of(program, library, how):
    if library == "local":
        return [program, "local", str(TIMEOUT)]
    recovery = ["--enable-recovery"] if how == "kill" else []
    return [*launch.launcher(library, WORKERS, *recovery), program,
            f"mpi:library={library}", str(TIMEOUT)]


def wait_for(lines, event, pattern, count, seconds):
    """The matches, once there are `count` of them, or those there are."""
    end = time.monotonic() + seconds
    while True:
        event.clear()
        found = re.findall(pattern, "".join(lines))
        left = end - time.monotonic()
        if len(found) >= count or left <= 0:
            return found
        event.wait(left)


def main(program, library, how):
    job = subprocess.Popen(command_of(program, library, how), text=True,
                           env=launch.environment(), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, start_new_session=True)
    lines, event = [], threading.Event()
    for stream in (job.stdout, job.stderr):
        threading.Thread(target=collect, args=(stream, lines, event),
                         daemon=True).start()
    pids = dict(wait_for(lines, event, r"worker (\d) is process (\d+)",
                         WORKERS, 30))
    try:
        assert len(pids) == WORKERS, lines
        return check(job, lines, event, pids, library, how)
    finally:
        if library != "local" and how == "stop":
            try:
                os.kill(int(pids[str(VICTIM)]), signal.SIGKILL)
            except (KeyError, ProcessLookupError):
                pass
        job.kill()
        print("".join(lines))


def check(job, lines, event, pids, library, how):
    begun = time.monotonic()
    if library != "local":
        os.kill(int(pids[str(VICTIM)]),
                signal.SIGSTOP if how == "stop" else signal.SIGKILL)
    errors = wait_for(lines, event, r"worker (\d): error: (.*)", WORKERS - 1,
                      TIMEOUT + SLACK)
    print(f"all said so after {time.monotonic() - begun:.1f} seconds")
    others = {str(rank) for rank in range(WORKERS)} - {str(VICTIM)}
    assert {rank for rank, _ in errors} == others, errors
    # Who waited for a neighbour of the victim may lose patience first, and
    # name that one.
    for _, sentence in errors:
        assert re.search(r"worker \d was silent for", sentence), sentence
    assert any(f"worker {VICTIM} was silent for" in sentence
               for rank, sentence in errors
               if abs(int(rank) - VICTIM) == 1), errors
    if library == "local":
        assert job.wait(timeout=30) == FAILED
        return 0
    # Without recovery, a launcher may end the last as soon as one has failed.
    statuses = wait_for(lines, event, r"the status is (\d)", WORKERS - 1,
                        SLACK if how == "kill" else 1)
    assert how == "stop" or len(statuses) > 0, statuses
    assert how == "kill" or job.wait(timeout=30) != 0
    assert set(statuses) == {str(FAILED)}, statuses
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
