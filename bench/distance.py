#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure an exact all-reduce over a long link.

usage: distance.py [--mbytes N] [--delay MS] [--mbit N] [--turns N] BUILD_DIR

Two workers on this machine average N megabytes (100) over tcp, through a proxy
that delays every byte (25 ms each way) and limits the rate (200 Mbit/s each
way). Prints the seconds of a round and the share of the line: with two workers,
each sends every value once, half of it to be summed and half as a sum.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "cli")]
from delay_proxy import DelayProxy  # noqa: E402
from processes import free_port  # noqa: E402


def make_key(laconic, path):
    """Make a key and return its public part, the last word of the output."""
    done = subprocess.run([laconic, "key", "--file", path], check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.split()[-1]


def long_link(laconic, folder, delay, mbit):
    """The specs of two workers on tcp that a long link joins, and its proxy.
    Their files go to `folder`."""
    keys = [make_key(laconic, folder / f"key{rank}") for rank in range(2)]
    ports = [free_port(), free_port()]
    proxy = DelayProxy(("127.0.0.1", ports[0]), delay / 1e3, mbit)
    # Worker 1 dials worker 0: it alone has to know the proxy.
    seen = [[ports[0], ports[1]], [proxy.port, ports[1]]]
    specs = []
    for rank in range(2):
        path = folder / f"peers{rank}"
        path.write_text("".join(f"w{i} 127.0.0.1:{seen[rank][i]} {keys[i]}\n"
                                for i in range(2)))
        specs.append(f"tcp:peers={path},key={folder / f'key{rank}'}")
    return specs, proxy


def start(build, spec, layout):
    return subprocess.Popen(
        [build / "bench" / "bench_exchange", spec, layout, "allreduce"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def measure(workers, turns):
    for worker in workers:
        assert worker.stdout.readline().startswith("ready"), "no worker"
    seconds = []
    for _ in range(turns + 1):  # the first is a warm-up
        for worker in workers:
            worker.stdin.write("0 all 1\n")
        lines = [worker.stdout.readline() for worker in workers]
        seconds.append(max(float(line.split()[0]) for line in lines))
    for worker in workers:
        worker.stdin.close()
        worker.wait()
    return statistics.median(seconds[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mbytes", type=float, default=100)
    parser.add_argument("--delay", type=float, default=25)
    parser.add_argument("--mbit", type=float, default=200)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("build", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        values = int(options.mbytes * 1e6 / 4)
        layout = folder / "layout"
        layout.write_text(f"x 1 {values}\n")
        build = options.build.resolve()
        specs, proxy = long_link(build / "laconic", folder, options.delay,
                                 options.mbit)
        workers = [start(build, spec, layout) for spec in specs]
        seconds = measure(workers, options.turns)
        proxy.close()
    line = values * 4 / (options.mbit * 1e6 / 8)
    print(f"{options.mbytes:g} MB, {options.delay:g} ms each way, "
          f"{options.mbit:g} Mbit/s: {seconds:.2f} s, "
          f"{100 * line / seconds:.0f} % of the line")
    return 0


if __name__ == "__main__":
    sys.exit(main())
