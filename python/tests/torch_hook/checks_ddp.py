# SPDX-License-Identifier: MIT
"""What DDP leaves to its hook, and what it does beside it, three ranks."""
import copy
import io
import pickle
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import laconic
import laconic.torch
from training import (CLASSES, INPUTS, batches, digest, model, optimizer_of,
                      same_everywhere, steps, wrap)

EXACT = 1e-5


def refused(words, function):
    try:
        function()
    except laconic.InvalidError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"expected an error: {words}")


def same(a, b, tolerance=0.0):
    return all(torch.allclose(x, y, tolerance, tolerance)
               for x, y in zip(a.parameters(), b.parameters()))


# --- parameters that DDP ignores ---------------------------------------------

class WithOwnLayers(nn.Module):
    """Layers of each rank's own, of another size on each."""

    def __init__(self):
        super().__init__()
        self.shared = model()
        size = 3 + dist.get_rank()
        self.own = nn.Sequential(nn.Linear(CLASSES, size),
                                 nn.Linear(size, CLASSES))
        # Tied: DDP reduces it by its other name.
        self.tied = nn.Linear(INPUTS, 16)
        self.tied.weight = self.shared[0].weight

    def forward(self, x):
        return self.own(self.shared(x)) + self.tied(x).sum() / 100


def check_parameters_that_ddp_ignores_are_left_out():
    def train(algorithm):
        torch.manual_seed(9)
        made = WithOwnLayers()
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(
            made, [name for name, _ in made.named_parameters()
                   if name.startswith("own.")] + ["tied.weight"])
        ddp, hook = wrap(made, algorithm)
        names = hook and [tensor.name for tensor in hook._layout]
        steps(ddp, optimizer_of(ddp), batches(4))
        if hook is not None:
            hook.close()
        return same_everywhere(digest(made.shared)), names

    # Three ranks: a sum may be rounded in another order than Gloo's.
    (found, names), (plain, _) = train("allreduce"), train(None)
    assert names == sorted(
        [f"shared.{i}.{part}" for i in (0, 2, 4) for part in
         ("weight", "bias")] + ["tied.bias"]), names
    assert (train("powersgd:rank=1")[0] != plain) and found


def check_the_hook_of_a_model_leaves_out_what_ddp_will_ignore():
    class Root(nn.Module):
        def __init__(self):
            super().__init__()
            self.own = nn.Parameter(torch.zeros(3))
            self.shared = nn.Linear(2, 2)

    # DDP's name of a parameter of the model itself begins with a dot.
    for ignored, expected in (
            ([".own"], ["shared.bias", "shared.weight"]),
            (["own"], ["own", "shared.bias", "shared.weight"]),
            (["shared.weight", "shared.bias"], ["own"])):
        made = Root()
        made._ddp_params_and_buffers_to_ignore = ignored
        with laconic.torch.Hook(made, "allreduce") as hook:
            assert [tensor.name for tensor in hook._layout] == expected


# --- join with the current number of workers ---------------------------------

def check_join_divides_by_workers_with_inputs():
    """The ranks have 2, 4 and 6 batches."""
    def train(algorithm, whole=False, **settings):
        ddp, hook = wrap(model(), algorithm, **settings)
        with ddp.join(divide_by_initial_world_size=whole):
            steps(ddp, optimizer_of(ddp), batches(2 + 2 * dist.get_rank()))
        same_everywhere(digest(ddp))
        # After join() DDP counts on: all have inputs. The momentum differs.
        steps(ddp, optimizer_of(ddp), batches(2, 6))
        same_everywhere(digest(ddp))
        if hook is not None:
            hook.close()
        return ddp.module

    plain, initial = train(None), train(None, whole=True)
    assert not same(plain, initial, 1e-3)
    for settings in ({}, {"calls": "step"}, {"transport": "c10d"}):
        assert same(train("allreduce", **settings), plain, EXACT), settings
        assert same(train("allreduce", whole=True, **settings), initial,
                    EXACT), settings
    assert not same(train("powersgd:rank=1"), plain, 1e-3)
    assert same(train("compressed", compressor="identity"), plain, EXACT)


# --- copies ------------------------------------------------------------------

def has_hooks(ddp):
    """Whether this version of DDP has its hooks as an attribute."""
    return bool(getattr(ddp, "_comm_hooks", []))


def check_a_copy_has_no_hook_and_a_warning():
    def pickled(ddp):
        file = io.BytesIO()
        torch.save(ddp, file)
        file.seek(0)
        return (torch.load(file, weights_only=False)
                if "weights_only" in torch.load.__code__.co_varnames
                else torch.load(file))

    for copied in (copy.deepcopy, pickled,
                   lambda ddp: pickle.loads(pickle.dumps(ddp))):
        ddp, hook = wrap(model(), "powersgd:rank=1")
        optimizer = optimizer_of(ddp)
        steps(ddp, optimizer, batches(2))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            twin = copied(ddp)
        found = [str(w.message) for w in caught
                if "the Hook of a DDP is not copied" in str(w.message)]
        assert len(found) == has_hooks(ddp), [str(w.message) for w in caught]
        assert same(twin, ddp)
        if has_hooks(ddp):
            other = twin._comm_hooks[0][1]
            refused("reduce of a copy", lambda: laconic.torch.hook(
                other, None))
            refused("state_dict of a copy", lambda: other.state_dict())
            assert type(copy.deepcopy(other)) is type(other)
        # The copy is trained as by plain DDP, the original goes on.
        sent = hook.traffic
        plain = DistributedDataParallel(copy.deepcopy(ddp.module))
        for each in (twin, plain):
            steps(each, torch.optim.SGD(each.parameters(), 0.1), batches(2, 2))
        assert same(twin, plain, EXACT) and hook.traffic == sent
        steps(ddp, optimizer, batches(2, 2))
        same_everywhere(digest(ddp))
        hook.close()
        expected, hook = wrap(model(), "powersgd:rank=1")
        steps(expected, optimizer_of(expected), batches(4))
        assert same(expected, ddp)
        hook.close()
        # A Hook of its own.
        hook = laconic.torch.Hook(twin, "powersgd:rank=1", timeout=60.0)
        twin.register_comm_hook(hook, laconic.torch.hook)
        steps(twin, optimizer_of(twin), batches(1))
        assert hook.traffic.messages > 0
        hook.close()


# --- sharded parameters ------------------------------------------------------

def check_sharded_parameters_are_refused():
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Shard, distribute_tensor
    except ImportError:
        return  # This version has none.
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    made = model()
    made[2].weight = nn.Parameter(
        distribute_tensor(made[2].weight.detach(), mesh, [Shard(0)]))
    words = "2.weight is a DTensor, of which a worker may have a shard only"
    refused(words, lambda: laconic.torch.Hook(made, "allreduce"))
    refused(words, lambda: laconic.torch.Gossip(
        made, torch.optim.SGD(made.parameters(), 0.1), "dpsgd"))
    made[2].weight.requires_grad_(False)
    laconic.torch.Hook(made, "allreduce").close()
