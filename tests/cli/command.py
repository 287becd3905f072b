# SPDX-License-Identifier: MIT
"""Shared by the tests of the command. Each is run as `test_NAME.py LACONIC` and
needs the standard library only; .npy files are written by hand.
"""
import json
import os
import pty
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

LACONIC = os.path.abspath(sys.argv.pop(1))
GOOD, FAILED, USAGE = 0, 1, 2
# Seconds after which a program hangs: fewer than CTest gives to a test, so
# that the one that hangs is named.
HANG = 300

# Below nohup, or in the background of a script, programs ignore signals that
# tests send to the command.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)


def npy(shape, values, descr="<f4", order="False", version=1):
    """The bytes of a .npy file."""
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (
        descr, order, tuple(shape))
    header = header.ljust(117) + "\n"
    code = {"<f8": "d", "|u1": "B"}.get(descr, "f")
    return (b"\x93NUMPY" + bytes([version, 0])
            + struct.pack("<H" if version == 1 else "<I", len(header))
            + header.encode() + struct.pack("<%d%s" % (len(values), code),
                                            *values))


def values_of(data):
    """The shape and values of a .npy file of version 1."""
    length, = struct.unpack("<H", data[8:10])
    header = data[10:10 + length].decode()
    shape = re.search(r"\(([^)]*)\)", header).group(1)
    body = data[10 + length:]
    return (tuple(int(d) for d in shape.split(",") if d.strip()),
            struct.unpack("<%df" % (len(body) // 4), body))


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        generator = random.Random(1)
        self.values = [generator.gauss(0, 1) for _ in range(600)]
        self.write("x.npy", npy((30, 4, 5), self.values))

    def write(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data)

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def run_laconic(self, *words, **more):
        more = {"timeout": HANG, "cwd": self.folder, **more}
        return subprocess.run((LACONIC,) + words, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, **more)

    def on_terminal(self, *words, **environment):
        """The exit code of a command whose output is a terminal, and what that
        shows. A variable that is None is not set."""
        known = {**os.environ, "TERM": "xterm", **environment}
        terminal, end = pty.openpty()
        child = subprocess.Popen(
            (LACONIC,) + words, cwd=self.folder, stdin=end, stdout=end,
            stderr=end, start_new_session=True,
            env={k: v for k, v in known.items() if v is not None})
        os.close(end)
        text = b""
        try:
            while part := os.read(terminal, 65536):
                text += part
        except OSError:  # the end of a terminal
            pass
        os.close(terminal)
        return child.wait(HANG), text.decode().replace("\r\n", "\n")

    def listed(self, kind):
        """The names that `laconic list` has of a kind."""
        kinds = json.loads(self.run_laconic("list", "--json").stdout)
        return [item["name"] for item in kinds[kind]]

    def succeeds(self, *words):
        done = self.run_laconic(*words)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, GOOD)
        return done.stdout

    def fails(self, code, message, *words, **more):
        """The first line of stderr is the message; stdout is empty."""
        before = self.files()
        done = self.run_laconic(*words, **more)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.split("\n")[0], "laconic: " + message)
        self.assertEqual(done.returncode, code)
        if code == USAGE:
            self.assertIn("try `laconic ", done.stderr)
        self.assertEqual(self.files(), before)

    def files(self):
        return {name: self.read(name) for name in os.listdir(self.folder)}

    def encode_fails(self, message):
        self.fails(FAILED, message, "encode", "--compressor", "identity",
                   "bad.npy", "out.lac")
