# SPDX-License-Identifier: MIT
"""Prints versions, for reports of defects, and runs a self-test.

    python3 -m laconic [--json] [--check [--device DEVICE]]

The exit status is 0, 1 if the self-test failed, or 2 if it cannot run as asked.
"""
from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import sys
from typing import Any, Dict, List, Optional

from . import Compressor, UnsupportedError, __version__, _library, _selftest

FAILED, REFUSED = 1, 2


def installed(name: str) -> Optional[str]:
    """Return the version of an installed package, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def version_of(name: str) -> Optional[str]:
    """Return the version of a package that can be imported, or None.

    >>> version_of("no_such_package") is None
    True
    """
    try:
        return str(importlib.import_module(name).__version__)
    except ModuleNotFoundError as error:
        if error.name == name:
            return None
        return f"fails to import: {error}"
    except Exception as error:
        return f"fails to import: {type(error).__name__}: {error}"


def library_path() -> str:
    """Return the file that was loaded."""
    name = _library.find()
    try:
        with open("/proc/self/maps") as file:
            mapped = [line.split(None, 5)[-1].rstrip("\n") for line in file
                      if "liblaconic.so" in line]
    except OSError:
        mapped = []
    return mapped[0] if mapped else name


def kernels() -> str:
    """Return the name of the kernels for this machine."""
    with Compressor("sign") as compressor:
        return compressor.kernels


def versions() -> Dict[str, Any]:
    """Return what a report of a defect needs."""
    return {
        "laconic": installed("laconic"),
        "package path": os.path.dirname(os.path.abspath(__file__)),
        "library": __version__,
        "library path": library_path(),
        "kernels": kernels(),
        "Python": platform.python_version(),
        "NumPy": version_of("numpy"),
        "PyTorch": version_of("torch"),
        "mpi4py": version_of("mpi4py"),
        "platform": platform.platform(),
    }


def text_of(found: Dict[str, Any]) -> str:
    """Return versions as lines."""
    width = max(map(len, found))
    return "\n".join(f"{name:{width}}  {value or 'not installed'}"
                     for name, value in found.items())


def parse(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m laconic",
        description="Print versions, for reports of defects.")
    parser.add_argument("--json", action="store_true",
                        help="print a JSON object")
    parser.add_argument(
        "--check", action="store_true",
        help="average arrays between two processes over tcp; with PyTorch, "
        "also make steps of DDP with a Hook")
    parser.add_argument(
        "--device", help="the device of PyTorch's tensors in --check, such as "
        "cuda; cpu by default")
    options = parser.parse_args(arguments)
    if options.device is not None and not options.check:
        parser.error("--device needs --check")
    return options


def main(arguments: Optional[List[str]] = None) -> int:
    options = parse(arguments)
    found = versions()
    status = 0
    if not options.json:
        print(text_of(found), flush=True)
    if options.check:
        try:
            results = _selftest.run(options.device)
            status = 0 if results[-1].ok else FAILED
        except UnsupportedError as error:
            results = [_selftest.Result("self-test", False, str(error))]
            status = REFUSED
        found["check"] = [result._asdict() for result in results]
        if not options.json:
            print("\n".join(map(str, results)))
            print("ok" if status == 0 else "failed")
    if options.json:
        print(json.dumps(found, indent=2))
    return status


if __name__ == "__main__":
    sys.exit(main())
