#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the predictions of `laconic plan` with rounds over a real link.

usage: prediction.py [--mbit N] [--turns N] [--rounds N] [--jobs LIST]
                     [--write] BUILD_DIR

Two workers are in one network namespace, and a token bucket filter limits its
loopback to N Mbit/s (20), which both directions share. A plain transfer over
TCP, as of iperf, gives the bandwidth that programs get, and single bytes to and
fro the latency. From these, `plan` predicts a round of ResNet-20: exchanges and
compression. `average --time-only` then makes rounds, over Open MPI restricted
to TCP and over the transport tcp. This needs root; without it the script exits
with 77. --write replaces the table in docs/planning.md.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from exchange import Tools, comma_list, run_program, skip, token
from exchange_jobs import ENVIRONMENT, WORLD, Failure, Loopback, mpi_options
from exchange_jobs import remove_namespace, run
from training_speed import machine

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/planning.md"
MODEL = ["--model", "resnet20"]
CANDIDATES = [("dpsgd", None), ("allreduce", None), ("powersgd:rank=2", None),
              ("dcd", "qsgd:bucket=512"), ("error-feedback", "sign"),
              ("compressed", "natural"), ("choco", "sign")]
JOBS = {"mpi": "Open MPI", "tcp": "tcp"}
TURN = 2.0  # seconds of rounds, about
ROUNDS = 24  # at least: when the last one ends, half of its bytes may still be
             # in a buffer of the sender
TRANSFER = 2 << 20  # bytes
TRANSFERS = 7
PINGS = 201
HANG = 300  # seconds
BURST = 2 * 1514  # bytes that pass at once, or those of 1 ms: far below a
                  # message


class LimitedLoopback(Loopback):
    """Both workers in a network namespace, whose loopback is slow."""

    def __init__(self):
        self.name = f"laconic{os.getpid()}"

    def open(self, mbit):
        burst = max(BURST, mbit * 1000 // 8)
        run("ip", "netns", "add", self.name)
        run("ip", "-n", self.name, "link", "set", "lo", "mtu", "1500", "up")
        run("tc", "-n", self.name, "qdisc", "add", "dev", "lo", "root", "tbf",
            "rate", f"{mbit}mbit", "burst", str(burst), "latency", "50ms")

    def enter(self, rank):
        return ["ip", "netns", "exec", self.name]

    def mpirun(self, folder):
        return [*self.enter(0), *super().mpirun(folder)]

    def close(self):
        remove_namespace(self.name)


class Link:
    """The workers, and commands that all of them run."""

    def __init__(self, tools, host, folder):
        self.tools, self.host, self.folder = tools, host, folder

    def lacks(self, job):
        """Why a job cannot run here, or None."""
        if job == "mpi" and not (self.tools.openmpi and self.tools.mpirun):
            return "no module or no mpirun of Open MPI"
        if job == "tcp" and "tcp" not in self.tools.transports:
            return "this build has no transport tcp"
        return None

    def mpi(self, words):
        return [([*self.host.mpirun(self.folder), *mpi_options(self.host),
                  *words, "--transport", "mpi:library=openmpi"], {})]

    def tcp(self, words):
        group = {"MASTER_ADDR": self.host.address, "WORLD_SIZE": str(WORLD),
                 "MASTER_PORT": str(self.host.port())}
        spec = f"tcp:token={token(self.folder)}"
        return [([*self.host.enter(rank), *words, "--transport", spec],
                 {**group, "RANK": str(rank)}) for rank in range(WORLD)]

    def run(self, job, *words):
        """What worker 0 reports."""
        words = [str(self.tools.laconic), *map(str, words), "--json"]
        commands = getattr(self, job)(words)
        processes = [subprocess.Popen(
            command, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT, **group})
            for command, group in commands]
        ends = [process.communicate(timeout=HANG) for process in processes]
        for process, (_, messages) in zip(processes, ends):
            if process.returncode != 0:
                raise Failure(f"{job}: {messages.strip()[-2000:]}")
        return json.loads(ends[0][0])


def connect():
    """Both ends of a connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        other = server.accept()[0]
    for end in (one, other):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one, other


def receive(end, size):
    while size > 0:
        size -= len(end.recv(min(size, 1 << 16)))


def seconds_of(one, other, size):
    """The time until `size` bytes have arrived."""
    sender = threading.Thread(target=one.sendall, args=(bytes(size),))
    start = time.perf_counter()
    sender.start()
    receive(other, size)
    seconds = time.perf_counter() - start
    sender.join()
    return seconds


def ping(one, other):
    start = time.perf_counter()
    one.sendall(b"x")
    receive(other, 1)
    other.sendall(b"x")
    receive(one, 1)
    return time.perf_counter() - start


def transfer():
    """Print the bytes a second and the latency of loopback."""
    one, other = connect()
    # While TCP learns the bandwidth, transfers are slower.
    rate = TRANSFER / statistics.median(
        seconds_of(one, other, TRANSFER) for _ in range(TRANSFERS))
    latency = statistics.median(ping(one, other) for _ in range(PINGS)) / 2
    print(json.dumps([rate, latency]))


def predict(link, job, network):
    """{candidate: seconds of exchanges, seconds of compression}"""
    rate, latency = network
    done = run(str(link.tools.laconic), "plan", *MODEL, "--step-time", "1s",
               "--workers", str(WORLD), "--transport", job, "--network",
               "shared", "--bandwidth", f"{rate:.0f}B/s", "--latency",
               f"{1e6 * latency:.3f}us", "--json")
    return {(one["algorithm"], one["compressor"]):
            (one["network_seconds"], one["compress_seconds"])
            for one in json.loads(done)["candidates"]}


def time_rounds(link, job, candidate, rounds):
    algorithm, compressor = candidate
    more = [] if compressor is None else ["--compressor", compressor]
    return link.run(job, "average", "--algorithm", algorithm, *more, *MODEL,
                    "--time-only", "--rounds", rounds)["round_seconds"]


def measure_job(link, job, network, options):
    why = link.lacks(job)
    if why is not None:
        print(f"{job} is skipped: {why}", file=sys.stderr)
        return
    predictions = predict(link, job, network)
    for candidate in CANDIDATES:
        expected = predictions[candidate]
        rounds = options.rounds or max(ROUNDS, round(TURN / sum(expected)))
        found = [time_rounds(link, job, candidate, rounds)
                 for _ in range(options.turns)]
        yield job, candidate, expected, found


def cells(job, candidate, expected, found):
    middle = statistics.median(found)
    return [" ".join(filter(None, candidate)), JOBS[job],
            *(f"{1e3 * seconds:.1f}" for seconds in (*expected, middle)),
            f"{1e3 * min(found):.1f} to {1e3 * max(found):.1f}",
            f"{100 * (sum(expected) / middle - 1):+.1f} %"]


def describe(network, rows, options):
    """The table, and what it was measured on."""
    lines = [f"{machine()}, {datetime.date.today().isoformat()}. A limit of "
             f"{options.mbit} Mbit/s gave {8e-6 * network[0]:.2f} Mbit/s and "
             f"{1e6 * network[1]:.0f} us; median of {options.turns} turns.",
             "",
             "| ms | over | exchanges | compression | measured | from to "
             "| error |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    lines += ["| " + " | ".join(cells(*row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def write_page(text):
    page = PAGE.read_text()
    page = re.sub(r"(<!-- begin link -->\n).*?(<!-- end link -->)",
                  lambda found: found.group(1) + text + found.group(2), page,
                  flags=re.DOTALL)
    PAGE.write_text(page)


def measure(options):
    if os.geteuid() != 0:
        skip("network namespaces need root")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="laconic-bench-"))
        host = LimitedLoopback()
        stack.callback(host.close)
        try:
            host.open(options.mbit)
        except Failure as failure:
            skip(f"no limited network here: {failure}")
        network = json.loads(run(*host.enter(0), sys.executable, "-B",
                                 __file__, "--transfer"))
        link = Link(Tools(options.folder), host, folder)
        rows = [row for job in options.jobs
                for row in measure_job(link, job, network, options)]
    text = describe(network, rows, options)
    print(text, end="")
    if options.write:
        write_page(text)
    return 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--mbit", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=0,
                        help=f"instead of those of {TURN:.0f} s, but at least "
                             f"{ROUNDS}")
    parser.add_argument("--jobs", type=comma_list(JOBS), default=list(JOBS),
                        metavar="LIST", help=f"some of {','.join(JOBS)}")
    parser.add_argument("--write", action="store_true",
                        help="replace the table in docs/planning.md")
    parser.add_argument("folder", metavar="BUILD_DIR")
    if sys.argv[1:] == ["--transfer"]:
        return transfer()
    return run_program(measure, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
