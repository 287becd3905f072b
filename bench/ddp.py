#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure steps of PyTorch's DDP, with and without hooks, over real links.

usage: ddp.py [--network NAME] [--write] [--links LIST] [--turns N] BUILD_DIR
       ddp.py --smoke BUILD_DIR

Two processes in two network namespaces that a shaped veth pair joins, as in
exchange.py. This needs root and a Python with torch, else the script exits with
77. Plain DDP, the hooks of PyTorch and laconic.torch.Hook take turns in one run.

By default the gradients have the shapes of ResNet-50, and no network computes
them; ddp_worker.py describes the backward pass that produces them. --network
measures whole training steps of a network of ddp_networks.py.

--smoke makes steps of tiny tensors and of the networks on loopback, for the
tests. --write replaces the table in docs/performance.md.
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
TORCH = ["alone", "DDP", "DDP, fp16_compress", "DDP, powerSGD 1",
         "DDP, powerSGD 2", "DDP, powerSGD 4"]
OURS = [name for name in exchange.OURS if name not in exchange.EXACT]
STEPS = 3  # in a turn, so that the barrier before them counts little

# Networks, and the number of their parameters.
NETWORKS = {"resnet18": 11173962, "decoder": 3323648}


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


def open_jobs(stack, python, what, host, folder,
              wanted=(("torch", TORCH), ("hook", OURS))):
    """Workers that make steps of `what`, a layout file or a network."""
    jobs = []
    for name, contenders in wanted:
        command = [python, "-B", str(HERE / "ddp_worker.py"), what]
        job = Job(name, command, contenders, False, host, str(folder))
        if what in NETWORKS:
            job.gradient_bytes = 4 * NETWORKS[what]
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
        what = options.network or exchange.write_layout(
            folder / "layout", exchange.resnet50())
        jobs, missing = open_jobs(stack, python, what, host, folder), {}
        return jobs, missing, exchange.measure_each(
            options, LINKS, host, jobs, STEPS, missing)

    return exchange.run_mode(
        f"ddp_{options.network}" if options.network else "ddp", options,
        measure_in)


def smoke(options):
    """Two turns of every contender, with tiny tensors on loopback, and one of
    one contender with each network."""
    python = use_package(options.folder)
    for mode in ("ddp", *(f"ddp_{name}" for name in NETWORKS)):
        report.selftest_ddp(mode, LINKS, TORCH, OURS)
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
        for network in NETWORKS:
            jobs = open_jobs(stack, python, network, Loopback(), folder,
                             [(network, ["powersgd:rank=2"])])
            (turn,), = exchange.take_turns(
                jobs, [("all", 1)], 1, exchange.LINKS["unshaped"],
                missing).values()
            assert turn[1] == 0, f"{network}: gradients differ"
    return 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--smoke", action="store_true",
                        help="a few steps")
    parser.add_argument("--network", choices=sorted(NETWORKS),
                        help="whole training steps of this network")
    parser.add_argument("--write", action="store_true",
                        help="replace the table in docs/performance.md")
    parser.add_argument("--json", metavar="FILE",
                        help="where the figures go (ddp.json in BUILD_DIR, "
                             "or ddp_NAME.json)")
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
