# SPDX-License-Identifier: MIT
"""An experiment, its page, and the index of all experiments.

A page is generated, except the text between two marks, which is kept.
"""
import os
import typing

from lab import plots, tables
from lab.cells import elapsed
from lab.tuning import Outcome

BEGIN, END = ("<!-- reading: %s -->" % word for word in ("begin", "end"))
UNREAD = "Not written yet."


class Experiment(typing.NamedTuple):
    name: str
    title: str
    paper: str      # authors and source
    settings: list  # paragraphs
    trials: list
    claims: list
    sections: typing.Callable  # of a view: lines of our and their tables
    panels: typing.Callable    # of a view: the panels of the plot
    fast: tuple     # labels of the two trials of --fast


class View:
    """The outcomes of an experiment's trials by their labels."""

    def __init__(self, experiment, book):
        self.trials = {trial.label: trial for trial in experiment.trials}
        self.book = book
        self.found = {}

    def __getitem__(self, label):
        if label not in self.found:
            self.found[label] = Outcome(self.trials[label], self.book)
        return self.found[label]

    def __contains__(self, label):
        return label in self.trials

    def results(self):
        """All results of all trials, those of tuning too."""
        cells = dict.fromkeys(planned.cell for trial in self.trials.values()
                              for planned in trial.planned(self.book))
        found = [self.book.get(asked) for asked in cells]
        return [result for result in found if result]


def origin(view):
    """Machines and commits of the results, and how many there are."""
    results = view.results()
    if not results:
        return "Nothing was measured yet."
    machines = sorted({"%(processor)s, %(processors)d processors" %
                       result["machine"] for result in results})
    commits = sorted({result["commit"] for result in results})
    hours = sum(map(elapsed, results)) / 3600
    dates = sorted({result["date"] for result in results})
    return "%d runs, %.1f hours, on %s; %s; commit %s." % (
        len(results), hours, " and ".join(machines),
        " to ".join(dict.fromkeys((dates[0], dates[-1]))),
        ", ".join(commits))


def passed_over(view):
    """A paragraph about settings that are better but diverge."""
    found = ["%s: %s" % (label, ", ".join("%s %s" % pair
                                          for pair in variant.items()))
             for label, trial in view.trials.items()
             for variant in trial.passed_over(view.book)]
    return ["Passed over, since a final run diverged: %s." % "; ".join(found),
            ""] if found else []


def reading(path):
    """The text that a page keeps."""
    if not path.exists():
        return UNREAD
    _, found, rest = path.read_text().partition(BEGIN)
    text, ended, _ = rest.partition(END)
    return text.strip() if found and ended else UNREAD


def verdict_rows(experiment, view):
    for claim in experiment.claims:
        ours, verdict = claim.verdict(view)
        yield [claim.text, claim.paper, ours, verdict]


def page(experiment, view, kept):
    lines = ["# " + experiment.title, "",
             "Written by `experiments/run.py %s`. %s" % (
                 experiment.name, experiment.paper), ""]
    for paragraph in experiment.settings:
        lines += [paragraph, ""]
    lines += [origin(view), "", "## Verdicts", "",
              *tables.table(["claim", "the paper", "ours", "verdict"],
                            verdict_rows(experiment, view), left=4), "",
              "![The plot of this experiment](%s.svg)" % experiment.name, "",
              *experiment.sections(view), *passed_over(view),
              "## Reading", "", BEGIN, kept, END]
    return "\n".join(lines) + "\n"


def replace(path, text):
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    os.replace(part, path)


def write(experiment, book, folder):
    """Write the page and the plot of an experiment."""
    view = View(experiment, book)
    path = folder / (experiment.name + ".md")
    replace(path, page(experiment, view, reading(path)))
    replace(path.with_suffix(".svg"), plots.svg(experiment.panels(view)))


INDEX = """# Experiments

The tables and figures of the papers, made again at a scale that two cores can
carry, by

    experiments/run.py all

The whole takes less than twelve hours on two idle cores, and any one experiment
less than two. The hours on a page are more where runs shared the cores.

A verdict is computed from the results: *holds*, *differs* or *not measured*.
Each page describes the settings and has our table beside the paper's. The
paper's column has the source of a number in brackets: TEXT was read in the
paper, CODE in its code, MEM is remembered, CALC was computed and SIM simulated.

A method has the best of several rates with the first seed. If the final run of
a seed diverges at that rate, it has the next best, and the page names the rate
that was passed over. A row whose only rate diverges has no further seeds.

Two other experiments have programs of their own: [lenet.md](lenet.md) compares
all algorithms on one network, and [networks.md](networks.md) compares step
times with published ones."""


def index(experiments, book, path):
    """Write the index: claim, the paper's number, ours, verdict."""
    lines = [INDEX, ""]
    for experiment in experiments:
        rows = verdict_rows(experiment, View(experiment, book))
        lines += ["## [%s](%s.md)" % (experiment.title, experiment.name), "",
                  *tables.table(["claim", "the paper", "ours", "verdict"],
                                rows, left=4), ""]
    replace(path, "\n".join(lines))
