# SPDX-License-Identifier: MIT
"""Finds and loads the shared library.

The first of these that exists is loaded:

1. the file that the environment variable ``LACONIC_LIBRARY`` names;
2. ``lib/liblaconic.so.0`` in the folder of this package, where a wheel has it;
3. ``liblaconic.so.0`` where the dynamic loader finds it.

The library loads its modules (tcp, MPI) from its own folder.
"""
from __future__ import annotations

import ctypes
import os
import pathlib

NAME = "liblaconic.so.0"
VARIABLE = "LACONIC_LIBRARY"


def find() -> str:
    """Return the path of the library, or its name for the loader."""
    named = os.environ.get(VARIABLE)
    if named:
        return os.path.abspath(named)
    bundled = pathlib.Path(__file__).resolve().parent / "lib" / NAME
    return str(bundled) if bundled.exists() else NAME


def load() -> ctypes.CDLL:
    """Load the library. Raises ImportError that names the file."""
    path = find()
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        hint = ("" if path == NAME else
                f" ({VARIABLE} names it)" if os.environ.get(VARIABLE) else
                " (part of this package)")
        raise ImportError(
            f"laconic: cannot load {path}{hint}: {error}. Install laconic, "
            f"or set {VARIABLE} to the path of {NAME}", path=path) from error
