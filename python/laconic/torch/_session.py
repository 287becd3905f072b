# SPDX-License-Identifier: MIT
"""The thread that makes the calls of a Hook or Gossip, and its end.

Library calls wait for other workers, so they run in a thread, in the order in
which they were submitted: that order must be the same on all workers.

A fork, such as a worker of a DataLoader, has no session.

At the end of the program the thread is joined before the interpreter is taken
down: a daemon thread that wakes later is unwound through C++, which aborts.
"""
from __future__ import annotations

import os
import queue
import threading
import weakref
from concurrent.futures import Future, wait
from typing import Any, Callable, Optional, Tuple, TypeVar

from .. import InvalidError, Transport

T = TypeVar("T")

# How long the end of the program waits for a call before it aborts it, and
# then for the call to return.
_GRACE_SECONDS = 5.0

_Job = Tuple["Future[Any]", Callable[[], Any]]


def _work(jobs: queue.SimpleQueue[Optional[_Job]]) -> None:
    while True:
        job = jobs.get()
        if job is None:
            return
        future, function = job
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)
        # An idle thread keeps nothing of the last job alive.
        del job, future, function


class _Calls:
    """A thread that runs functions first in, first out."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.transport: Optional[Transport] = None
        self._jobs: queue.SimpleQueue[Optional[_Job]] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=_work, args=(self._jobs,), name="laconic", daemon=True)
        self._thread.start()

    def submit(self, function: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        self._jobs.put((future, function))
        return future

    def end(self) -> None:
        """Leave the group and join the thread, once what runs has ended.

        A call that still waits for others is aborted after a while, so that
        neither this process nor the others hang. Leaving is not: the others
        may still receive what the last call has sent.
        """
        if os.getpid() != self.process:
            return
        transport = self.transport
        idle = self.submit(lambda: None)
        if transport is not None:
            self.submit(transport.close)
        self._jobs.put(None)
        if threading.current_thread() is self._thread:
            # Its last job was the last to use the session.
            return
        if transport is not None and wait([idle], _GRACE_SECONDS).not_done:
            transport.abort(f"worker {transport.rank} left during a call")
            self._thread.join(_GRACE_SECONDS)
            return
        self._thread.join()


class Session:
    """A transport, and the thread that makes all calls on it.

    ``close`` leaves the group. It also happens when the session is dropped
    and at the end of the program.
    """

    def __init__(self) -> None:
        self._calls = _Calls()
        self._end = weakref.finalize(self, self._calls.end)
        self.number = 0  #: equal on all workers, another for every session

    @property
    def transport(self) -> Transport:
        """The transport, once it was joined."""
        transport = self._calls.transport
        if transport is None:
            raise InvalidError("session: it has no transport")
        return transport

    def use(self, transport: Transport) -> None:
        """Leave by this transport at the end."""
        self._calls.transport = transport

    @property
    def rank(self) -> int:
        """The rank of this worker."""
        return self.transport.rank

    @property
    def world(self) -> int:
        """The number of workers."""
        return self.transport.world

    @property
    def closed(self) -> bool:
        """Whether it was closed; a fork has no session."""
        return not self._end.alive or os.getpid() != self._calls.process

    def check(self) -> None:
        """Raise InvalidError if it is closed."""
        if os.getpid() != self._calls.process:
            raise InvalidError(
                f"session: opened by process {self._calls.process}, used by "
                f"its fork {os.getpid()}")
        if self.closed:
            raise InvalidError("session: it is closed")

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Run a function in the thread, after all that came before."""
        self.check()
        return self._calls.submit(function)

    def run(self, function: Callable[[], T]) -> T:
        """Run a function in the thread and return what it returns."""
        return self.submit(function).result()

    def abort(self, why: str) -> None:
        """Make the calls of this worker, and soon of the others, fail."""
        if not self.closed:
            self.transport.abort(why)

    def close(self) -> None:
        """Leave the group and end the thread; again is allowed."""
        self._end()
