#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make the report of the runs of lenet.py, and a picture of its beginning.

usage: report.py LACONIC [--runs DIR] [--page FILE.html] [--picture FILE.png]

The page is DIR/report.html and the picture report.png beside this file, unless
they are named. The picture needs Chromium.
"""
import argparse
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "cli")]
sys.dont_write_bytecode = True
from browser import Browser, CHROMIUM
from lenet import RUNS, slug

WIDTH, HEIGHT = 1400, 1500


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("laconic")
    parser.add_argument("--runs", type=pathlib.Path, default=HERE / "runs")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--picture", type=pathlib.Path,
                        default=HERE / "report.png")
    args = parser.parse_args()
    page = args.page or args.runs / "report.html"
    folders = [args.runs / slug(label) for _, label, _, _ in RUNS]
    subprocess.run([args.laconic, "report", *map(str, folders), "--out",
                    str(page)], check=True)
    if not CHROMIUM:
        sys.exit("report.py: chromium is missing, no picture is written")
    with Browser() as browser:
        browser.open(page, width=WIDTH, height=HEIGHT)
        browser.picture(args.picture)


if __name__ == "__main__":
    main()
