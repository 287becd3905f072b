# SPDX-License-Identifier: MIT
"""Stops or kills worker 2 of 4 and reads the errors: PROGRAM LIBRARY HOW.

HOW is
    stop                 a worker on a ring falls silent: one of its neighbours
                         names it, the others name a silent worker
    kill                 its process dies: all others name it
    kill_beside_stopped  a neighbour is stopped as well, as one is that MPI
                         keeps busy with the memory of a dead worker: the rest
                         names the dead worker, not its neighbour
"""
import os
import re
import signal
import subprocess
import sys

import launch

WORKERS, VICTIM, NEIGHBOUR, FAILED = 4, 2, 3, 3
# A dead worker is found long before the deadline.
TIMEOUTS = {"stop": "2", "kill": "300", "kill_beside_stopped": "300"}


def command_of(program, library, how):
    if library == "local":
        return [program, "local", TIMEOUTS[how]]
    return [*launch.launcher(library, WORKERS, *launch.recovery(library)),
            program, f"mpi:library={library}", TIMEOUTS[how]]


def kill(pid):
    try:
        os.kill(int(pid), signal.SIGKILL)
    except ProcessLookupError:
        pass


def main(program, library, how):
    if how != "stop" and not os.path.exists("/proc/self/ns/pid"):
        print("skipped: without /proc a dead worker is only silent")
        return launch.SKIPPED
    job = subprocess.Popen(command_of(program, library, how), text=True,
                           env=launch.environment(), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, start_new_session=True)
    listener = launch.Listener(job)
    pids = dict(listener.wait_for(r"worker (\d) is process (\d+)", WORKERS))
    try:
        assert len(pids) == WORKERS
        return check(job, listener, pids, library, how)
    finally:
        if library != "local":
            for pid in pids.values():
                kill(pid)
        job.kill()
        print(listener.text)


def lose_a_worker(pids, how):
    """Returns the workers that must report it."""
    others = {str(rank) for rank in range(WORKERS)} - {str(VICTIM)}
    if how == "kill_beside_stopped":
        os.kill(int(pids[str(NEIGHBOUR)]), signal.SIGSTOP)
        others -= {str(NEIGHBOUR)}
    os.kill(int(pids[str(VICTIM)]),
            signal.SIGSTOP if how == "stop" else signal.SIGKILL)
    return others


def check(job, listener, pids, library, how):
    others = {str(rank) for rank in range(WORKERS)} - {str(VICTIM)}
    if library != "local":
        others = lose_a_worker(pids, how)
    errors = listener.wait_for(r"worker (\d): error: (.*)", len(others))
    assert {rank for rank, _ in errors} == others, errors
    if how == "stop":
        assert all(re.search(r"worker \d was silent for", error)
                   for _, error in errors), errors
        assert any(f"worker {VICTIM} was silent for" in error
                   for rank, error in errors
                   if abs(int(rank) - VICTIM) == 1), errors
    else:
        assert all(f"worker {VICTIM} has died" in error
                   for _, error in errors), errors
    if library == "local":
        assert job.wait(timeout=launch.HANG / 3) == FAILED
        return 0
    statuses = listener.wait_for(r"the status is (\d)", len(others))
    assert statuses == [str(FAILED)] * len(others), statuses
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
