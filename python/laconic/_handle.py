# SPDX-License-Identifier: MIT
"""Objects of the library: who may use them, and when they are released.

The library trusts its callers. This file makes that safe: an object that is
closed, in use by another thread, or inherited by a forked process is never
passed to the library. A fork that cannot use an object gets an error.
"""
from __future__ import annotations

import os
import threading
import time
import weakref
from ctypes import c_void_p
from types import TracebackType
from typing import (Any, Callable, Dict, List, Optional, Sequence, Type,
                    TypeVar)

from ._ffi import InvalidError

# How long the end of the program waits for calls in other threads, after
# interrupting them.
_EXIT_SECONDS = 5.0

Self = TypeVar("Self", bound="Handle")


class _Lock:
    """A lock, and the objects that were dropped while it was held.

    An object may be dropped in any thread, also inside a call of another
    object that has this lock. It is then released after that call.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Replace a lock that nobody will release any more."""
        self._lock = threading.RLock()
        self._dropped: List[Resource] = []
        self.acquire = self._lock.acquire
        self.calls = 0  #: of the thread that holds it

    def held(self) -> bool:
        """Return whether another thread holds the lock."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
            return False
        return True

    def release(self) -> None:
        self._lock.release()
        self._drain()

    def drop(self, resource: Resource) -> None:
        self._dropped.append(resource)
        self._drain()

    def _drain(self) -> None:
        # Who cannot take the lock leaves them to its holder, who comes here
        # after releasing it.
        while self._dropped and self._lock.acquire(blocking=False):
            try:
                if self.calls or not self._dropped:
                    return
                self._dropped.pop().close()
            finally:
                self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: Any) -> None:
        self.release()


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
        self._broken = False  # by a fork during a call of another thread
        self._lock: _Lock = beside._lock if beside else _Lock()
        self._inside = False
        self._owners = 1
        for need in self._needs:
            need._owners += 1

    def forked(self) -> bool:
        """Return whether this process is a fork that cannot use it."""
        return self._broken or self._process not in (None, os.getpid())

    def check_process(self) -> None:
        """Raise InvalidError in a fork that cannot use it."""
        if self._broken and self._process is None:
            raise InvalidError(
                f"{self.kind}: another thread was in a call of it when this "
                "process was forked; open another one")
        if self.forked():
            raise InvalidError(
                f"{self.kind}: opened by process {self._process}, used by "
                f"its fork {os.getpid()}")

    def __enter__(self) -> c_void_p:
        self.check_process()
        self._lock.acquire()
        if self.closed or self._inside:
            self._lock.release()
            raise InvalidError(
                f"{self.kind}: it is closed" if self.closed else
                f"{self.kind}: used inside a call of its own")
        self._inside = True
        self._lock.calls += 1
        return self._pointer

    def __exit__(self, *exception: Any) -> None:
        self._inside = False
        self._lock.calls -= 1
        self._lock.release()

    def take(self) -> c_void_p:
        """Close the object for a call that releases it, and return it."""
        with self as pointer:
            self._set_closed()
        return pointer

    def _set_closed(self) -> None:
        self.closed = True
        _open.pop(self, None)

    def close(self) -> None:
        """Release the object, once; wait for a call in another thread."""
        if self.forked():
            self._set_closed()
            return
        with self._lock:
            if self.closed:
                return
            if self._inside:
                raise InvalidError(
                    f"{self.kind}: closed inside a call of its own")
            self._set_closed()
        # Not with the lock: a call may take those of what this needs first.
        self._disown()

    def _disown(self) -> None:
        with self._lock:
            self._owners -= 1
            if self._owners > 0 or self.forked():
                return
            self._release(self._pointer)
        for need in self._needs:
            need._disown()

    def drop(self) -> None:
        """Close an object that its user has dropped, now or after the call
        that uses its lock. A forked process leaves the objects of its parent
        alone.
        """
        if not self.closed and not self.forked():
            self._lock.drop(self)

    def interrupt(self) -> None:
        """Make a call that runs in another thread return soon."""
        if self._interrupt is None:
            return
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._interrupt()

    def end(self, deadline: float) -> None:
        """Close at the end of the program, unless a call still runs at the
        deadline: then the process ends anyway.
        """
        left = max(0.0, deadline - time.monotonic())
        if self._lock.acquire(timeout=left if self._interrupt else 0.0):
            try:
                if not self._inside:
                    self.close()
            finally:
                self._lock.release()


# In the order in which they were opened.
_open: Dict[Resource, None] = {}


def _end_all() -> None:
    rest = [one for one in reversed(list(_open)) if not one.forked()]
    for one in rest:
        one.interrupt()
    deadline = time.monotonic() + _EXIT_SECONDS
    for one in rest:
        one.end(deadline)


def _after_fork() -> None:
    """A call that another thread was in has ended here halfway, and nobody
    releases its lock.
    """
    # What an open object needs may be closed, and in use all the same.
    resources = {two for one in list(_open) for two in (one, *one._needs)}
    held = {lock for lock in {one._lock for one in resources} if lock.held()}
    for one in resources:
        one._broken = one._broken or one._lock in held
    for lock in held:
        lock.renew()


os.register_at_fork(after_in_child=_after_fork)


# The end of a program calls finalizers newest first. This one is older than
# all objects that use the library, so they may still use it in theirs.
weakref.finalize(Resource, _end_all)


class Handle:
    """An object with ``close()``, also by ``with`` and when it is dropped."""

    _resource: Resource

    def _own(self, resource: Resource) -> None:
        self._resource = resource
        _open[resource] = None
        weakref.finalize(self, resource.drop).atexit = False

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
