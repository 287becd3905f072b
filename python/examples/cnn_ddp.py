#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small ResNet on Fashion-MNIST, with DistributedDataParallel and the hook.

    torchrun --nproc_per_node 2 cnn_ddp.py
    mpirun -np 2 python3 cnn_ddp.py --algorithm error-feedback \\
        --compressor sign

`--algorithm none` trains with plain DDP, for comparison. With --checkpoint
FOLDER every process writes its state after each epoch, and a run that finds
such files continues from there.
"""
import argparse
import gzip
import pathlib
import time
from typing import Any, Dict, Optional, Tuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

import laconic.torch
from group import joined

DATA = "/usr/share/datasets/fashion-mnist"  # of dataset-fashion-mnist


# --- data and network --------------------------------------------------------

def read_idx(path: pathlib.Path, header: int) -> Tensor:
    with gzip.open(path) as file:
        return torch.from_numpy(
            np.frombuffer(file.read(), np.uint8, offset=header).copy())


def read_part(folder: str, part: str) -> Tuple[Tensor, Tensor]:
    """Images, with mean 0 and variance 1, and labels."""
    at = pathlib.Path(folder)
    images = read_idx(at / f"{part}-images-idx3-ubyte.gz", 16)
    labels = read_idx(at / f"{part}-labels-idx1-ubyte.gz", 8)
    pixels = images.view(-1, 1, 28, 28).float() / 255
    return (pixels - 0.286) / 0.353, labels.long()


class Block(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Conv2d(channels, width, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class Resnet(nn.Sequential):
    def __init__(self, width: int) -> None:
        super().__init__(
            nn.Conv2d(1, width, 3, 2, 1), nn.ReLU(),
            Block(width, width, 1), Block(width, 2 * width, 2),
            Block(2 * width, 4 * width, 2), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(4 * width, 10))


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    model.eval()
    right = torch.zeros(())
    with torch.no_grad():
        for x, y in zip(torch.split(images, 500), torch.split(labels, 500)):
            right += (model(x).argmax(1) == y).sum()
    model.train()
    return float(right) / len(labels)


# --- training ----------------------------------------------------------------

class Trainer:
    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(1)
        self.options = options
        self.model = Resnet(options.width)
        self.ddp = DDP(self.model)
        self.optimizer = torch.optim.SGD(
            self.ddp.parameters(), options.lr, momentum=0.9,
            weight_decay=5e-4)
        self.hook: Optional[laconic.torch.Hook] = None
        if options.algorithm != "none":
            self.hook = laconic.torch.Hook(
                self.ddp, options.algorithm, options.compressor)
            self.ddp.register_comm_hook(self.hook, laconic.torch.hook)

    def epoch(self, number: int, images: Tensor, labels: Tensor) -> None:
        """One pass over this process's share of a common permutation."""
        rank, world = dist.get_rank(), dist.get_world_size()
        order = torch.randperm(
            len(labels), generator=torch.Generator().manual_seed(number))
        # Every process makes the same number of steps.
        step = self.options.batch * world
        for at in range(0, len(order) - step + 1, step):
            mine = order[at + rank:at + step:world]
            self.optimizer.zero_grad()
            F.cross_entropy(self.ddp(images[mine]), labels[mine]).backward()
            self.optimizer.step()

    def state(self) -> Dict[str, Any]:
        """Everything that a run needs to continue. The hook's part belongs to
        one process: it holds what this process has not sent yet."""
        return {"model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "hook": self.hook and self.hook.state_dict()}

    def load(self, state: Dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.hook:
            self.hook.load_state_dict(state["hook"])


def train(options: argparse.Namespace) -> None:
    images, labels = read_part(options.data, "train")
    if options.fast:
        images, labels = images[:4000], labels[:4000]
    test = read_part(options.data, "t10k")
    trainer, first = Trainer(options), 0
    path = pathlib.Path(options.checkpoint or ".") / (
        f"rank{dist.get_rank()}.pt")
    if options.checkpoint and path.exists():
        saved = torch.load(path)
        trainer.load(saved)
        first = saved["epochs"]
    for number in range(first, options.epochs):
        start = time.monotonic()
        trainer.epoch(number, images, labels)
        seconds = time.monotonic() - start
        if options.checkpoint:
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save({**trainer.state(), "epochs": number + 1}, path)
        if dist.get_rank() == 0:
            # The weights are equal on all processes; the statistics of
            # BatchNorm are those of this one.
            print(f"epoch {number + 1}: accuracy "
                  f"{accuracy(trainer.model, *test):.4f}, "
                  f"{seconds:.1f} s", flush=True)
    if trainer.hook:
        if dist.get_rank() == 0:
            sent = trainer.hook.traffic.payload_bytes
            print(f"sent {sent / 1e6:.3f} MB of gradients")
        trainer.hook.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", default=DATA, help="folder of the idx files")
    parser.add_argument("--algorithm", default="powersgd:rank=2")
    parser.add_argument("--compressor")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64, help="a process")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--checkpoint", metavar="FOLDER")
    parser.add_argument("--fast", action="store_true",
                        help="train on 4000 images only")
    options = parser.parse_args()
    torch.set_num_threads(1)  # a process for each core
    with joined():
        train(options)


if __name__ == "__main__":
    main()
