#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Train LeNet on Fashion-MNIST with eight workers and one algorithm after the
other, with otherwise equal settings, and compare accuracy with bytes sent.

usage: lenet.py LACONIC [--runs DIR] [--only NAME]

All runs are stored in DIR (experiments/runs). When the script is started again,
it reuses finished runs and resumes the others. At the end it writes lenet.md
beside this file, and lenet.png if matplotlib is installed (Debian:
python3-matplotlib).
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SETTINGS = ["--model", "lenet", "--data", "fashion-mnist", "--workers", "8",
            "--topology", "ring", "--epochs", "20", "--batch", "32",
            "--lr", "0.05", "--momentum", "0.9", "--schedule", "cosine",
            "--seed", "1", "--test-limit", "0"]

# The runs: family, label, algorithm, compressor.
GRADIENT, MODEL = "gradient", "model"
RUNS = [
    (GRADIENT, "allreduce", "allreduce", None),
    (GRADIENT, "powersgd, rank 2", "powersgd:rank=2", None),
    (GRADIENT, "error-feedback, sign", "error-feedback", "sign"),
    (GRADIENT, "error-feedback, top-k 1 %", "error-feedback", "top-k:0.01"),
    (GRADIENT, "compressed, natural", "compressed", "natural"),
    (MODEL, "dpsgd", "dpsgd", None),
    (MODEL, "choco, sign", "choco:gamma=auto", "sign"),
    (MODEL, "choco, top-k 1 %", "choco:gamma=auto", "top-k:0.01"),
    (MODEL, "dcd, dithering 8 bit", "dcd", "dithering:levels=127"),
    (MODEL, "powergossip", "powergossip", None),
    (MODEL, "naive, sign", "naive", "sign"),
]
LOWEST = 74  # the lowest accuracy in the plot, in percent
BASELINES = {GRADIENT: "allreduce", MODEL: "dpsgd"}


def slug(label):
    return "".join(c if c.isalnum() else "-" for c in label).strip("-")


def run(laconic, folder, algorithm, compressor):
    """Run or resume one training; return no result if it diverged."""
    command = [laconic, "train", *SETTINGS, "--algorithm", algorithm,
               "--out", str(folder), "--resume", "--json"]
    if compressor:
        command += ["--compressor", compressor]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    result = json.loads(done.stdout) if done.returncode == 0 else None
    lines = (folder / "metrics.jsonl")
    epochs = [json.loads(line) for line in lines.read_text().splitlines()] \
        if lines.exists() else []
    return result, epochs


def percent(value):
    return "none" if value is None else f"{100 * value:.2f} %"


def row(label, algorithm, compressor, result, baseline):
    name = f"`{algorithm}`" + (f", `{compressor}`" if compressor else "")
    if result is None:
        return [label, name, "diverged", "", "", "", ""]
    behind = result["test_accuracy"] - baseline["test_accuracy"]
    mbit = result["break_even_mbit"]
    speed = ("unknown" if result.get("workers_share_processors")
             else "none" if mbit is None else f"{mbit:,.0f}")
    return [label, name, percent(result["test_accuracy"]),
            percent(result["averaged_accuracy"]), f"{100 * behind:+.2f}",
            f"{result['payload_bytes'] / 8e6:,.2f}",
            f"{result['times_fewer']:.1f}",
            speed]


def table(results, machine):
    head = ["", "algorithm", "accuracy", "averaged model",
            "points from the exact one", "MB sent per worker",
            "times fewer bytes", "break-even, Mbit/s"]
    text = ["# LeNet on Fashion-MNIST, eight workers", "",
            "Written by `experiments/lenet.py`, which ran", "",
            "    laconic train " + " ".join(SETTINGS), "",
            f"on {machine['processor']}, {machine['processors']} processors, "
            f"{datetime.date.today().isoformat()}; all workers were threads "
            "of one process.", "",
            "*accuracy* is the mean accuracy of the workers' own models on "
            "the 10,000 test images, *averaged model* the accuracy of their "
            "mean. The exact algorithm is `allreduce` in the first table and "
            "`dpsgd` in the second. *break-even* is the link speed below "
            "which compression saved time in this run.", ""]
    for family, title in ((GRADIENT, "Averaging gradients"),
                          (MODEL, "Gossip on a ring")):
        baseline = next(r["result"] for r in results
                        if r["label"] == BASELINES[family])
        text += [f"## {title}", "", "| " + " | ".join(head) + " |",
                 "|---|---|" + "--:|" * (len(head) - 2)]
        text += ["| " + " | ".join(row(r["label"], r["algorithm"],
                                       r["compressor"], r["result"],
                                       baseline)) + " |"
                 for r in results if r["family"] == family]
        text.append("")
    return "\n".join(text)


def plot(results, path):
    try:
        import matplotlib
    except ImportError:
        print("lenet.py: matplotlib is missing (Debian: python3-matplotlib), "
              "lenet.png is not written", file=sys.stderr)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    titles = {GRADIENT: "averaging gradients", MODEL: "gossip on a ring"}
    for axis, family in zip(axes, (GRADIENT, MODEL)):
        for r in results:
            points = [(e["payload_bytes"] / 8e6, 100 * e["test_accuracy"])
                      for e in r["epochs"] if e["test_accuracy"] is not None]
            if r["family"] != family or not points:
                continue
            exact = r["label"] == BASELINES[family]
            last, label = points[-1][1], r["label"]
            if last < LOWEST:
                label += f" ({last:.0f} %, far below)"
            axis.plot(*zip(*points), marker="o", markersize=3,
                      color="black" if exact else None,
                      linewidth=2 if exact else 1.4, label=label)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_title(titles[family])
        axis.set_xlabel("MB sent by a worker")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8, loc="lower right")
    axes[0].set_ylabel("test accuracy, %")
    axes[0].set_ylim(LOWEST, 92)
    figure.suptitle("LeNet on Fashion-MNIST, 8 workers, twenty epochs: "
                    "accuracy for bytes", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("laconic")
    parser.add_argument("--runs", type=pathlib.Path, default=HERE / "runs")
    parser.add_argument("--only", help="run only labels that contain "
                        "this, and write no files")
    args = parser.parse_args()
    results = []
    for family, label, algorithm, compressor in RUNS:
        if args.only and args.only not in label:
            continue
        print(f"{label}:", file=sys.stderr)
        folder = args.runs / slug(label)
        result, epochs = run(args.laconic, folder, algorithm, compressor)
        results.append({"family": family, "label": label,
                        "algorithm": algorithm, "compressor": compressor,
                        "result": result, "epochs": epochs})
        if result:
            print(f"  {percent(result['test_accuracy'])}", file=sys.stderr)
    if args.only:
        return
    manifest = json.loads(
        (args.runs / slug("allreduce") / "manifest.json").read_text())
    (HERE / "lenet.md").write_text(table(results, manifest["machine"]))
    plot(results, HERE / "lenet.png")


if __name__ == "__main__":
    main()
