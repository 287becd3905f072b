#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure with `laconic bench` and record the results of this processor.

usage: performance.py LACONIC [RUNS]

Run it on an idle machine. It replaces, or adds, the section of this processor
in docs/performance.md and its line of the history there, which has a line for
each release and processor. The rest of the page stays as it is. The figures are
also written to docs/performance, as files for `laconic bench --compare`.
"""
import datetime
import json
import pathlib
import re
import statistics
import subprocess
import sys

DOCS = pathlib.Path(__file__).parent.parent / "docs"

# Aims of the best kernels, in memcpys of one worker: (spec, key) to the aim.
AIMS = {
    ("natural", "encode"): 0.8,
    ("natural", "decode_add"): 1.0,
    ("dithering:bucket=512,norm=inf", "encode"): 1.0,
    ("dithering:bucket=512,norm=2", "encode"): 1.1,
    ("dithering:bucket=512,norm=inf", "decode_add"): 0.8,
    ("dithering:bucket=512,norm=2", "decode_add"): 0.8,
    ("sign", "encode_add"): 0.85,
    ("top-k", "encode"): 2.0,
    ("rotated:4", "encode"): 2.0,
    ("rotated:4", "decode_add"): 1.5,
}
# Of whole steps: (spec, compressor) to the aim. Those of gossip algorithms are
# in memcpys of two workers at once.
QSGD = "dithering:bucket=512"
STEP_AIMS = {
    ("powersgd:rank=1", None): 2.1,
    ("powersgd:rank=2", None): 2.3,
    ("powersgd:rank=4", None): 2.8,
    ("signum", None): 2.5,
    ("compressed", "natural"): 2.4,
    ("error-feedback", "natural"): 2.2,
    ("dpsgd", None): 2.5,
    ("choco", "sign"): 2.5,
    ("choco", "top-k:0.01"): 2.3,
    ("deepsqueeze", "sign"): 2.8,
    ("dcd", QSGD): 2.8,
    ("ecd", QSGD): 4.0,
}

# Settings that are known to be slow.
SLOW = ["dithering:levels=1000,bucket=512", "dithering", "top-k:0.1",
        "top-k:0.5", "low-rank:rank=4", "rotated:1", "rotated:4"]

# Whole steps: the algorithms and their compressor.
STEPS = [
    (["powersgd:rank=1", "powersgd:rank=2", "powersgd:rank=4", "allreduce",
      "signum"], None),
    (["error-feedback", "compressed"], "natural"),
    (["error-feedback"], "sign"),
    (["error-feedback"], "top-k:0.01"),
    (["dpsgd", "powergossip"], None),
    (["choco", "deepsqueeze"], "sign"),
    (["choco"], "top-k:0.01"),
    (["dcd", "ecd"], QSGD),
]

# What several threads share: specs, compressor, and other options. The last is
# in the caches.
THREADS = 2
SHARED = [
    (["identity", "natural", QSGD], None, []),
    (["powersgd:rank=2", "dpsgd"], None, []),
    (["choco", "error-feedback"], "natural", []),
    (["identity", "natural", QSGD], None, ["--values", "1000000"]),
]

# What the history shows: its heading, and the spec, compressor and key.
HISTORY = [
    ("natural, encode", "natural", None, "encode_memcpys"),
    ("sign, with memory", "sign", None, "encode_add_memcpys"),
    ("powersgd:rank=2", "powersgd:rank=2", None, "memcpy_ratio"),
    ("dpsgd", "dpsgd", None, "memcpy_ratio"),
    ("choco with sign", "choco", "sign", "memcpy_ratio"),
]

KINDS = "compressors", "algorithms"
DIGITS = 5  # of a figure in a file


def bench(laconic, kernels, runs, specs, compressor=None, more=()):
    extra = [] if compressor is None else ["--compressor", compressor]
    return json.loads(subprocess.run(
        [laconic, "bench", "--json", "--kernels", kernels, "--runs",
         str(runs), *extra, *more, *specs],
        check=True, stdout=subprocess.PIPE, text=True).stdout)


def is_figure(key):
    return key == "ms" or key.endswith(("_memcpys", "_gbps", "_ratio", "_mbit"))


def merge(results):
    """Each figure becomes the median of all calls; `KEY_range` has the smallest
    and the largest."""
    merged = results[0]
    merged["memcpy_gbps"] = statistics.median(
        r["memcpy_gbps"] for r in results)
    merged["calls"] = len(results)
    for kind in KINDS:
        for i, row in enumerate(merged[kind]):
            for key in filter(is_figure, list(row)):
                figures = [r[kind][i][key] for r in results]
                if None not in figures:
                    row[key] = statistics.median(figures)
                    row[key + "_range"] = min(figures), max(figures)
    return merged


def measure(laconic, runs):
    """The results by the name of their table; of steps a list."""
    def calls(count, *words):
        return merge([bench(laconic, *words) for _ in range(count)])

    def threads(count, specs, compressor, more):
        return calls(3, "best", runs, specs, compressor,
                     ["--threads", str(count), *more])

    return {
        "threads": [(threads(1, *what), threads(THREADS, *what))
                    for what in SHARED],
        "usual": calls(5, "best", runs, []),
        "steps": [calls(3, "best", runs, *step) for step in STEPS],
        "slow": calls(3, "best", runs, SLOW),
        "portable": calls(3, "portable", runs, []),
    }


def processor(result):
    name, number = result["processor"], result["processor_id"]
    return f"{name} ({number})" if number else name


def slug(result):
    """The name of the processor as that of a file."""
    name = re.sub(r"\((r|tm)\)", " ", result["processor"], flags=re.I)
    return "-".join(re.findall(
        r"[a-z0-9]+", f"{name} {result['processor_id']}".lower()))


def saved(date, *results):
    """The results as one file for `laconic bench --compare`."""
    def rounded(row):
        return {key: float(f"{value:.{DIGITS}g}")
                if is_figure(key) and value is not None else value
                for key, value in row.items() if not key.endswith("_range")}

    file = {"date": date, **rounded(results[0])}
    for kind in KINDS:
        file[kind] = [rounded(row) for r in results for row in r[kind]]
    return file


def with_aim(row, key, aim):
    """Bold if the aim is missed."""
    text = f"{row[key]:.2f}"
    if aim is None:
        return text
    low, high = row[key + "_range"]
    text = f"{text} (aim {aim}; {low:.2f} to {high:.2f})"
    return f"**{text}**" if row[key] > aim else text


def heading(result, values):
    gbps = result["memcpy_gbps"]
    return (f"{result['kernels']} kernels "
            f"{'with' if result['prefetch'] else 'without'} prefetch, medians "
            f"of {result['calls']} calls of {result['runs']} runs each. memcpy "
            f"of {values:,} floats: {4e-6 * values / gbps:.1f} ms "
            f"({gbps:.1f} GB/s of floats).")


def break_even(row):
    even = row.get("break_even_mbit")
    return "-" if even is None else format(even / 1000, ".1f")


def compressor_table(result, aims):
    lines = [
        heading(result, result["values"]),
        "",
        "| compressor | bits per value | encode | decode-add | with memory "
        "| break-even Gbit/s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in result["compressors"]:
        cells = [with_aim(row, key + "_memcpys", aims.get((row["spec"], key)))
                 for key in ("encode", "decode_add", "encode_add")]
        lines.append(
            f"| {row['spec']} | {row['bits_per_value']:.2f} "
            f"| {' | '.join(cells)} | {break_even(row)} |")
    return "\n".join(lines)


def step_table(results):
    values = results[0]["algorithms"][0]["values"]
    lines = [heading(results[0], values), "",
             "| whole step of | memcpys | ms | break-even Gbit/s |",
             "| --- | --- | --- | --- |"]
    for row in (row for r in results for row in r["algorithms"]):
        spec, compressor = row["spec"], row["compressor"]
        name = spec if compressor is None else f"{spec} with {compressor}"
        ratio = with_aim(row, "memcpy_ratio", STEP_AIMS.get((spec, compressor)))
        lines.append(f"| {name} | {ratio} | {row['ms']:.1f} "
                     f"| {break_even(row)} |")
    return "\n".join(lines)


def thread_table(pairs):
    """What several threads gain over one, measured one after the other."""
    def row(name, n, unit, before, after, gain):
        return (f"| {name} | {n:,} | {before:.1f} {unit} | {after:.1f} {unit} "
                f"| {gain:.2f} |")

    lines = [f"| | values | 1 thread | {THREADS} threads | gain |",
             "| --- | ---: | ---: | ---: | ---: |"]
    for one, several in pairs:
        for a, b in zip(one["compressors"], several["compressors"]):
            for key, words in ("encode", "encode"), ("decode_add",
                                                     "decode-add"):
                before, after = a[key + "_gbps"], b[key + "_gbps"]
                lines.append(row(f"{a['spec']}, {words}", one["values"],
                                 "GB/s", before, after, after / before))
        for a, b in zip(one["algorithms"], several["algorithms"]):
            name = a["spec"] if a["compressor"] is None \
                else f"{a['spec']} with {a['compressor']}"
            lines.append(row(name, a["values"], "ms", a["ms"], b["ms"],
                             a["ms"] / b["ms"]))
    return "\n".join(lines)


def section(results, date):
    first = results["usual"]
    return f"""### {processor(first)}

{first['processors']} cores, laconic {first['version']}, {date}. Compare with

    build/laconic bench --compare docs/performance/{slug(first)}.json
    build/laconic bench --compare docs/performance/{slug(first)}-portable.json

#### Compressors

{compressor_table(first, AIMS)}

#### Whole steps

{step_table(results["steps"])}

#### Threads

The encode of `identity` is a copy: what the memory allows.

{thread_table(results["threads"])}

#### Settings that are slow

{compressor_table(results["slow"], AIMS)}

#### Portable C

{compressor_table(results["portable"], {})}"""


def history_line(file):
    def figure(spec, compressor, key):
        row, = [row for kind in KINDS for row in file[kind] if
                (row["spec"], row.get("compressor")) == (spec, compressor)]
        return f"{row[key]:.2f}"

    return " | ".join([
        f"| {file['version']} | {file['date']} | {processor(file)}",
        *(figure(*what) for _, *what in HISTORY)]) + " |"


def cells(line):
    return [cell.strip() for cell in line.split("|")[1:-1]]


def between(page, name, change):
    """Replaces the text between the comments `begin NAME` and `end NAME`."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        sys.exit(f"performance.md: expected one comment \"begin {name}\" and "
                 f"one \"end {name}\"")
    before, _, rest = page.partition(begin)
    text, _, after = rest.partition(end)
    return before + begin + change(text) + end + after


def with_section(page, name, text):
    """The page with the section of a processor, the last one if it is new."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    if begin in page:
        return between(page, name, lambda _: text + "\n")
    return between(page, "processors", lambda all_of_them: (
        f"{all_of_them}{begin}{text}\n{end}"))


def with_history(page, line):
    """The page with a line of the history: in place of the one of the same
    release and processor, or the last one."""
    def key(entry):
        release, _, machine, *_ = cells(entry)
        return release, machine

    def change(table):
        lines = table.splitlines()
        keys = [key(entry) for entry in lines]
        at = keys.index(key(line)) if key(line) in keys else len(lines)
        lines[at:at + 1] = [line]
        return "".join(f"{entry}\n" for entry in lines)

    return between(page, "history", change)


def record(laconic, runs, docs, date):
    page = docs / "performance.md"
    for name in "processors", "history":  # before the long measurement
        between(page.read_text(), name, str)
    results = measure(laconic, runs)
    first, portable = results["usual"], results["portable"]
    files = {
        f"{slug(first)}.json":
            saved(date, first, results["slow"], *results["steps"]),
        f"{slug(first)}-portable.json": saved(date, portable),
    }
    text = with_section(page.read_text(), f"processor {slug(first)}",
                        section(results, date))
    text = with_history(text, history_line(files[f"{slug(first)}.json"]))
    (docs / "performance").mkdir(exist_ok=True)
    for name, file in files.items():
        (docs / "performance" / name).write_text(
            json.dumps(file, indent=1) + "\n")
    page.write_text(text)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    record(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7, DOCS,
           datetime.date.today().isoformat())
