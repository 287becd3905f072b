# SPDX-License-Identifier: MIT
"""Saving, loading and changing settings, two ranks."""
import io

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import laconic
import laconic.torch
from training import (batches, digest, model, optimizer_of, same_everywhere,
                      steps, trained, wrap)

ALGORITHMS = (("powersgd:rank=1", None), ("error-feedback", "top-k:0.1"),
              ("compressed", "natural"), ("signum", None),
              ("allreduce", None))


def saved(ddp, optimizer, hook):
    """Through files, as a checkpoint goes. torch 1.13 loads no optimizer with
    weights_only.
    """
    states = []
    for part, safe in ((ddp.module, True), (optimizer, False), (hook, True)):
        file = io.BytesIO()
        torch.save(part.state_dict(), file)
        file.seek(0)
        states.append(torch.load(file, weights_only=safe))
    return states


def check_training_resumes_bit_for_bit():
    """In a new DDP, whose buckets differ and are not yet rebuilt."""
    for algorithm, compressor in ALGORITHMS:
        expected = trained(algorithm=algorithm, compressor=compressor)
        ddp, hook = wrap(model(), algorithm, compressor)
        optimizer = optimizer_of(ddp)
        steps(ddp, optimizer, batches(3))
        state = saved(ddp, optimizer, hook)
        hook.close()
        again = model()
        again.load_state_dict(state[0])
        ddp, hook = wrap(again, algorithm, compressor,
                         options={"bucket_cap_mb": 25}, calls="step")
        optimizer = optimizer_of(ddp)
        optimizer.load_state_dict(state[1])
        hook.load_state_dict(state[2])
        steps(ddp, optimizer, batches(3, 3))
        assert digest(ddp) == expected, algorithm
        hook.close()


def check_a_state_loads_into_a_hook_in_use():
    ddp, hook = wrap(model(), "powersgd:rank=1")
    optimizer = optimizer_of(ddp)
    steps(ddp, optimizer, batches(3))
    state = saved(ddp, optimizer, hook)
    steps(ddp, optimizer, batches(3, 3))
    expected, sent = digest(ddp), hook.traffic
    ddp.module.load_state_dict(state[0])
    optimizer.load_state_dict(state[1])
    hook.load_state_dict(state[2])
    steps(ddp, optimizer, batches(3, 3))
    assert digest(ddp) == expected
    assert hook.traffic.messages > sent.messages
    hook.close()


def check_names_do_not_depend_on_wrappers():
    class Compiled(torch.nn.Module):
        """Has the names of a model from torch.compile."""

        def __init__(self, module):
            super().__init__()
            self._orig_mod = module

        def forward(self, x):
            return self._orig_mod(x)

    plain = laconic.torch.Hook(model(), "powersgd:rank=1")
    state = plain.state_dict()
    plain.close()
    for wrapped in (DistributedDataParallel(model()), Compiled(model()),
                    DistributedDataParallel(Compiled(model()))):
        hook = laconic.torch.Hook(wrapped, "powersgd:rank=1")
        hook.load_state_dict(state)
        hook.close()


def refused(hook, state, *words, **arguments):
    try:
        hook.load_state_dict(state, **arguments)
    except (laconic.InvalidError, laconic.CorruptError) as error:
        for word in words:
            assert word in str(error), error
    else:
        raise AssertionError(words)


def check_wrong_states_are_refused():
    """The Hook goes on as if nothing had been loaded."""
    ddp, hook = wrap(model(), "powersgd:rank=1")
    optimizer = optimizer_of(ddp)
    steps(ddp, optimizer, batches(3))
    state = hook.state_dict()
    own, other = f"rank{hook.rank}", f"rank{1 - hook.rank}"
    entry = state[own]
    refused(hook, {}, "no ranks", own)
    refused(hook, {other: entry}, other, own, "other_world=True")
    both = [None, None]
    dist.all_gather_object(both, state)
    hook.load_state_dict({**both[0], **both[1]})
    refused(hook, {own: both[1 - hook.rank][other]},
            f"worker {1 - hook.rank}")
    refused(hook, {own: {**entry, "version": 99}}, "version 99")
    for wrong, words in (
            (None, "the state is a NoneType, expected what state_dict"),
            (b"", "the state is a bytes"), ({1: 2}, f"has 1, expected {own}"),
            ({own: 5}, "version None, expected 1"),
            ({own: {}}, "version None, expected 1"),
            ({own: {"version": 1}}, "is of NoneType, expected a tensor"),
            ({own: {**entry, "state": b"x"}}, "is of bytes"),
            ({own: {**entry, "state": entry["state"].float()}},
             "is of torch.float32, expected a tensor of torch.uint8")):
        refused(hook, wrong, words)
    refused(hook, {}, f"has no ranks, expected {own}", other_world=True)
    refused(hook, {1: 2}, "version None, expected 1", other_world=True)
    cut = {**entry, "state": entry["state"][:-5]}
    refused(hook, {own: cut})
    broken = {**entry, "state": entry["state"].clone()}
    broken["state"][100] ^= 1
    refused(hook, {own: broken})
    for spec, compressor in (("powersgd:rank=2", None),
                             ("error-feedback", "sign")):
        _, second = wrap(model(), spec, compressor)
        refused(hook, second.state_dict(), "powersgd")
        second.close()
    _, second = wrap(model(hidden=8), "powersgd:rank=1")
    refused(hook, second.state_dict(), "0.bias is 8 x 1")
    second.close()
    steps(ddp, optimizer, batches(3, 3))
    assert digest(ddp) == trained(algorithm="powersgd:rank=1")
    hook.close()


def check_a_state_of_another_world_loads_on_request():
    """Error memory starts at zero: what is shared is the same everywhere."""
    alone = [dist.new_group([0]), dist.new_group([1])][dist.get_rank()]
    ddp, hook = wrap(model(), "powersgd:rank=1", group=alone)
    steps(ddp, optimizer_of(ddp), batches(3))
    state = hook.state_dict()
    hook.close()
    shared = [state]
    dist.broadcast_object_list(shared)
    ddp, hook = wrap(model(), "powersgd:rank=1")
    if hook.rank == 0:
        refused(hook, shared[0], "1")
    hook.load_state_dict(shared[0], other_world=True)
    steps(ddp, optimizer_of(ddp), batches(3, 3))
    same_everywhere(digest(ddp))
    hook.close()


def check_settings_change_in_a_run():
    ddp, hook = wrap(model(), "allreduce")
    optimizer = optimizer_of(ddp)
    steps(ddp, optimizer, batches(2))
    sent = hook.traffic
    for wrong in ("powersgd:rank=0", "choco", "nothing"):
        try:
            hook.reconfigure(wrong)
        except (laconic.InvalidError, laconic.NotFoundError):
            pass
        else:
            raise AssertionError(wrong)
    steps(ddp, optimizer, batches(2, 2))
    exact = hook.traffic.payload_bytes - sent.payload_bytes
    assert exact == sent.payload_bytes
    hook.reconfigure("powersgd:rank=1")
    sent = hook.traffic
    steps(ddp, optimizer, batches(2, 4))
    assert 0 < hook.traffic.payload_bytes - sent.payload_bytes < exact / 2
    hook.reconfigure("error-feedback", "top-k:0.1")
    steps(ddp, optimizer, batches(2, 6))
    assert list(hook.state_dict()) == [f"rank{hook.rank}"]
    same_everywhere(digest(ddp))
    hook.close()


def check_with_closes():
    made = model()
    with laconic.torch.Hook(made, "allreduce") as hook:
        assert (hook.rank, hook.world) == (dist.get_rank(), 2)
    try:
        hook.traffic
    except laconic.InvalidError as error:
        assert "closed" in str(error)
    else:
        raise AssertionError("no error")
