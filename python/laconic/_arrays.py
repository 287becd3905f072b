# SPDX-License-Identifier: MIT
"""NumPy arrays as the library takes them: aligned, contiguous, native."""
from __future__ import annotations

from typing import Any, Dict

import numpy as np
import numpy.typing as npt

from . import _ffi

Array = npt.NDArray[Any]

# In both byte orders.
_DTYPES: Dict[Any, int] = {
    np.dtype(order + kind): code
    for kind, code in (("f4", _ffi.F32), ("f2", _ffi.F16), ("f8", _ffi.F64))
    for order in "<>"}


def dtype_of(array: Array, what: str) -> int:
    """Return the ``lac_dtype`` of an array, in either byte order."""
    code = _DTYPES.get(array.dtype)
    if code is None:
        raise _ffi.InvalidError(
            f"{what} has dtype {array.dtype}, expected float32, float64 or "
            "float16")
    return code


def _unmasked(value: Any, what: str) -> Array:
    if isinstance(value, np.ma.MaskedArray):
        raise _ffi.InvalidError(
            f"{what} is a masked array, expected one without a mask")
    return np.asarray(value)


def _ready(array: Array) -> bool:
    flags = array.flags
    return flags.c_contiguous and flags.aligned and array.dtype.isnative


def readable(value: Any, what: str) -> Array:
    """Return an array that the library can read: the same, or a copy."""
    array = _unmasked(value, what)
    dtype_of(array, what)
    if _ready(array):
        return array
    # ascontiguousarray would make a scalar one-dimensional.
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A"])


def floats(value: Any, what: str) -> npt.NDArray[np.float32]:
    """Return an array of float32, converted from the other types."""
    array = _unmasked(value, what)
    dtype_of(array, what)
    return np.require(array, np.float32, ["C", "A"])


def writable(array: Any, what: str) -> Array:
    """Check an array that the library writes to."""
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"{what} is a {type(array).__name__}, expected a NumPy array")
    dtype_of(_unmasked(array, what), what)
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise _ffi.InvalidError(
            f"{what} is not contiguous in C order; results cannot be written "
            "to it")
    if not array.flags.writeable:
        raise _ffi.InvalidError(f"{what} is read-only")
    if not array.dtype.isnative:
        raise _ffi.InvalidError(
            f"{what} has the byte order of another machine; results cannot "
            "be written to it")
    return array


def address(array: Array) -> int:
    """Return the address of the first value, faster than ``ctypes.data``."""
    return int(array.__array_interface__["data"][0])
