#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the speed of two builds of laconic.

    bench/compare_builds.py OLD NEW [--turns N]

OLD and NEW are two `laconic` programs. Both run `laconic bench` in turns, so
that a machine which is busy for a while slows both down. The table has the
medians over all turns, in memcpys, and their ratio: above 1 the new build is
slower. Run it on an idle machine; with 11 turns the medians are good to about
5 %.
"""

import argparse
import json
import statistics
import subprocess
import sys

COMPRESSORS = ["natural", "sign", "top-k:0.01", "dithering:bucket=512"]
ALGORITHMS = [
    ("powersgd:rank=2", None),
    ("error-feedback", "top-k:0.01"),
    ("dpsgd", None),
    ("choco:gamma=0.4", "sign"),
    ("choco:gamma=0.4", "top-k:0.01"),
]
PASSES = ["encode_memcpys", "decode_add_memcpys", "encode_add_memcpys"]


def measure(program, spec, compressor):
    """Return {name of the pass: memcpys} of one run of `laconic bench`."""
    command = [program, "bench", spec, "--json", "--runs", "7"]
    if compressor:
        command += ["--compressor", compressor]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True)
    result = json.loads(done.stdout)
    if result["compressors"]:
        row = result["compressors"][0]
        return {name: row[name] for name in PASSES if row.get(name)}
    return {"round": result["algorithms"][0]["memcpy_ratio"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--turns", type=int, default=11)
    options = parser.parse_args()
    programs = {"old": options.old, "new": options.new}
    cases = [(spec, None) for spec in COMPRESSORS] + ALGORITHMS
    values = {}
    for turn in range(options.turns):
        order = ["old", "new"] if turn % 2 == 0 else ["new", "old"]
        for spec, compressor in cases:
            for build in order:
                row = measure(programs[build], spec, compressor)
                for name, memcpys in row.items():
                    key = (f"{spec} {compressor or ''}".strip(), name)
                    values.setdefault(key, {}).setdefault(build, []).append(
                        memcpys)
    print(f"{'':28}{'':20}{'old':>8}{'new':>8}{'new/old':>9}")
    for (spec, name), runs in values.items():
        old = statistics.median(runs["old"])
        new = statistics.median(runs["new"])
        print(f"{spec:28}{name:20}{old:8.2f}{new:8.2f}{new / old:9.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
