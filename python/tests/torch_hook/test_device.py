# SPDX-License-Identifier: MIT
"""The order of copies for a device, with a fake one, and no process group."""
import contextlib
import doctest
import types

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import laconic  # noqa: E402
import laconic.torch  # noqa: E402
from laconic.torch import _device, _hook  # noqa: E402


class Stream:
    """Work that runs only when somebody waits for it."""

    def __init__(self):
        self.waiting = []

    def put(self, work):
        self.waiting.append(work)

    def run_until(self, last):
        while last in self.waiting:
            self.waiting.pop(0)()

    def run_all(self):
        while self.waiting:
            self.waiting.pop(0)()


class Device:
    """Has the names of torch.cuda, and writes down what happens."""

    def __init__(self):
        self.log = []
        self.current = Stream()
        device = self

        class Event:
            def record(self, stream):
                device.log.append("record")
                self.stream, self.mark = stream, lambda: None
                stream.put(self.mark)

            def synchronize(self):
                device.log.append("synchronize")
                self.stream.run_until(self.mark)

        self.Event = Event

    def current_stream(self, device):
        return self.current

    @contextlib.contextmanager
    def stream(self, stream):
        before, self.current = self.current, stream
        yield
        self.current = before


class OnDevice:
    """A bucket whose values are on the device."""

    device = types.SimpleNamespace(type="fake")
    layout = torch.strided

    def __init__(self, fake, values):
        self.fake, self.memory = fake, values
        self.dtype, self.shape = values.dtype, values.shape

    def copy_(self, host, non_blocking):
        assert non_blocking
        self.fake.log.append("to device")
        self.fake.current.put(
            lambda: self.memory.copy_(host.as_subclass(torch.Tensor)))


class Pinned(torch.Tensor):
    def copy_(self, values, non_blocking):
        assert non_blocking
        values.fake.log.append("to host")
        own = self.as_subclass(torch.Tensor)
        values.fake.current.put(lambda: own.copy_(values.memory))


class Bucket:
    def __init__(self, index, last, buffer, parameters):
        self.index = lambda: index
        self.is_last = lambda: last
        self.buffer = lambda: buffer
        self.parameters = lambda: parameters


class Done:
    def __init__(self, fake):
        self.fake = fake

    def set_result(self, value):
        self.fake.log.append("done")
        self.value = value


@pytest.fixture
def fake(monkeypatch):
    fake = Device()
    monkeypatch.setattr(_device, "cuda", fake)
    monkeypatch.setattr(_device, "future_on", lambda device: Done(fake))
    monkeypatch.setattr(_device, "pinned", lambda values: torch.full(
        values.shape, float("nan"), dtype=values.dtype).as_subclass(Pinned))
    return fake


def reduced(hook, fake, model):
    """Pass two buckets to the hook; return what it leaves on the device."""
    real = hook._call

    def call(slices):
        fake.log.append(f"reduce {len(slices)}")
        real(slices)
        for plan in hook._plans.values():
            # Something that only the host has.
            plan.host.as_subclass(torch.Tensor)[:] *= 2

    hook._call = call
    buffers = []
    for index, parameter in enumerate(model.parameters()):
        buffers.append(OnDevice(
            fake, torch.arange(parameter.numel()) + 10.0 * index))
        hook.reduce(Bucket(index, index == 1, buffers[-1], [parameter]))
    hook._call = real
    return buffers


def test_a_bucket_is_copied_reduced_and_copied_back_in_this_order(fake):
    model = torch.nn.Linear(4, 3)
    with laconic.torch.Hook(model, "allreduce") as hook:
        buffers = reduced(hook, fake, model)
    one = ["to host", "record", "synchronize", "reduce 1", "to device",
           "done"]
    assert fake.log == one + one
    # The copies back have not run yet; they are on the stream of the caller.
    assert len(fake.current.waiting) > 0
    fake.current.run_all()
    assert buffers[1].memory.tolist() == [20.0, 22.0, 24.0]


def test_a_step_waits_for_all_its_buckets(fake):
    model = torch.nn.Linear(4, 3)
    with laconic.torch.Hook(model, "allreduce", calls="step") as hook:
        buffers = reduced(hook, fake, model)
    assert fake.log == [
        "to host", "record", "to host", "record", "synchronize",
        "synchronize", "reduce 2", "to device", "done", "to device", "done"]
    fake.current.run_all()
    assert buffers[0].memory.tolist() == [2.0 * i for i in range(12)]
    assert buffers[1].memory.tolist() == [20.0, 22.0, 24.0]


def test_pinned_memory_is_used_again(fake):
    model = torch.nn.Linear(4, 3)
    with laconic.torch.Hook(model, "allreduce") as hook:
        reduced(hook, fake, model)
        fake.current.run_all()
        hosts = [plan.host.data_ptr() for plan in hook._plans.values()]
        reduced(hook, fake, model)
        assert hosts == [p.host.data_ptr() for p in hook._plans.values()]


def test_a_bucket_that_is_refused_completes_a_future_of_the_device(fake):
    model, other = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
    with laconic.torch.Hook(model, "allreduce") as hook:
        bucket = Bucket(0, True, OnDevice(fake, torch.zeros(12)),
                        [other.weight])
        with pytest.raises(laconic.InvalidError, match="of another model"):
            hook.reduce(bucket)
    assert fake.log == ["done"]


class StateOnDevice(torch.Tensor):
    """Refuses what torch refuses for a tensor of a device."""

    def cpu(self):
        return self.as_subclass(torch.Tensor)

    def numpy(self):
        raise TypeError("expected a tensor of the CPU")

    __array__ = numpy


def test_a_state_on_a_device_loads():
    """As torch.load(..., map_location=device) returns it."""
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    gossip = laconic.torch.Gossip(model, optimizer, "dpsgd")
    gossip.step()
    hook = laconic.torch.Hook(model, "powersgd:rank=1")
    for one in (hook, gossip):
        state = one.state_dict()
        state["rank0"]["state"] = state["rank0"]["state"].as_subclass(
            StateOnDevice)
        one.load_state_dict(state)
        one.close()


def test_one_process_needs_no_group():
    model = torch.nn.Linear(4, 3)
    with laconic.torch.Hook(model, "powersgd:rank=1") as hook:
        assert (hook.rank, hook.world) == (0, 1)
        hook.load_state_dict(hook.state_dict())


def test_more_processes_need_a_group(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(laconic.InvalidError, match="WORLD_SIZE is 2"):
        laconic.torch.Hook(torch.nn.Linear(4, 3))


def test_the_reducer_in_python_is_refused():
    with laconic.torch.Hook(torch.nn.Linear(4, 3)) as hook:
        with pytest.raises(TypeError, match="reducer in Python"):
            laconic.torch.hook(hook, (torch.ones(3), None))


def test_examples_in_texts():
    found = doctest.testmod(_hook)
    assert found.attempted > 0 and found.failed == 0
