# SPDX-License-Identifier: MIT
"""Natural compression: training with C_nat, top-k with it (Tables 2 and 3), the
variance of natural and of standard dithering, and the speed-ups of Table 1.
"""
from lab import plots, tables, tasks
from lab.page import Experiment
from lab.tuning import Trial
from lab.verdicts import (Claim, Missing, behind, level, points, signed,
                          value)
from powersgd import AVERAGED, RESNET, RESNET_FINAL

SEEDS = (1, 2, 3)
NETWORKS = {"LeNet": (tasks.LENET, tasks.LENET_RATES, tasks.LENET_EPOCHS,
                      tasks.LENET_EPOCHS),
            "ResNet-8": (RESNET, tasks.RESNET_RATES, tasks.RESNET_TUNING,
                         RESNET_FINAL)}

# Table 2: K, the ratio of top-k with as many bytes as top-k of K with C_nat,
# and the paper's accuracies [TEXT].
TABLE_2 = {"0.39 %": (0.0039, 0.0016, "93.72 ± 0.07", "93.93 ± 0.26"),
           "1.56 %": (0.0156, 0.0063, "94.21 ± 0.06", "94.47 ± 0.13"),
           "6.25 %": (0.0625, 0.0237, "93.93 ± 0.53", "94.13 ± 0.26")}
# Table 3: a method, the ratio of top-k with C_nat that has as many bytes on
# ResNet-8, and the paper's accuracies [TEXT].
TABLE_3 = {
    "EF-sign": ("error-feedback", "sign", 0.0683, "93.81 ± 0.06",
                "94.28 ± 0.12"),
    "PowerSGD, rank 2": ("powersgd:rank=2", None, 0.1464, "94.26 ± 0.22",
                         "94.23 ± 0.01"),
    "PowerSGD, rank 7": ("powersgd:rank=7", None, 0.5794, "94.24 ± 0.09",
                         "94.25 ± 0.10")}

# The variance of dithering: one worker, one vector of normal deviates.
DIMENSION = 100000
LEVELS = range(1, 13)
VARIANCE = {"algorithm": "compressed:server=identity", "workers": 1,
            "rounds": 1, "dimension": DIMENSION}
# Table 1: compressors whose bits per value are those of `laconic size`.
SPEEDS = {"C_nat": ("natural", "3.2 to 3.6 [TEXT]"),
          "natural dithering, s = 8": ("natural-dithering:levels=8",
                                       "4.1 to 16.0 over s [TEXT]"),
          "standard dithering, 2^7 levels": ("dithering:levels=128",
                                             "1.8 to 15.9 over s [TEXT]")}
# Training with dithering: D_nat of 8 levels against D_sta of 2^7 and of 8.
DITHERING = {"natural dithering, 8 levels": "natural-dithering:levels=8",
             "standard dithering, 128 levels": "dithering:levels=128",
             "standard dithering, 8 levels": "dithering:levels=8"}


def sparse(ratio, natural):
    return "top-k:%g%s" % (ratio, "+natural" if natural else "")


def training_trials():
    found = {}
    for network, (base, rates, tuning, final) in NETWORKS.items():
        sgd = Trial(network + ", SGD", {**base, "algorithm": "allreduce"},
                    rates, tuning, final, SEEDS, metric=AVERAGED)
        found[network] = sgd
        found[network, "C_nat"] = Trial(
            network + ", C_nat", {**base, "algorithm": "compressed",
                                  "compressor": "natural"}, ({},), tuning,
            final, SEEDS, like=sgd, metric=AVERAGED)

    def resnet(label, algorithm, compressor):
        base, _, tuning, final = NETWORKS["ResNet-8"]
        found[label] = Trial(label, {**base, "algorithm": algorithm,
                                     "compressor": compressor}, ({},), tuning,
                             final, SEEDS, like=found["ResNet-8"],
                             metric=AVERAGED)
    for name, (ratio, equal, _, _) in TABLE_2.items():
        resnet("top-k %s" % name, "error-feedback", sparse(ratio, False))
        resnet("top-k %s, C_nat" % name, "error-feedback",
               sparse(ratio, True))
        resnet("top-k, bytes of %s, C_nat" % name, "error-feedback",
               sparse(equal, False))
    for name, (algorithm, compressor, ratio, _, _) in TABLE_3.items():
        resnet(name, algorithm, compressor)
        resnet("top-k, C_nat, bytes of " + name, "error-feedback",
               sparse(ratio, True))
    base, rates, tuning, final = NETWORKS["LeNet"]
    for name, compressor in DITHERING.items():
        found[name] = Trial(name, {**base, "algorithm": "compressed",
                                   "compressor": compressor}, rates, tuning,
                            final, SEEDS)
    return list(found.values())


def variance_trials():
    specs = {"natural-dithering:levels=%d" % s for s in LEVELS}
    specs |= {"dithering:levels=%d" % s for s in LEVELS}
    specs |= {"dithering:levels=%d" % 2 ** (s - 1) for s in LEVELS}
    specs |= {spec for spec, _ in SPEEDS.values()}
    return [Trial("variance, " + spec, {**VARIANCE, "compressor": spec},
                  metric="final_error", command="average")
            for spec in sorted(specs)]


def size_trials():
    return [Trial("size, " + spec, {"model": "mlp", "compressor": spec,
                                    "algorithm": "error-feedback"},
                  metric="ratio", command="size")
            for spec, _ in SPEEDS.values()]


def omega(view, spec):
    return value(view["variance, " + spec]) / DIMENSION


def shown_omega(view, spec):
    try:
        return "%.4g" % omega(view, spec)
    except Missing:
        return ""


def speed_up(view, spec):
    """The smallest and the largest: all iterations are needed (1 + omega)
    times, or not at all more often."""
    ratio = value(view["size, " + spec])
    return ratio / (1 + omega(view, spec)), ratio


def no_cost(view):
    below = [behind(view[n + ", C_nat"], view[n + ", SGD"]) for n in NETWORKS]
    return ", ".join(map(signed, below)), all(b <= 0.5 for b in below)


def pairs(view, names, limit):
    """Points of the second of each pair above the first."""
    below = [behind(view[second], view[first]) for first, second in names]
    return ", ".join(map(signed, below)), all(b <= limit for b in below)


def table_2(view):
    return pairs(view, [("top-k " + name, "top-k %s, C_nat" % name)
                        for name in TABLE_2], 0.5)


def equal_bytes(view):
    return pairs(view, [("top-k, bytes of %s, C_nat" % name,
                         "top-k %s, C_nat" % name) for name in TABLE_2], 0.5)


def table_3(view):
    return pairs(view, [(name, "top-k, C_nat, bytes of " + name)
                        for name in TABLE_3], 1)


def exponential(view):
    """Natural dithering with s levels against standard of 2^(s-1)."""
    found = [omega(view, "natural-dithering:levels=%d" % s)
             / omega(view, "dithering:levels=%d" % 2 ** (s - 1))
             for s in range(2, 9)]
    return ("ratio %.2f to %.2f for s = 2 to 8" % (min(found), max(found)),
            all(0.85 <= ratio <= 1.15 for ratio in found))


def speed(view):
    low, high = speed_up(view, "natural")
    return "%.2f to %.2f" % (low, high), low >= 3.15 and high <= 3.6


def dithered(view):
    first, second, third = (points(view[name]) for name in DITHERING)
    return ("; ".join(level(view[name]) for name in DITHERING),
            abs(first - second) <= 1 and first > third)


CLAIMS = [
    Claim("C_nat costs no accuracy (LeNet, ResNet-8)",
          "same quality [TEXT]", no_cost),
    Claim("Table 2: top-k with C_nat is at most half a point below top-k with "
          "more bytes", "+0.2, +0.3, +0.2 [TEXT]", table_2),
    Claim("top-k with C_nat is at most half a point below top-k of the same "
          "bytes", "not in the paper", equal_bytes),
    Claim("Table 3: top-k with C_nat is at most a point below EF-sign and "
          "PowerSGD of the same bytes",
          "+0.5, 0.0, 0.0 [TEXT]", table_3),
    Claim("natural dithering of s levels has the variance of standard "
          "dithering of 2^(s-1)", "Theorem 8 [TEXT]", exponential),
    Claim("natural dithering of 8 levels trains as standard of 128 and better "
          "than standard of 8", "VGG11 [TEXT]", dithered),
    Claim("the speed-up of C_nat is 3.2 to 3.6", "3.2 to 3.6 [TEXT]", speed)]


def sections(view):
    lines = ["## C_nat", "", *tables.table(
        ["accuracy, %", "SGD", "C_nat", "times fewer bytes"],
        [[n, tables.percent(view[n + ", SGD"]),
          tables.percent(view[n + ", C_nat"]),
          tables.fewer(view[n + ", C_nat"])] for n in NETWORKS]), "",
        "## Table 2: top-k, ResNet-8", ""]
    rows = []
    for name, (_, _, without, with_natural) in TABLE_2.items():
        labels = ["top-k " + name, "top-k %s, C_nat" % name,
                  "top-k, bytes of %s, C_nat" % name]
        rows.append([name] + [text for label in labels for text in
                              (tables.percent(view[label]),
                               tables.fewer(view[label]))]
                    + [without, with_natural])
    lines += tables.table(
        ["K", "top-k, %", "fewer bytes", "with C_nat, %", "fewer bytes",
         "top-k of those bytes, %", "fewer bytes", "paper: top-k [TEXT]",
         "paper: with C_nat [TEXT]"], rows) + [
        "", "## Table 3: equal bytes, ResNet-8", ""]
    lines += tables.table(
        ["method", "accuracy, %", "top-k with C_nat, %", "fewer bytes",
         "paper: method [TEXT]", "paper: top-k with C_nat [TEXT]"],
        [[name, tables.percent(view[name]), tables.percent(
            view["top-k, C_nat, bytes of " + name]),
          tables.fewer(view[name]), theirs, natural]
         for name, (_, _, _, theirs, natural) in TABLE_3.items()]) + [
        "", "## Dithering", ""]
    lines += tables.table(
        ["LeNet", "accuracy, %", "rate", "times fewer bytes"],
        [[name, tables.percent(view[name]),
          tables.setting(view[name], "lr"), tables.fewer(view[name])]
         for name in DITHERING]) + [""]
    lines += tables.table(
        ["s", "natural, s levels", "standard, s levels",
         "standard, 2^(s-1) levels"],
        [[str(s), shown_omega(view, "natural-dithering:levels=%d" % s),
          shown_omega(view, "dithering:levels=%d" % s),
          shown_omega(view, "dithering:levels=%d" % 2 ** (s - 1))]
         for s in LEVELS]) + [
        "", "Relative variance, one vector of %d normal deviates. The "
        "speed-ups of Table 1 with it:" % DIMENSION, ""]
    rows = []
    for name, (spec, theirs) in SPEEDS.items():
        try:
            ours = "%.2f to %.2f" % speed_up(view, spec)
        except Missing:
            ours = ""
        rows.append([name, ours, theirs])
    return lines + tables.table(["", "ours", "the paper"], rows) + [""]


def panels(view):
    def spots(spec):
        found = []
        for s in LEVELS:
            try:
                found.append((s, omega(view, spec(s))))
            except Missing:
                pass
        return found
    variances = [
        plots.Series("natural, s levels",
                     spots(lambda s: "natural-dithering:levels=%d" % s)),
        plots.Series("standard, s levels",
                     spots(lambda s: "dithering:levels=%d" % s)),
        plots.Series("standard, 2^(s-1) levels",
                     spots(lambda s: "dithering:levels=%d" % 2 ** (s - 1)),
                     True)]
    groups = {"top-k": ["top-k " + name for name in TABLE_2],
              "top-k, C_nat": ["top-k %s, C_nat" % name for name in TABLE_2]
              + ["top-k, C_nat, bytes of " + name for name in TABLE_3],
              **{name: [name] for name in TABLE_3}}
    trained = [plots.Series(name, sorted(
        (view[label].mean("times_fewer"), points(view[label]))
        for label in labels if view[label].values("times_fewer")))
        for name, labels in groups.items()]
    return [plots.Panel("dithering", "s", "relative variance", variances,
                        log_y=True),
            plots.Panel("ResNet-8", "times fewer bytes", "accuracy, %",
                        trained, log_x=True)]


EXPERIMENT = Experiment(
    "natural", "Natural compression and natural dithering",
    "Horváth, Ho, Horváth, Sahu, Canini and Richtárik, MSML 2022, "
    "arXiv:1905.10988.", [
        "ResNet-8 on the first 10,000 images of CIFAR-10 as in "
        "[powersgd.md](powersgd.md) and LeNet on Fashion-MNIST as in "
        "[choco_table1.md](choco_table1.md), 8 workers. All methods have the "
        "best rate of SGD, except dithering, which has its own. Entries with "
        "a spread have three seeds. The paper has ResNet-18 on CIFAR-10."],
    training_trials() + variance_trials() + size_trials(), CLAIMS, sections,
    panels, fast=("LeNet, C_nat", "variance, natural-dithering:levels=8"))
