#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure steps of PyTorch's DDP, with and without hooks, over real links.

usage: ddp.py [--write] [--links LIST] [--turns N] BUILD_DIR
       ddp.py --smoke BUILD_DIR

Two processes in two network namespaces that a shaped veth pair joins, as in
exchange.py. This needs root and a Python with torch, else the script exits with
77. The gradients have the shapes of ResNet-50; ddp_worker.py describes the
backward pass that produces them. Plain DDP, the hooks of PyTorch and
laconic.torch.Hook take turns in one run.

--smoke makes steps of tiny tensors on loopback, for the tests. --write replaces
the table in docs/performance.md.
"""
import argparse
import contextlib
import os
import pathlib
import sys
import tempfile

import exchange
import exchange_report as report
from exchange_jobs import Job, Loopback

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parent / "python"

LINKS = ["unshaped", "1gbit", "100mbit"]
TORCH = ["backward alone", "DDP", "DDP, fp16_compress", "DDP, powerSGD 1",
         "DDP, powerSGD 2", "DDP, powerSGD 4"]
OURS = [name for name in exchange.OURS if name not in exchange.EXACT]
STEPS = 3  # in a turn, so that the barrier before them counts little


def use_package(folder):
    """Make the workers load this tree's package and this build's library."""
    library = pathlib.Path(folder).resolve() / "liblaconic.so.0"
    if not library.exists():
        sys.exit(f"{library}: not found, expected a folder it was built in")
    paths = [str(PACKAGE), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ["LACONIC_LIBRARY"] = str(library)
    python = exchange.python_with("torch.distributed")
    if python is None:
        exchange.skip(
            "no Python with torch.distributed (Debian: python3-torch)")
    return python


def open_jobs(stack, python, layout, host, folder):
    jobs = []
    for name, contenders in (("torch", TORCH), ("hook", OURS)):
        command = [python, "-B", str(HERE / "ddp_worker.py"), layout]
        job = Job(name, command, contenders, False, host, str(folder))
        stack.callback(job.close)
        job.open()
        print(f"{name}: {job.versions}", file=sys.stderr)
        jobs.append(job)
    return jobs


def measure(options):
    if os.geteuid() != 0:
        exchange.skip("network namespaces need root")
    python = use_package(options.folder)

    def measure_in(folder, stack):
        host = exchange.open_namespaces(stack)
        layout = exchange.write_layout(folder / "layout", exchange.resnet50())
        jobs, missing = open_jobs(stack, python, layout, host, folder), {}
        return jobs, missing, exchange.measure_each(
            options, LINKS, host, jobs, STEPS, missing)

    return exchange.run_mode("ddp", options, measure_in)


def smoke(options):
    """Two turns of every contender, with tiny tensors on loopback."""
    python = use_package(options.folder)
    report.selftest_ddp(LINKS, TORCH, OURS)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="laconic-ddp-")))
        layout = exchange.write_layout(
            folder / "layout", [("weight", 40, 90), ("bias", 40, 1)])
        jobs = open_jobs(stack, python, layout, Loopback(), folder)
        missing = {}
        figures = exchange.take_turns(jobs, [("all", 2)], 2,
                                      exchange.LINKS["unshaped"], missing)
    assert not missing, missing
    assert len(figures) == len(TORCH) + len(OURS), figures
    return 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--smoke", action="store_true",
                        help="a few steps of tiny tensors")
    parser.add_argument("--write", action="store_true",
                        help="replace the table in docs/performance.md")
    parser.add_argument("--json", metavar="FILE",
                        help="where the figures go (ddp.json in BUILD_DIR)")
    parser.add_argument("--turns", type=int, default=0,
                        help="instead of 11 on fast links, 3 on slow")
    parser.add_argument("--links", type=exchange.comma_list(exchange.LINKS),
                        metavar="LIST",
                        help=f"instead of {','.join(LINKS)}")
    parser.add_argument("folder", metavar="BUILD_DIR")
    options = parser.parse_args()
    return exchange.run_program(smoke if options.smoke else measure, options)


if __name__ == "__main__":
    sys.exit(main())
