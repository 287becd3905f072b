# SPDX-License-Identifier: MIT
"""Layouts: the named tensors of a model."""
from __future__ import annotations

import re
from ctypes import byref, c_void_p
from typing import Iterator, List, Mapping, NamedTuple, Sequence, Tuple, Union

from . import _ffi
from ._arguments import ShapeLike, c_text, matrix
from ._ffi import lib
from ._handle import Handle, Resource


_REJECTED = re.compile("[\0- \x7f,#%]")


class Tensor(NamedTuple):
    """One tensor of a layout, as a matrix."""

    name: str
    rows: int
    cols: int
    offset: int

    @property
    def values(self) -> int:
        """The number of values."""
        return self.rows * self.cols


def escape(name: str) -> str:
    """Return a name without the characters that a layout does not accept.

    >>> escape("block 1, weight")
    'block%201%2C%20weight'
    """
    return _REJECTED.sub(lambda c: f"%{ord(c[0]):02X}", name) or "%"


class Layout(Handle):
    """The tensors of a model in order: names and shapes.

    A tensor is a matrix: its first dimension are the rows, all others together
    the columns. Names have no blanks, commas and #.

    >>> layout = Layout({"weight": (512, 784), "bias": 512})
    >>> layout.values
    401920
    >>> layout[1]
    Tensor(name='bias', rows=512, cols=1, offset=401408)
    >>> Layout.parse("weight 512 784  # a comment")["weight"].cols
    784
    """

    def __init__(
            self, tensors: Union[Mapping[str, ShapeLike],
                                 Sequence[Tuple[str, ShapeLike]]]) -> None:
        items = list(tensors.items() if isinstance(tensors, Mapping)
                     else tensors)
        array = (_ffi.Tensor * len(items))()
        for place, (name, shape) in zip(array, items):
            place.name = c_text(name, "layout: a name")
            place.shape = matrix(shape, f"layout: the shape of {name}")
        pointer = c_void_p()
        lib.lac_layout_open(byref(pointer), array, len(items))
        self._adopt(pointer)

    @classmethod
    def parse(cls, text: str) -> Layout:
        """Return the layout of a text: a line with name, rows and columns for
        each tensor.
        """
        encoded = c_text(text, "layout: the text")
        pointer = c_void_p()
        lib.lac_layout_parse(byref(pointer), encoded, len(encoded))
        layout = cls.__new__(cls)
        layout._adopt(pointer)
        return layout

    def _adopt(self, pointer: c_void_p) -> None:
        self._own(Resource(
            "layout", pointer, lib.lac_layout_close, forks=True))
        self.values = int(lib.lac_layout_values(pointer))
        self.hash = int(lib.lac_layout_hash(pointer))
        self._tensors: List[Tensor] = []
        for index in range(lib.lac_layout_count(pointer)):
            found = lib.lac_layout_tensor(pointer, index).contents
            self._tensors.append(Tensor(
                found.name.decode(errors="replace"), found.shape.rows,
                found.shape.cols, found.offset))
        self._indices = {t.name: i for i, t in enumerate(self._tensors)}

    def __len__(self) -> int:
        return len(self._tensors)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._tensors)

    def __getitem__(self, key: Union[int, str]) -> Tensor:
        return self._tensors[
            self.index(key) if isinstance(key, str) else key]

    def index(self, name: str) -> int:
        """Return the number of the tensor of that name."""
        if name not in self._indices:
            raise _ffi.NotFoundError(f"layout: no tensor is named {name!r}")
        return self._indices[name]
