#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write src/cli/plan/losses.def: what each method of `laconic plan` has lost
against the exact one in the experiments.

usage: measured_losses.py [--check]

The exact method is allreduce for methods that average gradients and dpsgd for
gossip, with the same data and equally many epochs; both have the best of the
same rates. Of several measurements of a method on a network the one with the
most epochs counts, of these the best. --check writes nothing and fails if the file is not up to
date.
"""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXPERIMENTS = ROOT / "experiments"
TABLE = ROOT / "src" / "cli" / "plan" / "losses.def"
sys.path.insert(0, str(EXPERIMENTS))
sys.dont_write_bytecode = True
import run
from lab.cells import Book
from lab.tuning import Outcome

NAMES = ("choco_table1", "choco_resnet", "powergossip", "powersgd", "natural")
NETWORKS = {"lenet": "LENET", "resnet8": "RESNET8", "lstm": "LSTM"}
EXACT = {"gradient": "allreduce", "gossip": "dpsgd"}
# Settings that a plan leaves out, because they are the defaults.
DEFAULTS = {"gamma": "auto", "iterations": "1"}
LENET_EPOCHS = 20
WIDTH = 80  # of a line, as clang-format has it
HEADER = """\
// What methods have lost against the exact one of their kind, in the
// experiments; written by tools/measured_losses.py.
//
// PLAN_LOSS(algorithm, compressor, network, loss, epochs, page)
// The loss is in points of accuracy; of LSTM it is the perplexity in per cent
// of that of the exact method, minus 100. Negative: it was better.
"""


def bare(spec):
    """A spec without settings that have their default."""
    if spec is None:
        return None
    name, _, settings = spec.partition(":")
    kept = [setting for setting in settings.split(",") if setting
            and DEFAULTS.get(setting.split("=")[0]) != setting.split("=")[-1]]
    return name + (":" + ",".join(kept) if kept else "")


def family(settings):
    return "gossip" if settings.get("topology") else "gradient"


def trained(book, name):
    """The accuracies, or perplexities, of an experiment by task and method."""
    found = {}
    for trial in run.experiment_of(name).trials:
        outcome = Outcome(trial, book)
        if trial.command != "train" or outcome.mean() is None:
            continue
        settings = {**trial.base, **trial.tuning, **trial.final,
                    **outcome.variant}
        model = settings["model"].partition(":")[0]
        if model not in NETWORKS:
            continue
        task = (NETWORKS[model], family(settings), int(settings["epochs"]))
        method = bare(settings["algorithm"]), settings.get("compressor")
        if method not in found.setdefault(task, {}):
            found[task][method] = outcome.mean()
    return found


def loss_of(network, exact, value):
    return (100 * (value / exact - 1) if network == "LSTM"
            else 100 * (exact - value))


def losses_of_experiments():
    """(algorithm, compressor, network): (epochs, loss, page)."""
    book = Book(EXPERIMENTS / "results")
    for name in NAMES:
        for (network, kind, epochs), found in trained(book, name).items():
            exact = found.get((EXACT[kind], None))
            for (algorithm, compressor), value in found.items():
                if exact is not None and algorithm not in EXACT.values():
                    yield ((algorithm, compressor, network),
                           (epochs, loss_of(network, exact, value), name))


def losses_of_lenet():
    """The rows of lenet.md, which a program of its own writes."""
    for line in (EXPERIMENTS / "lenet.md").read_text().splitlines():
        row = re.match(r"\| [^|]+ \| `([^`]+)`(?:, `([^`]+)`)? \|[^|]+\|[^|]+\|"
                       r" ([-+][\d.]+) \|", line)
        if row and row[1] not in EXACT.values():
            yield ((bare(row[1]), row[2], "LENET"),
                   (LENET_EPOCHS, -float(row[3]), "lenet"))


def text(losses):
    lines = []
    for (algorithm, compressor, network), (epochs, loss, page) in sorted(
            losses.items(), key=lambda item: [str(k) for k in item[0]]):
        values = '"%s", %s, %s, %.1f, %d, "%s")' % (
            algorithm, '"%s"' % compressor if compressor else "NULL", network,
            round(loss, 1) + 0.0, epochs, page)
        line = "PLAN_LOSS(" + values
        if len(line) > WIDTH:
            line = "PLAN_LOSS(\n" + textwrap.fill(
                values, WIDTH, initial_indent="    ", subsequent_indent="    ",
                break_long_words=False, break_on_hyphens=False)
        lines.append(line)
    return HEADER + "".join(line + "\n" for line in lines)


def main():
    losses = {}
    for key, measured in [*losses_of_experiments(), *losses_of_lenet()]:
        epochs, loss, _ = measured
        if key not in losses or (epochs, -loss) > (
                losses[key][0], -losses[key][1]):
            losses[key] = measured
    found = text(losses)
    if sys.argv[1:] == ["--check"]:
        if not TABLE.exists() or TABLE.read_text() != found:
            sys.exit("measured_losses: %s is not up to date" %
                     TABLE.relative_to(ROOT))
    elif sys.argv[1:]:
        sys.exit(__doc__.split("\n\n")[1])
    else:
        TABLE.write_text(found)


if __name__ == "__main__":
    main()
