#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail when a wire id is missing, renumbered, reused or assigned twice.

The golden file lists the ids that existing payloads may contain. Each must be
in the .def with the same name. The id of a compressor that is not yet in the
golden file must be larger than all ids there.
usage: check_wire_ids.py DEF GOLDEN
"""
import pathlib
import re
import sys

LINE = re.compile(r"^LAC_COMPRESSOR\((\d+), (\w+)\)", re.M)


def read_golden(path):
    pairs = []
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            pairs.append((int(words[0]), words[1]))
    return pairs


def twice(pairs, where):
    for index, kind in enumerate(("id", "name")):
        seen = set()
        for pair in pairs:
            if pair[index] in seen:
                yield f"{where}: {kind} {pair[index]} is assigned twice"
            seen.add(pair[index])


def problems(def_path, golden_path):
    built = [(int(number), name)
             for number, name in LINE.findall(def_path.read_text())]
    golden = read_golden(golden_path)
    if not golden:
        yield f"{golden_path}: lists no ids"
        return
    yield from twice(built, def_path)
    yield from twice(golden, golden_path)
    newest = max(number for number, _ in golden)
    for number, name in golden:
        if (number, name) not in built:
            yield f"{def_path}: {number} {name} was published and is missing"
    for number, name in built:
        if (number, name) not in golden and not newest < number < 256:
            yield (f"{def_path}: {number} {name} is new, its id must be in "
                   f"{newest + 1} to 255")


if __name__ == "__main__":
    found = list(problems(*map(pathlib.Path, sys.argv[1:3])))
    print("\n".join(found))
    sys.exit(1 if found else 0)
