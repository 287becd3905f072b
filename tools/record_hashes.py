#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hash payloads and results, which must have the same bits everywhere.

Every compressor, in every form, encodes two tensors, and every algorithm
averages for some rounds, alone or with several compressors. Seeds
are fixed. The bytes do not depend on the compiler, the distribution, the
kernels or the number of threads. Prints a line for each: the hash and the
options of the command.

usage: record_hashes.py LACONIC                  prints the hashes
       record_hashes.py LACONIC --write FILE     records them
       record_hashes.py LACONIC --compare FILE   fails where a hash differs from
                                                 the record or is missing

Plug-ins that the record does not have are listed and do not fail.
"""
import hashlib
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

FORMS = ("plain", "unbiased", "contractive")
SHAPES = ((60, 100), (1009,))

# Settings and pairs besides the defaults that take other ways through the code.
SPECS = (
    "natural:bits=8", "natural-dithering:levels=3,norm=inf",
    "dithering:levels=7,bucket=64", "top-k:0.3", "top-k:0.1,chunk=64+sign",
    "top-k:0.3+natural", "random-k:0.5+dithering", "random-block:0.4",
    "low-rank:rank=3,iterations=2", "rotated:bits=1,block=64",
    "rotated:bits=3,block=256")

# For algorithms that need a compressor.
COMPRESSORS = ("natural", "sign", "top-k:0.05", "random-k:0.3",
               "dithering:levels=7", "rotated:4", "low-rank:rank=2")

HEAD = """\
# Hashes of payloads and of results of `laconic average`. Every build has them:
# the test command.hashes compares. tools/record_hashes.py writes this file."""


def npy(shape):
    """A .npy file of multiples of 2^-20 in [-8, 8), the same for every Python:
    no function of a mathematical library draws them."""
    count = 1
    for length in shape:
        count *= length
    draw = random.Random(1)
    values = [(draw.getrandbits(24) - 2**23) / 2**20 for _ in range(count)]
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
            + header.encode() + struct.pack(f"<{count}f", *values))


class Laconic:
    """The command in a folder of its own."""

    def __init__(self, path, folder):
        self.path = pathlib.Path(path).resolve()
        self.folder = folder

    def run(self, *words):
        done = subprocess.run([self.path, *words], cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, timeout=300)
        if done.returncode != 0:
            sys.exit(f"laconic {' '.join(words)}: {done.stderr}")
        return done.stdout

    def takes(self, *words):
        """Whether the command accepts these options."""
        return subprocess.run([self.path, *words], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, timeout=300).returncode == 0

    def hash(self, *names):
        """The hash of the files of these names, which are removed."""
        found = hashlib.sha256()
        for name in names:
            path = pathlib.Path(self.folder, name)
            found.update(path.read_bytes())
            path.unlink()
        return found.hexdigest()[:16]


def payload_hashes(laconic, listed):
    specs = [item["name"] for item in listed["compressors"]]
    for shape in SHAPES:
        name = "x".join(map(str, shape)) + ".npy"
        pathlib.Path(laconic.folder, name).write_bytes(npy(shape))
        for spec in (*specs, *SPECS):
            for form in FORMS:
                words = ("encode", "--form", form, "--compressor", spec, name)
                laconic.run(*words, "out.lac")
                laconic.run("decode", "out.lac", "out.npy")
                yield " ".join(words), laconic.hash("out.lac", "out.npy")


def average_hashes(laconic, listed):
    for item in listed["algorithms"]:
        spec = item["name"]
        alone = laconic.takes("size", "--model", "mlp", "--algorithm", spec)
        for compressor in (None,) if alone else COMPRESSORS:
            for size in ("1000", "30x20"):
                words = ["average", "--workers", "4", "--rounds", "8",
                         "--dimension", size, "--algorithm", spec]
                if compressor is not None:
                    words += ["--compressor", compressor]
                laconic.run(*words, "--output", "y.npy", "--trace", "t.csv")
                yield " ".join(words), laconic.hash("y.npy", "t.csv")


def all_hashes(path):
    """The hash of every line of options."""
    with tempfile.TemporaryDirectory() as folder:
        laconic = Laconic(path, folder)
        listed = json.loads(laconic.run("list", "--json"))
        return dict([*payload_hashes(laconic, listed),
                     *average_hashes(laconic, listed)])


def record(hashes):
    lines = [f"{value}  {words}" for words, value in hashes.items()]
    return "\n".join([HEAD, *lines, ""])


def compare(hashes, text):
    """Print what differs from a record, and return whether nothing does."""
    lines = [line.split("  ", 1) for line in text.splitlines()
             if line and not line.startswith("#")]
    recorded = {words: value for value, words in lines}
    good = bool(recorded)
    for words, value in recorded.items():
        if hashes.get(words) != value:
            print(f"{words}: {hashes.get(words)}, expected {value}")
            good = False
    for words in hashes.keys() - recorded.keys():
        print(f"not recorded: {words}")
    print(f"{len(recorded)} recorded hashes"
          + (", all as recorded" if good else ""))
    return good


def main(arguments):
    if len(arguments) == 1:
        print(record(all_hashes(arguments[0])), end="")
    elif len(arguments) == 3 and arguments[1] == "--write":
        pathlib.Path(arguments[2]).write_text(record(all_hashes(arguments[0])))
    elif len(arguments) == 3 and arguments[1] == "--compare":
        text = pathlib.Path(arguments[2]).read_text()
        return 0 if compare(all_hashes(arguments[0]), text) else 1
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
