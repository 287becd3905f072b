# SPDX-License-Identifier: MIT
"""Sockets that a forked process closes.

A fork cannot use the connections of its parent. As long as it has copies of
them, the other workers do not notice that the parent was killed.
"""
from __future__ import annotations

import os
import weakref
from typing import List, Sequence, Tuple


def _identity(descriptor: int) -> Tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


class ClosedInForks:
    """The sockets of a transport or listener, as the library lists them."""

    def __init__(self, descriptors: Sequence[int]) -> None:
        # Another file may get the descriptor of a socket that was closed.
        self._sockets: List[Tuple[int, Tuple[int, int]]] = []
        for descriptor in descriptors:
            try:
                self._sockets.append((descriptor, _identity(descriptor)))
            except OSError:
                pass  # The library has closed it meanwhile.
        _kept.add(self)

    def close(self) -> None:
        """In a fork: close those that are still the same."""
        for descriptor, identity in self._sockets:
            try:
                if _identity(descriptor) == identity:
                    os.close(descriptor)
            except OSError:
                pass


_kept: weakref.WeakSet[ClosedInForks] = weakref.WeakSet()


def _after_fork() -> None:
    for sockets in list(_kept):
        sockets.close()


os.register_at_fork(after_in_child=_after_fork)
