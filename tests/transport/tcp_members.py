# SPDX-License-Identifier: MIT
"""A member of a group that has joined and then breaks the protocol: the others
fail within their deadline, name it, and neither crash nor use much memory.
Worker 2 of 3 is played by the test. Arguments: PROGRAM CASE."""
import contextlib
import os
import sys
import threading

import tcp_group
import tls
from tcp_group import ABORTED, ANY, DATA, FAILED, LEFT, TAG, head

DEADLINE = 2   # seconds of an exchange
LATER = 1      # how long after it the contract allows an error
SLACK = 3      # times longer on a busy machine
# MiB; far below what the member announces or sends. Sanitizers need more.
MEMORY = 1500 if not os.environ.get("LAC_SANITIZE") else 6000
GIB = 1 << 30


@contextlib.contextmanager
def joined(make_group, timeout=DEADLINE, length=1000, more=""):
    """Two real workers, and a member that has taken part in some rounds."""
    with make_group(3) as group:
        workers = [group.start(rank, timeout=timeout, blocks=0, length=length,
                               more=more) for rank in range(2)]
        member = tcp_group.Member(group, 2)
        member.join()
        for worker in workers:
            worker.expect("joined")
        yield member, workers
        member.close()


def expect_error(workers, pattern, seconds=DEADLINE + LATER):
    """All fail, and name worker 2, within so many seconds of the start of the
    exchange that fails."""
    for worker in workers:
        worker.expect_exit(FAILED)
        _, error = worker.expect(r"^worker \d: error: (.*)$")
        assert "worker 2" in error[1], error[1]
        _, took = worker.expect(r"^failed after (\S+) seconds")
        assert float(took[1]) < SLACK * seconds, (took[1], seconds)
        expect_memory(worker, MEMORY)
    text = "".join(worker.text() for worker in workers)
    assert tcp_group.re.search(pattern, text), text


def a_message_of_2_to_the_63(make_group):
    with joined(make_group) as (member, workers):
        member.run_rounds(3)
        member.send_all(head(DATA, TAG, 1 << 63))
        expect_error(workers, "worker 2 sent a message of 9223372036854775808 "
                     "bytes, expected at most 68719476736")


def a_message_above_64_gib(make_group):
    with joined(make_group) as (member, workers):
        member.send_all(head(DATA, TAG, 64 * GIB + 1))
        expect_error(workers, "worker 2 sent a message of 68719476737 bytes")


def announce(make_group, length):
    """Memory that is announced is not touched. Where so much cannot even be
    reserved, the error is another one."""
    with joined(make_group) as (member, workers):
        member.send_all(head(DATA, TAG, length) + bytes(1000))
        expect_error(workers, "worker 2 was silent|no memory for a message of "
                     f"{length} bytes from worker 2")


def a_message_of_8_gib_that_does_not_come(make_group):
    announce(make_group, 8 * GIB)


def a_message_of_60_gib_that_does_not_come(make_group):
    announce(make_group, 60 * GIB)


def a_message_of_an_unknown_kind(make_group):
    with joined(make_group) as (member, workers):
        member.run_rounds(1)
        member.send_all(head(3, TAG, 0))
        expect_error(workers, "worker 2 sent a message of kind 3, expected one "
                     "below 3")


def a_long_abort(make_group):
    """Workers may close their connections before all of it is sent."""
    with joined(make_group) as (member, workers):
        member.send_all(head(ABORTED, ANY, 100000))
        with contextlib.suppress(tls.Closed):
            member.send_all(bytes(100000))
        expect_error(workers, "worker 2 sent a message of 100000 bytes, "
                     "expected at most 407")


def an_abort_with_control_characters(make_group):
    """Neither those of ASCII nor those of Latin-1 reach a terminal, whether
    the member sends them as its own reason or forwards them as another's."""
    text = b"\x1b[2J\x07\r\n\x00\x7f\x9b31m\xc2\x9b31m \xe2\x80\xae gone"
    with joined(make_group) as (member, workers):
        member.connections[0].write(head(ABORTED, ANY, len(text)) + text)
        member.connections[1].write(
            head(LEFT, ANY, 8 + len(text)) +
            tcp_group.struct.pack("<II", 2, ANY) + text)
        expect_error(workers, "worker 2 aborted: .*gone")
        for worker in workers:
            unwanted = [c for c in worker.text()
                        if not " " <= c <= "~" and c != "\n"]
            assert unwanted == [], worker.text()


def a_leave_that_blames_nobody(make_group):
    """It forwards the reason of a worker that does not exist."""
    with joined(make_group) as (member, workers):
        member.send_all(head(LEFT, ANY, 9) +
                        tcp_group.struct.pack("<IIc", 77, 99, b"x"))
        expect_error(workers, "worker 2 has left, but worker . waits for its "
                     "message")


def stream_to(connection, data):
    """Sends the data again and again until the other end closes."""
    def run():
        try:
            while True:
                connection.write(data)
        except tls.Closed:
            pass
    thread = threading.Thread(target=run)
    thread.start()
    return thread


def run_streams(make_group, data, pattern, more=""):
    with joined(make_group, more=more) as (member, workers):
        threads = [stream_to(connection, data)
                   for connection in member.connections.values()]
        expect_error(workers, pattern)
        for thread in threads:
            thread.join()


def expect_memory(worker, most):
    _, memory = worker.expect(r"^peak memory (\d+) KiB")
    assert int(memory[1]) < most * 1024, memory[1]


def endless_messages_while_joining(make_group):
    """Worker 1 never comes. What worker 2 sends early is not all read."""
    size = 64 << 20
    with make_group(3) as group:
        worker = group.start(0, join=3)
        member = tcp_group.Member(group, 2)
        thread = stream_to(member.join_with(0), head(DATA, 7, size) +
                           bytes(size))
        worker.expect_exit(tcp_group.NOT_JOINED)
        worker.expect("cannot join: .*worker 1")
        expect_memory(worker, MEMORY // 3)
        thread.join()
        member.close()


def endless_message(make_group):
    """One that nobody asked for, before the one that is waited for."""
    seconds = 100  # a busy machine must have sent enough of it
    with joined(make_group, timeout=seconds) as (member, workers):
        member.send_all(head(DATA, 7, 4 * GIB))
        threads = [stream_to(connection, bytes(1 << 20))
                   for connection in member.connections.values()]
        expect_error(workers, "worker 2 sent 1 messages with 10737[0-9]* bytes "
                     "that worker . does not receive", seconds)
        for thread in threads:
            thread.join()


def endless_questions(make_group):
    """It asks a check of the links, and takes no answers."""
    ping, pong, taken, finished = (head(DATA, tag, 0) for tag in (0, 1, 3, 4))
    with make_group(2) as group:
        worker = group.check(0)
        member = tcp_group.Member(group, 1)
        connection = member.join_with(0)
        connection.write((1 << 20) * ping)
        thread = stream_to(connection, pong + taken + finished)
        worker.expect_exit(0)
        worker.expect("^peer 1: ")
        expect_memory(worker, MEMORY // 5)
        thread.join()
        member.close()


def endless_messages(make_group):
    """Nobody asked for them, and none is the one that is waited for."""
    run_streams(make_group, 10 * (head(DATA, 7, 100000) + bytes(100000)),
                "worker 2 (was silent|sent [0-9]* messages)")


def endless_empty_messages(make_group):
    run_streams(make_group, 65536 * head(DATA, 7, 0),
                "worker 2 (was silent|sent 1048577 messages with 0 bytes)")


def a_member_that_is_far_ahead(make_group):
    """It waits until its messages are taken, and then all finish."""
    rounds = 20000  # more than are read early
    with make_group(3) as group:
        workers = [group.start(rank, blocks=rounds // 200, length=0)
                   for rank in range(2)]
        member = tcp_group.Member(group, 2)
        member.join()
        for worker in workers:
            worker.expect("joined")
        workers[1].signal(tcp_group.signal.SIGSTOP)
        member.connections[0].write(rounds * head(DATA, TAG, 0))
        workers[1].signal(tcp_group.signal.SIGCONT)
        member.connections[1].write(rounds * head(DATA, TAG, 0))
        for connection in member.connections.values():
            assert connection.read(16 * rounds) == rounds * head(DATA, TAG, 0)
        for worker in workers:
            worker.expect_exit(0)
        member.close()


def endless_aborts(make_group):
    run_streams(make_group, 1000 * (head(ABORTED, 1, 4) + b"over"),
                "worker 2 aborted: over")


def closes_in_the_middle_of_a_message(make_group):
    with joined(make_group) as (member, workers):
        member.run_rounds(2)
        member.send_all(head(DATA, TAG, 1000) + bytes(500))
        member.close()
        expect_error(workers, "worker 2 was lost: its connection to worker . "
                     "ended", LATER)


def closes_in_the_middle_of_a_head(make_group):
    with joined(make_group) as (member, workers):
        member.send_all(head(DATA, TAG, 1000)[:5])
        member.close()
        expect_error(workers, "worker 2 was lost", LATER)


def sends_a_damaged_record(make_group):
    """Bytes that are no TLS, as if somebody on the way had changed them."""
    with joined(make_group) as (member, workers):
        for connection in member.connections.values():
            connection.socket.send(b"\x17\x03\x03\x00\x20" + bytes(32))
        expect_error(workers, "worker 2 was lost: its connection to worker . "
                     "ended: Protocol error", LATER)


def falls_silent(make_group):
    """Its machine acknowledges what arrives, as that of a stopped process."""
    with joined(make_group) as (member, workers):
        member.run_rounds(2)
        expect_error(workers, "worker 2 was silent for")


def takes_nothing(make_group):
    """It sends what is expected and reads nothing: its window closes."""
    length = 8 << 20
    with joined(make_group, length=length) as (member, workers):
        message = head(DATA, TAG, length) + bytes(length)
        for _ in range(3):
            member.send_all(message)
        expect_error(workers, "worker 2 was silent for .* seconds and did not "
                     "take a message", 2 * DEADLINE + LATER)


def sends_drop_by_drop(make_group):
    """Progress is no reason to wait beyond the deadline."""
    with joined(make_group) as (member, workers):
        message = head(DATA, TAG, 1000) + bytes(500)

        def run(connection):
            with contextlib.suppress(tls.Closed):
                for byte in message:
                    connection.write(bytes([byte]))
                    stop.wait(0.02)
        stop = threading.Event()
        threads = [threading.Thread(target=run, args=[connection])
                   for connection in member.connections.values()]
        for thread in threads:
            thread.start()
        expect_error(workers, "worker 2 was silent for")
        stop.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    tcp_group.main(sys.modules[__name__])
