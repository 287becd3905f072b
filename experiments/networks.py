#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the time of a training step on many networks with what the papers
published: by the formula of `laconic plan`, and by simulations of the real
program on the same networks.

usage: networks.py LACONIC [--simulator DIR] [--again] [--fast]

`make simulator` builds the simulator. Results are stored in networks.json
beside this file; when the script is started again, it reuses simulations with
equal settings. At the end it writes networks.md, and networks.png if matplotlib
is installed (Debian: python3-matplotlib). --fast takes a few cells, writes
nothing, and fails if a figure that must hold does not.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import typing

import networks_report as report
from lab.cells import git

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "networks.json"


class Method(typing.NamedTuple):
    label: str
    algorithm: str
    compressor: typing.Optional[str] = None


class Setting(typing.NamedTuple):
    model: str
    workers: int
    bandwidth: str
    latency: str
    step: str  # the computation of a step


ALLREDUCE = Method("all-reduce", "allreduce")
# 8 bits and independent of the other values, so that it can be cut anywhere.
ALLREDUCE_8 = Method("8-bit all-reduce", "compressed", "natural:bits=8")
DPSGD = Method("D-PSGD", "dpsgd")
DCD = Method("DCD, 8 bit", "dcd", "qsgd:bucket=512")
ECD = Method("ECD, 16 bit", "ecd", "dithering:32767")
CHOCO = Method("CHOCO, sign", "choco", "sign")
POWERGOSSIP = Method("PowerGossip", "powergossip")
METHODS = [ALLREDUCE, ALLREDUCE_8, DPSGD, DCD, ECD, CHOCO, POWERGOSSIP]
EF_SIGN = Method("error-feedback, sign", "error-feedback", "sign")
SIGNUM = Method("Signum", "signum:tie=zero")
RANKS = {rank: Method(f"PowerSGD, rank {rank}", f"powersgd:rank={rank}")
         for rank in (1, 2, 4, 7)}
# `laconic plan` has no row for these. They are simulated everywhere.
UNPLANNED = {ALLREDUCE_8, RANKS[7]}

BANDWIDTHS = ["5Mbit", "10Mbit", "100Mbit", "1.4Gbit"]
LATENCIES = ["0.13ms", "1ms", "5ms", "20ms", "50ms"]
GRID_WORKERS = [8, 16]
SCALED = [ALLREDUCE, ALLREDUCE_8, RANKS[2], EF_SIGN, DPSGD, DCD, CHOCO,
          POWERGOSSIP]
SIMULATED_WORKERS = [4, 8, 16, 32, 64]
FORMULA_WORKERS = [128, 256, 512, 1024]
COMPUTE = {"0.3s": 0.3, "0.45s": 0.45, "0.58s": 0.58, "0.75s": 0.75,
           "1s": 1.0}
ROUNDS = 2  # a period of every method above


def grid_setting(workers, bandwidth, latency):
    return Setting("resnet20", workers, bandwidth, latency, "100ms")


def fail(text):
    sys.exit(f"networks.py: {text}")


def output(words):
    done = subprocess.run([str(word) for word in words], text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, words))} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def source_commit():
    """The last commit that changed what is measured."""
    return git("log", "-1", "--format=%h", "--", "src", "include") or None


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file
                 if line.startswith("model name")]
    return {"processor": names[0] if names else "unknown",
            "processors": os.cpu_count()}


class Cluster:
    """Step times by both ways; each is computed once."""

    def __init__(self, laconic, simulator, stored, file):
        self.laconic, self.simulator = laconic, simulator
        self.plans, self.used, self.stored, self.file = {}, {}, stored, file
        self.commit = source_commit()

    def plan(self, setting, *more):
        key = (setting, *more)
        if key not in self.plans:
            self.plans[key] = output([
                self.laconic, "plan", "--json", "--model", setting.model,
                "--workers", setting.workers, "--bandwidth", setting.bandwidth,
                "--latency", setting.latency, "--step-time", setting.step,
                *more])
        return self.plans[key]

    def row(self, setting, method, *more):
        for row in self.plan(setting, *more)["candidates"]:
            if (row["algorithm"], row["compressor"]) == method[1:]:
                return row
        return fail(f"laconic plan has no {method.algorithm}")

    def formula(self, setting, method, *more):
        """Computation and exchanges: what the papers' networks decide."""
        row = self.row(setting, method, *more)
        return row["step_seconds"] - row["compress_seconds"]

    def network(self, setting, method):
        return self.row(setting, method)["network_seconds"]

    def simulated(self, setting, method):
        key = " ".join(map(str, (*setting, *method[1:], ROUNDS)))
        if key not in self.stored:
            print(f"simulating {key}", file=sys.stderr)
            self.stored[key] = {"seconds": self.simulate(setting, method),
                                "commit": self.commit}
            self.store()
        self.used[key] = self.stored[key]
        return self.used[key]["seconds"]

    def simulate(self, setting, method):
        compressor = ["--compressor", method.compressor] \
            if method.compressor else []
        return output([
            sys.executable, ROOT / "tools" / "simulate.py",
            "--build", self.simulator, "--workers", setting.workers,
            "--bandwidth", setting.bandwidth, "--latency", setting.latency,
            "--", "average", "--time-only", "--json", "--model", setting.model,
            "--step-time", setting.step, "--rounds", ROUNDS,
            "--algorithm", method.algorithm, *compressor])["round_seconds"]

    def store(self):
        if self.file:
            document = read_results()
            document["simulations"] = self.stored
            write_results(document)


def read_results():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def write_results(document):
    """A line for each cell."""
    def lines(value):
        if isinstance(value, list):
            return "[\n" + ",\n".join(map(json.dumps, value)) + "]"
        if isinstance(value, dict):
            return "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}"
                                      for k, v in value.items()) + "}"
        return json.dumps(value)
    RESULTS.write_text("{" + ",\n".join(
        f"{json.dumps(key)}: {lines(value)}"
        for key, value in document.items()) + "}\n")


def cell(cluster, setting, method, simulate):
    """One step time: by the formula, by simulation, or both."""
    planned = method not in UNPLANNED
    return {
        **setting._asdict(), "method": method.label,
        "formula": cluster.formula(setting, method) if planned else None,
        "simulated": cluster.simulated(setting, method)
        if simulate or not planned else None}


def corner(setting):
    """Cells of the grid that are also simulated."""
    return (setting.bandwidth in (BANDWIDTHS[0], BANDWIDTHS[-1])
            and setting.latency in (LATENCIES[0], LATENCIES[-1]))


def run_grid(cluster, fast):
    settings = [grid_setting(workers, bandwidth, latency)
                for workers in GRID_WORKERS for bandwidth in BANDWIDTHS
                for latency in LATENCIES]
    if fast:
        settings = [s for s in settings if s.workers == 8 and corner(s)]
    return [cell(cluster, setting, method, corner(setting))
            for setting in settings for method in METHODS]


def run_choco(cluster):
    """ImageNet on eight machines."""
    rows = []
    for text, compute in COMPUTE.items():
        setting = Setting("resnet50", 8, "10Gbit", "0.1ms", text)
        rows.append({
            "compute": compute,
            "allreduce": cluster.formula(setting, ALLREDUCE),
            "choco": cluster.formula(setting, CHOCO),
            "allreduce_overlapped":
                cluster.formula(setting, ALLREDUCE, "--overlap"),
            "choco_overlapped": cluster.formula(setting, CHOCO, "--overlap")})
    return rows


# Milliseconds that the PowerSGD paper published for a batch, 16 workers.
# Matrices of each model, whose columns are orthogonalised one by one.
POWERSGD = {
    "resnet18": (21, [(ALLREDUCE, 312), (RANKS[1], 229), (RANKS[2], 239),
                      (RANKS[4], 260), (RANKS[7], 285), (EF_SIGN, 429),
                      (SIGNUM, 301)]),
    "lstm": (7, [(ALLREDUCE, 300), (RANKS[1], 131), (RANKS[2], 141),
                 (RANKS[4], 134), (SIGNUM, 424)]),
}
TABLE_3 = {ALLREDUCE, RANKS[1], RANKS[2], RANKS[4]}


def powersgd_network(cluster, model, method):
    setting = Setting(model, 16, "10Gbit", "0.1ms", "100ms")
    if method in UNPLANNED:
        return cluster.simulated(setting, method) - 0.1
    return cluster.network(setting, method)


def rank_of(method):
    return next((r for r, other in RANKS.items() if other == method), 0)


def run_powersgd(cluster, fast):
    """The published times of a batch. The computation is that of rank 1; a
    second column adds compression, fitted on rank 4 of ResNet-18, in
    proportion to the rank and the number of matrices."""
    network = {(model, method): powersgd_network(cluster, model, method)
               for model, (_, rows) in POWERSGD.items()
               for method, _ in rows if not (fast and method in UNPLANNED)}
    matrices = POWERSGD["resnet18"][0]
    each = (0.260 - 0.229 - network["resnet18", RANKS[4]]
            + network["resnet18", RANKS[1]]) / 3 / matrices
    results = []
    for (model, method), seconds in network.items():
        matrices, rows = POWERSGD[model]
        published = dict(rows)
        compute = published[RANKS[1]] / 1e3 - network[model, RANKS[1]]
        compress = each * matrices * (rank_of(method) - 1)
        results.append({
            "model": model, "method": method.label,
            "table_3": method in TABLE_3, "published": published[method] / 1e3,
            "network": seconds, "formula": compute + seconds,
            "with_compression": compute + seconds + compress
            if rank_of(method) or method == ALLREDUCE else None})
    return {"seconds_per_matrix_and_rank": each, "rows": results}


def run_scaling(cluster, fast):
    counts = [8] if fast else SIMULATED_WORKERS + FORMULA_WORKERS
    cells = []
    for method in SCALED:
        for workers in counts:
            simulate = workers in SIMULATED_WORKERS
            setting = grid_setting(workers, "100Mbit", "1ms")
            if simulate or method not in UNPLANNED:
                cells.append(cell(cluster, setting, method, simulate))
    return cells


def run_compression(cluster):
    """Seconds of the processor in a step of the grid, which it leaves out."""
    setting = grid_setting(8, BANDWIDTHS[-1], LATENCIES[0])
    return {method.label: cluster.row(setting, method)["compress_seconds"]
            for method in METHODS if method not in UNPLANNED}


def run_advice(cluster):
    setting = Setting("resnet50", 8, "100Gbit", "0.1ms", "300ms")
    return cluster.plan(setting)["advice"]


def run(cluster, fast):
    return {
        "date": datetime.date.today().isoformat(), "machine": machine(),
        "commit": cluster.commit,
        "grid": run_grid(cluster, fast),
        "compression": run_compression(cluster), "choco": run_choco(cluster),
        "powersgd": run_powersgd(cluster, fast),
        "scaling": run_scaling(cluster, fast),
        "advice": run_advice(cluster)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("laconic", type=pathlib.Path)
    parser.add_argument("--simulator", type=pathlib.Path, metavar="DIR",
                        default=ROOT / "build-smpi",
                        help="a build with LAC_SMPI (build-smpi)")
    parser.add_argument("--again", action="store_true",
                        help="repeat stored simulations")
    parser.add_argument("--fast", action="store_true",
                        help="a few cells, and write no files")
    args = parser.parse_args()
    if not args.laconic.is_file():
        fail(f"there is no {args.laconic}; build it with `make`")
    stored = {} if args.again or args.fast \
        else read_results().get("simulations", {})
    cluster = Cluster(args.laconic.resolve(), args.simulator, stored,
                      not args.fast)
    results = run(cluster, args.fast)
    results["claims"] = report.claims(results)
    if not args.fast:
        write_results({**results, "simulations": cluster.used})
        (HERE / "networks.md").write_text(report.text(results))
        report.plot(results, HERE / "networks.png")
    for claim in results["claims"]:
        print(f"{claim['verdict']}: {claim['claim']}: {claim['found']}")
    if any(claim["required"] and claim["verdict"] != "agrees"
           for claim in results["claims"]):
        fail("a figure that must hold does not")


if __name__ == "__main__":
    main()
