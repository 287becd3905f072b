# SPDX-License-Identifier: MIT
"""The parameters of a model and the names that a layout has for them."""
from __future__ import annotations

from typing import AbstractSet, Dict, Set, Tuple

import torch
from torch.nn.parallel import DistributedDataParallel

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
_IGNORED = "_ddp_params_and_buffers_to_ignore"
_WRAPPED = "module."


def check_model(model: torch.nn.Module) -> None:
    """Raise for what is no model."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, expected a "
                        "torch.nn.Module")


def parameters_by_name(
        model: torch.nn.Module,
        without: AbstractSet[int] = frozenset()
) -> Dict[str, torch.nn.Parameter]:
    """Return the parameters that are trained, sorted by name.

    A model has the same names with and without DistributedDataParallel,
    DataParallel and torch.compile around it. A tied parameter has the first of
    its names. Those whose id is in ``without`` are left out.
    """
    check_model(model)
    found = {name.replace(_COMPILED, ""): parameter
             for name, parameter in model.named_parameters()}
    while found and all(name.startswith(_WRAPPED) for name in found):
        found = {name[len(_WRAPPED):]: p for name, p in found.items()}
    trained = {escape(name): p for name, p in sorted(found.items())
               if p.requires_grad and id(p) not in without}
    if not trained:
        raise InvalidError("the model has no parameters that are trained")
    for name, parameter in trained.items():
        check_whole(name, parameter)
        check_dtype(name, parameter)
    return trained


def ignored_by_ddp(model: torch.nn.Module) -> Set[int]:
    """Return the ids of the parameters that DDP does not reduce.

    The model has an attribute for them, which DDP copies when it is made. DDP
    reduces a tied parameter unless all its names are ignored. Its name of a
    parameter of the model itself begins with a dot.
    """
    check_model(model)
    while "_orig_mod" in model._modules:
        model = model._modules["_orig_mod"]  # type: ignore[assignment]
    module, names = model, getattr(model, _IGNORED, ())
    if isinstance(model, DistributedDataParallel):
        module, names = model.module, model.parameters_to_ignore
    ignored: Set[int] = set()
    reduced: Set[int] = set()
    for prefix, part in module.named_modules():
        for name, parameter in part.named_parameters(recurse=False):
            found = ignored if f"{prefix}.{name}" in names else reduced
            found.add(id(parameter))
    return ignored - reduced


def check_whole(name: str, parameter: torch.Tensor) -> None:
    """Raise for a DTensor. Its type has moved between modules of torch, which
    are slow to import.
    """
    if any(kind.__name__ == "DTensor" for kind in type(parameter).__mro__):
        raise InvalidError(
            f"{name} is a DTensor, of which a worker may have a shard only "
            "(FSDP2, tensor parallelism), expected a whole tensor on every "
            "worker")


def check_dtype(name: str, values: torch.Tensor) -> None:
    """Raise for a tensor whose values the library does not take."""
    if values.dtype not in DTYPES:
        raise InvalidError(
            f"{name} has dtype {values.dtype}, expected "
            f"{', '.join(str(dtype) for dtype in DTYPES)}")


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the values lie side by side, in any order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size > 1:
            if stride != expected:
                return False
            expected *= size
    return True


def memory_shape(tensor: torch.Tensor) -> Tuple[int, ...]:
    """Return the shape for a layout: the sizes in the order of the memory.

    The rows are then the dimension that is slowest in memory. A tensor with
    gaps is copied, in the order of its dimensions.
    """
    if tensor.is_contiguous() or not is_dense(tensor):
        return tuple(tensor.shape)
    return tuple(size for _, size in sorted(
        zip(tensor.stride(), tensor.shape), reverse=True))
