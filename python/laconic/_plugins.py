# SPDX-License-Identifier: MIT
"""What the library has: compressors, algorithms, topologies, transports."""
from __future__ import annotations

import ctypes
import math
from ctypes import byref, c_size_t
from typing import Any, List, NamedTuple, Optional, Tuple

from . import _ffi
from ._ffi import lib, text


class Param(NamedTuple):
    """One setting of a plug-in."""

    name: str
    type: str
    default: str
    min: Optional[float]       #: None where there is none
    max: Optional[float]
    choices: Tuple[str, ...]   #: words that are accepted
    help: str


class Plugin(NamedTuple):
    """A compressor, algorithm, topology or transport, and its settings."""

    name: str
    summary: str
    params: Tuple[Param, ...]


def _param(param: Any) -> Param:
    kind = _ffi.PARAM_TYPES[param.type]
    numeric = kind in ("u32", "f64", "f64 or word")
    low, high = [
        limit if numeric and math.isfinite(limit) else None
        for limit in (param.min, param.max)]
    choices = text(param.choices)
    return Param(text(param.name), kind, text(param.default_value), low, high,
                 tuple(choices.split("|")) if choices else (),
                 text(param.help))


def _params(plugin: Any) -> Tuple[Param, ...]:
    found = []
    address = plugin.params
    # The table of a later library has longer entries; 0 means as here.
    size = plugin.param_size or ctypes.sizeof(_ffi.Param)
    while address:
        param = _ffi.Param.from_address(address)
        if param.name is None:
            break
        found.append(_param(param))
        address += size
    return tuple(found)


def _table(function: Any) -> List[Plugin]:
    count = c_size_t()
    table = function(byref(count))
    plugins = [table[i].contents for i in range(count.value)]
    return [Plugin(text(p.name), text(p.summary), _params(p))
            for p in plugins]


def compressors() -> List[Plugin]:
    """Return all compressors.

    >>> [c.name for c in compressors()][:3]
    ['identity', 'half', 'bfloat16']
    >>> next(c for c in compressors() if c.name == "low-rank").params[0].name
    'rank'
    """
    return _table(lib.lac_compressors)


def algorithms() -> List[Plugin]:
    """Return all algorithms.

    >>> "powersgd" in [a.name for a in algorithms()]
    True
    """
    return _table(lib.lac_algorithms)


def topologies() -> List[Plugin]:
    """Return all topologies.

    >>> "ring" in [t.name for t in topologies()]
    True
    """
    return _table(lib.lac_topologies)


def transports() -> List[Plugin]:
    """Return all transports.

    >>> [t.name for t in transports()]
    ['local', 'mpi', 'tcp']
    """
    return _table(lib.lac_transports)
