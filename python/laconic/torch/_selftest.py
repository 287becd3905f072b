# SPDX-License-Identifier: MIT
"""PyTorch's part of the self-test: steps of DDP with a Hook."""
from __future__ import annotations

import copy
import os
from typing import Any, List

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ._hook import Hook, hook

_STEPS = 3


def _model(device: str) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(48, 64), nn.Tanh(), nn.Linear(64, 8)).to(
        device)


def _gradients(model: nn.Module, rank: int, device: str) -> List[Tensor]:
    generator = torch.Generator().manual_seed(rank)
    inputs = torch.randn(16, 48, generator=generator).to(device)
    model.zero_grad()
    model(inputs).square().mean().backward()
    return [p.grad.detach().clone() for p in model.parameters()
            if p.grad is not None]


def train(rank: int, world: int, device: str, folder: str,
          timeout: float) -> str:
    """Compare the mean gradient of a Hook with that of all inputs, then make
    steps with powersgd, after which all models are equal.
    """
    if not dist.is_available() or not dist.is_gloo_available():
        return "not tested, as it has no Gloo"
    torch.set_num_threads(1)
    # Through a file: some builds of torch need settings for tcp.
    dist.init_process_group(
        "gloo", init_method=f"file://{os.path.join(folder, 'group')}",
        rank=rank, world_size=world)
    try:
        _check_mean(rank, world, device, timeout)
        sent = _check_steps(rank, world, device, timeout)
    finally:
        dist.destroy_process_group()
    return f"DDP with a Hook, {sent} bytes sent in {_STEPS} steps of powersgd"


def _check_mean(rank: int, world: int, device: str, timeout: float) -> None:
    alone = _model(device)
    every = [_gradients(alone, each, device) for each in range(world)]
    ddp: Any = DistributedDataParallel(copy.deepcopy(alone))
    with Hook(ddp, "allreduce", transport="tcp", timeout=timeout) as state:
        ddp.register_comm_hook(state, hook)
        for found, *own in zip(_gradients(ddp, rank, device), *every):
            expected = torch.stack(own).mean(0)
            if not torch.allclose(found, expected, 1e-4, 1e-6):
                raise AssertionError(
                    "the mean gradient is off by "
                    f"{float((found - expected).abs().max()):.3g}")


def _check_steps(rank: int, world: int, device: str, timeout: float) -> int:
    ddp: Any = DistributedDataParallel(_model(device))
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    with Hook(ddp, "powersgd:rank=2", transport="tcp",
              timeout=timeout) as state:
        ddp.register_comm_hook(state, hook)
        for _ in range(_STEPS):
            _gradients(ddp, rank, device)
            optimizer.step()
        sent = state.traffic.payload_bytes
    models: List[Any] = [None] * world
    own = [p.detach().cpu().numpy().tobytes() for p in ddp.parameters()]
    gather: Any = dist.all_gather_object
    gather(models, own)
    if any(model != own for model in models):
        raise AssertionError("the processes have different models")
    return int(sent)
