# SPDX-License-Identifier: MIT
"""Gossip with a hostile worker, which sends huge finite values: plain D-PSGD
and the clipped one on three graphs of eight workers.
"""
from lab import plots, tables, tasks
from lab.page import Experiment
from lab.tuning import Trial
from lab.verdicts import Claim, behind, points, signed

RATES = ({"lr": 0.02}, {"lr": 0.03}, {"lr": 0.04}, {"lr": 0.06})
SEEDS = (1, 2, 3)
HOSTILE = 3
# Neighbours of a worker on these graphs of eight. Clipping for one hostile
# neighbour needs more than two, so there is no ring.
DEGREES = {"complete": 7, "exponential": 5, "hypercube": 3}
PLAIN, CLIPPED = "dpsgd", "dpsgd:clip=1"
ROWS = {"undisturbed": (PLAIN, None), "undisturbed, clip": (CLIPPED, None),
        "hostile": (PLAIN, HOSTILE), "hostile, clip": (CLIPPED, HOSTILE)}
# These have the best of the rates, the others that of the undisturbed run.
TUNED = ("undisturbed", "hostile, clip")
MARGIN = 2  # points of accuracy
USUAL = ", usual rate"
SMALL = ", rate %g" % RATES[0]["lr"]


def label(graph, row):
    return "%s, %s" % (graph, row)


def trials():
    found = []
    for graph in DEGREES:
        exact = None
        for row, (algorithm, hostile) in ROWS.items():
            base = {**tasks.LENET, **tasks.LENET_EPOCHS, "topology": graph,
                    "algorithm": algorithm, "hostile": hostile}
            tuned = row in TUNED
            found.append(Trial(label(graph, row), base,
                               RATES if tuned else ({},), seeds=SEEDS,
                               like=None if tuned else exact))
            exact = exact or found[-1]
            if tuned:
                found.append(Trial(label(graph, row + SMALL),
                                   {**base, **RATES[0]}, seeds=SEEDS))
        found.append(Trial(label(graph, "hostile, clip" + USUAL), base,
                           seeds=SEEDS, like=exact))
    return found


def below(view, graph, row, metric=None):
    """Points below the undisturbed run of plain gossip; for a row of the
    small rate, below that with the same rate."""
    exact = "undisturbed" + (SMALL if row.endswith(SMALL) else "")
    return behind(view[label(graph, row)], view[label(graph, exact)], metric)


def judge(row, holds, metric=None):
    """The points that a row loses on each graph."""
    def found(view):
        fall = {graph: below(view, graph, row, metric) for graph in DEGREES}
        return ", ".join("%s %s" % (graph, signed(x))
                         for graph, x in fall.items()), all(
                             holds(x) for x in fall.values())
    return found


CLAIMS = [
    Claim("plain gossip fails with one hostile worker of eight",
          "drift of the mean 1e6 times its variance [SIM]",
          judge("hostile", lambda x: x > 10)),
    Claim("with `clip=1` the honest workers stay within 2 points of the "
          "undisturbed run", "drift 0.13 [SIM]",
          judge("hostile, clip", lambda x: x <= MARGIN)),
    Claim("so does the worst of them", "not in the papers",
          judge("hostile, clip", lambda x: x <= MARGIN, "worst_accuracy")),
    Claim("they do so at a common rate of 0.02 too", "not in the papers",
          judge("hostile, clip" + SMALL, lambda x: x <= MARGIN)),
    Claim("they stay within 2 points at the rate that is best without a "
          "hostile worker", "not in the papers",
          judge("hostile, clip" + USUAL, lambda x: x <= MARGIN)),
    Claim("without a hostile worker clipping costs less than a point",
          "not in the papers",
          judge("undisturbed, clip", lambda x: x < 1))]


def sections(view):
    rows = []
    for graph, degree in DEGREES.items():
        for row in ROWS:
            outcome, small = view[label(graph, row)], row + SMALL
            first = row == "undisturbed"
            rows.append([graph if first else "", str(degree) if first else "",
                         row, tables.percent(outcome),
                         tables.percent(outcome, "worst_accuracy"),
                         tables.percent(outcome, "averaged_accuracy"),
                         tables.setting(outcome, "lr"),
                         tables.percent(view[label(graph, small)])
                         if row in TUNED else ""])
    return ["## Accuracy of the honest workers", "", *tables.table(
        ["graph", "neighbours", "run", "mean, %", "worst, %",
         "averaged model, %", "rate", "mean with rate 0.02, %"], rows, 3), "",
        "The papers have no table of this attack on a network; the simulation "
        "had 16 honest workers of degree 6 and no gradients.", ""]


def panels(view):
    def panel(title, metric):
        series = []
        for row in ROWS:
            spots = [(degree, points(view[label(graph, row)], metric))
                     for graph, degree in DEGREES.items()
                     if view[label(graph, row)].values(metric)]
            series.append(plots.Series(row, sorted(spots),
                                       row.endswith("clip")))
        return plots.Panel(title, "neighbours of a worker", "accuracy, %",
                           series)
    return [panel("mean of the honest workers", "test_accuracy"),
            panel("worst honest worker", "worst_accuracy")]


EXPERIMENT = Experiment(
    "hostile", "Gossip with a hostile worker",
    "Clipping by the rule CS+: Gaucher, Dieuleveut and Hendrikx, "
    "arXiv:2410.10418.", [
        "LeNet on Fashion-MNIST, 8 workers, batch 32, 5 epochs, cosine "
        "schedule, momentum 0.9. *Hostile* is `--hostile %d`: this worker "
        "does not train and sends 1e6 for every value of its model in every "
        "round. *Clip* is `dpsgd:clip=1`. Accuracies are those of the seven "
        "honest workers on all test images. The undisturbed run and the one "
        "with both have the best of the rates %s, the others that of the "
        "undisturbed run. Three seeds; a row that diverges with the first has "
        "no others." % (HOSTILE, tasks.rates_text(RATES))],
    trials(), CLAIMS, sections, panels,
    fast=("complete, hostile, clip", "complete, undisturbed, clip"))
