# SPDX-License-Identifier: MIT
"""Table 1 of CHOCO-SGD for deep learning on ResNet-8: the cells that carry its
claims.
"""
import choco_table1 as table1
from lab import tables, tasks
from lab.page import Experiment
from lab.tuning import lasting
from lab.verdicts import Claim, behind_longer, signed

NETWORK = "ResNet-8"
COLUMNS = {
    "DCD": ["8 bits", "4 bits", "2 bits", "random 50 %", "random 10 %",
            "top 1 %", "sign"],
    "ECD": ["16 bits", "8 bits", "4 bits", "random 50 %"],
    "CHOCO": ["8 bits", "4 bits", "2 bits", "random 50 %", "random 10 %",
              "top 10 %", "top 1 %", "sign"],
    table1.TUNED: ["top 1 %", "sign"], "DeepSqueeze": ["sign"]}
# Why CHOCO is behind with few bits: are the runs too short?
LONGER = 40  # epochs
EXACT = table1.label(NETWORK, "D-PSGD")
LONGER_COLUMNS = ["4 bits", "2 bits"]


def trials():
    found = table1.network_trials(NETWORK, COLUMNS, (1,))
    rows = [EXACT, *table1.of(NETWORK, "CHOCO", LONGER_COLUMNS)]
    return found + [trial.longer(LONGER) for trial in found
                    if trial.label in rows]


def closer(view):
    """A quarter less behind D-PSGD after more epochs."""
    found = {column: behind_longer(
        view, table1.label(NETWORK, "CHOCO", column), EXACT, LONGER)
        for column in LONGER_COLUMNS}
    return ", ".join("%s %s, %s" % (column, *map(signed, pair))
                     for column, pair in found.items()), all(
                         long <= 0.75 * short
                         for short, long in found.values())


def sections(view):
    rows = {"D-PSGD": EXACT, **dict(zip(
        ("CHOCO, " + column for column in LONGER_COLUMNS),
        table1.of(NETWORK, "CHOCO", LONGER_COLUMNS)))}
    return [*table1.sections(view, NETWORK), "## Longer runs", "",
            *tables.table(
                ["accuracy, %", "20 epochs", "%d epochs" % LONGER, "rate"],
                [[name, tables.percent(view[row]),
                  tables.percent(view[lasting(row, LONGER)]),
                  tables.setting(view[row], "lr")]
                 for name, row in rows.items()]), ""]


TRIALS = trials()

EXPERIMENT = Experiment(
    "choco_resnet", "CHOCO, Table 1 on ResNet-8",
    table1.EXPERIMENT.paper, [
        "As [choco_table1.md](choco_table1.md), with ResNet-8 on the first "
        "10,000 images of CIFAR-10: 20 epochs, batch 16, one seed; the rate is "
        "the best of %s after 5 epochs." % tasks.rates_text(
            tasks.RESNET_RATES), table1.JUDGED],
    TRIALS, [*table1.claims(NETWORK, 2), Claim(
        "ResNet-8: CHOCO with few bits is a quarter less behind D-PSGD after "
        "%d epochs" % LONGER, "300 epochs [TEXT]", closer)],
    sections, lambda view: [table1.panel(view, NETWORK)],
    fast=("ResNet-8, D-PSGD", "ResNet-8, CHOCO, sign"))
