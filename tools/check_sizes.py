#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail when a source file has 600 lines or more, or a line of more than 80
columns.

usage: check_sizes.py ROOT
"""
import pathlib
import sys

FOLDERS = ["src", "include", "tests", "fuzz", "examples", "bench",
           "python", "experiments", "tools", "cmake"]
SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".f90", ".def", ".in", ".py", ".sh",
            ".cmake"}
LINES_BELOW = 600
COLUMNS_MAX = 80


def sources(root):
    yield from (root / "Makefile", root / "CMakeLists.txt")
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("**/*")):
            if path.suffix in SUFFIXES or path.name == "CMakeLists.txt":
                yield path


def problems(root):
    for path in sources(root):
        lines = path.read_text().splitlines()
        if len(lines) >= LINES_BELOW:
            yield f"{path}: {len(lines)} lines, expected below {LINES_BELOW}"
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS_MAX:
                yield (f"{path}:{number}: {len(line)} columns, "
                       f"at most {COLUMNS_MAX}")


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(1 if found else 0)
