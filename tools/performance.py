#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure with `laconic bench` and write the tables of docs/performance.md.

usage: performance.py LACONIC [RUNS]

Run it on a machine that does nothing else. The text around the tables, between
the comments that say `begin` and `end`, stays as it is.
"""
import datetime
import json
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "performance.md"

# What was aimed at with AVX2, in memcpys: (spec, key) to the aim.
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


# Settings that are known to be slow.
SLOW = ["dithering:levels=1000,bucket=512", "dithering", "top-k:0.1",
        "top-k:0.5", "low-rank:rank=4"]


def measure(laconic, kernels, runs, specs):
    """Three times over; of each figure the median one counts."""
    results = [
        json.loads(subprocess.run(
            [laconic, "bench", "--json", "--kernels", kernels, "--runs",
             str(runs), *specs],
            check=True, capture_output=True, text=True).stdout)
        for _ in range(3)]
    merged = results[0]
    merged["memcpy_gbps"] = sorted(r["memcpy_gbps"] for r in results)[1]
    for i, row in enumerate(merged["compressors"]):
        for key in row:
            if isinstance(row[key], float):
                row[key] = sorted(
                    r["compressors"][i][key] for r in results)[1]
    return merged


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", text).group(1)
    return f"{model}, {text.count('processor')} cores"


def cell(row, key, kernels):
    ratio = row[f"{key}_memcpys"]
    aim = AIMS.get((row["spec"], key)) if kernels == "avx2" else None
    text = f"{ratio:.2f}"
    return text if aim is None else f"**{text}** (aim {aim})"


def table(result):
    today = datetime.date.today().isoformat()
    bytes_copied = 4e-9 * result["values"]
    lines = [
        f"{machine()}, {result['kernels']} kernels, one thread, {today}. "
        f"memcpy of {result['values']:,} floats: "
        f"{1e3 * bytes_copied / result['memcpy_gbps']:.1f} ms "
        f"({result['memcpy_gbps']:.1f} GB/s of floats).",
        "",
        "| compressor | bits a value | encode | decode-add | with memory "
        "| break-even Gbit/s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in result["compressors"]:
        even = row.get("break_even_mbit")
        lines.append(
            f"| {row['spec']} | {row['bits_per_value']:.2f} "
            f"| {cell(row, 'encode', result['kernels'])} "
            f"| {cell(row, 'decode_add', result['kernels'])} "
            f"| {cell(row, 'encode_add', result['kernels'])} "
            f"| {'-' if even is None else format(even / 1000, '.1f')} |")
    return "\n".join(lines)


def main():
    laconic = sys.argv[1]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    page = PAGE.read_text()
    for name, kernels, specs in (
            ("avx2", "avx2", []), ("slow", "avx2", SLOW),
            ("portable", "portable", [])):
        text = table(measure(laconic, kernels, runs, specs))
        page = re.sub(
            rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)",
            lambda match: match.group(1) + text + "\n" + match.group(2),
            page, flags=re.S)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
