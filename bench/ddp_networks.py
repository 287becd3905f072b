# SPDX-License-Identifier: MIT
"""Networks whose training steps bench/ddp.py measures, with their batches.

resnet18    ResNet-18 for images of 3x32x32: a first convolution of 3x3 without
            pooling, 32 images; SGD with momentum
decoder     the transformer of python/examples with 4 layers of width 256 and
            4 heads, 8 texts of 128 bytes; AdamW

Images, texts and labels are random: only the time of a step is measured.
"""
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent
                    / "python" / "examples"))


# --- ResNet-18 ---------------------------------------------------------------

def convolution(channels, width, size, stride):
    return nn.Sequential(
        nn.Conv2d(channels, width, size, stride, size // 2, bias=False),
        nn.BatchNorm2d(width))


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.first = convolution(channels, width, 3, stride)
        self.second = convolution(width, width, 3, 1)
        self.shortcut = (nn.Identity() if channels == width
                         else convolution(channels, width, 1, stride))

    def forward(self, x):
        y = self.second(F.relu(self.first(x)))
        return F.relu(y + self.shortcut(x))


def resnet18():
    layers, channels = [convolution(3, 64, 3, 1), nn.ReLU()], 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(channels, width, stride), Block(width, width, 1)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, 10))


# --- what a worker trains ----------------------------------------------------

class Network:
    """A model that all workers start from, and the batch of one of them."""

    def __init__(self, name, rank):
        torch.manual_seed(1)
        if name == "resnet18":
            self.model = resnet18()
        else:
            from transformer import Transformer
            self.model = Transformer(width=256, layers=4, heads=4, length=128)
        torch.manual_seed(2 + rank)
        if name == "resnet18":
            self.inputs = torch.randn(32, 3, 32, 32)
            self.labels = torch.randint(10, (32,))
        else:
            text = torch.randint(256, (8, 129))
            self.inputs, self.labels = text[:, :-1], text[:, 1:]
        self.name = name

    def optimizer(self, parameters):
        if self.name == "resnet18":
            return torch.optim.SGD(parameters, 0.01, momentum=0.9)
        return torch.optim.AdamW(parameters, 1e-4)

    def loss(self, model):
        scores = model(self.inputs)
        return F.cross_entropy(scores.flatten(0, -2), self.labels.flatten())
