# SPDX-License-Identifier: MIT
"""PowerGossip without tuning against tuned gossip of equal bytes, in training
and in consensus, and the singular values of neighbours' differences.
"""
import math

import choco_resnet
import choco_table1 as table1
from lab import plots, tables, tasks
from lab.cells import DONE
from lab.page import Experiment
from lab.tuning import Trial, lasting
from lab.verdicts import (Claim, Missing, behind, behind_longer, margin,
                          measured, signed, value)

SEEDS = {"LeNet": (1, 2, 3), "ResNet-8": (1,)}
NETWORKS = tuple(SEEDS)
# Methods without anything to tune: they have the best rate of all-reduce.
UNTUNED = {
    "PowerGossip, 1 iteration": "powergossip:iterations=1",
    "PowerGossip, 2 iterations": "powergossip:iterations=2",
    "random start, 1 iteration": "powergossip:iterations=1,warm-start=no",
    "random start, 2 iterations": "powergossip:iterations=2,warm-start=no"}
# Why PowerGossip is behind on ResNet-8: too short, or too few iterations?
LONGER = 40  # epochs
LONGER_ROWS = {
    "D-PSGD": table1.label("ResNet-8", "D-PSGD"),
    "PowerGossip, 2 iterations": table1.label(
        "ResNet-8", "untuned", "PowerGossip, 2 iterations")}
MORE = {"8 iterations": "powergossip:iterations=8"}
TUNED = {"CHOCO, sign, tuned": (table1.TUNED, "sign"),
         "CHOCO, top 1 %, tuned": (table1.TUNED, "top 1 %"),
         "DeepSqueeze, sign, gamma=auto": ("DeepSqueeze", "sign")}
MONIQUA = tuple({"algorithm": "moniqua:gamma=%g,theta=%g,bits=2" % pair}
                for pair in ((0.005, 0.25), (0.05, 0.25), (0.05, 0.02),
                             (0.3, 0.02)))
MONIQUA_RATES = {"LeNet": tasks.LENET_RATES[:2],
                 "ResNet-8": tasks.RESNET_RATES[1:]}

# Consensus: an 8-ring of matrices, normal deviates or of rank 5.
MATRICES = {"normal": {}, "rank 5": {"low_rank": 5}}
CONSENSUS = {"workers": 8, "topology": "ring", "rounds": 1000,
             "dimension": "100x100"}
FREE = {"exact": "dpsgd:rate=1.308", "warm start": "powergossip:rate=1.308",
        "random start": "powergossip:rate=1.308,warm-start=no"}
GAMMAS = (0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.3)
CHOCO = {"sign": "sign", "top 1 %": "top-k:0.01",
         "rank 1": "low-rank:rank=1,iterations=4"}
# The mean-square rate of a random start, 8-ring, 100 columns [PAPERS: derived
# and simulated], and squared errors after t rounds [SIM].
RATE = 0.995220
SIMULATED = {("normal", "random start"): (0.385, 3.4e-3),
             ("normal", "warm start"): (0.305, 7.4e-4),
             ("rank 5", "random start"): (0.388, 3.5e-3),
             ("rank 5", "warm start"): (0.0221, 6.4e-8)}
# Bytes of signs grow with the values of a matrix, those of PowerGossip with its
# rows and columns. CHOCO needs few rounds for as many bytes.
LARGE = "rank 5, 1000 x 1000"
LARGE_CONSENSUS = {**CONSENSUS, "dimension": "1000x1000", "low_rank": 5}
LARGE_CHOCO = {"sign": (0.2, 0.4, 0.7, 1.0), "top 1 %": (0.003, 0.01, 0.03)}
LARGE_ROUNDS = 200
SPECTRA = {"D-PSGD": "dpsgd", "PowerGossip": "powergossip:iterations=2",
           "random start": "powergossip:iterations=2,warm-start=no"}
TENSOR = "fc1.weight"  # 120 x 400, the largest of LeNet


def untuned(network):
    return {**UNTUNED, **(MORE if network == "ResNet-8" else {})}


def training_trials():
    found = {trial.label: trial
             for trial in table1.TRIALS + choco_resnet.TRIALS}
    chosen = []
    for network in NETWORKS:
        base, _, tuning, final = table1.task(network)
        exact = found[table1.label(network, "all-reduce")]
        chosen += [exact, found[table1.label(network, "D-PSGD")]]
        for name, algorithm in untuned(network).items():
            chosen.append(Trial(
                table1.label(network, "untuned", name),
                {**base, "algorithm": algorithm, "topology": "ring"}, ({},),
                tuning, final, SEEDS[network], like=exact))
        chosen += [found[table1.label(network, *names)]
                   for names in TUNED.values()]
        chosen.append(Trial(
            table1.label(network, "Moniqua"), {**base, "topology": "ring"},
            tuple({**variant, **rate} for variant in MONIQUA
                  for rate in MONIQUA_RATES[network]), tuning, final))
    return chosen + [trial.longer(LONGER) for trial in chosen
                     if trial.label in LONGER_ROWS.values()]


def consensus_trials():
    def average(kind, name, settings, variants=({},)):
        return Trial("%s, %s" % (kind, name), settings, variants,
                     metric="final_error", command="average")

    def choco(kind, name, settings, gammas):
        return average(kind, "CHOCO " + name,
                       {**settings, "compressor": CHOCO[name]},
                       tuple({"algorithm": "choco:gamma=%g" % gamma}
                             for gamma in gammas))
    found = []
    for kind, more in MATRICES.items():
        settings = {**CONSENSUS, **more}
        found += [average(kind, name, {**settings, "algorithm": algorithm})
                  for name, algorithm in FREE.items()]
        found += [choco(kind, name, settings, GAMMAS) for name in CHOCO]
    found.append(average(LARGE, "warm start", {
        **LARGE_CONSENSUS, "algorithm": FREE["warm start"]}))
    return found + [choco(LARGE, name, {**LARGE_CONSENSUS,
                                        "rounds": LARGE_ROUNDS}, gammas)
                    for name, gammas in LARGE_CHOCO.items()]


def spectrum_trials():
    return [Trial("differences, " + name,
                  {**tasks.LENET, **tasks.LENET_EPOCHS, "lr": 0.06,
                   "algorithm": algorithm, "topology": "ring",
                   "test_every": "1e", "test_limit": 1000,
                   "differences": True})
            for name, algorithm in SPECTRA.items()]


def rows_of(network):
    """Names and labels of the rows of a network's table."""
    rows = {"all-reduce": table1.label(network, "all-reduce"),
            "D-PSGD": table1.label(network, "D-PSGD"),
            **{name: table1.label(network, "untuned", name)
               for name in untuned(network)},
            **{name: table1.label(network, *names)
               for name, names in TUNED.items()},
            "Moniqua, 2 bits, tuned": table1.label(network, "Moniqua")}
    if network == "ResNet-8":
        rows.update({lasting(name, LONGER): lasting(label, LONGER)
                     for name, label in LONGER_ROWS.items()})
    return rows


def against(network, ours, others, apart):
    """Points of a row of PowerGossip minus those of others."""
    def judge(view):
        rows = rows_of(network)
        below = {name: behind(view[rows[ours]], view[rows[name]])
                 for name in others}
        text = ", ".join("%s to %s" % (signed(found), name)
                         for name, found in below.items())
        return text, all(found <= apart for found in below.values())
    return judge


def fewer_bytes(view):
    rows = rows_of("LeNet")
    ours = value(view[rows["PowerGossip, 2 iterations"]], "times_fewer")
    sign = value(view[rows["CHOCO, sign, tuned"]], "times_fewer")
    return "%.0f and %.0f times fewer" % (ours, sign), ours >= sign


def more_iterations(view):
    rows = rows_of("ResNet-8")
    below = [behind(view[rows[name]], view[rows["D-PSGD"]])
             for name in ("PowerGossip, 2 iterations", *MORE)]
    return "2 iterations %s, 8 iterations %s" % tuple(map(signed, below)), (
        below[1] <= 2)


def more_epochs(view):
    """Half as far from D-PSGD."""
    exact, ours = LONGER_ROWS.values()
    short, long = behind_longer(view, ours, exact, LONGER)
    return "20 epochs %s, %d epochs %s" % (
        signed(short), LONGER, signed(long)), long <= short / 2


def warm(network):
    def judge(view):
        rows = rows_of(network)
        below = [behind(view[rows["random start, %s" % name]],
                        view[rows["PowerGossip, %s" % name]])
                 for name in ("1 iteration", "2 iterations")]
        return "random start " + ", ".join(map(signed, below)), all(
            found >= 0 for found in below)
    return judge


def error_at(result, sent):
    """The error of a consensus run, relative to its first, when so many
    bytes were sent."""
    curve, first = result["curve"], result["result"]["initial_error"]
    within = [y for x, y in zip(curve["payload_bytes"], curve["error"])
              if x <= sent]
    return (within[-1] if within else first) / first


def least_error(view, label, sent):
    """The same of the gamma that is best for so many bytes."""
    measured(view[label])
    results = [view.book.get(asked) for _, asked
               in view.trials[label].candidates(view.book)[0]]
    return min((error_at(result, sent) for result in results
                if result["outcome"] == DONE), default=math.inf)


def error_after(outcome, rounds):
    """The same after so many rounds."""
    if measured(outcome).diverged:
        return math.inf
    within = [y for x, y in outcome.curve("round", "error") if x <= rounds]
    return within[-1] / outcome.results[0]["result"]["initial_error"]


def rate(view):
    curve = dict(measured(view["normal, random start"]).curve("round",
                                                              "error"))
    late = [(x, y) for x, y in curve.items() if x >= 200]
    if len(late) < 2:
        raise Missing("rounds")
    (x, y), (x2, y2) = late[0], late[-1]
    found = (y2 / y) ** (1.0 / (x2 - x))
    return "%.5f" % found, abs(found - RATE) < 1e-3


def low_rank(view):
    found = {start: error_after(view["rank 5, %s start" % start], 1000)
             for start in ("warm", "random")}
    return ("%.1e against %.1e" % (found["warm"], found["random"]),
            found["warm"] < 1e-3 * found["random"])


def consensus(kind, compressors):
    def judge(view):
        ours = measured(view["%s, warm start" % kind])
        if ours.diverged:
            return "diverges", False
        result = ours.results[0]
        sent = result["result"]["payload_bytes"]
        found = {name: least_error(view, "%s, CHOCO %s" % (kind, name), sent)
                 for name in compressors}
        own = error_at(result, sent)
        return "%.1e; CHOCO %s" % (own, ", ".join(
            "%s %.1e" % pair for pair in found.items())), all(
                own <= other for other in found.values())
    return judge


def shares(outcome):
    """For each test, the part of the energy in the largest tenth of the
    singular values."""
    result = measured(outcome).results[0]
    found = []
    for line in result.get("differences", []):
        spectrum = line["tensors"][TENSOR]
        tenth = max(1, spectrum["count"] // 10)
        largest = spectrum["largest"][:tenth]
        if spectrum["energy"] > 0:
            found.append((line["epoch"],
                          sum(v * v for v in largest) / spectrum["energy"]))
    if not found:
        raise Missing("differences")
    return found


def decay(names, holds):
    """The last share of each, and whether they hold."""
    def judge(view):
        found = {name: shares(view["differences, " + name])[-1][1]
                 for name in names}
        return ", ".join("%s %.0f %%" % (name, 100 * share)
                         for name, share in found.items()), holds(
                             *found.values())
    return judge


def claims():
    found = []
    for network, seeds in SEEDS.items():
        apart, in_words = margin(seeds)
        found += [
            Claim(network + ": PowerGossip without tuning is within %s of "
                  "tuned CHOCO" % in_words,
                  "matches it [MEM]; CHOCO sign 92.46, top 1 % 91.73 [TEXT]",
                  against(network, "PowerGossip, 2 iterations",
                          ["CHOCO, sign, tuned", "CHOCO, top 1 %, tuned"],
                          apart)),
            Claim(network + ": it is better than DeepSqueeze and Moniqua",
                  "better [MEM]",
                  against(network, "PowerGossip, 2 iterations",
                          ["DeepSqueeze, sign, gamma=auto",
                           "Moniqua, 2 bits, tuned"], 0)),
            Claim(network + ": a random start is worse", "worse [MEM]",
                  warm(network))]
    return found + [
        Claim("ResNet-8: with 8 iterations it is within two points of D-PSGD",
              "not in the paper", more_iterations),
        Claim("ResNet-8: it is half as far from D-PSGD after %d epochs"
              % LONGER, "300 epochs [CODE]", more_epochs),
        Claim("two iterations send no more than signs",
              "33.5 and 31.8 times fewer on ResNet-20 [CALC]", fewer_bytes),
        Claim("consensus, random start: the rate per round of the squared "
              "error", "%.5f [derived, SIM]" % RATE, rate),
        Claim("consensus, rank 5: a warm start is far better after 1000 "
              "rounds", "6.4e-8 against 3.5e-3 [SIM]", low_rank),
        *(Claim("consensus, %s: PowerGossip untuned is better than tuned "
                "CHOCO with rank 1 for equal bytes" % kind, "better [MEM]",
                consensus(kind, ["rank 1"])) for kind in MATRICES),
        *(Claim("consensus, %s: it is at least as good as tuned CHOCO with "
                "sign and top 1 %% for equal bytes" % kind, "as good [MEM]",
                consensus(kind, ["sign", "top 1 %"])) for kind in MATRICES),
        Claim("consensus, %s: it is better than both for equal bytes" % LARGE,
              "not in the paper", consensus(LARGE, LARGE_CHOCO)),
        Claim("singular values of neighbours' differences decay fast: the "
              "largest tenth has half of the energy", "fast decay [MEM]",
              decay(("D-PSGD", "PowerGossip"),
                    lambda *found: min(found) >= 0.5)),
        Claim("PowerGossip removes the largest first: with a random start the "
              "largest tenth has more of the energy", "not in the paper",
              decay(("PowerGossip", "random start"),
                    lambda warm, random: random > warm))]


def sections(view):
    lines = []
    for network in NETWORKS:
        rows = [[name, tables.percent(view[label]), tables.fewer(view[label]),
                 tables.setting(view[label], "lr"),
                 tables.setting(view[label], "algorithm")]
                for name, label in rows_of(network).items()]
        lines += ["## " + network, "", *tables.table(
            ["", "accuracy, %", "times fewer bytes", "rate", "chosen"],
            rows), ""]
    lines += ["The paper's table is not available; its claim is that "
              "PowerGossip without tuning matches tuned CHOCO [MEM].", "",
              "## Consensus", ""]
    rows = []
    for kind in (*MATRICES, LARGE):
        for name in [*FREE, *("CHOCO " + n for n in CHOCO)]:
            if "%s, %s" % (kind, name) not in view:
                continue
            outcome = view["%s, %s" % (kind, name)]
            rows.append([kind, name, *(error_text(outcome, t)
                                       for t in (10, 100, 500, 1000)),
                         tables.megabytes(outcome, 8, 2),
                         tables.setting(outcome, "algorithm"),
                         ", ".join("%.2g" % x for x in
                                   SIMULATED.get((kind, name), ()))])
    return lines + tables.table(
        ["matrices", "method", "round 10", "100", "500", "1000",
         "MB sent per worker", "chosen", "SIM, rounds 100 and 1000"], rows,
        2) + ["", "Squared error relative to that of the start, on a ring "
              "of eight matrices, of 100 x 100 unless the table names a "
              "size.", ""]


def error_text(outcome, rounds):
    if rounds > int(outcome.trial.base["rounds"]):
        return ""
    try:
        found = error_after(outcome, rounds)
    except Missing:
        return "not available" if outcome.refused else ""
    return "diverges" if found == math.inf else "%.2g" % found


def panels(view):
    def consensus_series(kind):
        for at, name in enumerate([*FREE, *("CHOCO " + n for n in CHOCO)]):
            outcome = view["%s, %s" % (kind, name)]
            yield plots.Series("%s, %s" % (name, kind), [
                (x / 8e6, y) for x, y in outcome.curve("payload_bytes",
                                                       "error")],
                kind != "normal", at)
    spectra = []
    for name in SPECTRA:
        outcome = view["differences, " + name]
        tests = outcome.results[0].get("differences", []) \
            if outcome.results else []
        for line in tests[::4]:
            values = line["tensors"][TENSOR]["largest"]
            if values and values[0] > 0:
                spectra.append(plots.Series(
                    "%s, epoch %g" % (name, line["epoch"]),
                    [(i + 1, v / values[0])
                     for i, v in enumerate(values)]))
    return [plots.Panel("consensus, 8 matrices of 100 x 100",
                        "MB sent per worker", "squared error",
                        [s for kind in MATRICES
                         for s in consensus_series(kind)], True, True),
            plots.Panel("differences of neighbours, " + TENSOR,
                        "number of the singular value",
                        "relative to the largest", spectra, log_y=True)]


EXPERIMENT = Experiment(
    "powergossip", "PowerGossip: no tuning, and why it works",
    "Vogels, Karimireddy and Jaggi, NeurIPS 2020, arXiv:2008.01425.", [
        "Training on a ring of eight as in [choco_table1.md]"
        "(choco_table1.md) and [choco_resnet.md](choco_resnet.md). "
        "PowerGossip has the best rate of all-reduce and nothing else; CHOCO "
        "has its best rate and gamma, DeepSqueeze its best rate with "
        "`gamma=auto`, Moniqua the best of four pairs of gamma and theta and "
        "two rates. Entries with a spread have three seeds. Longer runs have "
        "%d epochs and the same rate." % LONGER,
        "Consensus: 1000 rounds on a ring of eight matrices of 100 x 100, "
        "normal deviates or of rank 5; CHOCO has the best of nine gammas, in "
        "the table for the last error, in verdicts for equal bytes. On "
        "matrices of 1000 x 1000, CHOCO has the best of three or four gammas "
        "and 200 rounds, which send more bytes. The singular values are those "
        "of the difference between two neighbours in training, LeNet with "
        "rate 0.06."],
    training_trials() + consensus_trials() + spectrum_trials(), claims(),
    sections, panels,
    fast=("LeNet, untuned, PowerGossip, 2 iterations", "normal, warm start"))
