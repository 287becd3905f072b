#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Steps of PyTorch's DistributedDataParallel, with the protocol of
bench_exchange.

usage: ddp_worker.py LAYOUT CONTENDER...
       ddp_worker.py resnet18|decoder CONTENDER...

With a layout, a step is a forward and a backward pass of a model with its
tensors; nothing updates the model. The loss is the sum of the dot products of
the tensors with constants, one after the other. The backward pass therefore
produces, in little time and from the last tensor to the first, gradients that
are equal to the constants, and DDP sends each bucket when it is full. Models of
all contenders share the memory of their parameters.

With a network of ddp_networks.py, a step is a forward pass, a backward pass and
a step of the optimiser, and each contender trains a model of its own.

A contender is one of

    alone                 without DDP
    DDP                   plain
    DDP, fp16_compress    with a hook of PyTorch
    DDP, powerSGD RANK    with a hook of PyTorch and one bucket: with two, the
                          hook hangs on Gloo
    ALGORITHM [with COMPRESSOR]    with laconic.torch.Hook
"""
import copy
import datetime
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import (
    default_hooks, powerSGD_hook)
from torch.nn.parallel import DistributedDataParallel

from ddp_networks import Network
from exchange_peers import read_layout, serve
from training_speed import blas_of_this_process

ONE_BUCKET = 1 << 40  # bytes


def drawn(shapes, rank):
    """The gradients of a worker."""
    generator = torch.Generator().manual_seed(rank)
    return [torch.randn(shape, generator=generator) for shape in shapes]


class Model(nn.Module):
    def __init__(self, parameters, gradients):
        super().__init__()
        self.tensors = nn.ParameterList(
            nn.Parameter(tensor) for tensor in parameters)
        self.gradients = gradients

    def forward(self):
        loss = torch.zeros(())
        for tensor, gradient in zip(self.tensors, self.gradients):
            loss = loss + torch.dot(tensor.flatten(), gradient.flatten())
        return loss


def in_ddp(model, one_bucket=False):
    if not one_bucket:
        return DistributedDataParallel(model, gradient_as_bucket_view=True)
    # The first bucket has a limit of its own, which has no argument.
    usual = dist._DEFAULT_FIRST_BUCKET_BYTES
    dist._DEFAULT_FIRST_BUCKET_BYTES = ONE_BUCKET
    try:
        return DistributedDataParallel(model, gradient_as_bucket_view=True,
                                       bucket_cap_mb=ONE_BUCKET >> 20)
    finally:
        dist._DEFAULT_FIRST_BUCKET_BYTES = usual


def with_hook_of_torch(model, name):
    name, *rank = name.split()
    ddp = in_ddp(model, one_bucket=name == "powerSGD")
    if name == "fp16_compress":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif name == "powerSGD":
        # The least number of uncompressed iterations at the start.
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=int(*rank), start_powerSGD_iter=2)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    else:
        sys.exit(f"{name}: expected fp16_compress or powerSGD RANK")
    return ddp


def wrapped(model, text):
    """The model as the contender `text` trains it."""
    if text == "alone":
        return model
    if text == "DDP":
        return in_ddp(model)
    if text.startswith("DDP, "):
        return with_hook_of_torch(model, text.removeprefix("DDP, "))
    import laconic.torch
    algorithm, _, compressor = text.partition(" with ")
    ddp = in_ddp(model)
    hook = laconic.torch.Hook(ddp, algorithm, compressor or None)
    ddp.register_comm_hook(hook, laconic.torch.hook)
    return ddp


class Program:
    """What both programs have in common; `contenders` are functions that make a
    step and write what they trained to a dict."""

    def __init__(self):
        torch.set_num_threads(1)
        dist.init_process_group("gloo", timeout=datetime.timedelta(hours=1))
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.barrier = dist.barrier
        self.versions = (f"PyTorch {torch.__version__} with Gloo, "
                         f"{blas_of_this_process()}")
        self.ends = []

    def prepare(self, first, count):
        assert first == 0 and count == len(self.ends)
        return {}


class Backward(Program):
    """Forward and backward passes that produce drawn gradients."""

    def __init__(self, shapes, contenders):
        super().__init__()
        self.ends = shapes
        parameters = [torch.zeros(shape) for shape in shapes]
        gradients = drawn(shapes, self.rank)
        others = [drawn(shapes, other) for other in range(self.world)]
        self.mean = [sum(tensors) / self.world for tensors in zip(*others)]
        self.contenders = [
            self.step_of(Model(parameters, gradients), text)
            for text in contenders]

    def step_of(self, model, text):
        module = wrapped(model, text)

        def step(result):
            module.zero_grad()
            module().backward()
            result["of"] = model
        return step

    def error(self, result):
        """The relative error of the mean of the last step."""
        distance = norm = 0.0
        for tensor, mean in zip(result["of"].tensors, self.mean):
            distance += float((tensor.grad - mean).square().sum())
            norm += float(mean.square().sum())
        return (distance / norm) ** 0.5


class Training(Program):
    """Whole steps of a network."""

    def __init__(self, name, contenders):
        super().__init__()
        self.network = Network(name, self.rank)
        self.contenders = [self.step_of(text) for text in contenders]

    def step_of(self, text):
        module = wrapped(copy.deepcopy(self.network.model), text)
        optimizer = self.network.optimizer(module.parameters())

        def step(result):
            optimizer.zero_grad()
            self.network.loss(module).backward()
            optimizer.step()
            result["of"] = module
        return step

    def error(self, result):
        """How much the workers' gradients differ: DDP gives all the same."""
        norm = sum(parameter.grad.double().square().sum()
                   for parameter in result["of"].parameters()).sqrt()
        norms = [torch.zeros_like(norm) for _ in range(self.world)]
        dist.all_gather(norms, norm)
        return float((max(norms) - min(norms)) / max(norms))


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: ddp_worker.py LAYOUT|NETWORK CONTENDER...")
    what, *contenders = sys.argv[1:]
    serve(Training(what, contenders) if what in ("resnet18", "decoder")
          else Backward(read_layout(what), contenders))


if __name__ == "__main__":
    main()
