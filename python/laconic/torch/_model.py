# SPDX-License-Identifier: MIT
"""The parameters of a model and the names that a layout has for them."""
from __future__ import annotations

from typing import Dict

import torch

from .. import InvalidError, _ffi
from .._layout import escape

#: The types of values that the library takes.
DTYPES: Dict[torch.dtype, int] = {
    torch.float32: _ffi.F32,
    torch.float16: _ffi.F16,
    torch.bfloat16: _ffi.BF16,
    torch.float64: _ffi.F64,
}

_COMPILED = "_orig_mod."
_WRAPPED = "module."


def parameters_by_name(
        model: torch.nn.Module) -> Dict[str, torch.nn.Parameter]:
    """Return the parameters that are trained, sorted by name.

    A model has the same names with and without DistributedDataParallel,
    DataParallel and torch.compile around it. A tied parameter has the first of
    its names.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, expected a "
                        "torch.nn.Module")
    found = {name.replace(_COMPILED, ""): parameter
             for name, parameter in model.named_parameters()}
    while found and all(name.startswith(_WRAPPED) for name in found):
        found = {name[len(_WRAPPED):]: p for name, p in found.items()}
    trained = {escape(name): p for name, p in sorted(found.items())
               if p.requires_grad}
    if not trained:
        raise InvalidError("the model has no parameters that are trained")
    for name, parameter in trained.items():
        check_dtype(name, parameter)
    return trained


def check_dtype(name: str, values: torch.Tensor) -> None:
    """Raise for a tensor whose values the library does not take."""
    if values.dtype not in DTYPES:
        raise InvalidError(
            f"{name} has dtype {values.dtype}, expected "
            f"{', '.join(str(dtype) for dtype in DTYPES)}")
