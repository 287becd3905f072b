# SPDX-License-Identifier: MIT
"""Uneven inputs: the number of workers that a mean is divided by.

In DDP's ``join()`` a worker without further inputs passes zeros, for the
others. The algorithm divides the sum by all workers, as DDP does by default.
With ``divide_by_initial_world_size=False`` DDP divides by the workers that
still have inputs. It counts them, but does not pass the number to a hook; so
they are counted here, once a step.
"""
from __future__ import annotations

import weakref
from typing import Any, Callable, Optional

import numpy as np

from .. import Algorithm, Layout, Traffic
from ._session import Session


class Join:
    """Counts the workers that have inputs in a step."""

    def __init__(self, ddp: Any, session: Session, timeout: float) -> None:
        self._ddp = None if ddp is None else weakref.ref(ddp)
        self._session, self._timeout = session, timeout
        self._counter: Optional[Algorithm] = None
        self._active = session.world

    def scale_of(self, active: bool, first: bool) -> Callable[[], float]:
        """Return a function for the thread of the session, which returns the
        factor of a mean over all workers. ``active`` is whether this one has
        inputs, ``first`` whether this is the first call of a step.
        """
        if not self._divides_by_active():
            return lambda: 1.0
        return lambda: self._scale(active, first)

    def _divides_by_active(self) -> bool:
        """Whether DDP's join() asks for means over workers with inputs.

        It is the same on all workers. DDP has no public way to ask.
        """
        ddp = None if self._ddp is None else self._ddp()
        config = getattr(ddp, "_join_config", None)
        return bool(getattr(config, "enable", False) and not getattr(
            ddp, "_divide_by_initial_world_size", True))

    def _scale(self, active: bool, first: bool) -> float:
        if self._counter is None:
            self._counter = Algorithm(
                "allreduce", layout=Layout({"active": (1,)}),
                transport=self._session.transport,
                session=self._session.number, timeout=self._timeout)
        if first:
            share = np.array([active], np.float32)
            self._counter.reduce([share])
            # The share is rounded, the number of workers is exact.
            self._active = round(float(share[0]) * self._session.world)
        return self._session.world / self._active

    @property
    def traffic(self) -> Traffic:
        """What the counts have sent."""
        return (Traffic(0, 0, 0) if self._counter is None
                else self._counter.traffic)

    def close(self) -> None:
        """In the thread of the session."""
        if self._counter is not None:
            self._counter.close()
