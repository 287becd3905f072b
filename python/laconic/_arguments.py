# SPDX-License-Identifier: MIT
"""Checks of arguments that ctypes would convert without a check: it wraps
integers that are too large and ends text at a NUL.
"""
from __future__ import annotations

import math
import operator
from typing import Any, Sequence, Tuple, Union

from ._ffi import InvalidError, Shape

ShapeLike = Union[int, Sequence[int]]

# LAC_VALUES_MAX of a 64-bit machine.
_VALUES_MAX = (2**64 - 1) // 64


def number(value: Any, what: str, bits: int = 64) -> int:
    """Return a whole number that fits in ``bits`` bits, without a sign."""
    try:
        result = operator.index(value)
    except TypeError:
        raise TypeError(
            f"{what} is {value!r}, expected a whole number") from None
    if not 0 <= result < 2**bits:
        raise InvalidError(
            f"{what} is {result}, expected 0 to {2**bits - 1}")
    return result


def seconds(value: Any, what: str = "timeout") -> float:
    """Return a number of seconds above 0."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{what} is {value!r}, expected a number of seconds") from None
    if not result > 0 or math.isinf(result):
        raise InvalidError(f"{what} is {value} seconds, expected more than 0")
    return result


def c_text(value: str, what: str) -> bytes:
    """Return text as the library takes it."""
    kind(value, what, str)
    if "\0" in value:
        raise InvalidError(f"{what} contains a NUL character")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidError(
            f"{what} is {value!r}, expected UTF-8 text") from None


def kind(value: Any, what: str, expected: type) -> None:
    """Raise TypeError unless the value is of the expected class."""
    if not isinstance(value, expected):
        raise TypeError(f"{what} is a {type(value).__name__}, expected a "
                        f"{expected.__name__}")


def choice(value: str, what: str, choices: Sequence[str]) -> int:
    """Return the position of a word in a list."""
    if value not in choices:
        raise InvalidError(
            f"{what} is {value!r}, expected {', '.join(choices)}")
    return choices.index(value)


def dimensions(shape: ShapeLike, what: str = "shape") -> Tuple[int, ...]:
    """Return a shape as NumPy has it."""
    given: Any = shape
    try:
        return (number(operator.index(given), what),)
    except TypeError:
        pass
    try:
        sizes = [operator.index(size) for size in given]
    except TypeError:
        raise TypeError(
            f"{what} is {shape!r}, expected whole numbers") from None
    return tuple(number(size, what) for size in sizes)


def matrix(shape: ShapeLike, what: str = "shape") -> Shape:
    """Return a shape as a matrix.

    The first dimension are the rows, all others together the columns. A
    scalar is a matrix of one row and one column.
    """
    sizes = dimensions(shape, what)
    if math.prod(sizes) > _VALUES_MAX or max(sizes, default=0) > _VALUES_MAX:
        raise InvalidError(
            f"{what} is {sizes}, expected at most {_VALUES_MAX} values")
    if math.prod(sizes) == 0:
        return Shape(0, 1)
    return Shape(sizes[0], math.prod(sizes[1:])) if sizes else Shape(1, 1)
