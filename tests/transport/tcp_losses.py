# SPDX-License-Identifier: MIT
"""Workers that are killed or stopped while they exchange messages: all others
name them in time. Arguments: PROGRAM CASE."""
import signal
import sys
import time

import tcp_group

DEADLINE = 2  # seconds of an exchange
LATER = 1     # how long after it, or after a death, the contract allows
SLACK = 3     # times longer on a busy machine


def lose(make_group, world, number, timeout, within, pattern, shape=()):
    """Sends a signal to worker 1 and reads the errors of the others."""
    with make_group(world) as group:
        workers = [group.start(rank, blocks=0, timeout=timeout, shape=shape)
                   for rank in range(world)]
        for worker in workers:
            worker.expect("^block")
        workers[1].signal(number)
        begun = time.monotonic()
        for worker in [workers[0], *workers[2:]]:
            when, error = worker.expect(r"^worker \d: error: (.*)$")
            assert tcp_group.re.search(pattern, error[1]), error[1]
            assert when - begun < SLACK * within, (when - begun, within)
            worker.expect_exit(tcp_group.FAILED)


def kill(make_group, world):
    lose(make_group, world, signal.SIGKILL, 300, LATER, "worker 1 was lost")


def stop(make_group, world, *shape):
    lose(make_group, world, signal.SIGSTOP, DEADLINE, DEADLINE + LATER,
         "worker 1 was silent", shape)


def one_of_2_is_killed(make_group):
    kill(make_group, 2)


def one_of_3_is_killed(make_group):
    kill(make_group, 3)


def one_of_5_is_killed(make_group):
    kill(make_group, 5)


def one_of_2_is_stopped(make_group):
    stop(make_group, 2)


def one_of_3_is_stopped(make_group):
    stop(make_group, 3)


def one_of_4_is_stopped(make_group):
    stop(make_group, 4)


def one_of_8_is_stopped(make_group):
    stop(make_group, 8)


def one_of_4_in_a_ring_is_stopped(make_group):
    """Most others do not wait for it, but for one who does."""
    stop(make_group, 4, "ring")


def one_of_8_in_a_ring_is_stopped(make_group):
    stop(make_group, 8, "ring")


def one_is_stopped_while_joining(make_group):
    """Its machine takes connections, but it does not."""
    timeout = 3
    with make_group(3) as group:
        stopped = group.start(1)
        member = tcp_group.Member(group, 2)
        member.connect(1).close()  # it listens
        stopped.signal(signal.SIGSTOP)
        begun = time.monotonic()
        for worker in [group.start(rank, join=timeout) for rank in (0, 2)]:
            when, _ = worker.expect(r"cannot join: .*worker 1 \(w1\)")
            assert when - begun < SLACK * (timeout + LATER), when - begun
            worker.expect_exit(tcp_group.NOT_JOINED)


def one_sleeps_and_wakes(make_group):
    """A worker that was away for less than the deadline goes on."""
    with make_group(2) as group:
        workers = [group.start(rank, blocks=0, timeout=60)
                   for rank in range(2)]
        for worker in workers:
            worker.expect("^block")
        workers[1].signal(signal.SIGSTOP)
        time.sleep(0.5)
        workers[1].signal(signal.SIGCONT)
        for worker in workers:
            blocks = sum(b"block" in line for _, line in worker.lines)
            worker.expect("^block", blocks + 2)


if __name__ == "__main__":
    tcp_group.main(sys.modules[__name__])
