#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Advise on source files of more than 1000 lines, which may have two subjects,
and on lines of more than 80 columns.

usage: check_sizes.py ROOT
"""
import pathlib
import sys

FOLDERS = ["src", "include", "tests", "fuzz", "examples", "bench",
           "python", "experiments", "tools", "cmake"]
SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".f90", ".def", ".in", ".py", ".sh",
            ".cmake"}
LINES_MAX = 1000
COLUMNS_MAX = 80


def sources(root):
    yield from (root / "Makefile", root / "CMakeLists.txt")
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("**/*")):
            if path.suffix in SUFFIXES or path.name == "CMakeLists.txt":
                yield path


def advice(root):
    for path in sources(root):
        lines = path.read_text().splitlines()
        if len(lines) > LINES_MAX:
            yield (f"{path}: {len(lines)} lines, more than {LINES_MAX}: "
                   "does it have two subjects?")
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS_MAX:
                yield (f"{path}:{number}: {len(line)} columns, "
                       f"more than {COLUMNS_MAX}")


if __name__ == "__main__":
    sys.stdout.writelines(
        f"{found}\n" for found in advice(pathlib.Path(sys.argv[1])))
