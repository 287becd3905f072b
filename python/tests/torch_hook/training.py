# SPDX-License-Identifier: MIT
"""Small models, their training, and digests of the result."""
import contextlib
import hashlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import laconic.torch

CLASSES = 5
INPUTS = 12
# Every parameter of more than 64 bytes gets a bucket of its own.
CAP_MB = 64 / 2**20


def model(hidden=16, dtype=torch.float32):
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Linear(INPUTS, hidden), nn.Tanh(), nn.Linear(hidden, hidden),
        nn.Tanh(), nn.Linear(hidden, CLASSES)).to(dtype)


def wrap(module, algorithm=None, compressor=None, *, group=None, options=None,
         **settings):
    """Return DDP and its Hook, or None without an algorithm."""
    ddp = DistributedDataParallel(
        module, process_group=group, **{"bucket_cap_mb": CAP_MB,
                                        **(options or {})})
    if algorithm is None:
        return ddp, None
    settings.setdefault("timeout", 60.0)
    hook = laconic.torch.Hook(ddp, algorithm, compressor, **settings)
    ddp.register_comm_hook(hook, laconic.torch.hook)
    return ddp, hook


def batches(count, first=0, size=8, shape=(INPUTS,), dtype=torch.float32):
    """Different on every rank, and a function of the step alone."""
    target = torch.randn(
        INPUTS, CLASSES, generator=torch.Generator().manual_seed(5))
    for step in range(first, first + count):
        g = torch.Generator().manual_seed(1000 * step + dist.get_rank())
        x = torch.randn(size, INPUTS, generator=g)
        yield x.to(dtype).view(size, *shape), (x @ target).argmax(1)


def optimizer_of(ddp):
    return torch.optim.SGD(ddp.parameters(), 0.1, momentum=0.9)


def steps(ddp, optimizer, data, loss_of=None):
    """Train on batches and return the last loss."""
    loss = None
    for x, y in data:
        optimizer.zero_grad()
        loss = cross_entropy(ddp(x).float(), y) if loss_of is None else (
            loss_of(ddp, x, y))
        loss.backward()
        optimizer.step()
    return float(loss)


def digest(module):
    """A hash of the parameters, after a check that all ranks have it."""
    return hashlib.sha256(b"".join(
        p.detach().reshape(-1).contiguous().view(torch.uint8).numpy()
        .tobytes() for p in module.parameters() if p.numel())).hexdigest()


def same_everywhere(value, group=None):
    values = [None] * dist.get_world_size(group)
    dist.all_gather_object(values, value, group=group)
    assert len(set(values)) == 1, values
    return value


def trained(build=model, algorithm=None, count=6, *, data=None, loss_of=None,
            around=None, **arguments):
    """Train a new model and return its digest, the same on all ranks."""
    ddp, hook = wrap(build(), algorithm, **arguments)
    with contextlib.ExitStack() as stack:
        if around is not None:
            stack.enter_context(around(ddp))
        steps(ddp, optimizer_of(ddp),
              batches(count) if data is None else data(), loss_of)
    if hook is not None:
        hook.close()
    assert all(torch.isfinite(p).all() for p in ddp.parameters())
    return same_everywhere(digest(ddp))


def agrees_with_plain(build=model, **arguments):
    """allreduce gives the bits of DDP without a hook, and powersgd the same
    model on all ranks, another one.
    """
    plain = trained(build, **arguments)
    assert trained(build, "allreduce", **arguments) == plain
    compressed = trained(build, "powersgd:rank=1", **arguments)
    assert compressed != plain
    return compressed
