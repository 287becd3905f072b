# SPDX-License-Identifier: MIT
"""Sockets that a forked process closes.

A fork cannot use the connections of its parent. As long as it has copies of
them, the other workers do not notice that the parent was killed.
"""
from __future__ import annotations

import os
import socket
import stat
import weakref
from typing import FrozenSet, NamedTuple


class _Socket(NamedTuple):
    descriptor: int
    inode: int  # another socket may get the descriptor later


def _is_stream(descriptor: int) -> bool:
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        return copy.type == socket.SOCK_STREAM and copy.family in (
            socket.AF_INET, socket.AF_INET6)


def streams() -> FrozenSet[_Socket]:
    """Return the stream sockets of the internet that this process has."""
    found = []
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        try:
            status = os.fstat(descriptor)
            if stat.S_ISSOCK(status.st_mode) and _is_stream(descriptor):
                found.append(_Socket(descriptor, status.st_ino))
        except OSError:
            pass  # It was closed meanwhile.
    return frozenset(found)


class ClosedInForks:
    """The sockets that a call of the library has opened."""

    def __init__(self, before: FrozenSet[_Socket]) -> None:
        self._sockets = streams() - before
        _kept.add(self)

    def close(self) -> None:
        """In a fork: close those that are still the same."""
        for descriptor, inode in self._sockets:
            try:
                if os.fstat(descriptor).st_ino == inode:
                    os.close(descriptor)
            except OSError:
                pass


_kept: weakref.WeakSet[ClosedInForks] = weakref.WeakSet()


def _after_fork() -> None:
    for sockets in list(_kept):
        sockets.close()


os.register_at_fork(after_in_child=_after_fork)
