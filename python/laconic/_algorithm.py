# SPDX-License-Identifier: MIT
"""Algorithms: averages of tensors over workers, with little communication."""
from __future__ import annotations

import bisect
import contextlib
import ctypes
import math
from ctypes import byref, c_void_p
from typing import (Any, Dict, List, Mapping, NamedTuple, Optional, Sequence,
                    Tuple, Union)

import numpy as np
import numpy.typing as npt

from . import _ffi
from ._arguments import c_text, choice, kind, number, seconds
from ._arrays import Array, address, dtype_of, floats, readable, writable
from ._ffi import lib
from ._handle import Handle, Resource
from ._layout import Layout, Tensor
from ._topology import Topology
from ._transport import Transport

Arrays = Union[Mapping[str, Array], Sequence[Array]]
Updates = Union[Mapping[str, Array], Sequence[Optional[Array]]]

_FAMILIES = ("model", "gradient")
_NONFINITE = ("stop", "skip", "raw", "propagate")


class Traffic(NamedTuple):
    """What this worker has sent so far."""

    payload_bytes: int
    wire_bytes: int
    messages: int


class _Targets:
    """The memory of all results, which do not overlap."""

    def __init__(self, targets: Mapping[str, Array]) -> None:
        spans = sorted((address(a), address(a) + a.nbytes, what)
                       for what, a in targets.items() if a.size)
        for (_, end, what), (start, _, other) in zip(spans, spans[1:]):
            if start < end:
                raise _ffi.InvalidError(
                    f"{what} and {other} share memory, expected results "
                    "apart")
        self._starts = [start for start, _, _ in spans]
        self._ends = [end for _, end, _ in spans]

    def overlap(self, source: Array) -> bool:
        """Return whether writing the results would change the array."""
        start = address(source)
        before = bisect.bisect_left(self._starts, start + source.nbytes)
        return before > 0 and self._ends[before - 1] > start


class _Call:
    """The slices of a call. It keeps the arrays alive that they point to."""

    def __init__(self, count: int, targets: Mapping[str, Array]) -> None:
        self.slices = (_ffi.Slice * count)()
        self._targets = _Targets(targets)
        self.updates = (c_void_p * count)()
        self._kept: List[Array] = []

    def add(self, place: Any, index: int, source: Array, target: Array,
            what: str) -> None:
        """Fill one slice."""
        if source.dtype != target.dtype:
            raise _ffi.InvalidError(
                f"{what} has dtype {source.dtype}, its result {target.dtype}")
        if address(source) != address(target) and self._targets.overlap(
                source):
            source = source.copy()
        place.tensor = index
        place.dtype = dtype_of(target, what)
        place.inp = address(source)
        place.out = address(target)
        self._kept += [source, target]

    def update(self, position: int, step: npt.NDArray[np.float32]) -> None:
        """Set the local step of one slice."""
        self.updates[position] = address(step)
        self._kept.append(step)


class Algorithm(Handle):
    """One worker of an algorithm.

    A gradient algorithm (``family`` "gradient") averages by ``reduce``. A
    model algorithm gossips with its neighbours in a topology: ``start`` once,
    then ``mix``, or ``begin`` and ``end``, in every round. All workers make
    the same calls in the same order.

    Arrays are given by name, or as a list in the order of the layout. They are
    replaced by the results, unless ``out`` has other arrays for these. Rounds
    of a tensor count from 0; without ``round`` a call is its next round.

    >>> import numpy as np
    >>> layout = Layout({"weight": (2, 2)})
    >>> from laconic import Hub
    >>> with Hub(1) as hub, hub.join(0) as transport:
    ...     algorithm = Algorithm("allreduce", layout=layout,
    ...                           transport=transport)
    ...     weight = np.ones((2, 2))
    ...     algorithm.reduce({"weight": weight})
    ...     algorithm.family, algorithm.round("weight")
    ('gradient', 1)
    """

    def __init__(
            self, spec: str, compressor: Optional[str] = None, *,
            layout: Layout, transport: Transport,
            topology: Optional[Topology] = None, seed: int = 1,
            session: int = 0, timeout: float = 60.0, training: bool = False,
            nonfinite: str = "stop", timing: bool = False,
            threads: int = 1) -> None:
        kind(layout, "algorithm: layout", Layout)
        kind(transport, "algorithm: transport", Transport)
        if topology is not None:
            kind(topology, "algorithm: topology", Topology)
        options = _ffi.AlgorithmOptions()
        lib.lac_algorithm_options_init(
            byref(options), ctypes.sizeof(options))
        options.spec = c_text(spec, "algorithm")
        if compressor is not None:
            options.compressor = c_text(compressor, "compressor")
        options.seed = number(seed, "algorithm: seed")
        options.session = number(session, "algorithm: session")
        options.timeout = seconds(timeout)
        options.training = training
        options.nonfinite = choice(
            nonfinite, "algorithm: nonfinite", _NONFINITE)
        options.timing = timing
        options.threads = number(threads, "algorithm: threads", 32)
        self.spec = spec
        self.compressor = compressor
        self._transport = transport
        self._tensors: List[Tensor] = list(layout)
        self._indices = {t.name: i for i, t in enumerate(self._tensors)}
        self._open(options, layout, topology)

    def _open(self, options: Any, layout: Layout,
              topology: Optional[Topology]) -> None:
        needs = [layout._resource]
        pointer = c_void_p()
        with contextlib.ExitStack() as stack:
            options.transport = stack.enter_context(self._transport._resource)
            options.layout = stack.enter_context(layout._resource)
            if topology is not None:
                options.topology = stack.enter_context(topology._resource)
                needs.append(topology._resource)
            lib.lac_algorithm_open(byref(pointer), byref(options))
            self._own(Resource(
                "algorithm", pointer, lib.lac_algorithm_close, needs=needs,
                beside=self._transport._resource))
            self._read_anchor(options)
        self.family = _FAMILIES[lib.lac_algorithm_family(pointer)]
        #: Whether the local step must be given as ``updates``.
        self.takes_update = bool(lib.lac_algorithm_takes_update(pointer))
        warning = lib.lac_algorithm_warning(pointer)
        #: A warning about this choice of algorithm and compressor, or None.
        self.warning = None if warning is None else _ffi.text(warning)

    def _read_anchor(self, options: Any) -> None:
        #: Whether rounds have an anchor, the model after the last one.
        self.has_anchor = self.spec.partition(":")[0] == "outer"
        #: Settings of ``outer``: groups of tensors with rounds of their own,
        #: and local steps within a round.
        self.fragments, self.delay = 1, 0
        if self.has_anchor:
            cost = _ffi.Cost()
            lib.lac_algorithm_cost(byref(options), byref(cost))
            self.fragments, self.delay = cost.fragments, cost.delay

    def _index(self, tensor: Union[int, str]) -> int:
        if isinstance(tensor, str):
            if tensor not in self._indices:
                raise _ffi.NotFoundError(
                    f"algorithm: no tensor is named {tensor!r}")
            return self._indices[tensor]
        if number(tensor, "algorithm: tensor") >= len(self._tensors):
            raise _ffi.InvalidError(
                f"algorithm: tensor is {tensor}, expected less than "
                f"{len(self._tensors)}")
        return tensor

    def _by_index(self, arrays: Any, what: str) -> List[Tuple[int, Any]]:
        if isinstance(arrays, Mapping):
            return [(self._index(name), a) for name, a in arrays.items()]
        if len(arrays) != len(self._tensors):
            raise _ffi.InvalidError(
                f"{what} has {len(arrays)} arrays, expected "
                f"{len(self._tensors)}")
        return list(enumerate(arrays))

    def _fitting(self, index: int, array: Array, what: str) -> Array:
        if array.size != self._tensors[index].values:
            raise _ffi.InvalidError(
                f"{what} has {array.size} values, expected "
                f"{self._tensors[index].values}")
        return array

    def _call(self, arrays: Arrays, out: Optional[Arrays]) -> _Call:
        items = self._by_index(arrays, "algorithm: the list")
        given = dict(items if out is None
                     else self._by_index(out, "algorithm: out"))
        targets: Dict[str, Array] = {}
        for index, _ in items:
            what = f"algorithm: {self._tensors[index].name}"
            if index not in given:
                raise _ffi.InvalidError(f"{what} is not in out")
            targets[what] = self._fitting(
                index, writable(given[index], what), what)
        call = _Call(len(items), targets)
        for place, (index, array), (what, target) in zip(
                call.slices, items, targets.items()):
            source = self._fitting(index, readable(array, what), what)
            call.add(place, index, source, target, what)
        return call

    @staticmethod
    def _next(a: c_void_p, items: _Call, round: Optional[int]) -> int:
        # With the lock of the call: another thread may make the same one.
        if round is not None:
            return number(round, "algorithm: round")
        rounds = {int(lib.lac_algorithm_round(a, place.tensor))
                  for place in items.slices}
        if len(rounds) > 1:
            raise _ffi.InvalidError(
                "algorithm: the tensors are in different rounds: "
                f"{sorted(rounds)}")
        return rounds.pop() if rounds else 0

    def round(self, tensor: Union[int, str] = 0) -> int:
        """Return the number of the next round of a tensor."""
        index = self._index(tensor)
        with self._resource as a:
            return int(lib.lac_algorithm_round(a, index))

    def reduce(self, arrays: Arrays, *, out: Optional[Arrays] = None,
               round: Optional[int] = None) -> None:
        """Write the mean over all workers, as the algorithm approximates it,
        with the same bits on all workers. Gradient algorithms only.
        """
        call = self._call(arrays, out)
        with self._transport._resource, self._resource as a:
            lib.lac_algorithm_reduce(
                a, self._next(a, call, round), call.slices,
                len(call.slices))

    def start(self, arrays: Arrays) -> None:
        """Start from the values of all tensors. Model algorithms only."""
        call = self._call(arrays, None)
        with self._transport._resource, self._resource as a:
            lib.lac_algorithm_start(a, call.slices, len(call.slices))

    def begin(self, arrays: Arrays, *, round: Optional[int] = None) -> None:
        """Run the part of a round that may overlap with the computation of the
        gradient; it only reads the arrays.
        """
        call = self._call(arrays, None)
        with self._transport._resource, self._resource as a:
            lib.lac_algorithm_begin(
                a, self._next(a, call, round), call.slices,
                len(call.slices))

    def end(self, arrays: Arrays, updates: Optional[Updates] = None, *,
            round: Optional[int] = None) -> None:
        """Finish the round, add the local steps ``updates`` (float32), and
        write the new values.
        """
        self._finish(lib.lac_algorithm_end, arrays, updates, round)

    def mix(self, arrays: Arrays, updates: Optional[Updates] = None, *,
            round: Optional[int] = None) -> None:
        """Do ``begin`` and ``end`` in one call."""
        self._finish(lib.lac_algorithm_mix, arrays, updates, round)

    def _finish(self, function: Any, arrays: Arrays,
                updates: Optional[Updates], round: Optional[int]) -> None:
        call = self._call(arrays, None)
        if updates is not None:
            steps = dict(self._by_index(updates, "algorithm: updates"))
            for i, place in enumerate(call.slices):
                step = steps.get(place.tensor)
                if step is not None:
                    what = ("algorithm: the update of "
                            f"{self._tensors[place.tensor].name}")
                    call.update(i, self._fitting(
                        place.tensor, floats(step, what), what))
        with self._transport._resource, self._resource as a:
            function(a, self._next(a, call, round), call.slices,
                     None if updates is None else call.updates,
                     len(call.slices))

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the local steps, which beer and choco
        with a trigger use. It is 1 at first and is not saved."""
        with self._resource as a:
            lib.lac_algorithm_set_rate(a, rate)

    @property
    def gamma(self) -> Optional[float]:
        """The step size in use, None where there is none."""
        with self._resource as a:
            gamma = float(lib.lac_algorithm_gamma(a))
        return None if math.isnan(gamma) else gamma

    @property
    def traffic(self) -> Traffic:
        """What this worker has sent so far."""
        with self._resource as a:
            sent = lib.lac_algorithm_traffic(a)
        return Traffic(sent.payload_bytes, sent.wire_bytes, sent.messages)

    @property
    def waited(self) -> float:
        """The seconds spent in exchanges, 0 without ``timing``."""
        with self._resource as a:
            return float(lib.lac_algorithm_waited(a))

    def use_kernels(self, name: str) -> None:
        """Select the kernels by name, like Compressor.use_kernels."""
        with self._resource as a:
            lib.lac_algorithm_use_kernels(a, c_text(name, "kernels"))

    def save(self) -> bytes:
        """Return the state, between rounds."""
        with self._resource as a:
            state = np.empty(lib.lac_algorithm_state_size(a), np.uint8)
            lib.lac_algorithm_save(a, address(state), state.size)
        return state.tobytes()

    def load(self, state: bytes, *, other_world: bool = False) -> None:
        """Replace the state by a saved one and continue bit for bit.

        With ``other_world`` a gradient algorithm accepts the state of another
        rank or number of workers: error memory and local momentum then start
        at zero.
        """
        data = bytes(state)
        with self._resource as a:
            if other_world:
                lib.lac_algorithm_load_with(
                    a, data, len(data), _ffi.LOAD_OTHER_WORLD)
            else:
                lib.lac_algorithm_load(a, data, len(data))
