#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Print the minutes that the steps of `make test` and `make check` took.

usage: record_steps.py [--write]

Reads build/steps.txt, where tools/step.sh adds a line for each step, and takes
the last time of a step. --write replaces the table in CONTRIBUTING.md.
"""
import argparse
import datetime
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
# What a step does is in the Makefile, as the comment of its target.
ABOUT = re.compile(r"^([a-z0-9-]+):.*?#+ (.*)$", re.M)
BUILD = {"build": "build everything for `make test`"}


def steps():
    """Names and seconds, in the order in which the steps ended."""
    times = {}
    for line in (ROOT / "build" / "steps.txt").read_text().splitlines():
        name, seconds = line.split()
        times.pop(name, None)
        times[name] = int(seconds)
    return times


def rows(times):
    about = {**dict(ABOUT.findall((ROOT / "Makefile").read_text())), **BUILD}
    yield "| step | minutes | |"
    yield "| --- | ---: | --- |"
    for name, seconds in times.items():
        what = about.get(name, "")
        yield f"| {name} | {seconds / 60:.1f} | {what} |"
    yield f"| all | {sum(times.values()) / 60:.1f} | |"


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", text)
    return f"{model.group(1) if model else 'unknown'}, {os.cpu_count()} cores"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--write", action="store_true",
                        help="replace the table in CONTRIBUTING.md")
    options = parser.parse_args()
    table = "\n".join(rows(steps()))
    print(table)
    if options.write:
        today = datetime.date.today().isoformat()
        PAGE.write_text(re.sub(
            r"(<!-- begin steps -->\n).*?(<!-- end steps -->)",
            lambda match: f"{match[1]}{machine()}, {today}.\n\n{table}\n"
                          f"{match[2]}", PAGE.read_text(), flags=re.S))


if __name__ == "__main__":
    main()
