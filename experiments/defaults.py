#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Train every algorithm's example with the defaults of `laconic train`, and
write the table in docs/training-reference.md that compares it with its exact
relative: allreduce for algorithms that average gradients, dpsgd for gossip, and
for beer, which has no momentum, dpsgd without momentum at the rate of beer.

usage: defaults.py LACONIC [--runs DIR] [--task NAME]... [--algorithm NAME]...

Nothing is given but the task and the example, so a run has the rate, momentum
and warm-up that a user gets. All runs are stored in DIR (experiments/runs).
When the script is started again, it reuses finished runs and resumes the
others. The table has all runs that DIR holds.
"""
import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "training-reference.md"
BEGIN, END = ("<!-- defaults.py: %s -->" % word for word in ("begin", "end"))
RELATIVES = {"gradient": "allreduce", "model": "dpsgd"}
PLAIN = "dpsgd-without-momentum"  # the relative of beer, a row of its own

# Options of a task, and whether its accuracy or its loss is compared. Every
# worker's model sees the whole test set, once, at the end.
COMMON = ["--workers", "4", "--seed", "1", "--test-every", "0",
          "--test-limit", "0"]
TASKS = {
    "lenet": ("accuracy", ["--model", "lenet", "--data", "fashion-mnist",
                           "--epochs", "3"]),
    "resnet8": ("loss", ["--model", "resnet8", "--data", "fashion-mnist",
                         "--limit", "10000", "--epochs", "10",
                         "--schedule", "cosine"]),
    "lstm": ("loss", ["--model", "lstm:hidden=64,layers=1,dropout=0",
                      "--data", "sotu", "--limit", "100000", "--batch", "8",
                      "--epochs", "3"]),
}


def examples(laconic):
    """The examples of all algorithms: name to algorithm and compressor."""
    done = subprocess.run([laconic, "list", "--json"], check=True,
                          stdout=subprocess.PIPE, text=True)
    return {item["name"]: item["example"]
            for item in json.loads(done.stdout)["algorithms"]
            if "example" in item}


def train(laconic, folder, task, example, more=()):
    """Run or resume one training, and keep its result beside its folder."""
    words = [laconic, "train", *COMMON, *TASKS[task][1], "--algorithm",
             example["algorithm"], "--out", str(folder), "--resume", "--json",
             *more]
    if example["compressor"]:
        words += ["--compressor", example["compressor"]]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print("defaults.py: %s ended with %d" % (folder, done.returncode),
              file=sys.stderr)
        return
    result = json.loads(done.stdout)
    manifest = json.loads((folder / "manifest.json").read_text())
    result["family"] = manifest["facts"]["family"]
    folder.with_suffix(".json").write_text(json.dumps(result))


def load(runs, task, name):
    path = runs / ("%s-%s.json" % (task, name))
    return json.loads(path.read_text()) if path.exists() else None


def cells(runs, task, name):
    """The quality of a run, and its distance to that of its relative."""
    result = load(runs, task, name)
    if result is None:
        return ["", ""]
    relative = load(runs, task, PLAIN if name in ("beer", PLAIN)
                    else RELATIVES[result["family"]])
    if TASKS[task][0] == "accuracy":
        own = 100 * result["test_accuracy"]
        other = relative and 100 * relative["test_accuracy"]
        return ["%.2f %%" % own, relative and "%+.2f" % (own - other) or ""]
    own, other = result["test_loss"], relative and relative["test_loss"]
    return ["%.3f" % own,
            relative and "%+.1f %%" % (100 * (own / other - 1)) or ""]


def table(runs, known):
    head = ["algorithm", "compressor"]
    for task, (what, _) in TASKS.items():
        head += ["%s: %s" % (task, what),
                 "points" if what == "accuracy" else "difference"]
    lines = ["| " + " | ".join(head) + " |",
             "|---|---|" + "--:|" * (len(head) - 2)]
    shown = {}
    for name, example in known.items():
        if name == "beer":
            shown[PLAIN] = {"algorithm": "dpsgd --momentum 0",
                            "compressor": None}
        shown[name] = example
    for name, example in shown.items():
        row = ["`%s`" % example["algorithm"],
               "`%s`" % example["compressor"] if example["compressor"] else ""]
        for task in TASKS:
            row += cells(runs, task, name)
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("laconic")
    parser.add_argument("--runs", type=pathlib.Path, default=HERE / "runs")
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--algorithm", action="append")
    options = parser.parse_args()
    known = examples(options.laconic)
    options.runs.mkdir(parents=True, exist_ok=True)
    for task in options.task or TASKS:
        for name in options.algorithm or known:
            if load(options.runs, task, name) is None:
                folder = options.runs / ("%s-%s" % (task, name))
                train(options.laconic, folder, task, known[name])
        beer = load(options.runs, task, "beer")
        if beer and load(options.runs, task, PLAIN) is None:
            folder = options.runs / ("%s-%s" % (task, PLAIN))
            train(options.laconic, folder, task, known["dpsgd"],
                  ("--momentum", "0", "--lr", str(beer["lr"])))
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit("%s: has no %s ... %s" % (PAGE, BEGIN, END))
    PAGE.write_text("%s%s\n%s\n%s%s" % (before, BEGIN,
                                        table(options.runs, known), END,
                                        after))


if __name__ == "__main__":
    main()
