#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure with `laconic bench` and write the tables of docs/performance.md.

usage: performance.py LACONIC [RUNS]

Run it on an idle machine. It replaces the text between the comments `begin` and
`end` and keeps the rest of the page.
"""
import datetime
import json
import pathlib
import re
import statistics
import subprocess
import sys

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "performance.md"

# Aims with AVX2, in memcpys: (spec, key) to the aim.
AIMS = {
    ("natural", "encode"): 0.8,
    ("natural", "decode_add"): 1.0,
    ("dithering:bucket=512,norm=inf", "encode"): 1.0,
    ("dithering:bucket=512,norm=2", "encode"): 1.1,
    ("dithering:bucket=512,norm=inf", "decode_add"): 0.8,
    ("dithering:bucket=512,norm=2", "decode_add"): 0.8,
    ("sign", "encode_add"): 0.9,
    ("top-k", "encode"): 2.0,
}
STEP_AIMS = {"powersgd:rank=1": 2.1, "powersgd:rank=2": 2.3,
             "powersgd:rank=4": 3.0}

# Settings that are known to be slow.
SLOW = ["dithering:levels=1000,bucket=512", "dithering", "top-k:0.1",
        "top-k:0.5", "low-rank:rank=4"]

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
    (["dcd", "ecd"], "dithering:bucket=512"),
]


def bench(laconic, kernels, runs, specs, compressor=None):
    extra = [] if compressor is None else ["--compressor", compressor]
    return json.loads(subprocess.run(
        [laconic, "bench", "--json", "--kernels", kernels, "--runs",
         str(runs), *extra, *specs],
        check=True, capture_output=True, text=True).stdout)


def merge(results, kind):
    """Each figure becomes the median of all calls; `KEY_range` has the smallest
    and the largest."""
    merged = results[0]
    merged["memcpy_gbps"] = statistics.median(
        r["memcpy_gbps"] for r in results)
    for i, row in enumerate(merged[kind]):
        for key in [k for k in row if isinstance(row[k], float)]:
            figures = [r[kind][i][key] for r in results]
            row[key] = statistics.median(figures)
            row[key + "_range"] = min(figures), max(figures)
    return merged


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", text).group(1)
    return f"{model}, {text.count('processor')} cores"


def with_aim(row, key, aim):
    low, high = row[key + "_range"]
    text = f"{row[key]:.2f}"
    return (text if aim is None else
            f"**{text}** (aim {aim}; {low:.2f} to {high:.2f})")


def heading(result, calls):
    today = datetime.date.today().isoformat()
    bytes_copied = 4e-9 * result["values"]
    return (f"{machine()}, {result['kernels']} kernels, {today}. Medians of "
            f"{calls} calls of {result['runs']} runs each. memcpy of "
            f"{result['values']:,} floats: "
            f"{1e3 * bytes_copied / result['memcpy_gbps']:.1f} ms "
            f"({result['memcpy_gbps']:.1f} GB/s of floats).")


def break_even(row):
    even = row.get("break_even_mbit")
    return "-" if even is None else format(even / 1000, ".1f")


def compressor_table(laconic, kernels, runs, calls, specs):
    result = merge([bench(laconic, kernels, runs, specs)
                    for _ in range(calls)], "compressors")
    lines = [
        heading(result, calls),
        "",
        "| compressor | bits per value | encode | decode-add | with memory "
        "| break-even Gbit/s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in result["compressors"]:
        cells = [
            with_aim(row, key + "_memcpys",
                     AIMS.get((row["spec"], key))
                     if result["kernels"] == "avx2" else None)
            for key in ("encode", "decode_add", "encode_add")]
        lines.append(
            f"| {row['spec']} | {row['bits_per_value']:.2f} "
            f"| {' | '.join(cells)} | {break_even(row)} |")
    return "\n".join(lines)


def step_table(laconic, runs, calls):
    lines = ["| whole step of | memcpys | ms | break-even Gbit/s |",
             "| --- | --- | --- | --- |"]
    for specs, compressor in STEPS:
        result = merge([bench(laconic, "avx2", runs, specs, compressor)
                        for _ in range(calls)], "algorithms")
        for row in result["algorithms"]:
            name = row["spec"]
            if compressor is not None:
                name += " with " + compressor
            ratio = with_aim(row, "memcpy_ratio", STEP_AIMS.get(row["spec"]))
            lines.append(f"| {name} | {ratio} | {row['ms']:.1f} "
                         f"| {break_even(row)} |")
    return "\n".join([heading(result, calls), "", *lines])


def main():
    laconic = sys.argv[1]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    tables = {
        "avx2": lambda: compressor_table(laconic, "avx2", runs, 5, []),
        "steps": lambda: step_table(laconic, runs, 3),
        "slow": lambda: compressor_table(laconic, "avx2", runs, 3, SLOW),
        "portable": lambda: compressor_table(
            laconic, "portable", runs, 3, []),
    }
    for name, table in tables.items():
        text = table()
        PAGE.write_text(re.sub(
            rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)",
            lambda match, text=text: match.group(1) + text + "\n"
            + match.group(2),
            PAGE.read_text(), flags=re.S))


if __name__ == "__main__":
    main()
