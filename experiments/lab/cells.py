# SPDX-License-Identifier: MIT
"""A cell is one run of the command, given by its settings. Its result is a
line of results/EXPERIMENT.jsonl, which is reused wherever a cell has equal
settings. The lines are sorted by the names of their cells.

A result has the command and its settings, the outcome, the JSON that the
command printed, points of its curve, and where and when it was made: machine,
commit, date and seconds. An outcome is "done" or "diverged". A cell that the
command refuses, because it does not know a setting or lacks the data, has no
result: a later version may run it.
"""
import csv
import datetime
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import time
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
DONE, DIVERGED, REFUSED, FAILED, STOPPED = (
    "done", "diverged", "refused", "failed", "stopped")
USAGE = 2  # the exit code of a setting that the command does not know
CURVE = ["epoch", "payload_bytes", "train_loss", "test_loss",
         "test_accuracy", "worst_accuracy", "averaged_loss",
         "averaged_accuracy", "train_objective", "consensus"]
VALUES = 40  # singular values of a tensor at most
POINTS = 60  # of a curve at most
NAMED = ["data", "model", "workers", "topology", "split", "algorithm",
         "local-steps", "hostile", "momentum-kind", "compressor", "lr",
         "epochs", "seed"]


class Cell(typing.NamedTuple):
    command: str
    settings: tuple  # of (option, value), sorted by option

    @property
    def key(self):
        text = json.dumps([self.command, self.settings])
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @property
    def name(self):
        """Readable, and different for different settings."""
        settings = dict(self.settings)
        words = [self.command] + [settings[n] for n in NAMED if n in settings]
        text = re.sub("[^A-Za-z0-9.=]+", "-", "-".join(words))
        return "%s-%s" % (text[:100].strip("-"), self.key)

    def get(self, option, default=None):
        return dict(self.settings).get(option, default)

    def words(self):
        """The command line, without the options of a single call."""
        found = [self.command]
        for option, value in self.settings:
            found += ["--" + option] + ([] if value == "yes" else [value])
        return found


def cell(command, **settings):
    """A cell; the option --weight-decay is written weight_decay here, a flag
    is True, and None leaves an option out."""
    def text(value):
        return "yes" if value is True else str(value)
    return Cell(command, tuple(sorted(
        (name.replace("_", "-"), text(value))
        for name, value in settings.items() if value is not None)))


class Book:
    """All results below a folder, by the keys of their cells."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.results = {}
        self.lines = {}  # of each experiment, by the names of their cells
        self.without = {}  # key: the outcome of cells that left no result
        for path in sorted(self.folder.glob("*.jsonl")):
            for line in path.read_text().splitlines():
                result = json.loads(line)
                found = cell(result["command"], **result["settings"])
                self.results.setdefault(found.key, result)
                self.lines.setdefault(path.stem, {})[found.name] = line

    def get(self, asked):
        return self.results.get(asked.key)

    def settled(self, asked):
        return asked.key in self.results or asked.key in self.without

    def refused(self, asked):
        return self.without.get(asked.key) == REFUSED

    def put(self, experiment, made, result):
        """Write a result so that a reader finds all of it or nothing."""
        lines = self.lines.setdefault(experiment, {})
        lines[made.name] = json.dumps(result, separators=(",", ":"))
        path = self.folder / (experiment + ".jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text("".join(
            lines[name] + "\n" for name in sorted(lines)))
        os.replace(part, path)
        self.results[made.key] = result


def machine():
    name = platform.processor() or platform.machine()
    try:
        info = pathlib.Path("/proc/cpuinfo").read_text()
        name = re.search(r"model name\s*: (.*)", info).group(1)
    except (OSError, AttributeError):
        pass
    return {"processor": name, "processors": os.cpu_count()}


def git(*words):
    """What git prints about this tree; nothing without git or a repository."""
    if shutil.which("git") is None:
        return ""
    done = subprocess.run(["git", "-C", str(ROOT), *words], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False)
    return done.stdout.strip()


def commit():
    """The commit of the sources, with a + if they were changed since."""
    changed = git("status", "--porcelain", "--", "src", "include")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (
        "+" if changed else "")


def elapsed(result):
    """Seconds of a run. Those of its last sitting are measured outside; the
    command counts all."""
    return max(result["seconds"], result["result"].get("seconds") or 0.0)


def rounded(value):
    return float("%.6g" % value) if isinstance(value, float) else value


def thin(rows):
    """At most about POINTS rows, nearly equal steps of the logarithm of their
    number, with the first and the last."""
    last, kept, at = len(rows) - 1, [], 0
    while at < last:
        kept.append(rows[at])
        at = max(at + 1, round(at * (last + 1.0) ** (1.0 / POINTS)))
    return kept + rows[-1:]


def columns(rows, names):
    return {name: [rounded(row[name]) for row in rows] for name in names
            if rows and rows[-1].get(name) is not None}


def curve_of(folder):
    """The metrics of a training, or the trace of `average`."""
    metrics, trace = folder / "metrics.jsonl", folder / "trace.csv"
    if metrics.exists():
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
        return columns(thin(rows), CURVE)
    if trace.exists():
        with open(trace, newline="", encoding="ascii") as file:
            rows = [{name: float(value) for name, value in row.items()}
                    for row in csv.DictReader(file)]
        return columns(thin(rows), ["round", "error", "payload_bytes"])
    return {}


def spectra_of(folder):
    """The largest singular values of the models' differences, if they were
    recorded, with the sum of the squares of all."""
    path = folder / "differences.jsonl"
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {"differences": [
        {"epoch": line["epoch"], "tensors": {
            name: {"count": len(values),
                   "energy": rounded(sum(v * v for v in values)),
                   "largest": [rounded(v) for v in values[:VALUES]]}
            for name, values in line["tensors"].items()}}
        for line in lines]}


def averaged_on_all(asked, printed):
    """What a run printed, with the averaged model on the whole test set unless
    the cell names a number of examples. Results of versions that tested it on
    a sample and on the whole set so equal those of earlier ones."""
    if asked.get("test-limit", "auto") != "auto":
        return printed
    return {**printed, **{name[len("final_"):]: value
                          for name, value in printed.items()
                          if name.startswith("final_averaged_")}}


class Runner:
    """Runs cells with one program, in folders of their own, and stops all of
    them when it is asked to."""

    def __init__(self, laconic, runs, data=None):
        self.laconic = laconic
        self.runs = pathlib.Path(runs)
        self.data = pathlib.Path(data) if data else None
        self.origin = {"machine": machine(), "commit": commit()}
        self.processes = set()
        self.stopping = False

    def words(self, asked, folder):
        """The command line of a single call."""
        found = [str(self.laconic), *asked.words(), "--json"]
        data = self.data and self.data / str(asked.get("data"))
        if data and data.is_dir():
            found += ["--data-dir", str(data)]
        if asked.command == "train":
            found += ["--out", str(folder), "--resume", "--quiet"]
        elif asked.command == "average":
            found += ["--trace", str(folder / "trace.csv")]
        return found

    def stop(self):
        """Interrupt all runs; trainings write a checkpoint and end."""
        self.stopping = True
        for process in list(self.processes):
            process.send_signal(signal.SIGINT)

    def run(self, asked):
        """Run a cell: its outcome and its result, or why it has none."""
        folder = self.runs / asked.name
        folder.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        # A session of its own: an interrupt of the terminal reaches the cell
        # once, through stop().
        process = subprocess.Popen(
            self.words(asked, folder), text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.processes.add(process)
        if self.stopping:
            process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
        self.processes.discard(process)
        return self.outcome(asked, folder, process.returncode, stdout,
                            stderr.strip(), time.monotonic() - begun)

    def outcome(self, asked, folder, code, stdout, stderr, seconds):
        diverged = "the run diverges" in stderr
        if code != 0 and not diverged:
            if self.stopping or code in (130, 143, -2, -15):
                return STOPPED, stderr
            absent = code == USAGE or "not on this machine" in stderr
            if absent:
                remove(folder)
            return (REFUSED if absent else FAILED), stderr
        printed = {} if diverged else averaged_on_all(
            asked, json.loads(stdout))
        diverged = diverged or bool(printed.get("diverged"))
        result = {"command": asked.command, "settings": dict(asked.settings),
                  "outcome": DIVERGED if diverged else DONE,
                  **self.origin, "seconds": round(seconds, 2),
                  "date": datetime.date.today().isoformat(),
                  "result": {name: rounded(value)
                             for name, value in printed.items()},
                  "curve": curve_of(folder), **spectra_of(folder)}
        remove(folder)
        return result["outcome"], result


def remove(folder):
    """Remove the folder of a run, which holds files and folders of files."""
    for path in sorted(folder.glob("**/*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
