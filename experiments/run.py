#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make the tables and figures of the papers again, beside the papers' own.

usage: run.py NAME|all [--laconic FILE] [--data DIR] [--jobs N]
              [--budget MINUTES] [--list | --pages | --fast]

A cell is one run of `laconic`. Its result goes to results/ beside this file and
is reused when a cell has equal settings, so the whole may be made in several
sittings: interrupt the script at any time and start it again. It prints an
estimate of the time first. At the end it writes the page and the plot of each
experiment, and README.md, the index.

DIR has a folder for each data set that `laconic` does not find itself, with the
name of the data set. --fast makes every experiment in miniature on generated
data, writes nothing here, and fails if a cell does.
"""
import argparse
import concurrent.futures
import importlib
import pathlib
import signal
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
from lab import miniature, page
from lab.cells import DIVERGED, DONE, FAILED, REFUSED, STOPPED, Book, Runner
from lab.estimate import Estimate, clock

NAMES = ["choco_table1", "choco_resnet", "choco_agreement", "choco_social",
         "powersgd", "natural", "powergossip", "convex", "heterogeneous",
         "local_steps", "hostile"]


def experiment_of(name):
    return importlib.import_module(name).EXPERIMENT


def planned(experiments, book):
    """All cells of the experiments with the first experiment that has each."""
    found = {}
    for experiment in experiments:
        for trial in experiment.trials:
            for cell, known in trial.planned(book):
                found.setdefault(cell, (experiment, known))
    return found


def missing(experiments, book):
    """Cells that can be run now, in order."""
    return [(cell, experiment) for cell, (experiment, known)
            in planned(experiments, book).items()
            if known and not book.settled(cell)]


def announce(experiments, book, jobs):
    """Print how much is missing and how long it will take."""
    everything = planned(experiments, book)
    estimate = Estimate(book, everything)
    for experiment in experiments:
        cells = planned([experiment], book)
        left = [cell for cell in cells if not book.get(cell)]
        print("%-14s %3d of %3d cells are there; about %s for the others" % (
            experiment.name, len(cells) - len(left), len(cells),
            clock(sum(map(estimate.seconds, left)))))
    left = [cell for cell in everything if not book.get(cell)]
    print("%d cells to run, about %s%s" % (
        len(left), clock(sum(map(estimate.seconds, left))),
        "" if jobs == 1 else " of one job"), flush=True)


class Session:
    """Runs what is missing, and counts outcomes."""

    def __init__(self, experiments, book, runner, options):
        self.experiments, self.book = experiments, book
        self.runner, self.jobs = runner, options.jobs
        self.deadline = None if options.budget is None else (
            time.monotonic() + 60 * options.budget)
        self.counts = dict.fromkeys(
            (DONE, DIVERGED, REFUSED, FAILED, STOPPED), 0)

    def expired(self):
        return self.deadline is not None \
            and time.monotonic() >= self.deadline

    def settle(self, cell, experiment, outcome, found):
        """Store the result of a cell, or why it has none."""
        self.counts[outcome] += 1
        if outcome in (DONE, DIVERGED):
            self.book.put(experiment.name, cell, found)
            note = "%.1f s" % found["seconds"]
        else:
            self.book.without[cell.key] = outcome
            note = found.splitlines()[0] if found else "no message"
        word = "not available" if outcome == REFUSED else outcome
        print("%s: %s, %s" % (cell.name, word, note), flush=True)

    def loop(self, pool):
        running = {}
        while True:
            # A cell of which the settings depend on others appears later.
            ready = [] if self.expired() or self.runner.stopping else [
                pair for pair in missing(self.experiments, self.book)
                if pair[0] not in {cell for cell, _ in running.values()}]
            for cell, experiment in ready[:self.jobs - len(running)]:
                running[pool.submit(self.runner.run, cell)] = (cell,
                                                               experiment)
            if not running:
                return
            done, _ = concurrent.futures.wait(
                running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                self.settle(*running.pop(future), *future.result())

    def run(self):
        """Run until nothing is left, the time is over, or a signal comes."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self.runner.stop())
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            self.loop(pool)


def show(experiments, book):
    """Print every cell and whether it has a result."""
    for experiment in experiments:
        print(experiment.name)
        for trial in experiment.trials:
            print("  " + trial.label)
            for cell, known in trial.planned(book):
                result = book.get(cell)
                state = result["outcome"] if result else (
                    "missing" if known else "depends on others")
                print("    %-17s %s" % (state, cell.name))


def write_pages(experiments, book, folder):
    """The index and all pages, since experiments share results. Those given
    stand in for the experiments of their names."""
    given = {experiment.name: experiment for experiment in experiments}
    everything = [given.get(name) or experiment_of(name) for name in NAMES]
    for experiment in everything:
        page.write(experiment, book, folder)
    page.index(everything, book, folder / "README.md")


def fast(options):
    """Every experiment in miniature; the number of cells that failed."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        miniature.stand_ins(folder / "data")
        experiments = [miniature.miniature(e) for e in options.experiments]
        chosen = [e._replace(trials=[t for t in e.trials
                                     if t.label in e.fast])
                  for e in experiments]
        book = Book(folder / "results")
        runner = Runner(options.laconic, folder / "runs", folder / "data")
        session = Session(chosen, book, runner, options)
        session.run()
        write_pages(experiments, book, folder)
        short = [e.name for e in chosen if len(planned([e], book)) != 2]
    for name in short:
        print("%s: its miniature does not have two cells" % name)
    return len(short) + sum(session.counts[outcome] for outcome
                            in (REFUSED, FAILED, STOPPED))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("name", choices=[*NAMES, "all"])
    parser.add_argument("--laconic", type=pathlib.Path,
                        default=HERE.parent / "build" / "laconic")
    parser.add_argument("--data", type=pathlib.Path, help="folder with a "
                        "folder for each data set")
    parser.add_argument("--jobs", type=int, default=1, choices=(1, 2))
    parser.add_argument("--budget", type=float, metavar="MINUTES",
                        help="start no cell after this time")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true",
                      help="print all cells and whether they are done")
    what.add_argument("--pages", action="store_true",
                      help="run nothing, only write the pages")
    what.add_argument("--fast", action="store_true",
                      help="in miniature, on generated data")
    options = parser.parse_args()
    if not (options.list or options.pages or options.laconic.is_file()):
        parser.error("--laconic is %s, expected the command that `make` "
                     "builds" % options.laconic)
    names = NAMES if options.name == "all" else [options.name]
    options.experiments = [experiment_of(name) for name in names]
    return options


def main():
    options = parse()
    if options.fast:
        return 1 if fast(options) else 0
    book = Book(HERE / "results")
    if options.list:
        show(options.experiments, book)
        return 0
    if not options.pages:
        announce(options.experiments, book, options.jobs)
        runner = Runner(options.laconic, HERE / "runs", options.data)
        session = Session(options.experiments, book, runner, options)
        session.run()
        print(", ".join("%d %s" % (count, outcome) for outcome, count
                        in session.counts.items() if count) or "nothing ran")
    write_pages(options.experiments, book, HERE)
    if options.pages:
        return 0
    return 130 if runner.stopping else 1 if session.counts[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main())
