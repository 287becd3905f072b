#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure the table from which `laconic plan` estimates compression times.

usage: compression_times.py LACONIC [RUNS] > src/cli/plan/compression_times.def

Run it on an idle machine: it takes about ten minutes with 15 runs and needs
6 GB of memory. Every line is measured by `laconic bench` on the tensors of
ResNet-50, with two numbers of other workers if the time depends on it.
"""
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

# The numbers of other workers, by pattern (compression.c).
DEGREES = {"GOSSIP": (2, 4), "GATHER": (3, 7), "SHARED": (7,)}

QSGD = "qsgd:bucket=512"
CHOICES = [
    ("SHARED", "compressed", "natural"),
    ("SHARED", "compressed", QSGD),
    ("GATHER", "error-feedback", "sign"),
    ("GATHER", "error-feedback", "top-k:0.01"),
    ("GATHER", "error-feedback", "natural"),
    ("SHARED", "error-feedback", "random-k:0.01"),
    ("GATHER", "ef21", "sign"),
    ("GATHER", "ef21", "top-k:0.01"),
    ("GATHER", "signum", None),
    ("SHARED", "integer", None),
    ("SHARED", "integer:bits=16", None),
    ("SHARED", "powersgd:rank=1", None),
    ("SHARED", "powersgd:rank=2", None),
    ("SHARED", "powersgd:rank=4", None),
    ("SHARED", "powersgd:rank=8", None),
    ("SHARED", "powersgd:rank=1,high=2", None),
    ("GOSSIP", "dpsgd", None),
    ("GOSSIP", "naive", "natural"),
    ("GOSSIP", "dcd", QSGD),
    ("GOSSIP", "dcd", "natural"),
    ("GOSSIP", "ecd", "dithering:32767"),
    ("GOSSIP", "ecd", "natural"),
    ("GOSSIP", "choco", "sign"),
    ("GOSSIP", "choco", "top-k:0.01"),
    ("GOSSIP", "choco", "natural"),
    ("GOSSIP", "beer", "sign"),
    ("GOSSIP", "beer", "top-k:0.01"),
    ("GOSSIP", "deepsqueeze", "sign"),
    ("GOSSIP", "deepsqueeze", "top-k:0.01"),
    ("GOSSIP", "moniqua", None),
    ("GOSSIP", "powergossip", None),
    ("GOSSIP", "powergossip:iterations=2", None),
    ("GOSSIP", "powergossip:rank=4", None),
]
VALUES = 25557032


def bench(laconic, runs, algorithm, compressor, degree):
    words = [laconic, "bench", algorithm, "--json", "--runs", str(runs),
             "--degree", str(degree)]
    words += ["--compressor", compressor] if compressor else []
    found = subprocess.run(words, check=True, stdout=subprocess.PIPE)
    step, = json.loads(found.stdout)["algorithms"]
    return step


def fit(points):
    """The line through one or two points: its value at 0 and its slope. A line
    that falls is noise."""
    (x, y), (other, z) = points[0], points[-1]
    slope = max(0, (z - y) / (other - x)) if other > x else 0
    return (y + z) / 2 - slope * (x + other) / 2, slope


def line(laconic, runs, pattern, algorithm, compressor):
    steps = [bench(laconic, runs, algorithm, compressor, degree)
             for degree in DEGREES[pattern]]
    own, each = fit([(s["degree"], s["memcpy_ratio"]) for s in steps])
    bits = 8 * steps[0]["payload_bytes"] / VALUES
    name = f'"{compressor}"' if compressor else "NULL"
    return (f'PLAN_TIME({pattern}, "{algorithm}", {name}, '
            f"{bits:.4g}, {own:.2f}, {each:.2f})")


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return re.search(r"model name\s*: (.*)", text).group(1)


def main():
    laconic, runs = sys.argv[1], int((sys.argv[2:] or ["15"])[0])
    os.environ["LC_ALL"] = "C"
    print(f"""\
// The computation of a round in memcpys of the model's bytes, on
// {machine()}, {datetime.date.today()}, medians of {runs} runs;
// written by tools/compression_times.py.
//
// PLAN_TIME(pattern, algorithm, compressor,
//           bits of payload per value, own, each)""")
    for choice in CHOICES:
        print(line(laconic, runs, *choice), flush=True)


if __name__ == "__main__":
    main()
