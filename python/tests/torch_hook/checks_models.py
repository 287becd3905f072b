# SPDX-License-Identifier: MIT
"""Kinds of parameters and of buckets, two ranks."""
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

import laconic
import laconic.torch
from training import (CAP_MB, CLASSES, INPUTS, agrees_with_plain, batches,
                      digest, model, optimizer_of, same_everywhere, steps,
                      trained, wrap)


def check_ways_of_ddp_give_one_model():
    """Buckets, views and calls change nothing, in any combination."""
    expected = agrees_with_plain()
    for options in ({"gradient_as_bucket_view": True},
                    {"find_unused_parameters": True},
                    {"static_graph": True}, {"bucket_cap_mb": 25}):
        for calls in ("bucket", "step"):
            found = trained(algorithm="powersgd:rank=1", options=options,
                            calls=calls)
            assert found == expected, (options, calls)


def check_transports_give_one_model():
    expected = trained(algorithm="powersgd:rank=1", transport="tcp")
    for transport in ("auto", "c10d", "tcp:encryption=no"):
        assert expected == trained(
            algorithm="powersgd:rank=1", transport=transport), transport
    expected = trained(algorithm="error-feedback", compressor="top-k:0.1",
                       transport="tcp")
    assert expected == trained(
        algorithm="error-feedback", compressor="top-k:0.1",
        transport="c10d", calls="step")


def check_buckets_are_rebuilt():
    ddp, hook = wrap(model(), "powersgd:rank=1")
    optimizer = optimizer_of(ddp)
    found = []
    for step in range(3):
        steps(ddp, optimizer, batches(1, step))
        found.append([[id(p) for p in plan.parameters]
                      for plan in hook._plans.values()])
    assert len(found[2]) >= 3
    assert found[0] != found[1] and found[1] == found[2]
    same_everywhere(digest(ddp))
    hook.close()


def check_join_divides_by_workers_with_inputs():
    """The ranks have 2 and 4 batches. Factors of 1 and 2 keep all bits."""
    def join(whole):
        return {"data": lambda: batches(2 + 2 * dist.get_rank()),
                "around": lambda ddp: ddp.join(
                    divide_by_initial_world_size=whole)}

    plain = trained(**join(False))
    assert plain != trained(**join(True))
    for calls in ("bucket", "step"):
        assert trained(algorithm="allreduce", calls=calls,
                       **join(False)) == plain, calls


class Skipping(nn.Module):
    """Layer 1 is skipped by one rank, layer 2 by all, in some steps."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.layers = nn.ModuleList(nn.Linear(INPUTS, INPUTS)
                                    for _ in range(3))
        self.last = nn.Linear(INPUTS, CLASSES)
        self.step = 0

    def forward(self, x):
        self.step += 1
        x = self.layers[0](x)
        if self.step % 2 or dist.get_rank() == 0:
            x = self.layers[1](x)
        if self.step % 3:
            x = self.layers[2](x)
        return self.last(x)


def check_layers_are_skipped():
    agrees_with_plain(Skipping, count=8,
                      options={"find_unused_parameters": True})


def check_parameters_are_frozen_and_unfrozen():
    def data():
        for step, batch in enumerate(batches(8)):
            frozen.requires_grad_(step not in (2, 3, 4))
            yield batch

    def build():
        nonlocal frozen
        made = model()
        frozen = made[2].weight
        return made

    frozen = None
    agrees_with_plain(build, data=data,
                      options={"find_unused_parameters": True})


def check_a_parameter_trained_later_is_refused():
    """DDP reduces it, the Hook has no name for it: a message, no hang."""
    made = model()
    ddp = nn.parallel.DistributedDataParallel(made, bucket_cap_mb=CAP_MB)
    made[0].weight.requires_grad_(False)
    hook = laconic.torch.Hook(ddp, "allreduce", timeout=60.0)
    made[0].weight.requires_grad_(True)
    ddp.register_comm_hook(hook, laconic.torch.hook)
    try:
        steps(ddp, optimizer_of(ddp), batches(1))
    except laconic.InvalidError as error:
        assert "(16, 12) was not trained when the Hook was made" in str(error)
    else:
        raise AssertionError("no error")
    hook.close()


class Odd(nn.Module):
    """Tied, scalar and empty parameters, and names with odd characters."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.one = nn.Linear(INPUTS, INPUTS)
        self.two = nn.Linear(INPUTS, INPUTS)
        self.two.weight = self.one.weight
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.empty = nn.Parameter(torch.zeros(0))
        self.last = nn.Linear(INPUTS, CLASSES)
        self.add_module("a name, with #", nn.Linear(CLASSES, CLASSES))

    def forward(self, x):
        x = self.last(self.two(torch.tanh(self.one(x))) * self.scale)
        return self._modules["a name, with #"](x) + self.empty.sum()


def check_tied_scalar_and_empty_parameters():
    agrees_with_plain(Odd)
    ddp, hook = wrap(Odd(), "allreduce")
    names = [tensor.name for tensor in hook._layout]
    assert names == sorted(names) and len(names) == 9, names
    assert "a%20name%2C%20with%20%23.weight" in names, names
    hook.close()


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Flatten(), nn.Linear(8 * 4 * 4, CLASSES))

    def forward(self, x):
        return self.net(x.view(-1, 3, 2, 2).repeat(1, 1, 3, 3))


def check_channels_last():
    def build():
        return Convolution().to(memory_format=torch.channels_last)

    agrees_with_plain(build)
    agrees_with_plain(build, options={"gradient_as_bucket_view": True})
    ddp, hook = wrap(build(), "allreduce")
    assert hook._layout["net.0.weight"][:3] == ("net.0.weight", 8, 27)
    hook.close()


def check_a_transposed_parameter_is_the_matrix_of_its_memory():
    """It gets the bits of the parameter that it is the transpose of."""
    class Product(nn.Module):
        def __init__(self, transposed):
            super().__init__()
            weight = torch.zeros(3, 8, 4)
            self.weight = nn.Parameter(
                weight.permute(1, 2, 0) if transposed else weight)

        def forward(self, factors):
            return (self.weight * factors).sum()

    factors = torch.randn(3, 8, 4, generator=torch.Generator().manual_seed(
        dist.get_rank()))
    ddp, hook = wrap(Product(False), "powersgd:rank=1")
    ddp(factors).backward()
    expected = ddp.module.weight.grad
    hook.close()
    ddp, hook = wrap(Product(True), "powersgd:rank=1")
    assert hook._layout["weight"][:3] == ("weight", 3, 32)
    ddp(factors.permute(1, 2, 0)).backward()
    found = ddp.module.weight.grad
    assert found.stride() == (4, 1, 32), found.stride()
    assert torch.equal(found.permute(2, 0, 1), expected)
    hook.close()


def check_float64():
    agrees_with_plain(lambda: model(dtype=torch.float64), data=lambda: batches(
        6, dtype=torch.float64), loss_of=lambda ddp, x, y: cross_entropy(
            ddp(x), y))


class Mixed(nn.Module):
    """A layer of every type that the library takes."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.types = [torch.float64, torch.bfloat16, torch.float16,
                      torch.float32]
        self.weights = nn.ParameterList(
            nn.Parameter(torch.randn(INPUTS, INPUTS).to(t) / INPUTS**0.5)
            for t in self.types)
        self.last = nn.Linear(INPUTS, CLASSES)

    def forward(self, x):
        # The CPU has no product of halves.
        for weight in self.weights:
            x = torch.tanh(x @ weight.float())
        return self.last(x)


def mean_gradients(module, batch):
    """The means of the gradients of all ranks, computed in double."""
    x, y = batch
    module.zero_grad()
    cross_entropy(module(x), y).backward()
    own = [p.grad.double() for p in module.parameters()]
    for mean in own:
        dist.all_reduce(mean)
    return [mean / dist.get_world_size() for mean in own]


def without_broadcast(check):
    """Gloo of torch 1.13 cannot broadcast bfloat16, which DDP does first."""
    def run():
        with mock.patch.object(nn.parallel.distributed,
                               "_sync_module_states", lambda **_: None):
            check()
    return run


@without_broadcast
def check_half_bfloat16_and_double_in_one_model():
    made = Mixed()
    batch = next(batches(1))
    ddp, hook = wrap(made, "allreduce")
    expected = mean_gradients(made, batch)
    made.zero_grad(set_to_none=True)
    cross_entropy(ddp(batch[0]), batch[1]).backward()
    for parameter, mean in zip(made.parameters(), expected):
        # Rounded once to the type of the parameter.
        assert parameter.grad.dtype == parameter.dtype
        assert torch.equal(parameter.grad, mean.to(parameter.dtype))
    hook.close()
    for calls in ("bucket", "step"):
        trained(Mixed, "powersgd:rank=1", calls=calls)
        trained(Mixed, "error-feedback", compressor="sign", calls=calls)


def check_sparse_gradients_are_refused():
    class Sparse(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(10, 4, sparse=True)

        def forward(self, x):
            return self.table(x)

    ddp, hook = wrap(Sparse(), "allreduce")
    try:
        ddp(torch.tensor([1, 2])).sum().backward()
    except laconic.InvalidError as error:
        assert "the gradient of table.weight is torch.sparse" in str(error)
    else:
        raise AssertionError("no error")
    hook.close()
