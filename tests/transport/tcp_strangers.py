# SPDX-License-Identifier: MIT
"""Strangers at the port of a worker that waits for the others: none of them
gets in, none gets a byte besides TLS, and the group joins all the same.
Arguments: PROGRAM CASE."""
import errno
import random
import socket
import subprocess
import sys
import time

import tcp_group
import tls

IDLE = 500
TLS_ALERT = 0x15


def wait_for_listener(group, rank):
    end = time.monotonic() + tcp_group.HANG
    while True:
        try:
            socket.create_connection(("127.0.0.1", group.ports[rank])).close()
            return
        except ConnectionError:
            assert time.monotonic() < end, "nobody listens"
            time.sleep(0.01)


def expect_finish(group):
    for worker in group.workers:
        worker.expect_exit(0)


def s_client(port, *options):
    """What `openssl s_client` received and prints, once it was refused. It
    prints no certificate, which may contain any letters."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-quiet",
         "-nocommands", *map(str, options)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=tcp_group.HANG, check=False)
    assert done.returncode != 0, done.stdout
    assert b"LAC" not in done.stdout, done.stdout
    return done.stdout.decode("latin-1")


def a_client_without_a_key(make_group):
    with make_group(2) as group:
        group.start(0)
        wait_for_listener(group, 0)
        printed = s_client(group.ports[0])
        assert "alert certificate required" in printed, printed
        group.start(1)
        expect_finish(group)


def refuse_another_key(make_group, more):
    with make_group(2) as group:
        group.start(0, more=more)
        wait_for_listener(group, 0)
        stranger = group.folder / "stranger"
        group.make_key(stranger)
        certificate = tcp_group.certificate_of(stranger)
        printed = s_client(group.ports[0], "-cert", certificate,
                           "-key", stranger)
        assert "alert" in printed and "read:errno" not in printed, printed
        # SSL_connect is done before the worker has seen the key.
        received, reason = tls.Connection(
            group.ports[0], certificate, stranger).read_to_the_end()
        assert received == b"" and "alert" in reason, (received, reason)
        group.start(1, more=more)
        expect_finish(group)


def a_client_with_another_key(make_group):
    refuse_another_key(make_group, "")


def a_client_with_another_key_in_the_clear(make_group):
    refuse_another_key(make_group, ",encryption=no")


def a_worker_with_another_key(make_group):
    """Its own error names the worker that refuses it."""
    with make_group(2) as group:
        group.start(0)
        wait_for_listener(group, 0)
        group.keys[1].unlink()
        with make_group(1, "elsewhere") as other:
            lines = group.peers.read_text().splitlines()
            words = lines[1].split()
            lines[1] = " ".join([*words[:2], other.texts[0]])
            foreign = group.folder / "foreign"
            foreign.write_text("\n".join(lines))
            worker = group.run(f"tcp:peers={foreign},key={other.keys[0]}")
            worker.expect("cannot join: tcp: worker 1 cannot connect with "
                          r"worker 0 \(w0\) at 127.0.0.1:\d+: it refused this "
                          "worker's key")
            worker.expect_exit(tcp_group.NOT_JOINED)


def other_protocols(make_group):
    """Plain text, random bytes and an older TLS."""
    with make_group(2) as group:
        group.start(0)
        wait_for_listener(group, 0)
        noise = random.Random(1)
        for first in [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", bytes(500),
                      noise.randbytes(20000),
                      b"\x16\x03\x01\x40\x00" + noise.randbytes(100),
                      b"LACH" + bytes(92)]:
            with socket.create_connection(
                    ("127.0.0.1", group.ports[0])) as s:
                s.settimeout(tcp_group.HANG)
                received = b""
                try:
                    s.sendall(first)
                    s.shutdown(socket.SHUT_WR)
                    while part := s.recv(1000):
                        received += part
                except ConnectionError:
                    pass
                assert received == b"" or (
                    received[0] == TLS_ALERT and len(received) == 7), received
        try:
            tls.Connection(group.ports[0], old=True)
            raise AssertionError("TLS 1.2 was accepted")
        except tls.Closed as closed:
            assert "alert protocol version" in str(closed), closed
        group.start(1)
        expect_finish(group)


def other_ciphers(make_group):
    """TLS 1.3 has more ciphers and groups than are accepted."""
    with make_group(2) as group:
        group.start(0)
        wait_for_listener(group, 0)
        for option, value, accepted in [
                ("-ciphersuites", "TLS_AES_128_GCM_SHA256", True),
                ("-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256", True),
                ("-ciphersuites", "TLS_AES_256_GCM_SHA384", False),
                ("-groups", "X25519", True), ("-groups", "P-256", False)]:
            printed = s_client(group.ports[0], option, value)
            expected = ("alert certificate required" if accepted
                        else "alert handshake failure")
            assert expected in printed, (value, printed)
        group.start(1)
        expect_finish(group)


def a_server_of_an_older_tls(make_group):
    """A worker that dials it reports the cause, which is not its key."""
    with make_group(2) as group, socket.create_server(
            ("127.0.0.1", group.ports[0])) as server:
        worker = group.start(1)
        accepted, _ = server.accept()
        try:
            tls.Connection(None, tcp_group.certificate_of(group.keys[0]),
                           group.keys[0], old=True, accepted=accepted)
            raise AssertionError("TLS 1.2 was accepted")
        except tls.Closed:
            accepted.close()
        worker.expect(r"worker 1 cannot connect with worker 0 \(w0\) at "
                      r"127.0.0.1:\d+: it does not speak TLS 1.3$")
        worker.expect_exit(tcp_group.NOT_JOINED)


def dial_and_wait(port, count):
    """Idle connections, as far as the worker takes them."""
    sockets = []
    for _ in range(count):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", port))
        sockets.append(s)
    return sockets


def received_by(sockets):
    """Closes the connections; returns all bytes that any of them received."""
    received = b""
    for s in sockets:
        try:
            while part := s.recv(1000):
                received += part
        except OSError:
            pass
        s.close()
    return received


def idle_connections_while_joining(make_group):
    with make_group(3) as group:
        group.start(0)
        wait_for_listener(group, 0)
        idle = dial_and_wait(group.ports[0], IDLE)
        group.start(1)
        wait_for_listener(group, 1)
        idle += dial_and_wait(group.ports[1], IDLE)
        idle += dial_and_wait(group.ports[0], IDLE)
        group.start(2)
        expect_finish(group)
        assert received_by(idle) == b""


def idle_connections_at_a_rendezvous(make_group):
    with make_group(1) as group:
        port, token = tcp_group.free_ports(1)[0], group.make_token("token")
        group.ports = [port]

        def start(rank):
            group.run(f"tcp:token={token},port={port}", environment={
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1",
                "RANK": str(rank), "WORLD_SIZE": "3"})
        start(0)
        wait_for_listener(group, 0)
        idle = dial_and_wait(port, IDLE)
        start(1)
        idle += dial_and_wait(port, IDLE)
        start(2)
        expect_finish(group)
        assert received_by(idle) == b""


def attempts_after_the_join_are_refused(make_group):
    """Once the group is complete nobody listens any more, and the run goes
    on."""
    with make_group(2) as group:
        workers = [group.start(rank, blocks=20, length=1000)
                   for rank in range(2)]
        workers[0].expect("^block", 1)
        for attempt in range(IDLE):
            with socket.socket() as s:
                code = s.connect_ex(("127.0.0.1", group.ports[attempt % 2]))
                assert code == errno.ECONNREFUSED, code
        expect_finish(group)


if __name__ == "__main__":
    tcp_group.main(sys.modules[__name__])
