#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure whole exchanges of gradients between two workers over real links.

usage: exchange.py [--write] [--links LIST] [--jobs LIST] BUILD_DIR
       exchange.py --small [--write] [--jobs LIST] BUILD_DIR
       exchange.py --smoke BUILD_DIR

The gradients have the shapes of ResNet-50. Each worker runs in a network
namespace of its own; a veth pair joins the two, and a token bucket filter at
both ends limits its speed. This needs root; without it the script exits with
77. Beside laconic, over its transports, it measures Open MPI and the all-reduce
and the communication hooks of Debian's python3-torch. All take turns in one
run; workers that are not measured sleep.

--small measures exact all-reduces of 1 KiB to 102 MB over loopback and needs no
root. --smoke makes rounds of tiny tensors, for the tests. --write replaces the
table of this mode in docs/performance.md, and the plot docs/exchange.svg.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import exchange_report as report
from exchange_jobs import Failure, Job, Loopback, Namespaces
from training_speed import machine

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77

# Name, bits per second (0: not limited), turns, and seconds that a turn may
# take: twice what the uncompressed gradients need, and more.
LINKS = {
    "unshaped": (0, 11, 60),
    "10gbit": (10 ** 10, 11, 60),
    "1gbit": (10 ** 9, 11, 60),
    "100mbit": (10 ** 8, 3, 300),
    "10mbit": (10 ** 7, 1, 1800),
}

OURS = ["allreduce", "powersgd:rank=1", "powersgd:rank=2", "powersgd:rank=4",
        "error-feedback with sign", "error-feedback with top-k:0.01",
        "compressed with natural"]
TORCH = ["all_reduce", "fp16_compress", "powerSGD 1", "powerSGD 2",
         "powerSGD 4"]
EXACT = {"allreduce", "all_reduce", "MPI_Allreduce", "DDP"}

SIZES = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22,
         1 << 24, Job.gradient_bytes]
SMALL_TURNS = 11
WARM_UP = 3  # rounds: buffers that alternate are touched in the second


# --- layouts -----------------------------------------------------------------

def resnet50():
    """The tensors of ResNet-50: (name, rows, columns)."""
    def conv(name, norm, out, fan_in):
        return [(f"{name}.weight", out, fan_in), (f"{norm}.weight", out, 1),
                (f"{norm}.bias", out, 1)]

    tensors, channels = conv("conv1", "bn1", 64, 3 * 7 * 7), 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            at = f"layer{stage + 1}.{block}"
            for i, out, fan_in in ((1, width, channels), (2, width, 9 * width),
                                   (3, 4 * width, width)):
                tensors += conv(f"{at}.conv{i}", f"{at}.bn{i}", out, fan_in)
            if block == 0:
                tensors += conv(f"{at}.downsample.0", f"{at}.downsample.1",
                                4 * width, channels)
            channels = 4 * width
    return tensors + [("fc.weight", 1000, channels), ("fc.bias", 1000, 1)]


def write_layout(path, tensors):
    path.write_text("".join(f"{name} {rows} {cols}\n"
                            for name, rows, cols in tensors))
    return str(path)


# --- jobs --------------------------------------------------------------------

def python_with(module):
    """A Python that has the module, or None: Debian's packages are those of
    /usr/bin/python3, which need not be the one that runs this."""
    return next((python for python in (sys.executable, "/usr/bin/python3")
                 if subprocess.run([python, "-c", f"import {module}"],
                                   capture_output=True).returncode == 0),
                None)


class Tools:
    """The programs of this machine that jobs need, and what is missing."""

    def __init__(self, folder):
        folder = pathlib.Path(folder).resolve()
        if (folder.parent / "laconic").is_file() and folder.name == "bench":
            folder = folder.parent
        self.laconic = folder / "laconic"
        self.program = folder / "bench" / "bench_exchange"
        for path in (self.laconic, self.program):
            if not path.is_file():
                sys.exit(f"{path}: not found, expected a folder it was built "
                         "in (ninja laconic bench_exchange)")
        listed = json.loads(subprocess.run(
            [self.laconic, "list", "--json"], check=True, text=True,
            capture_output=True).stdout)
        self.transports = [t["name"] for t in listed["transports"]]
        self.openmpi = (folder / "laconic_mpi_openmpi.so").exists()
        version = shutil.which("mpirun") and subprocess.run(
            ["mpirun", "--version"], capture_output=True, text=True).stdout
        self.mpirun = bool(version) and "Open MPI" in version

    def job(self, name, layout, contenders, host, folder):
        """(a job, None), or (None, the reason why it cannot run here)."""
        ours = [str(self.program)]
        if name.startswith("tcp"):
            if "tcp" not in self.transports:
                return None, "this build has no transport tcp"
            spec = f"tcp:token={token(folder)}"
            if name == "tcp-plain":
                spec += ",encryption=no"
            command, mpi = [*ours, spec, layout], False
        elif name == "mpi":
            if not self.openmpi or not self.mpirun:
                return None, "no module or no mpirun of Open MPI"
            command, mpi = [*ours, "mpi:library=openmpi", layout], True
        else:
            kind, module = (("torch", "torch.distributed") if name == "torch"
                            else ("mpi", "numpy"))
            python, mpi = python_with(module), name == "openmpi"
            if python is None or (mpi and not self.mpirun):
                return None, (f"no Python with {module} (Debian: python3-"
                              f"{module.split('.')[0]}), or no mpirun")
            command = [python, "-B", str(HERE / "exchange_peers.py"), kind,
                       layout]
        return Job(name, command, contenders, mpi, host, folder), None


def token(folder):
    path = os.path.join(folder, "token")
    if not os.path.exists(path):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(os.urandom(32))
    return path


def open_jobs(stack, tools, wanted, layout, host, folder):
    """The jobs that can run; prints and returns why others cannot."""
    jobs, missing = [], {}
    for name, contenders in wanted.items():
        job, why = tools.job(name, layout, contenders, host, folder)
        if job is not None:
            stack.callback(job.close)
            try:
                job.open()
                jobs.append(job)
                print(f"{name}: {job.versions}", file=sys.stderr)
                if re.search("reference BLAS|Prescott", job.versions):
                    print("PyTorch runs on a BLAS that does not use this "
                          "processor well; see docs/training-speed.md",
                          file=sys.stderr)
                continue
            except Failure as failure:
                why = str(failure)
        missing[name] = why
        print(f"{name} is skipped: {why}", file=sys.stderr)
    return jobs, missing


# --- taking turns ------------------------------------------------------------

def take_turns(jobs, requests, turns, link, missing):
    """{(job, contender, tensor): list of (seconds, error, bytes)}.

    `requests` are (tensor, rounds); `link` is an entry of LINKS. The order of
    the contenders alternates. A job that fails ends and gets no more turns.
    """
    figures = {}
    entries = [(job, i) for job in jobs for i in range(len(job.contenders))]
    for turn in range(turns):
        for tensor, rounds in requests:
            for job, i in entries[::-1] if turn % 2 else entries:
                if job.name in missing:
                    continue
                try:
                    figure = job.turn(i, tensor, rounds, link[2])
                    check(job, i, figure, link[0])
                    key = (job.name, job.contenders[i], tensor)
                    figures.setdefault(key, []).append(figure)
                except Failure as failure:
                    missing[job.name] = str(failure)
                    print(f"no more turns of {failure}", file=sys.stderr)
                    job.close()
    return figures


def check(job, i, figure, bits):
    """An exchange that did not happen, or not over the link, must not count as
    a fast one."""
    seconds, error, sent = figure
    contender = job.contenders[i]
    limit = 1e-6 if contender in EXACT else 1e3
    if not error <= limit:
        raise Failure(f"{job.name}: {contender}: the result has the relative "
                      f"error {error}, expected at most {limit}")
    if isinstance(job.host, Namespaces):
        needed = job.gradient_bytes if contender in EXACT else 1
        if sent < needed:
            raise Failure(f"{job.name}: {contender}: {sent:.0f} bytes passed "
                          f"the link, expected at least {needed}")
        # Less what the filter may hold.
        fastest = 8 * sent / bits - 0.02 if bits else 0
        if seconds < 0.95 * fastest:
            raise Failure(f"{job.name}: {contender}: took {seconds} s, "
                          f"expected at least {fastest} on this link")


def summary(figures, **more):
    return [dict(job=job, contender=contender, **more,
                 **({} if tensor == "all" else {"bytes": SIZES[tensor]}),
                 turns=len(list_),
                 median=statistics.median(f[0] for f in list_),
                 lowest=min(f[0] for f in list_),
                 highest=max(f[0] for f in list_),
                 sent=statistics.median(f[2] for f in list_),
                 error=list_[-1][1])
            for (job, contender, tensor), list_ in figures.items()]


def skip(why):
    name = os.path.basename(sys.argv[0])
    print(f"{name}: skipped: {why}", file=sys.stderr)
    sys.exit(SKIPPED)


def open_namespaces(stack):
    host = Namespaces()
    stack.callback(host.close)
    try:
        host.open()
    except Failure as failure:
        skip(f"no network namespaces here: {failure}")
    return host


def measure_each(options, links, host, jobs, rounds, missing):
    """The summary of turns of so many rounds, over one link after another."""
    results = []
    take_turns(jobs, [("all", 1)], WARM_UP, LINKS["unshaped"], missing)
    for link in options.links or links:
        host.shape(LINKS[link][0])
        turns = options.turns or LINKS[link][1]
        print(f"{link}: {turns} turns", file=sys.stderr)
        results += summary(take_turns(
            jobs, [("all", rounds)], turns, LINKS[link], missing), link=link)
    return results


def measure_links(options, tools, folder, stack):
    host = open_namespaces(stack)
    contenders = {"tcp": OURS, "mpi": OURS, "openmpi": ["MPI_Allreduce"],
                  "torch": TORCH}
    wanted = {name: contenders.get(name, OURS)
              for name in options.jobs or contenders}
    layout = write_layout(folder / "layout", resnet50())
    jobs, missing = open_jobs(stack, tools, wanted, layout, host, str(folder))
    results = measure_each(options, LINKS, host, jobs, 1, missing)
    return jobs, missing, results


def measure_small(options, tools, folder, stack):
    wanted = {name: ["allreduce"] for name in ("tcp-plain", "tcp", "mpi")}
    wanted.update(openmpi=["MPI_Allreduce"], torch=["all_reduce"])
    wanted = {name: wanted[name] for name in options.jobs or wanted}
    layout = write_layout(
        folder / "layout", [(f"bytes{size}", size // 4, 1) for size in SIZES])
    jobs, missing = open_jobs(stack, tools, wanted, layout, Loopback(),
                              str(folder))
    requests = [(i, max(1, min(500, (4 << 20) // size)))
                for i, size in enumerate(SIZES)]
    link = LINKS["unshaped"]
    take_turns(jobs, requests, WARM_UP, link, missing)
    results = summary(take_turns(
        jobs, requests, options.turns or SMALL_TURNS, link, missing))
    return jobs, missing, results


def run_mode(mode, options, measure_in):
    """Measure with measure_in(folder, stack), which returns jobs, what is
    missing and results; then print and write them."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="laconic-bench-")))
        try:
            jobs, missing, results = measure_in(folder, stack)
        finally:
            # A second Ctrl-C must not interrupt the clean-up.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not results:
        sys.exit(f"{os.path.basename(sys.argv[0])}: nothing was measured")
    run = report.describe(mode, machine(), jobs, missing, results)
    pathlib.Path(options.json or
                 os.path.join(options.folder, f"{mode}.json")).write_text(
        json.dumps(run, indent=1) + "\n")
    print(report.table(run))
    for name, why in missing.items():
        print(f"not measured, or not to the end: {name}: {why}")
    if options.write:
        report.write_page(run)
    return 0


def measure(options):
    if not options.small and os.geteuid() != 0:
        skip("network namespaces need root, or take --small")
    tools = Tools(options.folder)
    mode, function = (("small", measure_small) if options.small else
                      ("exchange", measure_links))
    return run_mode(mode, options, lambda folder, stack: function(
        options, tools, folder, stack))


# --- the tests ---------------------------------------------------------------

def smoke(options):
    """Rounds of tiny tensors, alone and between two workers over loopback;
    and the report of figures that are made up."""
    tools = Tools(options.folder)
    report.selftest(LINKS, SIZES, OURS)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="laconic-exchange-")))
        layout = write_layout(folder / "layout", resnet50())
        size = [tools.laconic, "size", "--algorithm", "powersgd:rank=2",
                "--json"]
        sizes = [json.loads(subprocess.check_output([*size, *model]))
                 for model in (["--model", "resnet50"], ["--layout", layout])]
        for key in ("tensors", "parameters", "payload_bytes_per_step"):
            assert sizes[0][key] == sizes[1][key], (key, sizes)
        layout = write_layout(folder / "layout",
                              [("weight", 40, 90), ("bias", 40, 1)])
        smoke_alone(tools, layout)
        for name in ("tcp", "tcp-plain", "mpi"):
            smoke_job(stack, tools, name, layout, str(folder))
    return 0


def smoke_job(stack, tools, name, layout, folder):
    job, why = tools.job(name, layout, OURS, Loopback(), folder)
    if job is None:
        print(f"{name} is skipped: {why}")
        return
    stack.callback(job.close)
    job.open()
    missing = {}
    figures = take_turns([job], [("all", 2)], 2, LINKS["unshaped"], missing)
    assert not missing, missing
    assert len(figures) == len(OURS), figures


def smoke_alone(tools, layout):
    command = [tools.program, "local", layout, *OURS]
    requests = "".join(f"{i} all 2\n" for i in range(len(OURS)))
    done = subprocess.run(command, input=requests, text=True, check=True,
                          capture_output=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 1 + len(OURS), lines
    seconds, error, _ = map(float, lines[1].split())
    assert seconds > 0 and error == 0, lines
    for bad in ("0 all", f"{len(OURS)} all 1", "0 2 1", "0 all 0", "0 x 1"):
        done = subprocess.run(command, input=f"{bad}\n", text=True,
                              capture_output=True)
        assert done.returncode == 1 and "expected" in done.stderr, (bad, done)


def comma_list(choices):
    def parse(text):
        names = text.split(",")
        for name in names:
            if name not in choices:
                raise argparse.ArgumentTypeError(
                    f"{name}: expected some of {','.join(choices)}")
        return names
    return parse


def run_program(function, options):
    """The exit code of a program; everything is removed after SIGTERM too, and
    after SIGINT also where a shell made a job in the background ignore it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return function(options)
    except Failure as failure:
        return f"{os.path.basename(sys.argv[0])}: {failure}"
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--small", action="store_true",
                        help="exact all-reduces of several sizes on loopback")
    parser.add_argument("--smoke", action="store_true",
                        help="a few rounds of tiny tensors")
    parser.add_argument("--write", action="store_true",
                        help="replace the table in docs/performance.md")
    parser.add_argument("--json", metavar="FILE",
                        help="where the figures go "
                             "(exchange.json or small.json in BUILD_DIR)")
    parser.add_argument("--turns", type=int, default=0,
                        help="instead of 11 on fast links, 3 and 1 on slow")
    parser.add_argument("--links", type=comma_list(LINKS), metavar="LIST",
                        help=f"some of {','.join(LINKS)}")
    parser.add_argument("--jobs", metavar="LIST", type=comma_list(
        ["tcp", "tcp-plain", "mpi", "openmpi", "torch"]),
                        help="some of tcp,tcp-plain,mpi,openmpi,torch")
    parser.add_argument("folder", metavar="BUILD_DIR")
    options = parser.parse_args()
    return run_program(smoke if options.smoke else measure, options)


if __name__ == "__main__":
    sys.exit(main())
