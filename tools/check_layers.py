#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail when a file includes a header of a layer that it may not use.

A layer of the library may use itself and the layers before it. A layer of the
command may use itself, the layers of the command before it, and the public
headers of the library.
usage: check_layers.py ROOT
"""
import pathlib
import re
import sys

LIBRARY = ["base", "kernels", "compress", "topology", "transport",
           "collective", "algorithm"]
COMMAND = ["nn", "data", "train", "cli"]
LAYERS = LIBRARY + COMMAND
# Public headers whose name is not that of their layer.
PUBLIC = {"version": "base", "status": "base", "plugin": "base",
          "random": "base", "layout": "base", "tcp": "transport",
          "exchange": "collective"}
QUOTED = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
ANGLED = re.compile(r'^\s*#\s*include\s+<laconic/(\w+)\.h>')


def allowed(own, used):
    """Return whether layer `own` may include private headers of `used`."""
    if own in COMMAND:
        return used in COMMAND and COMMAND.index(used) <= COMMAND.index(own)
    return used in LIBRARY and LIBRARY.index(used) <= LIBRARY.index(own)


def public_problem(own, header):
    layer = PUBLIC.get(header, header)
    if header == "laconic":
        if own in LIBRARY:
            return "the library includes the headers of its layers instead"
        return None
    if layer not in LIBRARY:
        return f"laconic/{header}.h belongs to no layer"
    if own in LIBRARY and LIBRARY.index(layer) > LIBRARY.index(own):
        return f"{own} may not include {layer}"
    return None


def private_problem(own, included):
    used = included.split("/")[0]
    if "/" not in included or used not in LAYERS:
        return f'"{included}" does not begin with a layer'
    if own in COMMAND and used in LIBRARY:
        return f"{own} may use the public headers only, not {used}"
    if not allowed(own, used):
        return f"{own} may not include {used}"
    return None


def problems_of(path, own, public):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        quoted, angled = QUOTED.match(line), ANGLED.match(line)
        problem = None
        if quoted and public:
            problem = "a public header includes public headers only"
        elif quoted:
            problem = private_problem(own, quoted.group(1))
        elif angled:
            problem = public_problem(own, angled.group(1))
        if problem:
            yield f"{path}:{number}: {problem}"


def problems(root):
    files = 0
    for path in sorted((root / "src").glob("*/**/*")):
        if path.suffix not in (".c", ".h", ".def"):
            continue
        files += 1
        own = path.relative_to(root / "src").parts[0]
        if own not in LAYERS:
            yield f"{path}: {own} is not a layer"
        else:
            yield from problems_of(path, own, False)
    for path in sorted((root / "include" / "laconic").glob("*.h")):
        files += 1
        if path.stem != "laconic":
            own = PUBLIC.get(path.stem, path.stem)
            if own not in LIBRARY:
                yield f"{path}: belongs to no layer"
            else:
                yield from problems_of(path, own, True)
    if files == 0:
        yield f"{root}: no sources found"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(1 if found else 0)
