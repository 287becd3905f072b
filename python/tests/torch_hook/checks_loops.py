# SPDX-License-Identifier: MIT
"""Training loops of all kinds, two ranks."""
import gc
import os
import random
import threading
import warnings
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import laconic
import laconic.torch
from laconic.torch import _transport
from laconic.torch._c10d import C10d
from training import (INPUTS, agrees_with_plain, batches, digest, model,
                      optimizer_of, same_everywhere, steps, trained, wrap)


def check_gradients_are_accumulated_without_sync():
    def loss_of(ddp, x, y):
        with ddp.no_sync():
            cross_entropy(ddp(x[:4]), y[:4]).backward()
        return cross_entropy(ddp(x[4:]), y[4:])

    agrees_with_plain(loss_of=loss_of)


def check_ranks_have_uneven_inputs():
    def data():
        return batches(4 + 3 * dist.get_rank())

    for calls in ("bucket", "step"):
        plain = trained(data=data, around=lambda ddp: ddp.join())
        for algorithm in ("allreduce", "powersgd:rank=1"):
            found = trained(algorithm=algorithm, data=data, calls=calls,
                            around=lambda ddp: ddp.join())
            assert (found == plain) == (algorithm == "allreduce")


def check_two_models_are_hooked():
    """Both in one backward pass: their buckets alternate."""
    specs = ("powersgd:rank=1", "allreduce")
    expected = [trained(algorithm=spec) for spec in specs]
    for transport in ("auto", "c10d"):
        pairs = [wrap(model(), spec, transport=transport) for spec in specs]
        optimizers = [optimizer_of(ddp) for ddp, _ in pairs]
        for x, y in batches(6):
            for optimizer in optimizers:
                optimizer.zero_grad()
            sum(cross_entropy(ddp(x), y) for ddp, _ in pairs).backward()
            for optimizer in optimizers:
                optimizer.step()
        for (ddp, hook), one in zip(pairs, expected):
            assert digest(ddp) == one
            hook.close()


def check_one_model_after_another_leaves_nothing():
    """Neither threads nor open files."""
    found = []
    for _ in range(6):
        trained(algorithm="powersgd:rank=1", count=1)
        found.append((threading.active_count(),
                      len(os.listdir("/proc/self/fd"))))
    assert found[-1] == found[1], found


def poison(ddp, x, y):
    loss = cross_entropy(ddp(x), y)
    if poison.step == 3 and dist.get_rank() == 1:
        loss = loss * float("nan")
    poison.step += 1
    return loss


def check_nan_on_one_rank_reaches_all():
    for algorithm, compressor in (("powersgd:rank=1", None),
                                  ("allreduce", None),
                                  ("error-feedback", "sign")):
        poison.step = 0
        ddp, hook = wrap(model(), algorithm, compressor)
        seen = []
        for x, y in batches(6):
            ddp.zero_grad()
            poison(ddp, x, y).backward()
            bad = [bool(torch.isnan(p.grad).all()) for p in ddp.parameters()]
            fine = [bool(torch.isfinite(p.grad).all())
                    for p in ddp.parameters()]
            assert all(bad) or all(fine)
            seen.append(all(bad))
        assert seen == [False, False, False, True, False, False], algorithm
        hook.close()


class Scaler:
    """What torch.cuda.amp.GradScaler does; it needs a CUDA device."""

    def __init__(self, scale):
        self.value = scale

    def scale(self, loss):
        return loss * self.value

    def step(self, optimizer):
        gradients = [p.grad for group in optimizer.param_groups
                     for p in group["params"]]
        for gradient in gradients:
            gradient /= self.value
        if all(torch.isfinite(g).all() for g in gradients):
            optimizer.step()
        else:
            self.value /= 2


def check_nan_on_one_rank_skips_the_step_of_a_scaler():
    """All ranks skip that step alone: the state is that of a run without it.
    """
    def run(with_nan):
        poison.step = 0 if with_nan else 100
        ddp, hook = wrap(model(), "powersgd:rank=1")
        optimizer, scaler = optimizer_of(ddp), Scaler(16.0)
        for step, (x, y) in enumerate(batches(6)):
            if step == 3 and not with_nan:
                scaler.value /= 2
                continue
            optimizer.zero_grad()
            scaler.scale(poison(ddp, x, y)).backward()
            scaler.step(optimizer)
        state = hook.state_dict()[f"rank{hook.rank}"]["state"]
        hook.close()
        same_everywhere(scaler.value)
        return same_everywhere(digest(ddp)), scaler.value, state

    with_nan, without = run(True), run(False)
    assert with_nan[1] == without[1] == 8.0
    # The round of the NaN counts, so the random draws of later ones differ
    # from those of the run without it; powersgd draws only at its start.
    assert with_nan[0] == without[0]


def check_a_layer_that_is_not_finite_leaves_the_memory_of_its_call():
    """The whole memory with one call for a step, so that a step which a scaler
    skips changes nothing; that of its bucket with a call for every bucket.
    """
    def run(calls, with_nan):
        ddp, hook = wrap(model(), "powersgd:rank=1", calls=calls)
        optimizer = optimizer_of(ddp)
        steps(ddp, optimizer, batches(2))
        if with_nan:
            poisoned = ddp.module[0].weight.register_hook(
                lambda g: g * float("nan") if dist.get_rank() == 1 else g)
            x, y = next(batches(1, 2))
            cross_entropy(ddp(x), y).backward()
            poisoned.remove()
            assert torch.isnan(ddp.module[0].weight.grad).all()
        steps(ddp, optimizer, batches(2, 3))
        hook.close()
        return same_everywhere(digest(ddp))

    for calls in ("step", "bucket"):
        assert (run(calls, True) == run(calls, False)) == (calls == "step")


def check_nan_stops_by_request_and_training_goes_on():
    poison.step = 0
    ddp, hook = wrap(model(), "powersgd:rank=1", nonfinite="stop")
    optimizer = optimizer_of(ddp)
    raised = 0
    for x, y in batches(6):
        optimizer.zero_grad()
        try:
            poison(ddp, x, y).backward()
        except laconic.InvalidError as error:
            assert "worker 1" in str(error), error
            raised += 1
            continue
        optimizer.step()
    assert raised == 1
    same_everywhere(digest(ddp))
    hook.close()


class Recomputed(nn.Module):
    """The last layer, of the first bucket, is in a backward pass of its own
    within that of the model.
    """

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.first = nn.Linear(INPUTS, INPUTS)
        self.last = nn.Linear(INPUTS, 5)

    def forward(self, x):
        return checkpoint(self.last, torch.tanh(self.first(x)))


def check_an_error_is_raised_in_its_step_with_layers_recomputed():
    agrees_with_plain(Recomputed)
    for calls in ("bucket", "step"):
        ddp, hook = wrap(Recomputed(), "powersgd:rank=1", calls=calls,
                         nonfinite="stop")
        optimizer = optimizer_of(ddp)
        steps(ddp, optimizer, batches(2))
        poisoned = ddp.module.first.weight.register_hook(
            lambda g: g * float("nan") if dist.get_rank() == 1 else g)
        try:
            steps(ddp, optimizer, batches(1, 2))
        except laconic.InvalidError as error:
            assert "worker 1" in str(error), error
        else:
            raise AssertionError("no error")
        poisoned.remove()
        steps(ddp, optimizer, batches(1, 3))
        same_everywhere(digest(ddp))
        hook.close()


def check_loaders_fork():
    """Workers of a DataLoader may be forks: they leave the group alone. They
    are forks of another process by default from Python 3.14 on.
    """
    x = torch.randn(24, INPUTS, generator=torch.Generator().manual_seed(1))
    y = torch.arange(24) % 5

    def data():
        for context in ("fork", None):
            loader = DataLoader(TensorDataset(x, y), batch_size=8,
                                num_workers=2, multiprocessing_context=context)
            yield from loader

    agrees_with_plain(data=data)


def check_a_fork_is_refused():
    ddp, hook = wrap(model(), "powersgd:rank=1")
    optimizer = optimizer_of(ddp)
    steps(ddp, optimizer, batches(2))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            hook.traffic
        except laconic.InvalidError as error:
            code = 0 if "used by its fork" in str(error) else 2
        hook.close()
        del hook, ddp
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    steps(ddp, optimizer, batches(4, 2))
    assert digest(ddp) == trained(algorithm="powersgd:rank=1")
    hook.close()


def check_a_hook_is_registered_once():
    ddp, hook = wrap(model(), "powersgd:rank=1")
    second = laconic.torch.Hook(ddp, "allreduce", timeout=60.0)
    try:
        ddp.register_comm_hook(second, laconic.torch.hook)
    except RuntimeError as error:
        assert "only be called once" in str(error)
    else:
        raise AssertionError("no error")
    second.close()
    steps(ddp, optimizer_of(ddp), batches(6))
    assert digest(ddp) == trained(algorithm="powersgd:rank=1")
    hook.close()


def check_a_hook_of_another_model_is_refused():
    ddp = DistributedDataParallel(model())
    hook = laconic.torch.Hook(model(), "allreduce", timeout=60.0)
    ddp.register_comm_hook(hook, laconic.torch.hook)
    try:
        steps(ddp, optimizer_of(ddp), batches(1))
    except laconic.InvalidError as error:
        assert "or is of another model" in str(error)
    else:
        raise AssertionError("no error")
    hook.close()


def check_an_error_of_one_rank_reaches_the_other():
    """At once and with its reason, in the middle of a backward pass."""
    for transport in ("tcp", "c10d"):
        for calls in ("bucket", "step"):
            ddp, hook = wrap(model(), "powersgd:rank=1", calls=calls,
                             transport=transport)
            optimizer = optimizer_of(ddp)
            steps(ddp, optimizer, batches(2))
            if dist.get_rank() == 1:
                hook._indices.pop(id(ddp.module[0].weight))
                hook._plans.clear()
            try:
                steps(ddp, optimizer, batches(1, 2))
            except laconic.PeerError as error:
                assert dist.get_rank() == 0
                assert "worker 1 aborted: Hook: a parameter" in str(error)
            except laconic.InvalidError:
                assert dist.get_rank() == 1
            else:
                raise AssertionError("no error")
            hook.close()
            dist.barrier()


def check_an_abort_does_not_split_a_message():
    """Rank 1 aborts in one thread while another sends a message."""
    messages = C10d(dist.group.WORLD, 7)
    real = dist.isend
    aborts = []

    def isend(*arguments):
        sent = real(*arguments)
        if not aborts:
            # Time for the abort to slip in, which it must not.
            aborts.append(threading.Thread(target=messages.abort,
                                           args=("a reason",)))
            aborts[0].start()
            aborts[0].join(0.2)
        return sent

    if dist.get_rank() == 1:
        with mock.patch.object(dist, "isend", isend):
            messages.exchange([(0, 0, b"abc")], [], 60.0)
            aborts[0].join()
    else:
        found, = messages.exchange([], [(1, 0, 100)], 60.0)
        assert bytes(found) == b"abc"
        try:
            messages.exchange([], [(1, 0, 100)], 60.0)
        except laconic.PeerError as error:
            assert str(error) == "worker 1 aborted: a reason", error
        else:
            raise AssertionError("no error")
    dist.barrier()


def check_sessions_differ_and_leave_the_random_numbers_alone():
    found = []
    for _ in range(2):
        random.seed(4)
        expected = random.random()
        random.seed(4)
        hook = laconic.torch.Hook(model(), "allreduce", timeout=60.0)
        assert random.random() == expected
        found.append(same_everywhere(hook._session.number))
        hook.close()
    assert found[0] != found[1]


def thread_of_a_dropped_hook():
    ddp, hook = wrap(model(), "allreduce")
    steps(ddp, optimizer_of(ddp), batches(1))
    hook._session.submit(lambda: hook)
    return hook._session._calls._thread


def check_a_hook_that_is_dropped_ends():
    """Its thread may be the last to use it."""
    thread = thread_of_a_dropped_hook()
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()


def check_a_closed_hook_is_refused():
    ddp, hook = wrap(model(), "allreduce")
    steps(ddp, optimizer_of(ddp), batches(1))
    hook.close()
    hook.close()
    try:
        steps(ddp, optimizer_of(ddp), batches(1))
    except laconic.InvalidError as error:
        assert "closed" in str(error)
    else:
        raise AssertionError("no error")


def check_auto_uses_the_group_where_tcp_cannot_listen():
    real = _transport.Listener

    def broken(spec):
        raise laconic.UnsupportedError("no module in this test")

    if dist.get_rank() == 1:
        _transport.Listener = broken
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ddp, hook = wrap(model(), "powersgd:rank=1")
    finally:
        _transport.Listener = real
    texts = [str(w.message) for w in caught]
    if dist.get_rank() == 0:
        assert any("worker 1: no module in this test" in t for t in texts)
    steps(ddp, optimizer_of(ddp), batches(6))
    assert digest(ddp) == trained(algorithm="powersgd:rank=1")
    hook.close()


def check_auto_uses_the_group_where_one_cannot_connect():
    """Rank 1 gets an address where nobody listens, and rank 0 waits."""
    real = _transport._dial, _transport._AUTO_SECONDS
    _transport._AUTO_SECONDS = 1.0
    if dist.get_rank() == 1:
        _transport._dial = lambda offer: "127.0.0.1:1"
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ddp, hook = wrap(model(), "powersgd:rank=1")
        try:
            wrap(model(), "powersgd:rank=1", transport="tcp:timeout=1")
        except laconic.PeerError as error:
            same_everywhere(str(error))
        else:
            raise AssertionError("no error")
    finally:
        _transport._dial, _transport._AUTO_SECONDS = real
    if dist.get_rank() == 0:
        assert any("not all workers connect over tcp" in str(w.message)
                   for w in caught)
    steps(ddp, optimizer_of(ddp), batches(6))
    assert digest(ddp) == trained(algorithm="powersgd:rank=1")
    hook.close()


def check_wrong_settings_have_one_message():
    for arguments, message in (
            ({"algorithm": "choco", "compressor": "sign"}, "Gossip"),
            ({"algorithm": "powersgd:rank=0"}, "rank"),
            ({"algorithm": "nothing"}, "nothing"),
            ({"algorithm": "allreduce", "calls": "epoch"}, "'epoch'"),
            ({"algorithm": "allreduce", "nonfinite": "ignore"}, "'ignore'"),
            ({"algorithm": "allreduce", "transport": "pigeon"}, "pigeon"),
            ({"algorithm": "allreduce", "transport": "tcp:bogus=1"}, "bogus"),
            ({"algorithm": "allreduce",
              "transport": ("auto", "c10d")[dist.get_rank()]},
             "worker 1 has c10d, expected auto, as worker 0 has"),
            ({"algorithm": "allreduce", "timeout": -1.0}, "-1")):
        try:
            laconic.torch.Hook(model(), **arguments)
        except (laconic.InvalidError, laconic.NotFoundError) as error:
            assert message in str(error), error
        else:
            raise AssertionError(arguments)
    for arguments, message in (
            ({"model": None}, "model is a NoneType, expected a torch.nn"),
            ({"transport": 5}, "transport is a int, expected a str"),
            ({"transport": None}, "transport is a NoneType, expected a str"),
            ({"timeout": "x"}, "timeout is a str, expected a number"),
            ({"group": 5}, "group is a int, expected a process group")):
        try:
            laconic.torch.Hook(**{"model": model(), **arguments})
        except TypeError as error:
            assert message in str(error), error
        else:
            raise AssertionError(arguments)
    try:
        laconic.torch.Hook(nn.Tanh())
    except laconic.InvalidError as error:
        assert "no parameters" in str(error)
