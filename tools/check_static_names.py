#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Advise on static functions whose name several source files define.

A backtrace and a profile show the bare name. Where that confuses, the word of
the file helps as a prefix: local_allocate, not allocate.
usage: check_static_names.py ROOT
"""
import collections
import pathlib
import re
import sys

from check_banned import code_of

# The body follows the parameters; a declaration ends with a semicolon.
DEFINITION = re.compile(
    r"^static\s[^;{}()=]*?\b(\w+)\s*\(([^;{}]*)\)\s*\{", re.M)


def definitions(root):
    """Where each name is defined: name to a list of (path, line)."""
    places = collections.defaultdict(list)
    for path in sorted((root / "src").glob("**/*.c")):
        code = code_of(path.read_text())
        for match in DEFINITION.finditer(code):
            line = code.count("\n", 0, match.start(1)) + 1
            places[match.group(1)].append((path, line))
    return places


def advice(root):
    for name, found in sorted(definitions(root).items()):
        files = len({path for path, _ in found})
        if files > 1:
            for path, line in found:
                yield (f"{path}:{line}: {name} is static in {files} files; "
                       "the word of the file may help as a prefix")


if __name__ == "__main__":
    sys.stdout.writelines(
        f"{found}\n" for found in advice(pathlib.Path(sys.argv[1])))
