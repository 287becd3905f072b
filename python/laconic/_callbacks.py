# SPDX-License-Identifier: MIT
"""Calls an object of the program as the transport of a group."""
from __future__ import annotations

import ctypes
import time
from typing import Any, List, Protocol, Sequence, Tuple

import numpy as np
import numpy.typing as npt

from . import _ffi


class TransportLike(Protocol):
    """An object that moves messages; see ``Transport.join_with``."""

    def exchange(
            self, sends: List[Tuple[int, int, memoryview]],
            receives: List[Tuple[int, int, int]],
            timeout: float) -> Sequence[Any]:
        """Send all messages and return those that were received."""


def _left(deadline: float) -> float:
    # The clock of lac_transport_now.
    return max(0.0, deadline - time.monotonic())


def _bytes(message: Any, peer: int) -> npt.NDArray[np.uint8]:
    try:
        empty = memoryview(message).nbytes == 0
    except TypeError:
        raise TypeError(
            f"exchange returned a {type(message).__name__} of worker {peer}, "
            "expected bytes") from None
    return (np.zeros(0, np.uint8) if empty
            else np.frombuffer(message, np.uint8))


class Callbacks:
    """The table of functions for an object. It keeps the object alive, and
    what was received until the next exchange.
    """

    def __init__(self, object: TransportLike) -> None:
        self._object: Any = object
        self._received: List[Any] = []
        # Members that are not set are NULL: the object lacks them.
        self.ops = _ffi.TransportOps(
            size=ctypes.sizeof(_ffi.TransportOps),
            exchange=_ffi.EXCHANGE(self._exchange))
        if hasattr(object, "abort"):
            self.ops.abort = _ffi.ABORT(self._abort)
        if hasattr(object, "leave"):
            self.ops.leave = _ffi.LEAVE(self._leave)
        if hasattr(object, "allreduce_sum"):
            self.ops.allreduce_sum = _ffi.ALLREDUCE_SUM(self._sum)

    def _exchange(self, context: Any, sends: Any, send_count: int,
                  receives: Any, receive_count: int, deadline: float) -> int:
        try:
            # Copies: the object may keep them, memory of the library not.
            messages = [
                (m.peer, m.tag, memoryview(ctypes.string_at(m.data, m.len)))
                for m in sends[:send_count]]
            places = [receives[i] for i in range(receive_count)]
            found = self._object.exchange(
                messages, [(p.peer, p.tag, p.cap) for p in places],
                _left(deadline))
            self._deliver(found, places)
        except BaseException as error:
            return _ffi.fail(error)
        return _ffi.OK

    def _deliver(self, found: Any, places: List[Any]) -> None:
        if not isinstance(found, Sequence) or isinstance(found, (bytes, str)):
            raise TypeError(
                f"exchange returned a {type(found).__name__}, expected a list "
                "of messages")
        if len(found) != len(places):
            raise _ffi.InvalidError(
                f"exchange returned {len(found)} messages, expected "
                f"{len(places)}")
        received = [_bytes(message, place.peer)
                    for message, place in zip(found, places)]
        for place, array in zip(places, received):
            if (place.buffer or place.cap) and array.size > place.cap:
                raise _ffi.SpaceError(
                    f"exchange returned {array.size} bytes of worker "
                    f"{place.peer}, expected at most {place.cap}")
            place.data = array.ctypes.data
            place.len = array.size
            if place.buffer:
                ctypes.memmove(place.buffer, place.data, place.len)
                place.data = place.buffer
        self._received = received

    def _abort(self, context: Any, why: bytes) -> None:
        self._object.abort(_ffi.text(why))

    def _leave(self, context: Any) -> None:
        self._object.leave()

    def _sum(self, context: Any, x: Any, n: int, deadline: float) -> int:
        try:
            values = np.ctypeslib.as_array(x, (n,))
            array = values.copy()
            self._object.allreduce_sum(array, _left(deadline))
            values[:] = array
        except BaseException as error:
            return _ffi.fail(error)
        return _ffi.OK
