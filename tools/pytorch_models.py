# SPDX-License-Identifier: MIT
"""The networks of src/nn in PyTorch, with the same names and shapes.

Used by tools/pytorch_reference.py, bench/training_speed.py and
docs/loading-a-model.md. Importing it ends the program with a message if
Debian's python3-torch is missing.
"""
import pathlib
import sys

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {error}; expected PyTorch "
             "for this Python (Debian: apt install python3-torch)")


class Logistic(nn.Module):
    def __init__(self, features=784, classes=10):
        super().__init__()
        self.fc = nn.Linear(features, classes)

    def forward(self, x):
        return self.fc(x.flatten(1))


class Mlp(nn.Module):
    def __init__(self, features=784, classes=10):
        super().__init__()
        self.fc1 = nn.Linear(features, 512)
        self.fc2 = nn.Linear(512, classes)

    def forward(self, x):
        return self.fc2(functional.relu(self.fc1(x.flatten(1))))


class Lenet(nn.Module):
    def __init__(self, channels=1, size=28, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=(32 - size) // 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.relu(self.fc1(x.flatten(1)))
        return self.fc3(functional.relu(self.fc2(x)))


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(
            channels, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or channels != width:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, width, 1, stride=stride, bias=False),
                nn.BatchNorm2d(width))

    def forward(self, x):
        around = x if self.downsample is None else self.downsample(x)
        x = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(x)) + around)


class Resnet(nn.Module):
    def __init__(self, blocks, width=16, stages=3, channels=3, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.stages = stages
        channels = width
        for stage in range(stages):
            layers = []
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(Block(channels, width << stage, stride))
                channels = width << stage
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(x.mean((2, 3)))


class Lstm(nn.Module):
    def __init__(self, vocabulary, hidden, layers, dropout):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(vocabulary, hidden)
        self.rnn = nn.LSTM(hidden, hidden, layers,
                           dropout=dropout if layers > 1 else 0)
        self.decoder = nn.Linear(hidden, vocabulary)
        self.decoder.weight = self.encoder.weight

    def forward(self, tokens, carry=None):
        out, carry = self.rnn(self.drop(self.encoder(tokens)), carry)
        return self.decoder(self.drop(out)), carry


def make_model(metadata):
    """The network that the metadata of a model.safetensors describe."""
    name, _, settings = metadata["model"].partition(":")
    given = dict(item.split("=") for item in settings.split(",") if item)
    channels, height, width = map(int, metadata["sample"].split())
    features, classes = channels * height * width, int(metadata["classes"])
    image = {"channels": channels, "classes": classes}
    makers = {
        "logistic": lambda: Logistic(features, classes),
        "mlp": lambda: Mlp(features, classes),
        "lenet": lambda: Lenet(size=height, **image),
        "resnet8": lambda: Resnet(1, **image),
        "resnet20": lambda: Resnet(3, **image),
        "resnet18": lambda: Resnet(2, 64, 4, **image),
        "lstm": lambda: Lstm(classes, int(given.get("hidden", 650)),
                             int(given.get("layers", 3)),
                             float(given.get("dropout", 0.4))),
    }
    if name not in makers:
        raise ValueError(f"model: {name!r}, expected one of "
                         + ", ".join(makers))
    return makers[name]()
