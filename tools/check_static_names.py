#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail when two source files define a static function of the same name.

A backtrace and a profile show the bare name. A name that several files define
gets the word of its file as a prefix: local_allocate, not allocate.
usage: check_static_names.py ROOT
"""
import collections
import pathlib
import re
import sys

from check_banned import code_of

# Names that several files may define, and why.
ALLOWED = {}

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


def problems(root):
    places = definitions(root)
    if not places:
        yield f"{root}: no static functions found"
    for name, found in sorted(places.items()):
        files = len({path for path, _ in found})
        if files > 1 and name not in ALLOWED:
            for path, line in found:
                yield (f"{path}:{line}: {name} is static in {files} files, "
                       "expected the word of its file as a prefix")


if __name__ == "__main__":
    problems_found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(problems_found))
    sys.exit(1 if problems_found else 0)
