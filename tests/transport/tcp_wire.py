# SPDX-License-Identifier: MIT
"""Somebody on the way between two workers reads what they send, or changes it.
Arguments: PROGRAM CASE."""
import contextlib
import socket
import sys
import threading

import tcp_group
from tcp_group import FAILED
from tcp_strangers import expect_finish, wait_for_listener

LATE = 40  # this record is one of the messages, after TLS and the HELLO
FORGED = b"\x17\x03\x03\x00\x20" + bytes(32)
CHANGES = {
    # What arrives instead of a record.
    "changed": lambda record: record[:-1] + bytes([record[-1] ^ 1]),
    "dropped": lambda record: b"",
    "repeated": lambda record: 2 * record,
    "inserted": lambda record: FORGED + record,
}


def chunks_of(source):
    """What arrives, in pieces of any length."""
    while chunk := source.recv(65536):
        yield chunk


def records_of(source):
    """The records of a TLS connection."""
    with source.makefile("rb") as stream:
        while head := stream.read(5):
            yield head + stream.read(int.from_bytes(head[3:], "big"))


def carry(parts, sink):
    """Sends the parts to a socket, and closes it after the last one."""
    with contextlib.suppress(OSError):
        for part in parts:
            sink.sendall(part)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


def join_by_a_detour(group, up, down, **options):
    """Starts both workers. Worker 1 dials a port at which the bytes to worker 0
    pass through `up`, and those from it through `down`."""
    detour = socket.create_server(("127.0.0.1", 0))
    peers = group.folder / "detour"
    peers.write_text(group.peers.read_text().replace(
        f":{group.ports[0]} ", f":{detour.getsockname()[1]} "))

    def serve():
        while True:
            near, _ = detour.accept()
            far = socket.create_connection(("127.0.0.1", group.ports[0]))
            for parts, sink in (up(near), far), (down(far), near):
                threading.Thread(target=carry, args=(parts, sink),
                                 daemon=True).start()
    more = options.pop("more", "")
    group.start(0, more=more, **options)
    wait_for_listener(group, 0)
    threading.Thread(target=serve, daemon=True).start()
    group.run(f"tcp:peers={peers},key={group.keys[1]}{more}", **options)


def messages_cannot_be_read_on_the_way(make_group):
    """They are zeros, which anybody sees without encryption."""
    zeros = bytes(500)
    for name, more in ("sealed", ""), ("clear", ",encryption=no"):
        seen = bytearray()

        def record(source):
            for chunk in chunks_of(source):
                seen.extend(chunk)
                yield chunk
        with make_group(2, name) as group:
            join_by_a_detour(group, record, record, more=more)
            expect_finish(group)
        assert len(seen) > 2 * 200 * 1000, len(seen)
        assert (zeros in seen) == (name == "clear"), name


def bytes_changed_on_the_way_end_the_run(make_group):
    """Records that are whole, and in the wrong place, as well."""
    for name, change in CHANGES.items():
        def alter(source):
            for number, record in enumerate(records_of(source)):
                yield change(record) if number == LATE else record
        with make_group(2, name) as group:
            join_by_a_detour(group, alter, chunks_of, blocks=0)
            first, second = group.workers
            first.expect("worker 1 was lost: its connection to worker 0 "
                         "ended: Protocol error")
            second.expect("worker 0 was lost|worker 0 aborted")
            for worker in group.workers:
                worker.expect_exit(FAILED)


if __name__ == "__main__":
    tcp_group.main(sys.modules[__name__])
