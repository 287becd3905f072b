#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the command on a simulated cluster: the real program, on a network that
exists only in SimGrid. Times that it reports are those of the simulation.

    make simulator
    tools/simulate.py --workers 64 --bandwidth 100Mbit --latency 10ms -- \\
        average --algorithm dpsgd --model resnet20 --rounds 10

Latency is one way, half of a ping. `star`: every worker has a full-duplex link
to one switch. `pairs`: every pair of workers has a link of its own in each
direction. Computation takes no time, except --step-time.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAILED, USAGE = 1, 2
WORKERS_MAX = 4096
SECONDS = {"s": 1, "ms": 1e-3, "us": 1e-6}
BITS = {"bit": 1, "bps": 1, "bit/s": 1, "B/s": 8}
PREFIXES = {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
# Fluid links without TCP's start and windows, and no time for computation. All
# sends are eager. Each rank is a thread: see src/transport/smpi.c.
SETTINGS = {
    "contexts/factory": "thread",
    "network/model": "CM02",
    "network/TCP-gamma": 0,
    "network/crosstraffic": 0,
    "smpi/simulate-computation": "no",
    "smpi/host-speed": "1Gf",
    "smpi/wtime": 0,
    "smpi/send-is-detached-thresh": 2000000000,
    "smpi/allreduce": "rab",
}
HEADER = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
"""


def measure(text, units, what):
    """The value of a number with a unit."""
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*(\S+)", text.strip())
    if not found or found.group(2) not in units or float(found.group(1)) <= 0:
        raise argparse.ArgumentTypeError(
            f'"{text}", expected a number above 0 and a unit, such as {what}')
    return float(found.group(1)) * units[found.group(2)]


def bandwidth(text):
    units = {prefix + unit: factor * bits
             for prefix, factor in PREFIXES.items()
             for unit, bits in BITS.items()}
    return measure(text, units, "100Mbit or 10MB/s")


def latency(text):
    return measure(text, SECONDS, "10ms or 50us")


def workers(text):
    if not text.isdecimal() or not 1 <= int(text) <= WORKERS_MAX:
        raise argparse.ArgumentTypeError(
            f'"{text}", expected a number from 1 to {WORKERS_MAX}')
    return int(text)


def star(count, rate, seconds):
    # A message passes two links.
    return (f'<cluster id="c" prefix="n" suffix="" radical="0-{count - 1}" '
            f'speed="1Gf" bw="{rate / 8:.12g}Bps" lat="{seconds / 2:.12g}s" '
            'sharing_policy="SPLITDUPLEX"/>\n')


def pairs(count, rate, seconds):
    edges = [(i, j) for i in range(count) for j in range(count) if i != j]
    return "".join(
        ['<zone id="z" routing="Full">\n']
        + [f'<host id="n{i}" speed="1Gf"/>\n' for i in range(count)]
        + [f'<link id="l{i}-{j}" bandwidth="{rate / 8:.12g}Bps" '
           f'latency="{seconds:.12g}s"/>\n' for i, j in edges]
        + [f'<route src="n{i}" dst="n{j}" symmetrical="NO">'
           f'<link_ctn id="l{i}-{j}"/></route>\n' for i, j in edges]
        + ["</zone>\n"])


NETWORKS = {"star": star, "pairs": pairs}


def parse(words):
    parser = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=workers, required=True, metavar="N")
    parser.add_argument("--bandwidth", type=bandwidth, required=True,
                        metavar="RATE", help="of a link, in each direction")
    parser.add_argument("--latency", type=latency, required=True,
                        metavar="TIME", help="from worker to worker, one way")
    parser.add_argument("--network", choices=NETWORKS, default="star")
    parser.add_argument("--build", type=pathlib.Path, metavar="DIR",
                        default=ROOT / "build-smpi",
                        help="a build with LAC_SMPI (%(default)s)")
    parser.add_argument("command", nargs="+", metavar="COMMAND",
                        help="a command of laconic and its options, after --")
    options = parser.parse_args(words)
    for word in options.command:
        if not word or re.search(r"\s", word):
            parser.error(f'smpirun would split the argument "{word}", '
                         "expected one without spaces")
    return options


def smpirun(program, options, folder):
    """The words that run a program on the platform of the options."""
    platform, hosts = folder / "platform.xml", folder / "hosts"
    network = NETWORKS[options.network](
        options.workers, options.bandwidth, options.latency)
    platform.write_text(HEADER + network + "</platform>\n")
    hosts.write_text("".join(f"n{i}\n" for i in range(options.workers)))
    # Its shell would expand patterns in the arguments without -f.
    return ["sh", "-f", shutil.which("smpirun"), "-quiet", "-no-privatize",
            "-np", str(options.workers), "-platform", str(platform),
            "-hostfile", str(hosts), "--log=root.thresh:warning",
            *(f"--cfg={name}:{value}" for name, value in SETTINGS.items()),
            str(program), *options.command]


def forward(words):
    """Run, print its output without the last line of smpirun, and return the
    exit code. Nothing of the job is left if this is ended by a signal."""
    with subprocess.Popen(words, text=True, stdout=subprocess.PIPE,
                          start_new_session=True) as job:
        try:
            for line in job.stdout:
                if not line.startswith("Execution failed with code "):
                    sys.stdout.write(line)
            return job.wait()
        except BaseException:
            os.killpg(job.pid, signal.SIGKILL)
            raise


def end(number, _frame):
    sys.exit(128 + number)


def main():
    options = parse(sys.argv[1:])
    program = options.build.resolve() / "laconic"
    problem = None
    if shutil.which("smpirun") is None:
        problem = "there is no smpirun; on Debian install libsimgrid-dev"
    elif not program.exists():
        problem = f"there is no {program}; build it with `make simulator`"
    if problem:
        print(f"simulate: {problem}", file=sys.stderr)
        return FAILED
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    with tempfile.TemporaryDirectory() as folder:
        return forward(smpirun(program, options, pathlib.Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
