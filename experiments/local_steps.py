# SPDX-License-Identifier: MIT
"""Local steps with an outer optimiser: accuracy or perplexity against bytes,
for exact, sparse and rotated rounds, beside all-reduce and D-PSGD.
"""
import typing

from lab import plots, tables, tasks
from lab.page import Experiment
from lab.tuning import Trial
from lab.verdicts import Claim, Missing, measured, value

PERPLEXITY = "test_perplexity"
AVERAGE, INNER = "outer:lr=1,momentum=0", "outer:inner=(%s),lr=1,momentum=0"
SPARSE = INNER % "error-feedback:decay=0.95"
ROTATED = INNER % "error-feedback"
# Found after a few trials: half of DiLoCo's momentum, and a step of 1.
MOMENTUM = "outer:%slr=1,momentum=0.5"
# Algorithm, compressor and topology of a method.
BASELINES = {"all-reduce": ("allreduce", None, None),
             "D-PSGD": ("dpsgd", None, "ring")}
EXACT = {
    "local SGD": (AVERAGE, None, None),
    "momentum 0.5": (MOMENTUM % "", None, None),
    "DiLoCo": ("outer", None, None),
    "NoLoCo": ("outer:inner=(dpsgd),lr=0.7,momentum=0.5,nesterov=no", None,
               "random-matching")}
COMPRESSED = {
    "SparseLoCo, 1/64": (SPARSE, "top-k:0.015625,chunk=4096+two-bit", None),
    "SparseLoCo, 1/16": (SPARSE, "top-k:0.0625,chunk=4096+two-bit", None),
    "largest 1/16, no decay": (
        ROTATED, "top-k:0.0625,chunk=4096+two-bit", None),
    "signs of the largest 1/16, no decay": (
        ROTATED, "top-k:0.0625,chunk=4096+sign", None),
    "rotated, 1 bit": (ROTATED, "rotated:1", None),
    "rotated, 2 bits": (ROTATED, "rotated:2", None),
    "rotated, 3 bits": (ROTATED, "rotated:3", None),
    "rotated, 4 bits": (ROTATED, "rotated:4", None),
    "rotated, 1 bit, momentum 0.5": (
        MOMENTUM % "inner=(error-feedback),", "rotated:1", None)}
SEEDS = (1, 2, 3)
SEEDED = {("LeNet", "all-reduce", None),
          ("LeNet", "rotated, 1 bit, momentum 0.5", 20)}
METHODS = {**BASELINES, **EXACT, **COMPRESSED}
FEWER = 1000  # times fewer bytes than D-PSGD
NEAR = 4      # times the bytes of a method that is compared at equal bytes
LSTM_RATES = ({"lr": 3}, {"lr": 10}, {"lr": 20}, {"lr": 40})
TOO_MUCH = "none sends so few bytes"


class Task(typing.NamedTuple):
    base: dict
    epochs: dict
    rates: tuple    # of all-reduce
    tuned: dict     # rates of other methods; the rest has the chosen one of
                    # local SGD with the same period, or of all-reduce
    periods: dict   # steps between rounds, by method
    metric: str
    slack: float    # of the claims: points, or per cent


TASKS = {
    "LeNet": Task(
        {**tasks.LENET, "batch": 16}, tasks.LENET_EPOCHS, tasks.LENET_RATES,
        {"D-PSGD": tasks.LENET_RATES,
         "local SGD": ({"lr": 0.02}, {"lr": 0.06}),
         "DiLoCo": ({"lr": 0.02},),
         "momentum 0.5": ({"lr": 0.03},),
         "rotated, 1 bit, momentum 0.5": ({"lr": 0.03},)},
        {"local SGD": (1, 10, 25, 50, 200, 2000),
         "momentum 0.5": (20, 50), "DiLoCo": (10, 50, 200),
         "NoLoCo": (10, 50, 200),
         "SparseLoCo, 1/64": (1, 10, 25, 50, 200),
         "SparseLoCo, 1/16": (10, 50),
         "largest 1/16, no decay": (10,),
         "signs of the largest 1/16, no decay": (10,),
         "rotated, 1 bit": (1, 10, 25, 50, 200),
         "rotated, 2 bits": (50,), "rotated, 3 bits": (50,),
         "rotated, 4 bits": (50,),
         "rotated, 1 bit, momentum 0.5": (10, 20, 50)}, "test_accuracy", 1),
    "LSTM": Task(
        {"model": "lstm:hidden=64,layers=1,dropout=0", "data": "sotu",
         "limit": 300000, "workers": 8, "batch": 2, "bptt": 30, "clip": 0.4,
         "momentum": 0, "warmup": 0, "schedule": "cosine", "test_every": 0,
         "test_limit": 20000}, {"epochs": 1}, LSTM_RATES,
        {"momentum 0.5": ({"lr": 10}, {"lr": 20}),
         "rotated, 1 bit, momentum 0.5": ({"lr": 10}, {"lr": 20})},
        {"local SGD": (10, 50, 200, 600), "momentum 0.5": (20,),
         "DiLoCo": (50,), "NoLoCo": (50,), "SparseLoCo, 1/64": (10, 50),
         "rotated, 1 bit": (20, 50, 200),
         "rotated, 1 bit, momentum 0.5": (20, 50)},
        PERPLEXITY, 2)}


def label(task, method, period=None):
    return ", ".join(filter(None, (task, method,
                                   period and "H=%s" % period)))


def task_trials(name, task):
    found = {}

    def add(method, period, rates, like):
        algorithm, compressor, topology = METHODS[method]
        found[method, period] = Trial(
            label(name, method, period),
            {**task.base, "algorithm": algorithm, "compressor": compressor,
             "topology": topology, "local_steps": period},
            rates, task.epochs, task.epochs,
            SEEDS if (name, method, period) in SEEDED else (1,),
            metric=task.metric, like=like)
    add("all-reduce", None, task.rates, None)
    exact = found["all-reduce", None]
    rates = task.tuned.get("D-PSGD", ({},))
    add("D-PSGD", None, rates, exact if rates == ({},) else None)
    for method, periods in task.periods.items():
        for period in periods:
            rates = task.tuned.get(method, ({},))
            own = found.get(("local SGD", period))
            like = own if own and "local SGD" in task.tuned else exact
            add(method, period, rates, like if rates == ({},) else None)
    return list(found.values())


TRIALS = sum((task_trials(*pair) for pair in TASKS.items()), [])


def bytes_of(outcome):
    """Payload that all workers have sent; infinite if the run diverged."""
    found = measured(outcome).mean("payload_bytes")
    return float("inf") if found is None else found


def good(outcome):
    """The metric of a trial so that more is better; None if there is none."""
    found = outcome.mean()
    return found if found is None or outcome.trial.metric != PERPLEXITY \
        else -found


def short(name, outcome):
    """A trial in a few words: what it is, its metric and its bytes."""
    found = outcome.mean()
    text = "%.1f" % found if TASKS[name].metric == PERPLEXITY \
        else "%.1f %%" % (100 * found)
    return "%s %s" % (outcome.trial.label.partition(", ")[2], text)


def distance(name, outcome, exact):
    """How much worse than another trial: points, or per cent."""
    if TASKS[name].metric == PERPLEXITY:
        return 100 * (outcome.mean() / exact.mean() - 1)
    return 100 * (exact.mean() - outcome.mean())


def cells(view, name, methods):
    """The trials of some methods of a task that are finished and have not
    diverged."""
    task = TASKS[name]
    found = [view[label(name, method, period)]
             for method in methods for period in task.periods.get(method, ())]
    if not any(outcome.measured for outcome in found):
        raise Missing(name)
    return [outcome for outcome in found if outcome.values()]


def frugal(view, name):
    """The best compressed trial with FEWER times fewer bytes than D-PSGD, and
    how many times fewer it has. No trial if all send more."""
    gossip = bytes_of(view[label(name, "D-PSGD")])
    found = [outcome for outcome in cells(view, name, COMPRESSED)
             if bytes_of(outcome) <= gossip / FEWER]
    best = max(found, key=good, default=None)
    return best, best and gossip / bytes_of(best)


def reaches(name):
    """The best of them is as good as all-reduce."""
    def judge(view):
        best, fewer = frugal(view, name)
        if best is None:
            return TOO_MUCH, False
        exact = measured(view[label(name, "all-reduce")])
        below = distance(name, best, exact)
        return "%s, %.0f times fewer; %s" % (
            short(name, best), fewer, short(name, exact)), (
                below <= TASKS[name].slack)
    return judge


def beats(name):
    """It is better than uncompressed local steps that send no fewer bytes, of
    which it takes those with the fewest."""
    def judge(view):
        best, _ = frugal(view, name)
        others = [outcome for outcome in cells(view, name, ["local SGD"])
                  if best and bytes_of(outcome) >= bytes_of(best)]
        if not others:
            return TOO_MUCH, False
        least = min(others, key=bytes_of)
        if bytes_of(least) > NEAR * bytes_of(best):
            raise Missing(name)
        return "%s; %s with %.1f times its bytes" % (
            short(name, best), short(name, least),
            bytes_of(least) / bytes_of(best)), good(best) > good(least)
    return judge


def lossless(name, method):
    """Compressed rounds are as good as exact ones of the same period."""
    def judge(view):
        found = {}
        periods = TASKS[name].periods
        for period in periods.get(method, ()):
            if period not in periods["local SGD"]:
                continue
            ours = measured(view[label(name, method, period)])
            exact = measured(view[label(name, "local SGD", period)])
            if exact.values():
                found[period] = distance(name, ours, exact) \
                    if ours.values() else float("inf")
        return ", ".join("H=%s %+.1f" % (period, -x if name == "LeNet" else x)
                         for period, x in found.items()), all(
                             x <= TASKS[name].slack for x in found.values())
    return judge


def outer_momentum(name):
    """DiLoCo is better than local SGD at every period."""
    def judge(view):
        found = {}
        for period in TASKS[name].periods["DiLoCo"]:
            ours = measured(view[label(name, "DiLoCo", period)])
            exact = measured(view[label(name, "local SGD", period)])
            found[period] = distance(name, ours, exact) if ours.values() \
                else float("inf")
        return ", ".join("H=%s %+.1f" % (period, -x if name == "LeNet" else x)
                         for period, x in found.items()), all(
                             x <= 0 for x in found.values())
    return judge


def pairs(view):
    """The loss of NoLoCo relative to that of DiLoCo."""
    found = {}
    for name, task in TASKS.items():
        for period in task.periods["NoLoCo"]:
            ours = view[label(name, "NoLoCo", period)]
            other = view[label(name, "DiLoCo", period)]
            if ours.values() and other.values():
                found["%s, H=%s" % (name, period)] = (
                    value(ours, "test_loss") / value(other, "test_loss") - 1)
    if not found:
        raise Missing("NoLoCo")
    return ", ".join("%s %+.0f %%" % (key, 100 * x)
                     for key, x in found.items()), all(
                         x <= 0.04 for x in found.values())


def unit(name):
    return "1 point" if name == "LeNet" else "2 % of perplexity"


CLAIMS = [claim for name in TASKS for claim in (
    Claim("%s: local steps with compressed rounds reach tuned all-reduce "
          "within %s, with at least 1,000 times fewer bytes than D-PSGD" % (
              name, unit(name)), "not in the papers", reaches(name)),
    Claim(name + ": they beat uncompressed local steps of no fewer bytes",
          "not in the papers", beats(name)),
    Claim("%s: 1 bit a value costs at most %s against exact rounds of the "
          "same H" % (name, unit(name)), "not in the papers",
          lossless(name, "rotated, 1 bit")),
    Claim("%s: so does the largest 1/64 of the values in 2 bits" % name,
          "SparseLoCo beats DiLoCo at every H [TEXT]",
          lossless(name, "SparseLoCo, 1/64")),
    Claim(name + ": DiLoCo is better than averaging at every H",
          "at H=500 [MEM]", outer_momentum(name)))] + [
    Claim("NoLoCo has at most 4 % more loss than DiLoCo",
          "the loss of DiLoCo, or up to 4 % less [TEXT]", pairs)]


def table_rows(view, name):
    gossip = view[label(name, "D-PSGD")].mean("payload_bytes")
    perplexity = TASKS[name].metric == PERPLEXITY
    for method in METHODS:
        for period in (None,) if method in BASELINES \
                else TASKS[name].periods.get(method, ()):
            outcome = view[label(name, method, period)]
            sent = outcome.mean("payload_bytes")
            yield [method, str(period or 1),
                   tables.figure(outcome, digits=1) if perplexity
                   else tables.percent(outcome),
                   tables.megabytes(outcome, 8, 2),
                   "%.0f" % (gossip / sent) if sent and gossip else "",
                   tables.setting(outcome, "lr")]


def sections(view):
    lines = []
    for name, task in TASKS.items():
        lines += ["## " + name, "", *tables.table(
            ["method", "H", "perplexity" if task.metric == PERPLEXITY
             else "accuracy, %", "MB sent per worker",
             "times fewer than D-PSGD", "rate"], table_rows(view, name)), ""]
    return lines + [
        "A message to all workers counts once. The bytes of D-PSGD are those "
        "to both neighbours. Published, on C4 with a transformer of 150 "
        "million parameters and 8 workers [MEM]: one worker 16.23 "
        "perplexity, a batch 8 times larger 15.30, 8 times the steps 14.72, "
        "DiLoCo with H=500 15.02.", ""]


def panels(view):
    def panel(name, y):
        series, scale = [], 1 if TASKS[name].metric == PERPLEXITY else 100
        for method in METHODS:
            periods = (None,) if method in BASELINES \
                else TASKS[name].periods.get(method, ())
            spots = [(view[label(name, method, period)].mean("payload_bytes")
                      / 8e6, scale * view[label(name, method, period)].mean())
                     for period in periods
                     if view[label(name, method, period)].values()]
            series.append(plots.Series(method, spots,
                                       method.startswith("rotated")))
        return plots.Panel(name, "MB sent per worker", y, series, True,
                           lowest=None if scale == 1 else 75)
    return [panel("LeNet", "accuracy, %"), panel("LSTM", "perplexity")]


EXPERIMENT = Experiment(
    "local_steps", "Local steps: accuracy against bytes",
    "DiLoCo: Douillard et al., arXiv:2311.08105; SparseLoCo: "
    "arXiv:2508.15706; NoLoCo: arXiv:2506.10911.", [
        "Eight workers mix their models every H steps (`--local-steps H`). "
        "*Local SGD* is `%s`, which averages; *DiLoCo* is `outer`, with lr "
        "0.7 and Nesterov's momentum of 0.9; *NoLoCo* is "
        "`%s` with `--topology random-matching`. *SparseLoCo* is `%s`, with "
        "the largest 1/64 or 1/16 of every 4096 values in two bits, "
        "*rotated* is `%s` with `rotated` of 1 to 4 bits. Rows with "
        "*momentum 0.5* have lr 1 and Nesterov's momentum of 0.5, which a "
        "few trials suggested." % (
            AVERAGE, EXACT["NoLoCo"][0], SPARSE, ROTATED),
        "LeNet on Fashion-MNIST has a batch of 16 for each worker, 5 epochs "
        "(2,340 steps), momentum 0.9, a cosine schedule. All-reduce and "
        "D-PSGD have the best of the rates %s, local SGD of 0.02 and 0.06, "
        "DiLoCo has 0.02, rows with momentum 0.5 have 0.03, and the others "
        "the rate of local SGD with the same H. Entries with a spread have "
        "three seeds." % tasks.rates_text(tasks.LENET_RATES),
        "The LSTM has one layer of 64 units, and the first 300,000 words of "
        "State of the Union, batch 2, 1 epoch (625 steps), no momentum, "
        "clip 0.4, a cosine schedule. The rate of all is the best of %s "
        "for all-reduce; rows with momentum 0.5 have the best of 10 and 20. "
        "Perplexities are those of 20,000 words. One seed."
        % tasks.rates_text(LSTM_RATES)],
    TRIALS, CLAIMS, sections, panels,
    fast=("LeNet, SparseLoCo, 1/64, H=10", "LeNet, NoLoCo, H=10"))
