# SPDX-License-Identifier: MIT
"""Experiments in miniature: two trials of each, one short run per trial, on
generated data in the formats of the real data sets.
"""
import pathlib
import random
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests"
                    / "cli"))
import training

# What a run on generated data has instead of the real settings.
SHRUNK = {
    "fashion-mnist": {"epochs": 1, "batch": 4, "test_limit": 20},
    "cifar-10": {"epochs": 1, "batch": 2, "limit": None, "test_limit": 20},
    "wikitext-2": {"epochs": 1, "batch": 4, "limit": None, "test_limit": 200},
    "a9a": {"epochs": 1, "test_limit": None},
}


def table(folder, rows=360, width=123):
    """Rows of ones in the format of LIBSVM; their first half has label 1."""
    draw = random.Random(7)
    folder.mkdir(parents=True)
    for name, count in (("a9a", rows), ("a9a.t", rows // 4)):
        lines = []
        for _ in range(count):
            label = draw.choice((1, -1))
            centre = width // 4 if label > 0 else 3 * width // 4
            ones = sorted({min(width, max(1, round(draw.gauss(centre, 20))))
                           for _ in range(12)} | {width})
            lines.append("%+d %s" % (label, " ".join("%d:1" % one
                                                     for one in ones)))
        (folder / name).write_text("\n".join(lines) + "\n")


def stand_ins(folder):
    """Generate a data set for each name that the experiments use."""
    training.images(folder / "fashion-mnist")
    training.cifar(folder / "cifar-10")
    training.text(folder / "wikitext-2")
    table(folder / "a9a")


def shrink(trial):
    """The trial as a single short run."""
    shrunk = SHRUNK.get(trial.base.get("data"), {})
    if trial.command == "average":
        shrunk = {"rounds": 50}
    base = {**trial.base, **trial.tuning, **trial.final, **trial.usual(),
            **shrunk}
    return trial._replace(base=base, variants=({},), tuning={}, final={},
                          seeds=(1,), like=None)


def miniature(experiment):
    """The experiment with two shrunk trials; the others stay unmeasured."""
    assert len(experiment.fast) == 2
    return experiment._replace(trials=[
        shrink(trial) if trial.label in experiment.fast else trial
        for trial in experiment.trials])
