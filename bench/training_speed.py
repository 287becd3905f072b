#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the training speed of laconic with that of PyTorch, or of two builds.

usage: training_speed.py [--beside BUILD_DIR] [--write] [--cpu] [--rounds N]
                         BUILD_DIR [NETWORK...]
       training_speed.py --smoke FOLDER

One worker, one thread. For each network both programs are started, make one
step to warm up, and then take turns: a round is some whole training steps of
the one and as many of the other, so that a change of the machine's speed
affects both. A speed is the median of the rounds, a ratio the median of the
ratios of the rounds.

--beside compares with another build of laconic instead of PyTorch, for example
with another version of oneDNN. --write replaces the table of that comparison in
docs/training-speed.md. --smoke makes one step of laconic alone, with the
bench_train_step of that folder. PyTorch is Debian's python3-torch.
"""
import argparse
import ctypes
import datetime
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "training-speed.md"

# For each network: its name in laconic, channels, height, width and classes of
# an example, the batch, words per row (of a text), steps and number of rounds.
# `torch` makes it in PyTorch from tools/pytorch_models.py.
NETWORKS = {
    "lenet": dict(
        spec="lenet", sample=(1, 28, 28, 10), batch=128, words=0,
        steps=20, rounds=11, unit="images/s", about="LeNet-5, batch 128",
        torch=lambda models: models.Lenet()),
    "resnet8": dict(
        spec="resnet8", sample=(3, 32, 32, 10), batch=128, words=0,
        steps=6, rounds=11, unit="images/s", about="ResNet-8, batch 128",
        torch=lambda models: models.Resnet(1)),
    "resnet20": dict(
        spec="resnet20", sample=(3, 32, 32, 10), batch=128, words=0,
        steps=2, rounds=7, unit="images/s", about="ResNet-20, batch 128",
        torch=lambda models: models.Resnet(3)),
    "lstm": dict(
        spec="lstm:hidden=650,layers=3,dropout=0.4",
        sample=(0, 0, 0, 33278), batch=64, words=30,
        steps=1, rounds=3, unit="tokens/s",
        about="LSTM 3 x 650, 33,278 words, batch 64 x 30",
        torch=lambda models: models.Lstm(33278, 650, 3, 0.4)),
    "lstm-small": dict(
        spec="lstm:hidden=200,layers=2,dropout=0.4",
        sample=(0, 0, 0, 10000), batch=16, words=30,
        steps=4, rounds=7, unit="tokens/s",
        about="LSTM 2 x 200, 10,000 words, batch 16 x 30",
        torch=lambda models: models.Lstm(10000, 200, 2, 0.4)),
}


# --- PyTorch, in a separate process ------------------------------------------

def name_of_blas(path):
    if "openblas" in path:
        # The kernels that it chose can make a factor of four.
        corename = ctypes.CDLL(path).openblas_get_corename
        corename.restype = ctypes.c_char_p
        return f"OpenBLAS for {corename().decode()}"
    if "mkl" in path:
        return "MKL"
    return "reference BLAS" if "/blas/" in path else os.path.basename(path)


def blas_of_this_process():
    """The name of the BLAS library that is loaded."""
    maps = pathlib.Path("/proc/self/maps").read_text()
    found = re.findall(r"\S*/lib(?:open)?blas\S*|\S*/libmkl_rt\S*", maps)
    names = {name_of_blas(path) for path in map(os.path.realpath, found)}
    return " and ".join(sorted(names)) or "no BLAS"


def serve_torch(name):
    """The protocol of bench_train_step, with PyTorch."""
    sys.path.insert(0, str(ROOT / "tools"))
    import pytorch_models as models
    torch = models.torch
    network = NETWORKS[name]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    channels, height, width, classes = network["sample"]
    batch, words = network["batch"], network["words"]
    model = network["torch"](models)
    model.train()
    criterion = torch.nn.CrossEntropyLoss()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    if words:
        x = torch.randint(classes, (words, batch))
        labels = torch.randint(classes, (words * batch,))
        shape = (model.rnn.num_layers, batch, model.rnn.hidden_size)
        carry = (torch.zeros(shape), torch.zeros(shape))
    else:
        x = torch.randn(batch, channels, height, width)
        labels = torch.randint(classes, (batch,))

    def step():
        nonlocal carry
        optimiser.zero_grad(set_to_none=True)
        if words:
            out, carry = model(x, tuple(c.detach() for c in carry))
            out = out.flatten(0, 1)
        else:
            out = model(x)
        criterion(out, labels).backward()
        optimiser.step()

    if not words:
        carry = None
    dnnl = re.search(r"MKL-DNN v(\S+)", torch.__config__.show())
    print(f"ready PyTorch {torch.__version__}, oneDNN "
          f"{dnnl.group(1) if dnnl else 'absent'}, {blas_of_this_process()}",
          flush=True)
    for line in sys.stdin:
        start, start_cpu = time.monotonic(), time.process_time()
        for _ in range(int(line)):
            step()
        print(f"{time.monotonic() - start:.6f} "
              f"{time.process_time() - start_cpu:.6f}", flush=True)


# --- taking turns -----------------------------------------------------------

class Side:
    """A program that makes steps on request."""

    def __init__(self, command, cpu=False):
        self.cpu = cpu
        threads = {f"{name}_NUM_THREADS": "1"
                   for name in ("OMP", "OPENBLAS", "MKL")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **threads})
        self.versions = self.answer().removeprefix("ready ")

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[0]}: ended with status "
                     f"{self.process.wait()}, expected an answer")
        return line.strip()

    def seconds(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return float(self.answer().split()[self.cpu])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def laconic_command(program, network):
    numbers = (*network["sample"], network["batch"], network["words"])
    return [str(program), network["spec"], *map(str, numbers)]


def other_command(name, options):
    """What laconic is compared with: another build of it, or PyTorch."""
    if options.beside:
        return laconic_command(program_in(options.beside), NETWORKS[name])
    return [sys.executable, "-B", __file__, "--torch", name]


def measure(name, program, options):
    """A row of the table: speeds of both, their ratio, and the versions."""
    network = NETWORKS[name]
    sides = [Side(laconic_command(program, network), options.cpu),
             Side(other_command(name, options), options.cpu)]
    for side in sides:
        side.seconds(1)
    times = ([], [])
    for round_ in range(options.rounds or network["rounds"]):
        # The order alternates.
        for i in ((0, 1), (1, 0))[round_ % 2]:
            times[i].append(sides[i].seconds(network["steps"]))
    for side in sides:
        side.close()
    work = network["steps"] * network["batch"] * max(network["words"], 1)
    ratios = sorted(b / a for a, b in zip(*times))
    return dict(
        about=network["about"], unit=network["unit"],
        speeds=[work / statistics.median(t) for t in times],
        ratio=statistics.median(ratios), lowest=ratios[0], highest=ratios[-1],
        versions=[side.versions for side in sides])


# --- the results -------------------------------------------------------------

def cells(row):
    return [row["about"], row["unit"],
            *(f"{speed:,.0f}" for speed in row["speeds"]),
            f"{row['ratio']:.2f}", f"{row['lowest']:.2f} to "
                                   f"{row['highest']:.2f}"]


HEADERS = {
    "table": ["network", "unit", "laconic", "PyTorch", "ratio",
              "of the rounds"],
    "builds": ["network", "unit", "first", "second", "ratio", "of the rounds"],
}


def table_of(options):
    """The name of the table on the page."""
    return "builds" if options.beside else "table"


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", text)
    cpu = model.group(1) if model else "unknown processor"
    return f"{cpu}, {os.cpu_count()} cores"


def print_table(rows, options):
    header = HEADERS[table_of(options)]
    lines = [header] + [cells(row) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    for line in lines:
        print("  ".join(
            text.ljust(width) if i < 2 else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths))))


def write_table(rows, options):
    today = datetime.date.today().isoformat()
    versions = "; ".join(rows[0]["versions"])
    clock = ", in seconds of the processor" if options.cpu else ""
    lines = [f"{machine()}, one thread{clock}, {today}; {versions}.", "",
             "| " + " | ".join(HEADERS[table_of(options)]) + " |",
             "| --- | --- | ---: | ---: | ---: | ---: |"]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    table = table_of(options)
    page = re.sub(
        rf"(<!-- begin {table} -->\n).*?(<!-- end {table} -->)",
        lambda match: match.group(1) + "\n".join(lines) + "\n"
        + match.group(2), PAGE.read_text(), flags=re.S)
    PAGE.write_text(page)


def program_in(folder):
    """The bench_train_step of a build folder."""
    folder = pathlib.Path(folder)
    places = [folder / "bench_train_step",
              folder / "bench" / "bench_train_step"]
    program = next((path for path in places if path.exists()), None)
    if program is None:
        sys.exit(f"{folder}: no bench_train_step there, expected a folder it "
                 "was built in (ninja bench_train_step)")
    return program


def smoke(program):
    """A step of a small network of each kind."""
    for arguments in (("lenet", 1, 28, 28, 10, 2, 0),
                      ("resnet8", 3, 32, 32, 10, 2, 0),
                      ("lstm:hidden=8,layers=1", 0, 0, 0, 20, 2, 3)):
        side = Side([str(program), *map(str, arguments)])
        assert side.seconds(1) > 0
        side.close()
        assert side.process.returncode == 0, side.process.returncode


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--write", action="store_true",
                        help="replace the table in docs/training-speed.md")
    parser.add_argument("--beside", metavar="BUILD_DIR",
                        help="compare with another build of laconic instead "
                             "of PyTorch")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--cpu", action="store_true",
                        help="measure CPU seconds instead of wall-clock "
                             "seconds, for a machine with other load")
    parser.add_argument("--smoke", action="store_true",
                        help="one step of laconic alone")
    parser.add_argument("--torch", action="store_true",
                        help=argparse.SUPPRESS)
    parser.add_argument("folder", metavar="BUILD_DIR")
    parser.add_argument("networks", metavar="NETWORK", nargs="*",
                        help=f"one of {', '.join(NETWORKS)}; all of them by "
                             "default")
    options = parser.parse_args()
    if options.torch:
        return serve_torch(options.folder)
    for name in options.networks:
        if name not in NETWORKS:
            parser.error(f"{name}: no such network, expected one of "
                         f"{', '.join(NETWORKS)}")
    program = program_in(options.folder)
    if options.smoke:
        return smoke(program)
    rows = [measure(name, program, options)
            for name in options.networks or NETWORKS]
    for line in rows[0]["versions"]:
        print(line)
    if re.search("reference BLAS|Prescott", rows[0]["versions"][1]):
        print("PyTorch runs on a BLAS that does not use this processor well; "
              "see docs/training-speed.md", file=sys.stderr)
    print_table(rows, options)
    if options.write:
        write_table(rows, options)
    return None


if __name__ == "__main__":
    main()
