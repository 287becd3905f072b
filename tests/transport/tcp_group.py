# SPDX-License-Identifier: MIT
"""Groups of workers over tcp for tests: real ones, which are processes of the
program tcp_worker, and members that a test plays by itself, with keys and
messages as docs/format.md describes them."""
import base64
import hashlib
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import tls

HANG = 120  # seconds after which something counts as hung
FAILED, NOT_JOINED = 3, 4
DATA, ABORTED, LEFT = 0, 1, 2
ANY = 0xffffffff
TAG = 1  # of the messages of tcp_worker


def free_ports(count):
    """Ports below those that the system gives to clients."""
    found, sockets = [], []
    while len(found) < count:
        s = socket.socket(socket.AF_INET6)
        try:
            s.bind(("::", random.randrange(10000, 32000)))
        except OSError:
            s.close()
            continue
        sockets.append(s)
        found.append(s.getsockname()[1])
    for s in sockets:
        s.close()
    return found


def certificate_of(key):
    """The path of a self-signed certificate of the key in a file."""
    path = key.with_suffix(".crt")
    subprocess.run(["openssl", "req", "-x509", "-new", "-key", key, "-subj",
                    "/CN=test", "-days", "2", "-out", path], check=True,
                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path


class Worker:
    """A process whose output is collected."""

    def __init__(self, command, environment=None):
        self.lines, self.changed = [], threading.Condition()
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})})
        self.thread = threading.Thread(target=self.collect, daemon=True)
        self.thread.start()

    def collect(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append((time.monotonic(), line))
                self.changed.notify_all()
        with self.changed:
            self.lines.append((time.monotonic(), b""))
            self.changed.notify_all()

    def text(self):
        return b"".join(line for _, line in self.lines).decode("latin-1")

    def expect(self, pattern, count=1):
        """Waits for matching lines; returns the time and match of the last."""
        end = time.monotonic() + HANG
        with self.changed:
            while True:
                found = [(when, match) for when, line in self.lines
                         if (match := re.search(pattern,
                                                line.decode("latin-1")))]
                if len(found) >= count:
                    return found[count - 1]
                ended = self.lines and self.lines[-1][1] == b""
                left = end - time.monotonic()
                assert not ended and left > 0, (
                    f"no {pattern!r} in the output:\n{self.text()}")
                self.changed.wait(left)

    def exit_code(self):
        code = self.process.wait(HANG)
        self.thread.join(HANG)
        return code

    def expect_exit(self, code):
        assert self.exit_code() == code, (self.process.returncode, self.text())

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()


class Group:
    """Workers with a peers file in `folder`, all on this machine."""

    def __init__(self, folder, program, world):
        self.folder = pathlib.Path(folder)
        self.program, self.world = program, world
        self.ports = free_ports(world)
        self.keys = [self.folder / f"key{rank}" for rank in range(world)]
        self.texts = [self.make_key(path) for path in self.keys]
        self.peers = self.folder / "peers"
        self.peers.write_text("".join(
            f"w{rank} 127.0.0.1:{self.ports[rank]} {self.texts[rank]}\n"
            for rank in range(world)))
        self.workers = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            worker.kill()

    def make_key(self, path):
        """Returns the public key."""
        return subprocess.run([self.program, "key", path], check=True,
                              text=True, stdout=subprocess.PIPE).stdout.strip()

    def make_token(self, name):
        path = self.folder / name
        subprocess.run([self.program, "token", path], check=True,
                       stdout=subprocess.DEVNULL)
        return path

    def spec(self, rank, join=60, more=""):
        return (f"tcp:peers={self.peers},key={self.keys[rank]},timeout={join}"
                f"{more}")

    def run(self, spec, *, timeout=60, blocks=1, length=1000, shape=(),
            environment=None):
        """Starts a worker with any spec."""
        return self.execute(spec, timeout, blocks, length, *shape,
                            environment=environment)

    def execute(self, *words, environment=None):
        worker = Worker([self.program, *words], environment)
        self.workers.append(worker)
        return worker

    def check(self, rank):
        """Starts a worker that checks its links."""
        return self.execute("check", self.spec(rank))

    def start(self, rank, *, join=60, more="", **options):
        return self.run(self.spec(rank, join, more), **options)

    def session(self):
        """The digest of the group that HELLO carries."""
        return hashlib.sha256(b"laconic tcp 1\0" + b"".join(
            base64.b64decode(text) for text in self.texts)).digest()


def hello(world, sender, receiver, session, binding, changed=None):
    fields = {"magic": b"LACH", "version": 1, "length": 96, "flags": 1,
              "world": world, "sender": sender, "receiver": receiver,
              "incarnation": 4711, "session": session, "binding": binding}
    fields.update(changed or {})
    return struct.pack("<4sHHIIIIQ32s32s", *fields.values())


def head(kind, tag, length):
    return struct.pack("<IIQ", kind, tag, length)


class Member:
    """A worker of a group that the test plays. It dials the workers below."""

    def __init__(self, group, rank):
        self.group, self.rank = group, rank
        self.certificate = certificate_of(group.keys[rank])
        self.connections = {}

    def connect(self, peer):
        """TLS, and nothing of our protocol."""
        end = time.monotonic() + HANG
        while True:
            try:
                return tls.Connection(self.group.ports[peer], self.certificate,
                                      self.group.keys[self.rank])
            except (ConnectionError, tls.Closed):
                assert time.monotonic() < end, "nobody listens"
                time.sleep(0.01)

    def hello(self, connection, peer, **changed):
        return hello(self.group.world, self.rank, peer, self.group.session(),
                     connection.binding(), changed)

    def join_with(self, peer):
        """Connects with one worker; returns the connection."""
        connection = self.connect(peer)
        connection.write(self.hello(connection, peer))
        answer = connection.read(96)
        assert answer[:4] == b"LACH", answer
        self.connections[peer] = connection
        return connection

    def join(self):
        """Connects with all workers below; returns the connections."""
        for peer in range(self.rank):
            self.join_with(peer)
        return self.connections

    def send_all(self, data):
        for connection in self.connections.values():
            connection.write(data)

    def run_rounds(self, count, length=1000):
        """Takes part in as many rounds of tcp_worker."""
        for _ in range(count):
            self.send_all(head(DATA, TAG, length) + bytes(length))
            for connection in self.connections.values():
                assert connection.read(16) == head(DATA, TAG, length)
                connection.read(length)

    def close(self):
        for connection in self.connections.values():
            connection.close()
        self.connections = {}


def main(module):
    """Runs one case of a test: PROGRAM CASE."""
    program, case = sys.argv[1:]
    random.seed(os.getpid())  # of ports: tests run beside each other
    with tempfile.TemporaryDirectory() as folder:
        getattr(module, case)(
            lambda world, name="group": Group(
                make_folder(folder, name), program, world))


def make_folder(parent, name):
    path = pathlib.Path(parent) / name
    path.mkdir()
    return path
