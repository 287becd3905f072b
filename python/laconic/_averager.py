# SPDX-License-Identifier: MIT
"""Means of NumPy arrays over workers, in one call."""
from __future__ import annotations

import os
import threading
from typing import (Any, Dict, List, Mapping, Optional, Tuple, TypeVar,
                    Union)

import numpy as np

from . import _ffi
from ._algorithm import Algorithm, Traffic
from ._arrays import Array, readable
from ._layout import Layout, escape
from ._topology import Topology
from ._transport import Transport

_VERSION = 1
_VARIABLE = "LACONIC_TRANSPORT"

Values = TypeVar("Values", Array, List[Array], Dict[str, Array])
_Tensors = Tuple[Tuple[str, Tuple[int, ...]], ...]
# "array", "list" or "dict", then names and shapes. Equal names in two forms
# share no state.
_Key = Tuple[str, _Tensors]


def _join(comm: Any, transport: Union[None, str, Transport],
          timeout: float) -> Transport:
    if comm is not None:
        if transport is not None:
            raise _ffi.InvalidError(
                "averager: both comm and transport are given, expected one")
        return Transport.mpi(comm, timeout=timeout)
    if isinstance(transport, Transport):
        return transport
    spec = transport or os.environ.get(_VARIABLE)
    if not spec:
        raise _ffi.InvalidError(
            "averager: expected comm, transport, or a process that laconic "
            "launch has started")
    return Transport(spec)


class Averager:
    """Averages arrays over all workers with a gradient algorithm.

    The workers are those of ``comm``, a communicator of mpi4py, or of
    ``transport``, a Transport or its spec. Without either, the process must
    have been started by ``laconic launch``. A Transport that is given is not
    closed.

    Arrays are float32, float64 or float16. Error memory is kept from call to
    call, for each set of names and shapes, until ``close``: arrays of ever new
    shapes need ever more memory. All workers make the same calls in the same
    order. ``session`` distinguishes the messages of averagers of one
    transport; unless it is given, they are numbered as they are opened.

    >>> import numpy as np
    >>> from laconic import Hub
    >>> with Hub(1) as hub, hub.join(0) as transport:
    ...     averager = Averager("powersgd:rank=2", transport=transport)
    ...     mean = averager.mean({"weight": np.ones((8, 4)),
    ...                           "bias": np.ones(8, np.float32)})
    >>> mean["weight"].dtype, mean["bias"].shape
    (dtype('float64'), (8,))
    """

    def __init__(
            self, algorithm: str = "allreduce",
            compressor: Optional[str] = None, *, comm: Any = None,
            transport: Union[None, str, Transport] = None, seed: int = 1,
            session: Optional[int] = None, timeout: float = 60.0,
            nonfinite: str = "stop", threads: int = 1) -> None:
        self._options: Dict[str, Any] = {
            "seed": seed, "session": session or 0, "timeout": timeout,
            "nonfinite": nonfinite, "threads": threads}
        self.algorithm = algorithm
        self.compressor = compressor
        self._algorithms: Dict[_Key, Algorithm] = {}
        # Of the dict: calls of threads may open algorithms.
        self._lock = threading.Lock()
        self._closed = False
        self._closed_traffic = Traffic(0, 0, 0)
        self._own_transport = not isinstance(transport, Transport)
        self.transport = _join(comm, transport, timeout)
        # A mistake in a spec is reported here, not by the first call.
        try:
            self._open((), Topology("ring", self.world)).close()
        except BaseException:
            self.close()
            raise
        if session is None:
            self._options["session"] = next(self.transport._averagers)

    @property
    def rank(self) -> int:
        """The rank of this worker."""
        return self.transport.rank

    @property
    def world(self) -> int:
        """The number of workers."""
        return self.transport.world

    def _open(self, tensors: _Tensors,
              topology: Optional[Topology] = None) -> Algorithm:
        # With a topology model algorithms are opened too, and then refused.
        with Layout(tensors) as layout:
            algorithm = Algorithm(
                self.algorithm, self.compressor, layout=layout,
                transport=self.transport, topology=topology, **self._options)
        if algorithm.family != "gradient":
            algorithm.close()
            raise _ffi.InvalidError(
                f"averager: {self.algorithm} is a model algorithm, expected "
                "a gradient algorithm")
        return algorithm

    def _check_open(self) -> None:
        # First: in a fork nobody may be left to release the lock.
        self.transport._resource.check_process()
        if self._closed or self.transport.closed:
            raise _ffi.InvalidError("averager: it is closed")

    def _reduce(self, form: str, arrays: Mapping[str, Array],
                out: Mapping[str, Array]) -> None:
        tensors = tuple((name, a.shape) for name, a in arrays.items())
        key = (form, tensors)
        self._check_open()
        with self._lock:
            self._check_open()
            if not tensors:
                return
            if key not in self._algorithms:
                self._algorithms[key] = self._open(tensors)
            algorithm = self._algorithms[key]
        algorithm.reduce(arrays, out=out)

    def mean(self, values: Values, out: Optional[Values] = None) -> Values:
        """Return the mean over all workers, as the algorithm approximates it.

        ``values`` is an array, a list of arrays or a dict of them by name. The
        results have the same form and types; they are new arrays, or those of
        ``out``, which may be ``values`` itself. All workers get the same bits.
        """
        form, given = _named(values, "mean")
        arrays = {name: readable(value, f"mean: {name}")
                  for name, value in given.items()}
        if out is None:
            targets = {name: np.empty(a.shape, a.dtype)
                       for name, a in arrays.items()}
        else:
            _, targets = _named(out, "mean: out")
            _check_shapes(arrays, targets)
            # An array that is both is passed as it is: a copy of a view that
            # is not contiguous would hide that it cannot be written.
            arrays = {name: given[name] if given[name] is targets[name]
                      else array for name, array in arrays.items()}
        self._reduce(form, arrays, targets)
        if out is not None:
            return out
        results = list(targets.values())
        return (dict(zip(values, results))  # type: ignore[return-value]
                if form == "dict" else
                results if form == "list" else results[0])

    @property
    def traffic(self) -> Traffic:
        """What this worker has sent so far."""
        counts = [self._closed_traffic] + [
            a.traffic for a in list(self._algorithms.values())]
        return Traffic(*map(sum, zip(*counts)))

    def state_dict(self) -> Dict[str, Any]:
        """Return the state of this worker: rounds, error memories, factors.

        It consists of numbers, text and bytes. Every worker saves its own.
        """
        self._check_open()
        return {
            "version": _VERSION,
            "states": [{
                "form": form,
                "names": [name for name, _ in tensors],
                "shapes": [list(shape) for _, shape in tensors],
                "state": algorithm.save(),
            } for (form, tensors), algorithm in list(
                self._algorithms.items())],
        }

    def load_state_dict(self, state: Mapping[str, Any], *,
                        other_world: bool = False) -> None:
        """Replace the state by a saved one and continue bit for bit.

        The averager must have the settings of the saved one. With
        ``other_world`` the rank or the number of workers may differ; error
        memory then starts at zero. After a failure the state is as before.
        """
        self._check_open()
        if state.get("version") != _VERSION:
            raise _ffi.InvalidError(
                f"averager: the state has version {state.get('version')!r}, "
                f"expected {_VERSION}")
        loaded: Dict[_Key, Algorithm] = {}
        try:
            for saved in state["states"]:
                tensors = tuple(
                    (name, tuple(shape)) for name, shape
                    in zip(saved["names"], saved["shapes"]))
                key = (str(saved["form"]), tensors)
                loaded[key] = self._open(tensors)
                loaded[key].load(saved["state"], other_world=other_world)
        except BaseException:
            _close_all(loaded)
            raise
        with self._lock:
            self._closed_traffic = self.traffic
            _close_all(self._algorithms)
            self._algorithms = loaded

    def close(self) -> None:
        """Release all state, and leave the group if this object joined it."""
        if self.transport._resource.forked():
            self._release()
        else:
            with self._lock:
                self._release()
        if self._own_transport:
            self.transport.close()

    def _release(self) -> None:
        self._closed = True
        _close_all(self._algorithms)

    def __enter__(self) -> Averager:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def _close_all(algorithms: Mapping[_Key, Algorithm]) -> None:
    for algorithm in algorithms.values():
        algorithm.close()


def _named(values: Any, what: str) -> Tuple[str, Dict[str, Any]]:
    """Return the form of values, and them by names that a layout accepts."""
    if isinstance(values, Mapping):
        for name in values:
            if not isinstance(name, str):
                raise TypeError(f"{what}: a name is {name!r}, expected a str")
        return "dict", {escape(name): value for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        return "list", {str(i): value for i, value in enumerate(values)}
    return "array", {"array": values}


def _check_shapes(arrays: Mapping[str, Array],
                  targets: Mapping[str, Any]) -> None:
    if arrays.keys() != targets.keys():
        raise _ffi.InvalidError(
            "mean: out has other names than the values: "
            f"{sorted(arrays.keys() ^ targets.keys())}")
    for name, array in arrays.items():
        if np.shape(targets[name]) != array.shape:
            raise _ffi.InvalidError(
                f"mean: out of {name} has shape "
                f"{np.shape(targets[name])}, expected {array.shape}")
