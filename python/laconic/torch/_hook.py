# SPDX-License-Identifier: MIT
"""The communication hook for DistributedDataParallel.

DDP calls the hook for every bucket of gradients. The hook passes the bucket to
the thread of its session, which replaces the values by their mean over all
workers and completes the future that DDP waits for. Buckets arrive in the same
order on all workers, so the thread makes the same calls everywhere.

A future that failed would reach the user as a failed cast in C++. So a future
always succeeds, and the error is raised at the end of the backward pass, after
DDP has completed its own part.
"""
import warnings
from concurrent.futures import Future
from types import TracebackType
from typing import (TYPE_CHECKING, Any, Callable, Dict, List, Mapping,
                    Optional, Sequence, Tuple, Type)

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .. import Algorithm, InvalidError, Layout, Traffic
from .._ffi import lib
from ._device import Staged, stage
from ._join import Join
from ._model import (DTYPES, check_dtype, ignored_by_ddp, memory_shape,
                     parameters_by_name)
from ._session import Session
from ._state import pack, unpack
from ._transport import open_session

# lac_slice
_SLICE = np.dtype([("tensor", "u8"), ("dtype", "i4"), ("in", "u8"),
                   ("out", "u8")], align=True)
_Slices = npt.NDArray[np.void]

# DDP compares the annotations of a hook, so they are types and not text. Not
# all versions of torch have types for this one.
if TYPE_CHECKING:
    _GradBucket = Any
else:
    _GradBucket = dist.GradBucket


class _Plan:
    """Which tensors a bucket has, and where in its buffer."""

    def __init__(self, parameters: Sequence[torch.Tensor],
                 indices: Sequence[int]) -> None:
        self.parameters = list(parameters)
        counts = [p.numel() for p in parameters]
        starts = np.cumsum([0] + counts[:-1])
        filled = [i for i, count in enumerate(counts) if count > 0]
        self.tensors = np.array([indices[i] for i in filled], np.int64)
        self._starts = starts[filled].astype(np.uint64)
        self.host: Optional[torch.Tensor] = None

    def fits(self, parameters: Sequence[torch.Tensor]) -> bool:
        """Return whether a bucket has these parameters in this order."""
        return len(parameters) == len(self.parameters) and all(
            a is b for a, b in zip(parameters, self.parameters))

    def slices(self, values: torch.Tensor) -> _Slices:
        """Return the slices of a bucket with these values."""
        slices = np.zeros(len(self.tensors), _SLICE)
        slices["tensor"] = self.tensors
        slices["dtype"] = DTYPES[values.dtype]
        slices["in"] = values.data_ptr() + self._starts * np.uint64(
            values.element_size())
        slices["out"] = slices["in"]
        return slices


def _added(one: Traffic, other: Traffic) -> Traffic:
    return Traffic(*(a + b for a, b in zip(one, other)))


def _do_nothing() -> None:
    pass


class Hook:
    """Averages the gradients of DistributedDataParallel with compression.

        hook = laconic.torch.Hook(ddp, "powersgd:rank=2")
        ddp.register_comm_hook(hook, laconic.torch.hook)

    ``algorithm`` is a gradient algorithm and ``compressor`` its compressor, as
    ``laconic list`` prints them. All workers of the model's process group (or
    ``group``) make the Hook at the same point, with the same arguments.

    transport: "auto" connects the workers over tcp, or falls back to the
        process group with a warning; also "tcp", "c10d", "mpi" or any spec.
    timeout: seconds that a call may wait for another worker.
    nonfinite: what happens when some worker has a gradient that is not finite.
        "propagate": the gradients of that call become NaN on all workers and
        the state stays as it is, as a GradScaler needs it; also "stop",
        "skip" and "raw".
    calls: "bucket" sends every bucket as soon as it is ready; "step" sends all
        of them in one call when the last is, which is fewer messages. Use
        "step" with a GradScaler: when it skips a step, the state of the whole
        step is then as before, not of the bucket alone that was not finite.
    threads: threads that compress for this worker. The result is the same.

    Errors are raised by ``backward()``. After a PeerError the group is gone;
    the job has to be started again, from a checkpoint with ``state_dict()``.

    DDP drops the result of a parameter that no worker used in a step, though
    its error memory was sent. With a GradScaler, the error memory is in units
    of the scale at that time. ``join(divide_by_initial_world_size=False)``
    needs a Hook that was made of the DDP itself, not of the model in it.

    A copy of a Hook, which a copy of the DDP has, does not communicate.

    >>> with Hook(torch.nn.Linear(40, 30), "powersgd:rank=2") as hook:
    ...     hook.rank, hook.world, list(hook.state_dict())
    (0, 1, ['rank0'])
    """

    def __init__(
            self, model: torch.nn.Module, algorithm: str = "powersgd",
            compressor: Optional[str] = None, *, group: Any = None,
            transport: str = "auto", seed: int = 1, timeout: float = 1800.0,
            nonfinite: str = "propagate", calls: str = "bucket",
            threads: int = 1) -> None:
        if calls not in ("bucket", "step"):
            raise InvalidError(
                f"Hook: calls is {calls!r}, expected 'bucket' or 'step'")
        parameters = parameters_by_name(model, ignored_by_ddp(model))
        ddp = model if isinstance(model, DistributedDataParallel) else None
        if group is None and ddp is not None:
            group = ddp.process_group
        self._layout = Layout(
            {name: memory_shape(p) for name, p in parameters.items()})
        self._indices = {
            id(p): i for i, p in enumerate(parameters.values())}
        self._parameters = parameters
        self._settings: Dict[str, Any] = {
            "seed": seed, "timeout": timeout, "nonfinite": nonfinite,
            "threads": threads}
        self._per_step = calls == "step"
        self._plans: Dict[int, _Plan] = {}
        self._held: List[Tuple[_Plan, Staged]] = []
        self._last: Optional[Future[None]] = None
        self._error: Optional[BaseException] = None
        self._earlier = Traffic(0, 0, 0)
        self._session: Session = open_session(group, transport, timeout)
        try:
            self._algorithm = self._open(algorithm, compressor)
        except BaseException:
            self._session.close()
            raise
        self._rounds = np.zeros(len(self._layout), np.int64)
        self._join = Join(ddp, self._session, timeout)

    def _open(self, algorithm: str, compressor: Optional[str]) -> Algorithm:
        session = self._session
        try:
            opened = session.run(lambda: Algorithm(
                algorithm, compressor, layout=self._layout, training=True,
                transport=session.transport, session=session.number,
                **self._settings))
        except InvalidError as error:
            if "a topology is needed" in str(error):
                raise InvalidError(
                    f"Hook: {algorithm} averages models, expected a gradient "
                    "algorithm such as powersgd; Gossip takes it") from error
            raise
        if opened.warning is not None and session.rank == 0:
            warnings.warn(f"laconic: {opened.warning}", stacklevel=3)
        return opened

    @property
    def rank(self) -> int:
        """The rank of this worker."""
        return self._session.rank

    @property
    def world(self) -> int:
        """The number of workers."""
        return self._session.world

    # A bucket.

    def reduce(self, bucket: Any) -> Any:
        """Average a bucket; DDP calls it through ``hook``."""
        if not hasattr(bucket, "buffer"):
            raise TypeError(
                f"Hook: DDP passes a {type(bucket).__name__}, expected a "
                "GradBucket: the reducer in Python is not supported")
        if bucket.index() == 0:
            self._held = []
        # The last bucket's backward pass is the one that DDP ends in; others
        # may be in passes within it, of layers that are recomputed.
        in_backward = self._call_at_end(
            self._finish if bucket.is_last() else _do_nothing)
        try:
            staged = self._hold(bucket)
        except Exception as error:
            staged = self._refuse(bucket, error)
        if self._per_step and not bucket.is_last():
            return staged.future
        held, self._held = self._held, []
        if held:
            scale = self._join.scale_of(
                in_backward, self._per_step or bucket.index() == 0)
            self._last = self._session.submit(
                lambda: self._reduce(held, scale))
        if not in_backward:
            # A worker without inputs takes part for the others, in join().
            self._wait()
            self._raise()
        return staged.future

    def _hold(self, bucket: Any) -> Staged:
        self._session.check()
        plan = self._plan(bucket)
        staged = stage(bucket.buffer(), plan.host)
        if staged.host is not staged.values:
            plan.host = staged.host
        self._held.append((plan, staged))
        return staged

    def _refuse(self, bucket: Any, error: Exception) -> Staged:
        """Return a bucket as it is. The others cannot go on either."""
        self._fail(error)
        self._session.abort(str(error))
        staged = Staged(bucket.buffer())
        staged.restore()
        return staged

    def _fail(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error

    def _plan(self, bucket: Any) -> _Plan:
        parameters = bucket.parameters()
        plan = self._plans.get(bucket.index())
        if plan is None or not plan.fits(parameters):
            plan = _Plan(parameters, [self._index(p) for p in parameters])
            self._plans[bucket.index()] = plan
        buffer = bucket.buffer()
        name = self._name(parameters[0])
        if buffer.layout != torch.strided:
            raise InvalidError(
                f"Hook: the gradient of {name} is {buffer.layout}, expected "
                "a dense one, such as that of Embedding(sparse=False)")
        check_dtype(f"Hook: the gradient of {name}", buffer)
        return plan

    def _index(self, parameter: torch.Tensor) -> int:
        index = self._indices.get(id(parameter))
        if index is None:
            raise InvalidError(
                f"Hook: a parameter of shape {tuple(parameter.shape)} was not "
                "trained when the Hook was made, or is of another model; make "
                "a Hook of this model once all its parameters are trained")
        return index

    def _name(self, parameter: torch.Tensor) -> str:
        return self._layout[self._index(parameter)].name

    # In the thread.

    def _reduce(self, held: List[Tuple[_Plan, Staged]],
                scale: Callable[[], float]) -> None:
        try:
            factor = scale()
            for _, staged in held:
                staged.wait()
            self._call([plan.slices(staged.host) for plan, staged in held])
            if factor != 1.0:
                for _, staged in held:
                    staged.host.mul_(factor)
        except BaseException as error:
            self._fail(error)
            self._read_rounds()
        for _, staged in held:
            staged.restore()

    def _call(self, buckets: List[_Slices]) -> None:
        """Reduce buckets, all slices of one round in one call.

        Rounds differ if some parameters were not in every step.
        """
        slices = np.concatenate(buckets)
        rounds = self._rounds[slices["tensor"]]
        for number in np.unique(rounds):
            part = np.ascontiguousarray(slices[rounds == number])
            with self._algorithm._transport._resource, \
                    self._algorithm._resource as a:
                lib.lac_algorithm_reduce(
                    a, int(number), part.ctypes.data, len(part))
            self._rounds[part["tensor"]] += 1

    def _read_rounds(self) -> None:
        if not self._algorithm.closed:
            self._rounds[:] = [self._algorithm.round(i)
                               for i in range(len(self._rounds))]

    # The end of the backward pass.

    @staticmethod
    def _call_at_end(function: Any) -> bool:
        """Call a function when the backward pass ends; return whether there
        is one.
        """
        variable: Any = torch.autograd.Variable
        try:
            variable._execution_engine.queue_callback(function)
        except RuntimeError:
            return False
        return True

    def _finish(self) -> None:
        """Wait for the thread. This is before DDP's own callback; one that is
        queued now is after it.
        """
        self._wait()
        if self._error is not None:
            self._call_at_end(self._raise)

    def _wait(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    # Between steps.

    @property
    def traffic(self) -> Traffic:
        """What this worker has sent so far, with all algorithms."""
        def both() -> Tuple[Traffic, Traffic]:
            return self._algorithm.traffic, self._join.traffic

        now, counts = self._session.run(both)
        return _added(_added(self._earlier, now), counts)

    def reconfigure(self, algorithm: str,
                    compressor: Optional[str] = None) -> None:
        """Go on with other settings, the same on all workers at the same step.

        Error memory and other state start at zero. Raises InvalidError or
        NotFoundError for settings that do not exist; the Hook is then
        unchanged.
        """
        new = self._open(algorithm, compressor)
        sent = self._session.run(lambda: self._algorithm.traffic)
        self._earlier = _added(self._earlier, sent)
        old, self._algorithm = self._algorithm, new
        self._session.run(old.close)
        self._rounds[:] = 0

    def state_dict(self) -> Dict[str, Any]:
        """Return the state of this worker: error memory, factors, rounds.

        Every worker has a state of its own, under a key with its rank, so
        save all of them. It holds tensors, numbers and text only and loads
        with ``torch.load(..., weights_only=True)``.
        """
        algorithm = self._algorithm
        return pack(
            self.rank, self._session.run(algorithm.save), world=self.world,
            algorithm=algorithm.spec, compressor=algorithm.compressor or "")

    def load_state_dict(self, state: Mapping[str, Any], *,
                        other_world: bool = False) -> None:
        """Go on from a state, bit for bit.

        Parameters are found by name: the buckets, their sizes and their order
        may differ. With ``other_world`` it may be the state of another rank or
        number of workers; error memory then starts at zero. All workers must
        then pass states of one step.
        """
        data = unpack(
            "Hook", state, self.rank, any_rank=other_world,
            hint="" if other_world else
            "; other_world=True loads that of another rank")["state"]
        self._session.run(
            lambda: self._algorithm.load(data, other_world=other_world))
        self._session.run(self._read_rounds)

    def close(self) -> None:
        """Leave the group; again is allowed.

        It also happens at the end of the program.
        """
        if not self._session.closed:
            self._session.submit(self._join.close)
            self._session.submit(self._algorithm.close)
            self._session.close()

    def __reduce__(self) -> Tuple[Any, ...]:
        return _copied, ()

    def __enter__(self) -> "Hook":
        return self

    def __exit__(
            self, kind: Optional[Type[BaseException]],
            error: Optional[BaseException],
            trace: Optional[TracebackType]) -> None:
        self.close()


class HookCopy:
    """In place of the Hook in a copy of a DDP, or in one that was unpickled.

    The connections and the error memory belong to the Hook alone.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise InvalidError(
            f"Hook: {name} of a copy, which has no connections to other "
            "workers; make a Hook of the copied model")


def _copied() -> HookCopy:
    warnings.warn(
        "laconic: the Hook of a DDP is not copied with it; the copy averages "
        "gradients uncompressed until a Hook of its own is registered",
        stacklevel=2)
    return HookCopy()


def hook(
        state: Hook, bucket: _GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """The function for ``register_comm_hook``; ``state`` is a Hook."""
    future: torch.futures.Future[torch.Tensor] = state.reduce(bucket)
    return future
