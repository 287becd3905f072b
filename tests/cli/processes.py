# SPDX-License-Identifier: MIT
"""Shared by the tests of commands that start processes or listen: ports, and
processes that are awaited instead of polled.
"""
import os
import re
import select
import signal
import socket
import threading

ENOUGH = 60  # seconds after which something hangs


def free_port():
    """A port of the loopback address that was free a moment ago."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """A process that is not a child of this one."""

    def __init__(self, pid):
        self.pid = pid
        try:
            self.file = os.pidfd_open(pid)
        except ProcessLookupError:
            self.file = None

    def kill(self, number=signal.SIGKILL):
        if self.file is not None:
            try:
                signal.pidfd_send_signal(self.file, number)
            except ProcessLookupError:
                pass

    def ends(self, seconds=ENOUGH):
        """Whether it has ended, after a wait if need be."""
        if self.file is None:
            return True
        poll = select.poll()
        poll.register(self.file, select.POLLIN)
        return bool(poll.poll(1000 * seconds))

    def close(self):
        self.kill()
        if self.file is not None:
            os.close(self.file)
            self.file = None


def parent(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def words_of(pid):
    """The command line of a process, [] if it is gone."""
    try:
        with open("/proc/%d/cmdline" % pid, encoding="utf-8",
                  errors="replace") as file:
            return file.read().split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


def handles(pid, number):
    """Whether a process has a handler of the signal."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        caught = re.search(r"^SigCgt:\s*(\w+)$", file.read(), re.M)
    return caught is not None and int(caught[1], 16) >> (number - 1) & 1 == 1


class Reader:
    """Collects the lines of a stream, and waits for text instead of time."""

    def __init__(self, stream):
        self.text, self.ended = "", False
        self.changed = threading.Condition()
        threading.Thread(target=self.collect, args=(stream,),
                         daemon=True).start()

    def collect(self, stream):
        with stream:
            for line in stream:
                with self.changed:
                    self.text += line
                    self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait_for(self, found, seconds=ENOUGH):
        """What `found` returns of the text, once it is true or time is up."""
        with self.changed:
            self.changed.wait_for(lambda: found(self.text) or self.ended,
                                  seconds)
            return found(self.text)
