#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A transformer that predicts the next byte of a text, with DDP and the hook.

    laconic data fetch sotu
    torchrun --nproc_per_node 2 transformer.py --algorithm none
    torchrun --nproc_per_node 2 transformer.py
    torchrun --nproc_per_node 2 transformer.py --algorithm error-feedback \\
        --compressor top-k:0.01 --adam local --lr 6e-3

The text is that of the addresses on the State of the Union, or FILE of --text.
A tenth of it, at its end, is left out of the training and tests the model.
`--algorithm none` trains with plain DDP. docs/pytorch.md has the results.

--adam selects where Adam divides a gradient by the root of its mean square.
`global` is the usual way: after the mean over all workers, in the optimizer.
With error feedback and a sparsifier, most values of a gradient are sent many
steps late and in one sum, which Adam treats as a large gradient. `local`
divides before the gradient is compressed, and the optimizer is plain SGD.
"""
import argparse
import math
import os
import pathlib
import sys
from typing import Callable, Iterator, Tuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

import laconic.torch
from group import joined

VALUES = 256  # of a byte


# --- text --------------------------------------------------------------------

def read_text(name: str) -> Tensor:
    """The bytes of a file, or of the texts that `laconic data fetch sotu`
    downloaded."""
    if name:
        files = [pathlib.Path(name)]
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(
            "~/.cache")
        files = sorted((pathlib.Path(cache) / "laconic/sotu").glob("*.txt"))
    if not files:
        sys.exit("transformer.py: no text, expected --text FILE or the "
                 "result of `laconic data fetch sotu`")
    text = b"".join(file.read_bytes() for file in files)
    return torch.frombuffer(bytearray(text), dtype=torch.uint8).long()


def unigram_entropy(text: Tensor) -> float:
    """The loss of the best model that ignores the context."""
    shares = torch.bincount(text).double() / len(text)
    shares = shares[shares > 0]
    return float(-(shares * shares.log()).sum())


def batches(text: Tensor, count: int, length: int,
            seed: int) -> Iterator[Tuple[Tensor, Tensor]]:
    """Random parts of the text, and for each byte the one that follows."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        first = torch.randint(len(text) - length, (count, 1),
                              generator=generator)
        part = text[first + torch.arange(length + 1)]
        yield part[:, :-1], part[:, 1:]


# --- network -----------------------------------------------------------------

class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def attention(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.query_key_value(x).chunk(3, -1))
        scores = query @ key.transpose(2, 3) / math.sqrt(width // self.heads)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -math.inf).softmax(-1)
        values = (weights @ value).transpose(1, 2).reshape(x.shape)
        mixed: Tensor = self.out(values)
        return mixed

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        y: Tensor = self.down(F.gelu(self.up(self.norm2(x))))
        return x + y


class Transformer(nn.Module):
    def __init__(self, width: int, layers: int, heads: int,
                 length: int) -> None:
        super().__init__()
        self.byte = nn.Embedding(VALUES, width)
        self.place = nn.Embedding(length, width)
        self.blocks = nn.Sequential(
            *(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VALUES)

    def forward(self, x: Tensor) -> Tensor:
        place = self.place.weight[:x.shape[1]]
        scores: Tensor = self.head(
            self.norm(self.blocks(self.byte(x) + place)))
        return scores


def loss_of(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


# --- training ----------------------------------------------------------------

def scale_gradients(model: nn.Module, beta: float = 0.99) -> None:
    """Divide every gradient by the root of the mean of its squares, before DDP
    and its hook get it."""
    def scaled_by(square: Tensor) -> Callable[[Tensor], Tensor]:
        steps = 0

        def scaled(gradient: Tensor) -> Tensor:
            nonlocal steps
            steps += 1
            square.mul_(beta).addcmul_(gradient, gradient, value=1 - beta)
            mean = square / (1 - beta ** steps)
            return gradient / (mean.sqrt() + 1e-8)
        return scaled

    for parameter in model.parameters():
        parameter.register_hook(scaled_by(torch.zeros_like(parameter)))


def make_optimizer(model: nn.Module, kind: str,
                   lr: float) -> torch.optim.Optimizer:
    if kind == "local":
        scale_gradients(model)
        return torch.optim.SGD(model.parameters(), lr)
    return torch.optim.Adam(model.parameters(), lr, betas=(0.9, 0.99))


def rate(step: int, steps: int) -> float:
    """A linear warm-up in a tenth of the steps, and half a cosine."""
    warm_up = max(1, steps // 10)
    return (min(1.0, (step + 1) / warm_up)
            * (0.5 + 0.5 * math.cos(math.pi * step / steps)))


def test_loss(model: nn.Module, text: Tensor, length: int) -> float:
    model.eval()
    rows = batches(text, 32, length, seed=0)
    with torch.no_grad():
        mean = sum(float(loss_of(model, *next(rows))) for _ in range(8)) / 8
    model.train()
    return mean


def report(options: argparse.Namespace, model: nn.Module, text: Tensor,
           test: Tensor, sent: int) -> None:
    values = sum(p.numel() for p in model.parameters())
    exact = 4 * values * options.steps
    loss = test_loss(model, test, options.length)
    print(f"{values} parameters, {options.steps} steps, {len(text)} bytes of "
          "text")
    print(f"unigram entropy {unigram_entropy(text):.4f}")
    print(f"test loss {loss:.4f}")
    print(f"sent {sent or exact} bytes of gradients, "
          f"{exact / (sent or exact):.1f} times fewer than float32")


def train(options: argparse.Namespace) -> None:
    text = read_text(options.text)
    first_test = len(text) * 9 // 10
    torch.manual_seed(1)
    model = Transformer(options.width, options.layers, options.heads,
                        options.length)
    ddp = DDP(model)
    hook = None
    if options.algorithm != "none":
        hook = laconic.torch.Hook(ddp, options.algorithm, options.compressor)
        ddp.register_comm_hook(hook, laconic.torch.hook)
    optimizer = make_optimizer(ddp, options.adam, options.lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: rate(step, options.steps))
    data = batches(text[:first_test], options.batch, options.length,
                   seed=1 + dist.get_rank())
    for _ in range(options.steps):
        optimizer.zero_grad()
        loss_of(ddp, *next(data)).backward()
        optimizer.step()
        schedule.step()
    sent = hook.traffic.payload_bytes if hook else 0
    if dist.get_rank() == 0:
        report(options, model, text, text[first_test:], sent)
    if hook:
        hook.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--text", metavar="FILE", default="")
    parser.add_argument("--algorithm", default="powersgd:rank=4")
    parser.add_argument("--compressor")
    parser.add_argument("--adam", choices=("global", "local"),
                        default="global")
    parser.add_argument("--lr", type=float, default=8e-3)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=4, help="a process")
    parser.add_argument("--length", type=int, default=32, help="of a part")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    options = parser.parse_args()
    torch.set_num_threads(1)  # a process for each core
    with joined():
        train(options)


if __name__ == "__main__":
    main()
