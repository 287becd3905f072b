# SPDX-License-Identifier: MIT
"""Decentralised training: models that gossip instead of equal gradients.

Each worker trains a model of its own and averages it with those of its
neighbours, a little in every step. Parameters are mixed where they lie in
memory. The thread of a session makes all calls of the library, so a round can
run beside the gradient computation.
"""
from __future__ import annotations

import warnings
from concurrent.futures import Future, wait
from ctypes import c_void_p
from types import TracebackType
from typing import (Any, Callable, Dict, Iterable, List, Mapping, NamedTuple,
                    Optional, Sequence, Tuple, Type)

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from .. import Algorithm, InvalidError, Layout, Topology, Traffic, _ffi
from .._ffi import lib
from .._layout import escape
from ._model import (DTYPES, check_dtype, is_dense, memory_shape,
                     parameters_by_name)
from ._state import pack, unpack
from ._transport import open_session


class Gossip:
    """Gossip between the models of all workers of a group.

    An ordinary training loop becomes decentralised by three lines::

        gossip = Gossip(model, optimizer, "choco", "sign", "ring")
        for x, y in loader:
            optimizer.zero_grad()
            with gossip:                       # a round begins beside this
                loss(model(x), y).backward()
            gossip.step()                      # it ends; then optimizer.step()

    Start from the same model on all workers, for instance with the same
    ``torch.manual_seed``. All workers make the same calls in the same order.
    Two of them and more wait for each other: in ``step``, ``average_``,
    ``averaged`` and ``consensus``, and at most ``timeout`` seconds.

    ``threads`` threads of this worker share a round, with the same result.
    ``every`` is the number of steps between rounds. With ``overlap`` a round
    begins with the ``with`` block, in a thread, and parameters must not change
    in the block; else it begins in ``step``. The result is the same. The first
    round also starts the algorithm. With ``gamma=auto`` this searches a step
    size, which takes seconds for a large model.

    ``Gossip(model, optimizer, "outer", every=H)`` is DiLoCo: H local steps,
    then one of an outer optimizer from its anchor, the model after the last
    round. The first anchor is the model before the first step: that of the
    construction, unless values or a state were loaded since. The settings
    ``fragments`` and ``delay`` of ``outer`` are refused.

    Buffers such as BatchNorm's statistics stay local; ``averaged`` and
    ``average_`` average those of floating point too. Parameters that do not
    require a gradient when the object is made do not gossip.

    >>> import torch
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), 0.1)
    >>> gossip = Gossip(model, optimizer, "dpsgd")
    >>> with gossip:
    ...     model(torch.ones(1, 2)).sum().backward()
    >>> gossip.step()
    >>> gossip.consensus()
    0.0
    >>> gossip.close()
    """

    def __init__(
            self, model: nn.Module, optimizer: torch.optim.Optimizer,
            algorithm: str, compressor: Optional[str] = None,
            topology: str = "ring", *, every: int = 1, overlap: bool = True,
            group: Any = None, transport: str = "auto", seed: int = 1,
            timeout: float = 1800.0, threads: int = 1) -> None:
        if isinstance(model, DistributedDataParallel):
            raise InvalidError("Gossip: the model is in DDP, which makes all "
                               "models equal; expected the model itself")
        if every < 1:
            raise InvalidError(f"Gossip: every is {every}, expected 1 or more")
        self.model, self.optimizer = model, optimizer
        self.every, self.overlap = every, overlap
        self._seed, self._timeout, self._threads = seed, timeout, threads
        self._values = _Values([
            (name, p) for name, p in parameters_by_name(model).items()
            if p.numel() > 0])
        self._layout = self._values.layout()
        self._session = open_session(group, transport, timeout)
        try:
            self._topology = Topology(topology, self._session.world, seed=seed)
            self._algorithm = self._session.run(
                lambda: self._open(algorithm, compressor))
            if self._algorithm.family != "model":
                raise InvalidError(
                    f"Gossip: {algorithm} averages gradients, expected an "
                    "algorithm for models; laconic.torch.Hook takes it")
            _check_whole_rounds(self._algorithm)
        except BaseException:
            self._session.close()
            raise
        if self._algorithm.warning and self.rank == 0:
            warnings.warn(f"laconic: {self._algorithm.warning}", stacklevel=2)
        self._started = False
        self._steps = 0
        self._sent_before = Traffic(0, 0, 0)
        self._begun: Optional[_Begun] = None

    def _open(self, algorithm: str, compressor: Optional[str]) -> Algorithm:
        """In the thread of the session."""
        return Algorithm(
            algorithm, compressor, layout=self._layout,
            transport=self._session.transport, topology=self._topology,
            seed=self._seed, session=self._session.number,
            timeout=self._timeout, training=True, threads=self._threads)

    @property
    def rank(self) -> int:
        """The rank of this worker."""
        return self._session.rank

    @property
    def world(self) -> int:
        """The number of workers."""
        return self._session.world

    # --- training ------------------------------------------------------------

    def __enter__(self) -> Gossip:
        self._set_anchor()
        if self.overlap and self._begun is None and self._due():
            self._begun = self._begin()
        return self

    def __exit__(
            self, kind: Optional[Type[BaseException]],
            error: Optional[BaseException],
            trace: Optional[TracebackType]) -> None:
        pass

    def step(self, closure: Optional[Callable[[], float]] = None, *,
             scaler: Any = None) -> Any:
        """End the round, make the local step, and return its result.

        The local step is ``optimizer.step()``, or ``scaler.step(optimizer)``
        with a GradScaler; call ``scaler.update()`` yourself. If the round
        fails, no local step is made, except by dcd, ecd and beer, whose round
        contains it.
        """
        def local() -> Any:
            if scaler is not None:
                return scaler.step(self.optimizer)
            return (self.optimizer.step() if closure is None
                    else self.optimizer.step(closure))

        self._set_anchor()
        result = self._end(local) if self._due() else local()
        self._steps += 1
        return result

    def _due(self) -> bool:
        return (self._steps + 1) % self.every == 0

    def _set_anchor(self) -> None:
        """Start an algorithm that has an anchor before the first local step,
        which may be many steps before the first round.
        """
        if not self._started and self._algorithm.has_anchor:
            self._values.fetch()
            slices = self._values.slices()
            self._session.run(lambda: self._start_now(slices))

    def _start_now(self, slices: Any) -> None:
        """In the thread of the session."""
        if not self._started:
            self._call(self._algorithm, lib.lac_algorithm_start, slices,
                       len(slices))
            self._started = True

    def _begin(self) -> _Begun:
        self._values.fetch()
        slices = self._values.slices()
        rate = float(self.optimizer.param_groups[0]["lr"])
        return _Begun(self._values.marks(), self._session.submit(
            lambda: self._begin_now(slices, rate)))

    def _begin_now(self, slices: Any, rate: float) -> None:
        """In the thread of the session."""
        self._algorithm.set_rate(rate)
        self._start_now(slices)
        self._call(self._algorithm, lib.lac_algorithm_begin,
                   self._algorithm.round(), slices, len(slices))

    def _end(self, local: Callable[[], Any]) -> Any:
        begun, self._begun = self._begun or self._begin(), None
        begun.done.result()
        before: List[Tensor] = []
        try:
            self._values.check_unchanged(begun.marks)
            if self._algorithm.takes_update:
                before = [flat.clone() for flat in self._values.flat()]
                result = local()
        except BaseException:
            # The next step ends the round, from the values as they are now.
            self._values.fetch()
            self._begun = _Begun(self._values.marks(), begun.done)
            raise
        if not self._algorithm.takes_update:
            self._end_with(self._values.slices(), None)
            return local()
        self._values.fetch()
        updates = [(flat - old).float()
                   for flat, old in zip(self._values.flat(), before)]
        pointers = (c_void_p * len(updates))(
            *(update.data_ptr() for update in updates))
        self._end_with(self._values.slices(before), pointers)
        return result

    def _end_with(self, slices: Any, updates: Any) -> None:
        self._session.run(lambda: self._call(
            self._algorithm, lib.lac_algorithm_end, self._algorithm.round(),
            slices, updates, len(slices)))
        self._values.store()

    def _call(self, algorithm: Algorithm, function: Any,
              *arguments: Any) -> None:
        with self._session.transport._resource, algorithm._resource as a:
            function(a, *arguments)

    # --- averages ------------------------------------------------------------

    def averaged(self) -> Dict[str, Any]:
        """Return a state dict with the mean of the models of all workers.

        Tensors of integers, such as BatchNorm's counters, are this worker's.
        """
        self._require_no_round("averaged")
        state = {name: value.detach().clone(
                     memory_format=torch.contiguous_format)
                 if isinstance(value, Tensor) else value
                 for name, value in self.model.state_dict().items()}
        self._average(_floats(state.items()))
        return state

    def average_(self) -> None:
        """Replace parameters and buffers of floating point by their mean over
        all workers.
        """
        self._require_no_round("average_")
        self._average(_floats(
            [(f"parameter.{name}", p)
             for name, p in self.model.named_parameters()]
            + [(f"buffer.{name}", b)
               for name, b in self.model.named_buffers()]))
        if self._algorithm.takes_update:
            # dcd and ecd have replicas of the neighbours' models, beer
            # has public copies and gradients, outer has an anchor.
            self._session.run(self._restart)

    def consensus(self) -> float:
        """Return the mean over all workers of the squared distance of their
        parameters to the mean model.
        """
        self._require_no_round("consensus")
        own = [p.detach() for _, p in self._values.tensors]
        means = [p.clone() if p.dtype == torch.float64
                 else p.to(torch.float32, copy=True) for p in own]
        self._average([(name, mean) for (name, _), mean
                       in zip(self._values.tensors, means)])
        distances = [((p - mean) ** 2).sum(dtype=torch.float64).cpu()
                     for p, mean in zip(own, means)]
        total = torch.stack(distances).sum()
        self._average([("distance", total)])
        return float(total)

    def _average(self, tensors: Sequence[Tuple[str, Tensor]]) -> None:
        if not tensors:
            return
        values = _Values(tensors)
        values.fetch()
        slices, layout = values.slices(), values.layout()
        self._session.run(lambda: self._average_now(layout, slices))
        values.store()

    def _average_now(self, layout: Layout, slices: Any) -> None:
        """In the thread of the session."""
        with layout, Algorithm(
                "allreduce", layout=layout, transport=self._session.transport,
                session=self._session.number, timeout=self._timeout,
                nonfinite="raw") as mean:
            self._call(mean, lib.lac_algorithm_reduce, 0, slices, len(slices))

    def _restart(self, saved: bytes = b"") -> None:
        """In the thread of the session: go on with a new algorithm, from a
        state if there is one.
        """
        old = self._algorithm
        new = self._open(old.spec, old.compressor)
        try:
            if saved:
                new.load(saved)
        except BaseException:
            new.close()
            raise
        self._sent_before, self._algorithm = self.traffic, new
        old.close()
        self._started = bool(saved)

    def _require_no_round(self, what: str) -> None:
        if self._begun is not None:
            raise InvalidError(f"Gossip: {what} is called in a round, "
                               "expected after step")

    # --- state ---------------------------------------------------------------

    def state_dict(self) -> Dict[str, Any]:
        """Return the state of this worker, for ``load_state_dict``.

        Each worker saves its own, with its own model and optimizer: a run that
        loads all three continues bit for bit.
        """
        self._require_no_round("state_dict")
        saved = (self._session.run(self._algorithm.save) if self._started
                 else b"")
        return pack(self.rank, saved, world=self.world, steps=self._steps)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state of this worker.

        After an exception in a round, this leaves the round; all workers must
        do so, and load their models too.
        """
        entry = unpack("Gossip", state, self.rank)
        if not isinstance(entry.get("steps"), int):
            raise InvalidError("Gossip: the state has no number of steps, "
                               "expected the state of a Gossip")
        if self._begun is not None:
            wait([self._begun.done])
        self._session.run(lambda: self._restart(entry["state"]))
        self._begun = None
        self._steps = entry["steps"]

    @property
    def traffic(self) -> Traffic:
        """What this worker has sent so far in rounds."""
        return Traffic(*(before + now for before, now in zip(
            self._sent_before, self._algorithm.traffic)))

    @property
    def gamma(self) -> Optional[float]:
        """The step size of the algorithm, None where there is none."""
        return self._algorithm.gamma

    def close(self) -> None:
        """Leave the group. The model is as this worker trained it."""
        if not self._session.closed:
            self._session.submit(self._algorithm.close)
            self._session.close()


def _check_whole_rounds(algorithm: Algorithm) -> None:
    """Raise for rounds of a part of the tensors, or of several steps."""
    if algorithm.fragments > 1 or algorithm.delay > 0:
        raise InvalidError(
            f"Gossip: outer has fragments={algorithm.fragments} and "
            f"delay={algorithm.delay}, expected fragments=1 and delay=0: a "
            "round of Gossip exchanges all tensors in one step")


# A tensor at some time, which keeps the memory that it had, and its version.
_Mark = Tuple[Tensor, int]


class _Begun(NamedTuple):
    """A round that has begun."""

    marks: List[_Mark]
    done: Future[None]


def _floats(tensors: Iterable[Tuple[str, Any]]) -> List[Tuple[str, Tensor]]:
    return [(name, value) for name, value in tensors
            if isinstance(value, Tensor) and value.is_floating_point()
            and value.numel() > 0]


class _Values:
    """The values of named tensors as the library reads and writes them.

    Dense tensors of the CPU are used in place, in the order of their memory.
    Others, such as those of CUDA, have a copy in the memory of the host:
    ``fetch`` fills it and ``store`` writes it back.
    """

    def __init__(self, tensors: Iterable[Tuple[str, Tensor]]) -> None:
        self.tensors = list(tensors)
        self._copies: Dict[int, Tensor] = {}
        for name, tensor in self.tensors:
            check_dtype(f"Gossip: {name}", tensor)
            if tensor.layout != torch.strided:
                raise InvalidError(
                    f"Gossip: {name} is {tensor.layout}, expected a dense "
                    "tensor")

    def layout(self) -> Layout:
        """The layout; the slowest dimension of a tensor are its rows."""
        return Layout([(escape(name), memory_shape(tensor) or (1,))
                       for name, tensor in self.tensors])

    def _copy(self, index: int, tensor: Tensor) -> Optional[Tensor]:
        if tensor.device.type == "cpu" and is_dense(tensor):
            return None
        if index not in self._copies:
            dense = tensor if is_dense(tensor) else tensor.contiguous()
            self._copies[index] = torch.empty_strided(
                tensor.shape, dense.stride(), dtype=tensor.dtype,
                pin_memory=tensor.device.type == "cuda")
        return self._copies[index]

    def fetch(self) -> None:
        """Update the copies."""
        for index, (_, tensor) in enumerate(self.tensors):
            copy = self._copy(index, tensor)
            if copy is not None:
                copy.copy_(tensor.detach())

    def store(self) -> None:
        """Write the copies back, and count a change of all tensors."""
        with torch.no_grad():
            for index, (_, tensor) in enumerate(self.tensors):
                copy = self._copy(index, tensor)
                if copy is not None:
                    tensor.copy_(copy)
                else:
                    # Writes nothing, but autograd counts it.
                    tensor.detach().as_strided((0,), (1,)).zero_()

    def flat(self) -> List[Tensor]:
        """Every tensor or its copy as a vector that shares the memory."""
        found = []
        for index, (_, tensor) in enumerate(self.tensors):
            place = self._copy(index, tensor)
            found.append((tensor.detach() if place is None else place)
                         .as_strided((tensor.numel(),), (1,)))
        return found

    def slices(self, sources: Optional[Sequence[Tensor]] = None) -> Any:
        """The slices of a call that writes to the tensors."""
        flat = self.flat()
        array = (_ffi.Slice * len(flat))()
        for index, (place, target, source) in enumerate(
                zip(array, flat, sources or flat)):
            place.tensor, place.dtype = index, DTYPES[target.dtype]
            place.inp, place.out = source.data_ptr(), target.data_ptr()
        return array

    def marks(self) -> List[_Mark]:
        """What the tensors are now, for ``check_unchanged``."""
        return [(tensor.detach(), tensor._version)
                for _, tensor in self.tensors]

    def check_unchanged(self, marks: Sequence[_Mark]) -> None:
        """Fail if torch has written to a tensor since, or if it is elsewhere.

        Writes through ``.data`` are not seen.
        """
        for (name, tensor), (old, version) in zip(self.tensors, marks):
            if (tensor._version != version
                    or tensor.data_ptr() != old.data_ptr()):
                raise InvalidError(
                    f"Gossip: {name} changed in a round, expected changes by "
                    "step() alone")
