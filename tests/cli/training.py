# SPDX-License-Identifier: MIT
"""Shared by the tests of `laconic train`: small data sets in the formats of the
real ones, and a reader of checkpoints that relies on the safetensors format
only.
"""
import json
import os
import random
import struct

# Settings with which an algorithm trains well. algorithm_words finds those of
# algorithms that are not listed.
ALGORITHMS = {
    "allreduce": ["allreduce"],
    "compressed": ["compressed", "--compressor", "natural"],
    "error-feedback": ["error-feedback", "--compressor", "top-k:0.05"],
    "ef21": ["ef21", "--compressor", "top-k:0.05"],
    "signum": ["signum", "--lr", "0.001"],
    "integer": ["integer"],
    "powersgd": ["powersgd:rank=2"],
    "dpsgd": ["dpsgd"],
    "naive": ["naive", "--compressor", "natural"],
    "dcd": ["dcd", "--compressor", "dithering"],
    "ecd": ["ecd", "--compressor", "natural"],
    "choco": ["choco:gamma=0.2", "--compressor", "sign"],
    "beer": ["beer:gamma=0.2", "--compressor", "sign"],
    "deepsqueeze": ["deepsqueeze:gamma=0.1", "--compressor", "sign"],
    "moniqua": ["moniqua"],
    "powergossip": ["powergossip"],
    "outer": ["outer:inner=(dpsgd),lr=0.7,momentum=0.5", "--local-steps", "3"],
    "streaming outer": ["outer:inner=(dpsgd),momentum=0.5,fragments=2,delay=2,"
                        "alpha=0.5", "--local-steps", "6"],
}


def algorithm_words(name, run_laconic):
    """Options that select an algorithm, with a compressor if it needs one."""
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    alone = run_laconic("size", "--model", "mlp", "--algorithm", name)
    return [name] + (["--compressor", "natural"] if alone.returncode else [])


METRICS = ("epoch", "step", "lr", "train_loss", "test_loss", "test_accuracy",
           "worst_accuracy", "test_examples", "averaged_accuracy",
           "payload_bytes", "wire_bytes", "messages", "consensus",
           "compute_seconds", "compress_seconds", "wait_seconds",
           "test_seconds")


def images(folder, train=240, test=60):
    """Images of 28 x 28 in which the class is a bright row, as idx files."""
    draw = random.Random(7)
    os.makedirs(folder, exist_ok=True)
    for part, count in (("train", train), ("t10k", test)):
        labels = bytes(i % 10 for i in range(count))
        pixels = bytearray()
        for label in labels:
            for row in range(28):
                bright = 200 if row // 2 == label + 2 else 0
                pixels += bytes(bright + draw.randrange(50)
                                for _ in range(28))
        write(folder, part + "-images-idx3-ubyte",
              struct.pack(">IIII", 0x803, count, 28, 28) + bytes(pixels))
        write(folder, part + "-labels-idx1-ubyte",
              struct.pack(">II", 0x801, count) + labels)


def cifar(folder, test=60):
    """Noise in the files of CIFAR-10."""
    draw = random.Random(7)
    os.makedirs(folder, exist_ok=True)
    parts = ["data_batch_%d.bin" % i for i in range(1, 6)]
    for name, count in [(name, 10) for name in parts] + [
            ("test_batch.bin", test)]:
        write(folder, name, b"".join(
            bytes([i % 10]) + draw.randbytes(3072) for i in range(count)))


def text(folder, words=6000):
    """A text in which the next word is nearly determined by the last."""
    draw = random.Random(7)
    os.makedirs(folder, exist_ok=True)
    for name in ("train.txt", "valid.txt", "test.txt"):
        at, line = 0, []
        for _ in range(words):
            at = (3 * at + 1 + (draw.random() < 0.1)) % 40
            line.append("w%d" % at)
        write(folder, name, " ".join(line).encode())


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def tensors(path):
    """The tensors of a safetensors file: name to (dtype, shape, bytes)."""
    with open(path, "rb") as file:
        data = file.read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length:]
    return {name: (t["dtype"], t["shape"],
                   body[t["data_offsets"][0]:t["data_offsets"][1]])
            for name, t in header.items()}


def checkpoint(folder, step, workers):
    """The tensors of all workers."""
    return [tensors(os.path.join(folder, "step-%d" % step,
                                 "worker-%d.safetensors" % rank))
            for rank in range(workers)]


def metrics(folder):
    with open(os.path.join(folder, "metrics.jsonl"), encoding="ascii") as file:
        return [json.loads(line) for line in file]
