#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Decentralised training on a ring: each process talks to two neighbours.

    torchrun --nproc_per_node 4 gossip_ring.py
    mpirun -np 4 python3 gossip_ring.py --algorithm dpsgd --compressor ""

Each process trains a small ResNet of its own on its own part of Fashion-MNIST.
There is no server and no all-reduce: in every step a process exchanges one bit
a parameter with its neighbours, which pulls the models together. The mean of
the models is only computed to test it.
"""
import argparse
import time

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F

import laconic.torch
from cnn_ddp import DATA, Resnet, accuracy, read_part
from group import joined


def epoch(model: nn.Module, optimizer: torch.optim.Optimizer,
          gossip: laconic.torch.Gossip, images: Tensor, labels: Tensor,
          batch: int) -> None:
    order = torch.randperm(len(labels))
    # Parts of equal size: all processes make the same number of steps.
    for at in range(0, len(order) - batch + 1, batch):
        rows = order[at:at + batch]
        optimizer.zero_grad()
        with gossip:  # the exchange begins beside the gradient computation
            F.cross_entropy(model(images[rows]), labels[rows]).backward()
        gossip.step()  # and ends before the step of the optimizer


def train(options: argparse.Namespace) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    images, labels = read_part(options.data, "train")
    test = read_part(options.data, "t10k")
    count = 4000 if options.fast else len(labels)
    part = slice(rank, count // world * world, world)
    torch.manual_seed(1)  # the same model on all
    model, mean_model = Resnet(options.width), Resnet(options.width)
    torch.manual_seed(rank)  # other batches on each
    optimizer = torch.optim.SGD(model.parameters(), options.lr, momentum=0.9,
                                weight_decay=5e-4)
    gossip = laconic.torch.Gossip(
        model, optimizer, options.algorithm, options.compressor or None,
        options.topology)
    for number in range(options.epochs):
        start = time.monotonic()
        epoch(model, optimizer, gossip, images[part], labels[part],
              options.batch)
        seconds = time.monotonic() - start
        mean_model.load_state_dict(gossip.averaged())
        distance = gossip.consensus()
        if rank == 0:
            print(f"epoch {number + 1}: accuracy of the mean model "
                  f"{accuracy(mean_model, *test):.4f}, consensus distance "
                  f"{distance:.4f}, {seconds:.1f} s", flush=True)
    if rank == 0:
        sent = gossip.traffic.payload_bytes
        print(f"sent {sent / 1e6:.3f} MB of parameters")
    gossip.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", default=DATA, help="folder of the idx files")
    parser.add_argument("--algorithm", default="choco")
    parser.add_argument("--compressor", default="sign")
    parser.add_argument("--topology", default="ring")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32, help="a process")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--fast", action="store_true",
                        help="train on 4000 images only")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with joined():
        train(options)


if __name__ == "__main__":
    main()
