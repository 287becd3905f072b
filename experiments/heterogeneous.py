# SPDX-License-Identifier: MIT
"""Gossip on data of different distributions: labels drawn from Dirichlet
distributions, sixteen workers on a ring.
"""
from lab import plots, tables, tasks
from lab.page import Experiment
from lab.tuning import Trial
from lab.verdicts import Claim, behind, points, signed

WORKERS = 16
BASE = {**tasks.LENET, "workers": WORKERS, "batch": 16}
SPLITS = {"equal": "fixed", "1": "dirichlet:1,balanced",
          "0.1": "dirichlet:0.1,balanced", "0.01": "dirichlet:0.01,balanced"}
METHODS = {
    "all-reduce": ("allreduce", None), "D-PSGD": ("dpsgd", None),
    "CHOCO, sign": ("choco:gamma=auto", "sign"),
    "CHOCO, top 1 %": ("choco:gamma=auto", "top-k:0.01"),
    "DCD, 8 bits": ("dcd", "dithering:levels=255"),
    "ECD, 16 bits": ("ecd", "dithering:levels=65535"),
    "DeepSqueeze, 8 bits": ("deepsqueeze:gamma=auto",
                            "dithering:levels=255"),
    "PowerGossip, 1 iteration": ("powergossip:iterations=1", None),
    "PowerGossip, 2 iterations": ("powergossip:iterations=2", None)}
RATES = ({"lr": 0.01}, {"lr": 0.03}, {"lr": 0.1})
GOSSIP = list(METHODS)[1:]
SEEDS = (1, 2, 3)


def label(method, split):
    return "%s, %s" % (method, split)


def trials():
    found = []
    for split, rule in SPLITS.items():
        for method, (algorithm, compressor) in METHODS.items():
            found.append(Trial(
                label(method, split),
                {**BASE, "algorithm": algorithm, "compressor": compressor,
                 "split": rule,
                 "topology": None if method == "all-reduce" else "ring"},
                RATES, tasks.LENET_EPOCHS, tasks.LENET_EPOCHS,
                SEEDS if split in ("equal", "0.1") else (1,)))
    return found


def fall(view, method, split, metric=None):
    """Points that a method loses from equal data."""
    return behind(view[label(method, split)], view[label(method, "equal")],
                  metric)


def falls(view):
    """Each gossip method loses accuracy from equal data to 0.01."""
    found = {method: fall(view, method, "0.01") for method in GOSSIP}
    return ", ".join("%s %s" % (method, signed(x))
                     for method, x in found.items()), all(
                         x > 0 for x in found.values())


def centralised(view):
    found = fall(view, "all-reduce", "0.01")
    return signed(found), found <= 1


def worst(view):
    """How far the worst worker is behind the mean of all at 0.01."""
    found = {method: points(view[label(method, "0.01")])
             - points(view[label(method, "0.01")], "worst_accuracy")
             for method in GOSSIP
             if not view[label(method, "0.01")].diverged}
    return ", ".join("%s %.1f" % pair for pair in found.items()), all(
        x > 5 for x in found.values())


def compressed(view):
    found = {method: behind(view[label(method, "0.1")],
                            view[label("D-PSGD", "0.1")])
             for method in GOSSIP[1:]}
    return ", ".join("%s %s" % (method, signed(x))
                     for method, x in found.items()), all(
                         x > -1 for x in found.values())


CLAIMS = [
    Claim("all-reduce does not depend on the split", "not in the papers",
          centralised),
    Claim("every gossip method falls at ALPHA 0.01",
          "CHOCO, DCD: the zeta term of their rates [TEXT]", falls),
    Claim("at 0.01 the worst worker is more than 5 points below the mean",
          "not in the papers", worst),
    Claim("no compressed method is better than D-PSGD at 0.1 by a point",
          "not in the papers", compressed)]


def sections(view):
    lines = []
    for title, metric in (("Mean of the workers", "test_accuracy"),
                          ("Worst worker", "worst_accuracy"),
                          ("Averaged model", "averaged_accuracy")):
        rows = [[method] + [tables.percent(view[label(method, split)], metric)
                            for split in SPLITS] for method in METHODS]
        lines += ["## " + title, "", *tables.table(
            ["accuracy, %", "equal", *("ALPHA " + split for split in SPLITS
                                       if split != "equal")], rows), ""]
    return lines + ["The papers have no table for this: CHOCO, Table 3, "
                    "splits its data once, but at random.", ""]


def panels(view):
    def panel(title, metric):
        series = []
        for method in METHODS:
            spots = [(float(split), points(view[label(method, split)],
                                           metric))
                     for split in SPLITS if split != "equal"
                     and view[label(method, split)].values(metric)]
            series.append(plots.Series(method, spots))
        return plots.Panel(title, "ALPHA", "accuracy, %", series, True)
    return [panel("mean of the workers", "test_accuracy"),
            panel("worst worker", "worst_accuracy")]


EXPERIMENT = Experiment(
    "heterogeneous", "Gossip on unequal data",
    "A question that all five papers leave open.", [
        "LeNet on Fashion-MNIST, ring of 16, batch 16, 5 epochs, cosine "
        "schedule, momentum 0.9. The data of a worker are fixed: a random "
        "part of equal distribution, or labels by Dirichlet(ALPHA) with equal "
        "sizes (`--split dirichlet:ALPHA,balanced`). Each method has the best "
        "of the rates %s. Entries with a spread have three seeds. Workers "
        "test their own models on all test images, which are of equal "
        "distribution." % tasks.rates_text(RATES)],
    trials(), CLAIMS, sections, panels,
    fast=("PowerGossip, 1 iteration, 0.1", "D-PSGD, equal"))
