# SPDX-License-Identifier: MIT
"""Objects of the library: who may use them, and when they are released.

The library trusts its callers. This file makes that safe: an object that is
closed, in use by another thread, or inherited by a forked process is never
passed to the library.
"""
from __future__ import annotations

import os
import threading
import weakref
from ctypes import c_void_p
from types import TracebackType
from typing import Any, Callable, Optional, Sequence, Type, TypeVar

from ._ffi import InvalidError

# How long the end of the program waits for a call in another thread, after
# interrupting it.
_EXIT_SECONDS = 5.0

Self = TypeVar("Self", bound="Handle")


class Resource:
    """A pointer of the library, its lock, and the function that releases it.

    ``with resource as pointer:`` holds the lock during a call. An object that
    another one needs, such as the layout of an algorithm, is released when
    both are closed: the other one lists it in ``needs`` and is opened while
    its lock is held. An algorithm shares the lock of its transport, which is
    ``beside`` it. ``interrupt`` makes a running call return soon. With
    ``forks`` the object also works in a process that was forked after it was
    opened.
    """

    def __init__(
            self, kind: str, pointer: c_void_p,
            release: Callable[[c_void_p], Any], *,
            needs: Sequence[Resource] = (),
            beside: Optional[Resource] = None,
            interrupt: Optional[Callable[[], None]] = None,
            forks: bool = False) -> None:
        self.kind = kind
        self.closed = False
        self._pointer = pointer
        self._release = release
        self._needs = list(needs)
        self._interrupt: Optional[Callable[[], None]] = (
            beside._interrupt if beside else interrupt)
        self._process = None if forks else os.getpid()
        self._lock: Any = beside._lock if beside else threading.RLock()
        self._inside = False
        self._owners = 1
        for need in self._needs:
            need._owners += 1

    def _forked(self) -> bool:
        return self._process not in (None, os.getpid())

    def __enter__(self) -> c_void_p:
        if self._forked():
            raise InvalidError(
                f"{self.kind}: opened by process {self._process}, used by "
                f"its fork {os.getpid()}")
        self._lock.acquire()
        if self.closed or self._inside:
            self._lock.release()
            raise InvalidError(
                f"{self.kind}: it is closed" if self.closed else
                f"{self.kind}: used inside a call of its own")
        self._inside = True
        return self._pointer

    def __exit__(self, *exception: Any) -> None:
        self._inside = False
        self._lock.release()

    def take(self) -> c_void_p:
        """Close the object for a call that releases it, and return it."""
        with self as pointer:
            self.closed = True
        return pointer

    def close(self) -> None:
        """Release the object, once; wait for a call in another thread."""
        if self._forked():
            self.closed = True
            return
        with self._lock:
            if self.closed:
                return
            if self._inside:
                raise InvalidError(
                    f"{self.kind}: closed inside a call of its own")
            self.closed = True
            self._disown()

    def _disown(self) -> None:
        with self._lock:
            self._owners -= 1
            if self._owners > 0:
                return
            self._release(self._pointer)
        for need in self._needs:
            need._disown()

    def abandon(self) -> None:
        """Close an object that its user did not close.

        If a thread is still in a call at the end of the program, the object
        is left alone: the process ends anyway. A forked process leaves the
        objects of its parent alone.
        """
        if self._forked():
            return
        if not self._lock.acquire(blocking=False):
            if self._interrupt is not None:
                self._interrupt()
            if not self._lock.acquire(timeout=_EXIT_SECONDS):
                return
        try:
            if not self._inside:
                self.close()
        finally:
            self._lock.release()


class Handle:
    """An object with ``close()``, also by ``with`` and when it is dropped."""

    _resource: Resource

    def _own(self, resource: Resource) -> None:
        self._resource = resource
        weakref.finalize(self, resource.abandon)

    @property
    def closed(self) -> bool:
        """Whether the object was closed."""
        return self._resource.closed

    def close(self) -> None:
        """Release the object. Any later use raises InvalidError."""
        self._resource.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
            self, kind: Optional[Type[BaseException]],
            error: Optional[BaseException],
            trace: Optional[TracebackType]) -> None:
        self.close()
