# SPDX-License-Identifier: MIT
"""What networks.py found: verdicts on the papers' claims, text and picture."""
import sys
import textwrap

AGREES, PARTLY, DISAGREES = "agrees", "agrees in part", "disagrees"
FAST, SLOW, NEAR, FAR = "1.4Gbit", "5Mbit", "0.13ms", "50ms"
# The methods of the DCD and ECD paper, and those that came later.
PAPER = ["all-reduce", "8-bit all-reduce", "D-PSGD", "DCD, 8 bit",
         "ECD, 16 bit"]
LATER = ["CHOCO, sign", "PowerGossip"]
GOSSIP = ["DCD, 8 bit", "ECD, 16 bit", *LATER]
EXACT = ["all-reduce", "D-PSGD"]
MODELS = {"resnet18": "ResNet-18", "lstm": "LSTM"}
SPREAD_MAX, PUBLISHED_MAX, FORMULA_MAX = 0.12, 0.06, 0.01
CHOCO_RANGE = (0.15, 0.25)  # what "about 20 %" may mean


def seconds(cell):
    return cell["simulated"] if cell["formula"] is None else cell["formula"]


def index(cells):
    return {(c["workers"], c["bandwidth"], c["latency"], c["method"]):
            seconds(c) for c in cells}


def unique(values):
    return list(dict.fromkeys(values))


def percent(value, digits=1):
    return f"{round(100 * value, digits) + 0.0:+.{digits}f} %"  # no -0.0


def errors(cells):
    """Of the formula, relative to the simulation."""
    return [c["formula"] / c["simulated"] - 1 for c in cells
            if c["formula"] is not None and c["simulated"] is not None]


def verdict(holds):
    holds = list(holds)
    return AGREES if all(holds) else PARTLY if any(holds) else DISAGREES


def claim(source, words, found, holds, required=False):
    return {"source": source, "claim": words, "found": found,
            "verdict": verdict(holds), "required": required}


class Grid:
    """The grid's cells by workers, bandwidth, latency and method."""

    def __init__(self, cells):
        self.times = index(cells)
        self.workers = unique(c["workers"] for c in cells)

    def best(self, workers, bandwidth, latency, methods):
        return min(methods, key=lambda method: self.times[
            workers, bandwidth, latency, method])

    def compare(self, bandwidth, latency, methods):
        """The times of some methods, for people."""
        def time(workers, method):
            value = self.times[workers, bandwidth, latency, method]
            return f"{method} {value:.3f} s"
        return "; ".join(
            f"{workers} workers: "
            + " and ".join(time(workers, method) for method in methods)
            for workers in self.workers)

    def faster(self, bandwidth, latency, one, other):
        """For each number of workers: is one at least as fast?"""
        return [self.times[workers, bandwidth, latency, one]
                <= self.times[workers, bandwidth, latency, other]
                for workers in self.workers]

    def spread(self, workers, methods):
        times = [self.times[workers, FAST, NEAR, m] for m in methods]
        return max(times) / min(times) - 1


def grid_claims(cells):
    grid, source = Grid(cells), "DCD and ECD"
    winners = {w: grid.best(w, SLOW, FAR, PAPER + LATER)
               for w in grid.workers}
    spreads = {w: grid.spread(w, PAPER) for w in grid.workers}
    later = {w: grid.spread(w, PAPER + LATER) for w in grid.workers}
    return [
        claim(source, "at 5 Mbit/s and 50 ms compressed gossip wins",
              "; ".join(f"{w} workers: {m}, "
                        f"{grid.times[w, SLOW, FAR, m]:.3f} s"
                        for w, m in winners.items()),
              [m in GOSSIP for m in winners.values()], True),
        claim(source, "there DCD beats D-PSGD",
              grid.compare(SLOW, FAR, ["D-PSGD", "DCD, 8 bit"]),
              grid.faster(SLOW, FAR, "DCD, 8 bit", "D-PSGD")),
        claim(source, "there DCD beats an 8-bit all-reduce",
              grid.compare(SLOW, FAR, ["8-bit all-reduce", "DCD, 8 bit"]),
              grid.faster(SLOW, FAR, "DCD, 8 bit", "8-bit all-reduce")),
        claim(source, "at 5 Mbit/s and 0.13 ms an 8-bit all-reduce is at "
              "least as fast as 8-bit gossip",
              grid.compare(SLOW, NEAR, ["8-bit all-reduce", "DCD, 8 bit"]),
              grid.faster(SLOW, NEAR, "8-bit all-reduce", "DCD, 8 bit"),
              True),
        claim(source, "at 5 Mbit/s and 0.13 ms exact gossip does not help",
              grid.compare(SLOW, NEAR, EXACT),
              grid.faster(SLOW, NEAR, "all-reduce", "D-PSGD")),
        claim(source, "at 1.4 Gbit/s and 50 ms exact gossip helps",
              grid.compare(FAST, FAR, EXACT),
              grid.faster(FAST, FAR, "D-PSGD", "all-reduce")),
        claim(source, "at 1.4 Gbit/s and 0.13 ms all are alike "
              "(within 12 %)",
              "; ".join(f"{w} workers: {100 * spreads[w]:.1f} % "
                        f"({100 * later[w]:.1f} % with CHOCO and PowerGossip)"
                        for w in grid.workers),
              [s <= SPREAD_MAX for s in spreads.values()], True)]


def saved(row, other="allreduce", one="choco"):
    return 1 - row[one] / row[other]


def choco_claims(rows):
    row = next(r for r in rows if r["compute"] == 0.58)
    return [
        claim("CHOCO", "ResNet-50 on 8 machines, 10 Gbit/s: about 20 % less "
              "time than an all-reduce",
              f"{100 * saved(row):.1f} % less; "
              f"{100 * saved(row, one='choco_overlapped'):.1f} % if only "
              "CHOCO overlaps",
              [CHOCO_RANGE[0] <= saved(row) <= CHOCO_RANGE[1]], True)]


def difference(row, column="formula"):
    return row[column] / row["published"] - 1


def listed(rows, column="formula"):
    return "; ".join(
        f"{MODELS[r['model']]} {r['method']} {1e3 * r[column]:.0f} ms for "
        f"{1e3 * r['published']:.0f} ({percent(difference(r, column))})"
        for r in rows)


def powersgd_claims(result):
    source, rows = "PowerSGD", result["rows"]
    sgd = [r for r in rows if r["method"] == "all-reduce"]
    ranks = [r for r in rows if "rank" in r["method"]
             and not r["method"].endswith("rank 1")]
    signs = [r for r in rows if r["with_compression"] is None]

    def near(some, column="formula"):
        return [abs(difference(r, column)) <= PUBLISHED_MAX for r in some]
    return [
        claim(source, "the time of SGD (within 6 %)", listed(sgd), near(sgd),
              True),
        claim(source, "the times of higher ranks, from the network alone "
              "(within 6 %)", listed(ranks), near(ranks)),
        claim(source, "the same, with compression in proportion to the "
              "rank",
              listed(ranks, "with_compression"),
              near(ranks, "with_compression")),
        claim(source, "the times of gathered signs, from the network alone "
              "(within 6 %)", listed(signs), near(signs))]


def claims(results):
    cells = results["grid"] + results["scaling"]
    worst = max(errors(cells), key=abs)
    advice = results["advice"]
    return [
        *grid_claims(results["grid"]), *choco_claims(results["choco"]),
        *powersgd_claims(results["powersgd"]),
        claim("Agarwal et al.", "fast networks need no compression: "
              "ResNet-50, 8 workers, 0.3 s, 100 Gbit/s", f'"{advice}"',
              [advice.startswith("do not compress")], True),
        claim("our own", "the formula is within 1 % of the simulation",
              f"{len(errors(cells))} cells, at most {percent(worst, 2)}",
              [abs(worst) <= FORMULA_MAX], True)]


INTRODUCTION = """\
Written by `experiments/networks.py`. A step is computation plus exchanges. The
exchanges are predicted by the formula of `laconic plan`
([planning](../docs/planning.md)) or simulated: `tools/simulate.py` runs the
real program for two rounds. The network is a star: each worker has a port of
the given bandwidth in each direction, and the latency is one way. Gossip is on
a ring. The exact all-reduce is Rabenseifner's. Exchanges and computation do not
overlap, except where noted.

Compression is left out, since the papers compressed on GPUs. On this machine it
takes up to {compression:.0f} ms a step of the grid.

{machine}"""

CLAIMS = """\
Of the DCD and ECD paper the abstract was read; of its figures only the signs
are known, and the networks on which they are tested here are ours, except the
fastest. The published times of PowerSGD are quoted from notes and were not
compared with the paper's text."""

GRID = """\
ResNet-20 (272,474 values), 0.1 s of computation; seconds a step, the fastest in
bold. The 8-bit all-reduce is `compressed` with `natural:bits=8`, DCD has
`qsgd:bucket=512`, ECD `dithering:32767`, as 8 bits are too few for it. The
8-bit all-reduce is simulated in every cell, everything else is by the
formula."""

GRID_WHY = """\
**Where it disagrees.** DCD sends more bytes than an 8-bit all-reduce: on a ring
2 messages of n bytes instead of 2 (N-1)/N n. It can only win by latencies, and
our all-reduce waits for just one more, because all workers send all shards at
once. So at 5 Mbit/s and 50 ms the all-reduce is 5 % faster with 8 workers and
2 % slower with 16, and DCD is faster on links above about 10 Mbit/s. A ring
all-reduce would wait for 2 (N-1) latencies, 0.7 s with 8 workers, and lose
clearly. What wins on such networks is gossip of fewer bits: CHOCO with signs
and PowerGossip.

CHOCO and PowerGossip are not in the paper. With them the methods differ by
slightly more than 12 % at 1.4 Gbit/s and 0.13 ms."""

GRID_CHECK = """\
The corners of the grid, simulated; in brackets the formula's difference."""

CHOCO_TEXT = """\
ResNet-50 on 8 machines, 10 Gbit/s, 0.1 ms (assumed). The paper reports about
20 % less time with signs. The computation is assumed as well: 0.58 s is that of
128 images on a P100, about 220 images/s. The last three columns overlap both
with the computation, the all-reduce in buckets as PyTorch does. CHOCO then
gains little, so the published gain is one over an all-reduce that is not
overlapped."""

POWERSGD_TEXT = """\
16 workers, 10 Gbit/s, 0.1 ms (assumed); milliseconds a batch. *network* is the
computation, fitted on rank 1, plus the exchanges. *compression* adds {each:.2f}
ms for each matrix and rank, fitted on rank 4 of ResNet-18; ResNet-18 has 21
matrices and the LSTM 7. Rank 7 is simulated. Rank 7 and the signs are from
other tables of the paper."""

POWERSGD_WHY = """\
**Where it disagrees.** The published times of ResNet-18 grow by 10 ms a rank,
the exchanges by 0.2 ms. The difference must be compression: probably the
orthogonalisation, column by column and matrix by matrix. One constant for it
gives ranks 2 and 7 within 3 %. The LSTM's times do not grow with the rank (131,
141, 134), so they contain noise of about 5 %. Neither column is within 6 %
everywhere: SGD on ResNet-18 took longer than computation and exchanges explain,
and more so if a part of rank 1's time is compression.

The signs, which every worker gathers, took far longer than their exchanges:
Signum on the LSTM 424 ms, of which 44 are exchanges. Probably this is the time
to unpack the messages of 16 workers, of 29 million values each. Step times of
such methods cannot be predicted from the network alone."""

SCALING_TEXT = """\
ResNet-20, 0.1 s of computation, 100 Mbit/s, 1 ms; milliseconds a step. Up to 64
workers it is simulated; beyond that, in italics, it is the formula. The 8-bit
all-reduce is not in `laconic plan`, so it ends at 64."""

SCALING_WHY = """\
Signs that every worker gathers take time in proportion to the number of
workers, and more than an exact all-reduce above 64 workers. The time of gossip
on a ring is constant; what grows there is the number of steps until all workers
agree."""


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1)
            + "|", *("| " + " | ".join(row) + " |" for row in rows), ""]


def spaced(text):
    """A setting as people write it: 5 Mbit."""
    return text.rstrip("MbitsmG") + " " + text.lstrip("0123456789.")


def claims_section(results):
    rows = [[c["source"], c["claim"], c["found"], f"**{c['verdict']}**"]
            for c in results["claims"]]
    return ["## Claims", "", CLAIMS, "",
            "| paper | claim | found | |", "|---|---|---|---|",
            *("| " + " | ".join(row) + " |" for row in rows), ""]


def grid_rows(cells, workers):
    times = index(cells)
    for bandwidth in unique(c["bandwidth"] for c in cells):
        for latency in unique(c["latency"] for c in cells):
            row = [times[workers, bandwidth, latency, m]
                   for m in PAPER + LATER]
            yield [f"{spaced(bandwidth)}/s, {spaced(latency)}", *(
                f"**{t:.3f}**" if t == min(row) else f"{t:.3f}" for t in row)]


def check_rows(cells):
    cells = [c for c in cells if errors([c])]
    for key in unique((c["workers"], c["bandwidth"], c["latency"])
                      for c in cells):
        row = {c["method"]: c for c in cells
               if (c["workers"], c["bandwidth"], c["latency"]) == key}
        yield [f"{key[0]}: {spaced(key[1])}/s, {spaced(key[2])}", *(
            f"{row[m]['simulated']:.3f} ({percent(errors([row[m]])[0], 2)})"
            for m in row)]


def grid_section(results):
    cells = results["grid"]
    lines = ["## The grid of DCD and ECD", "", GRID, ""]
    for workers in unique(c["workers"] for c in cells):
        lines += [f"### {workers} workers", "",
                  *table(["", *PAPER, *LATER], grid_rows(cells, workers))]
    methods = unique(c["method"] for c in cells if errors([c]))
    return [*lines, GRID_WHY, "", GRID_CHECK, "",
            *table(["workers", *methods], check_rows(cells))]


def choco_section(results):
    head = ["computation, s", "all-reduce, s", "CHOCO, s", "less time",
            "all-reduce overlapped, s", "CHOCO overlapped, s", "less time"]
    rows = [[f"{r['compute']:g}", f"{r['allreduce']:.3f}",
             f"{r['choco']:.3f}", f"{100 * saved(r):.1f} %",
             f"{r['allreduce_overlapped']:.3f}",
             f"{r['choco_overlapped']:.3f}",
             f"{100 * saved(r, 'allreduce_overlapped', 'choco_overlapped'):.1f}"
             " %"] for r in results["choco"]]
    return ["## CHOCO and all-reduce on ImageNet", "", CHOCO_TEXT, "",
            *table(head, rows)]


def powersgd_section(results):
    result = results["powersgd"]
    rows = []
    for r in result["rows"]:
        row = [MODELS[r["model"]], r["method"], f"{1e3 * r['published']:.0f}",
               f"{1e3 * r['network']:.1f}"]
        for column in ("formula", "with_compression"):
            row += [f"{1e3 * r[column]:.0f}", percent(difference(r, column))] \
                if r[column] is not None else ["", ""]
        rows.append(row)
    each = 1e3 * result["seconds_per_matrix_and_rank"]
    head = ["", "", "published", "exchanges", "network", "", "compression", ""]
    return ["## The times of PowerSGD", "", POWERSGD_TEXT.format(each=each),
            "", *table(head, rows), POWERSGD_WHY, ""]


def scaling_section(results):
    cells = results["scaling"]
    times = {(c["method"], c["workers"]): c for c in cells}
    counts = unique(c["workers"] for c in cells)

    def entry(method, workers):
        found = times.get((method, workers))
        if found is None:
            return ""
        if found["simulated"] is None:
            return f"*{1e3 * found['formula']:.1f}*"
        return f"{1e3 * found['simulated']:.1f}"
    rows = [[method, *(entry(method, w) for w in counts)]
            for method in unique(c["method"] for c in cells)]
    return ["## Scaling", "", SCALING_TEXT, "",
            *table(["workers", *map(str, counts)], rows), SCALING_WHY, ""]


def introduction(results):
    slowest = 1e3 * max(results["compression"].values())
    cpu = results["machine"]
    return INTRODUCTION.format(
        compression=slowest,
        machine=textwrap.fill(
            f"{cpu['processor']}, {cpu['processors']} processors, "
            f"{results['date']}, sources of commit {results['commit']}. "
            "Step times do not depend on the machine.", 80))


def text(results):
    return "\n".join([
        "# Step times on many networks", "", introduction(results), "",
        "![Step time by bandwidth, latency and workers](networks.png)", "",
        *claims_section(results), *grid_section(results),
        *choco_section(results), *powersgd_section(results),
        *scaling_section(results)])


COLOURS = {"all-reduce": "black", "8-bit all-reduce": "tab:gray",
           "D-PSGD": "tab:blue", "DCD, 8 bit": "tab:orange",
           "ECD, 16 bit": "tab:red", "CHOCO, sign": "tab:green",
           "PowerGossip": "tab:purple", "PowerSGD, rank 2": "tab:brown",
           "error-feedback, sign": "tab:pink"}


def number(setting):
    """The value of a setting, in Mbit/s or ms."""
    value = float(setting.rstrip("Mbitsm G"))
    return 1e3 * value if setting.endswith("Gbit") else value


def draw(axis, cells, x):
    """A line a method; dots where the real program was simulated."""
    for method in unique(c["method"] for c in cells):
        points = [(x(c), c) for c in cells if c["method"] == method]
        axis.plot([p for p, _ in points], [seconds(c) for _, c in points],
                  color=COLOURS[method], linewidth=1.4, label=method)
        axis.plot([p for p, c in points if c["simulated"] is not None],
                  [c["simulated"] for _, c in points
                   if c["simulated"] is not None],
                  "o", color=COLOURS[method], markersize=4)


def panels(results):
    grid = [c for c in results["grid"] if c["workers"] == 8]

    def bandwidth(c):
        return number(c["bandwidth"])

    def latency(c):
        return number(c["latency"])
    return [
        ([c for c in grid if c["latency"] == NEAR], bandwidth,
         "8 workers, 0.13 ms", "bandwidth, Mbit/s"),
        ([c for c in grid if c["latency"] == FAR], bandwidth,
         "8 workers, 50 ms", "bandwidth, Mbit/s"),
        ([c for c in grid if c["bandwidth"] == FAST], latency,
         "8 workers, 1.4 Gbit/s", "latency, ms"),
        (results["scaling"], lambda c: c["workers"],
         "100 Mbit/s, 1 ms", "workers")]


def plot(results, path):
    try:
        import matplotlib
    except ImportError:
        print("networks.py: matplotlib is missing (Debian: "
              "python3-matplotlib), networks.png is not written",
              file=sys.stderr)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 8.4))
    for axis, (cells, x, title, label) in zip(axes.flat, panels(results)):
        draw(axis, cells, x)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(ticker.NullFormatter())
        axis.set_title(title)
        axis.set_xlabel(label)
        axis.set_ylabel("seconds a step")
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=8)
    axes[1, 1].legend(fontsize=8)
    figure.suptitle("ResNet-20, 0.1 s of computation: lines by the formula, "
                    "dots by simulation", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
