# SPDX-License-Identifier: MIT
"""A member of the group, whose key is listed, sends a wrong HELLO: the worker
refuses it and names the reason. Arguments: PROGRAM CASE."""
import socket
import ssl
import sys
import time

import tcp_group
import tls

WRONG = {
    # What it sends for a correct HELLO: the reason that the error names.
    "garbage": ({"magic": b"\x1b[2J"},
                "its first message is not a HELLO of laconic"),
    "version": ({"version": 2},
                "its HELLO has protocol version 2, expected 1"),
    "length": ({"length": 97}, "its HELLO has length 97, expected 96"),
    "flags": ({"flags": 3}, "its HELLO has unknown flags 2, expected 0"),
    "world": ({"world": 3}, "its HELLO has a world of 3, expected 2"),
    "session": ({"session": bytes(32)},
                "it lists other workers: its peers file differs"),
    "sender": ({"sender": 0}, "its HELLO has sender 0, expected 1"),
    "receiver": ({"receiver": 1}, "its HELLO has receiver 1, expected 0"),
    "binding": ({"binding": bytes(32)},
                "its HELLO belongs to another connection"),
    "encryption": ({"flags": 0},
                   "its setting is encryption=no, this worker's "
                   "encryption=yes"),
}


def expect_refused(connection):
    """After its own HELLO the worker closes the connection."""
    received, _ = connection.read_to_the_end()
    assert len(received) in (0, 96), received
    connection.close()


def send_wrong_hello(member, changed):
    worker = member.group.start(0, join=5)
    connection = member.connect(0)
    connection.write(member.hello(connection, 0, **changed))
    expect_refused(connection)
    return worker


def a_wrong_hello_is_refused(make_group):
    groups = {name: make_group(2, name) for name in WRONG}
    try:
        for name, (changed, _) in WRONG.items():
            send_wrong_hello(tcp_group.Member(groups[name], 1), changed)
        for name, (_, reason) in WRONG.items():
            worker = groups[name].workers[0]
            worker.expect(
                r"cannot join: tcp: worker 0 cannot connect with worker 1 "
                rf"\(w1\) at 127.0.0.1:\d+: {reason}$")
            worker.expect_exit(tcp_group.NOT_JOINED)
    finally:
        for group in groups.values():
            group.__exit__()


def a_recorded_hello_is_refused(make_group):
    """A HELLO that was accepted in one TLS session is worth nothing in the
    next, and the worker that it belongs to can still come."""
    with make_group(3) as group:
        group.start(0)
        member = tcp_group.Member(group, 2)
        first = member.connect(0)
        recorded = member.hello(first, 0)
        first.write(recorded)
        assert len(first.read(96)) == 96
        first.close()
        second = member.connect(0)
        second.write(recorded)
        expect_refused(second)
        group.start(1)
        group.start(2)
        for worker in group.workers:
            worker.expect_exit(0)


def only_the_key_of_a_certificate_counts(make_group):
    """Neither its dates, which have passed, nor its signature, which no longer
    fits."""
    with make_group(2) as group:
        group.start(0)
        member = tcp_group.Member(group, 1)
        der = ssl.PEM_cert_to_DER_cert(member.certificate.read_text())
        changed, count = tcp_group.re.subn(
            rb"\x17\x0d\d{12}Z", b"\x17\x0d700101000000Z", der)
        assert count == 2
        member.certificate.write_text(ssl.DER_cert_to_PEM_cert(changed))
        member.join()
        member.run_rounds(200)
        group.workers[0].expect_exit(0)


def half_a_hello(make_group):
    """It has a few seconds; meanwhile and afterwards the others can join."""
    with make_group(3) as group:
        group.start(0)
        member = tcp_group.Member(group, 2)
        connection = member.connect(0)
        connection.write(member.hello(connection, 0)[:48])
        group.start(1)
        begun = time.monotonic()
        expect_refused(connection)
        assert time.monotonic() - begun < 3 * 5, "the limit is 5 seconds"
        group.start(2)
        for worker in group.workers:
            worker.expect_exit(0)


def half_a_hello_is_named(make_group):
    with make_group(2) as group:
        group.start(0, join=8)
        member = tcp_group.Member(group, 1)
        connection = member.connect(0)
        connection.write(member.hello(connection, 0)[:48])
        expect_refused(connection)
        group.workers[0].expect(r"worker 1 \(w1\) .*: it answers, but is not "
                                "ready to join")
        group.workers[0].expect_exit(tcp_group.NOT_JOINED)


def half_a_head_and_a_new_connection(make_group):
    """What is left of an old connection is not read as part of the new one."""
    with make_group(3) as group:
        group.start(0)
        member = tcp_group.Member(group, 2)
        first = member.connect(0)
        first.write(member.hello(first, 0))
        first.read(96)
        first.write(tcp_group.head(tcp_group.DATA, 1, 1000)[:7])
        first.close()
        second = member.connect(0)
        second.write(member.hello(second, 0, incarnation=1))
        second.read(96)
        second.write(tcp_group.head(tcp_group.DATA, 1, 1000) + bytes(300))
        # It dials again although the connection lives: the old one is dead.
        third = member.connect(0)
        third.write(member.hello(third, 0, incarnation=2))
        third.read(96)
        member.connections[0] = third
        group.start(1)
        connection = member.connect(1)
        connection.write(member.hello(connection, 1))
        connection.read(96)
        member.connections[1] = connection
        member.run_rounds(200)
        for worker in group.workers:
            worker.expect_exit(0)
        second.close()


def a_worker_of_another_group_answers(make_group):
    """The dialling end checks too: who has the key and another list is named
    at once."""
    with make_group(2) as group:
        listener = socket.create_server(("127.0.0.1", group.ports[0]))
        worker = group.start(1)
        accepted, _ = listener.accept()
        certificate = tcp_group.certificate_of(group.keys[0])
        connection = tls.Connection(0, certificate, group.keys[0],
                                    accepted=accepted)
        connection.read(96)
        connection.write(tcp_group.hello(
            2, 0, 1, bytes(32), connection.binding()))
        worker.expect(r"worker 1 cannot connect with worker 0 \(w0\) at "
                      r".*: it lists other workers: its peers file differs$")
        worker.expect_exit(tcp_group.NOT_JOINED)
        listener.close()


def expect_another_key(worker):
    """The worker does not join: who answers has not the key of worker 0."""
    worker.expect(r"worker 0 \(w0\) at .*: its key is not the one that is "
                  "listed for it$")
    worker.expect_exit(tcp_group.NOT_JOINED)


def a_stranger_at_the_address_of_a_worker(make_group):
    """It has another key than the one that is listed."""
    with make_group(2) as group:
        listener = socket.create_server(("127.0.0.1", group.ports[0]))
        worker = group.start(1)
        accepted, _ = listener.accept()
        stranger = group.folder / "stranger"
        group.make_key(stranger)
        try:
            tls.Connection(0, tcp_group.certificate_of(stranger), stranger,
                           accepted=accepted)
        except tls.Closed:
            pass
        expect_another_key(worker)
        listener.close()


def another_worker_at_the_address_of_a_worker(make_group):
    """Its key is listed, but for itself: what its HELLO says does not make it
    the one that was dialled."""
    with make_group(3) as group:
        listener = socket.create_server(("127.0.0.1", group.ports[0]))
        worker = group.start(1, join=10)
        accepted, _ = listener.accept()
        try:
            connection = tls.Connection(
                0, tcp_group.certificate_of(group.keys[2]), group.keys[2],
                accepted=accepted)
            connection.read(96)
            connection.write(tcp_group.hello(
                3, 0, 1, group.session(), connection.binding()))
        except tls.Closed:
            pass
        expect_another_key(worker)
        listener.close()


if __name__ == "__main__":
    tcp_group.main(sys.modules[__name__])
