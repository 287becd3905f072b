# SPDX-License-Identifier: MIT
"""Table 1 of CHOCO-SGD for deep learning on ResNet-8: the cells that carry its
claims.
"""
import choco_table1 as table1
from lab import tasks
from lab.page import Experiment

NETWORK = "ResNet-8"
COLUMNS = {
    "DCD": ["8 bits", "4 bits", "2 bits", "random 50 %", "random 10 %",
            "top 1 %", "sign"],
    "ECD": ["16 bits", "8 bits", "4 bits", "random 50 %"],
    "CHOCO": ["8 bits", "4 bits", "2 bits", "random 50 %", "random 10 %",
              "random 1 %", "top 10 %", "top 1 %", "sign"],
    table1.TUNED: ["random 1 %", "top 1 %", "sign"],
    "DeepSqueeze": ["8 bits", "top 10 %", "sign"]}
EXACT = table1.label(NETWORK, "D-PSGD")
SEEDS = (1,)
TRIALS = table1.network_trials(NETWORK, COLUMNS, SEEDS)

EXPERIMENT = Experiment(
    "choco_resnet", "CHOCO, Table 1 on ResNet-8",
    table1.EXPERIMENT.paper, [
        "As [choco_table1.md](choco_table1.md), with ResNet-8 on the first "
        "10,000 images of CIFAR-10: 20 epochs, batch 16, one seed; the rate is "
        "the best of %s after 5 epochs." % tasks.rates_text(
            tasks.RESNET_RATES), table1.JUDGED],
    TRIALS, table1.claims(NETWORK, SEEDS),
    lambda view: table1.sections(view, NETWORK),
    lambda view: [table1.panel(view, NETWORK)],
    fast=("ResNet-8, D-PSGD", "ResNet-8, CHOCO, sign"))
