#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure what streaming hides of an exchange on a slow link.

usage: streaming.py [--steps H] [--delay MS] [--mbit N] [--turns N] BUILD_DIR

Two workers on this machine train LeNet over tcp, through a proxy that delays
every byte (2 ms each way) and limits the rate (100 Mbit/s each way), and mix
their models every H steps (20). Prints the seconds of an epoch and those that a
worker waited: alone, without streaming, and with it, medians of several turns.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from distance import long_link  # noqa: E402

EXAMPLES = 24000
FORMS = {"no streaming": ("outer", ()),
         "4 fragments": ("outer:fragments=4", ()),
         "4 fragments, used 4 steps later": (
             "outer:fragments=4,delay=4,alpha=0.5", ()),
         "the same, --overlap": (
             "outer:fragments=4,delay=4,alpha=0.5", ("--overlap",))}


def words(options, algorithm, more):
    return [str(options.build.resolve() / "laconic"), "train", "--model",
            "lenet", "--data", "fashion-mnist", "--limit", str(EXAMPLES),
            "--epochs", "1", "--test-every", "0", "--test-limit", "100",
            "--algorithm", algorithm, "--local-steps", str(options.steps),
            "--lr", "0.01", "--json", "--quiet", *more]


def train(options, algorithm, more):
    """Seconds of an epoch of two workers, and those that they waited."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        specs, proxy = long_link(options.build.resolve() / "laconic", folder,
                                 options.delay, options.mbit)
        workers = [subprocess.Popen(
            words(options, algorithm, more) + [
                "--transport", spec, "--out", str(folder / "run")],
            stdout=subprocess.PIPE, text=True) for spec in specs]
        found = [worker.communicate()[0] for worker in workers]
        proxy.close()
    result = json.loads(found[0])
    return (result["seconds"] - result["test_seconds"],
            result["wait_seconds"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--delay", type=float, default=2)
    parser.add_argument("--mbit", type=float, default=100)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("build", type=pathlib.Path)
    options = parser.parse_args()
    print(f"LeNet, {EXAMPLES} images, 2 workers, a round every "
          f"{options.steps} steps, {options.delay:g} ms each way, "
          f"{options.mbit:g} Mbit/s")
    for name, form in FORMS.items():
        turns = [train(options, *form) for _ in range(options.turns)]
        seconds, waited = (statistics.median(part) for part in zip(*turns))
        print(f"{name:32s} {seconds:6.2f} s, waited {waited:.2f} s",
              flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
