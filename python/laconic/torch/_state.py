# SPDX-License-Identifier: MIT
"""What ``state_dict`` returns: an entry for the rank of this worker.

An entry has tensors, numbers and text only, so that it loads with
``torch.load(..., weights_only=True)``.
"""
from __future__ import annotations

from typing import Any, Dict, Mapping

import torch

from .. import InvalidError

_VERSION = 1


def pack(rank: int, saved: bytes, **more: Any) -> Dict[str, Any]:
    """Return the state of one rank."""
    # torch has no buffer without bytes.
    state = (torch.frombuffer(bytearray(saved), dtype=torch.uint8) if saved
             else torch.empty(0, dtype=torch.uint8))
    return {f"rank{rank}": {"version": _VERSION, **more, "state": state}}


def unpack(what: str, state: Any, rank: int, *, any_rank: bool = False,
           hint: str = "") -> Mapping[str, Any]:
    """Return the entry of a rank, or that of another with ``any_rank``.

    Its "state" is bytes again. Raises InvalidError for what ``pack`` does not
    return, with a hint if the rank is missing.
    """
    if not isinstance(state, Mapping):
        raise InvalidError(f"{what}: the state is a {type(state).__name__}, "
                           "expected what state_dict returned")
    own = f"rank{rank}"
    entry = state.get(own)
    if entry is None and any_rank:
        entry = next(iter(state.values()), None)
    if entry is None:
        found = ", ".join(map(str, state)) or "no ranks"
        raise InvalidError(
            f"{what}: the state has {found}, expected {own}{hint}")
    return _checked(what, entry)


def _checked(what: str, entry: Any) -> Mapping[str, Any]:
    version = entry.get("version") if isinstance(entry, Mapping) else None
    if version != _VERSION:
        raise InvalidError(f"{what}: the state has version {version}, "
                           f"expected {_VERSION}")
    values = entry.get("state")
    if not isinstance(values, torch.Tensor) or values.dtype != torch.uint8:
        found = getattr(values, "dtype", type(values).__name__)
        raise InvalidError(f"{what}: the state is of {found}, expected a "
                           "tensor of torch.uint8")
    return {**entry, "state": values.cpu().numpy().tobytes()}
