# SPDX-License-Identifier: MIT
"""Compressors: an array as few bytes, with loss, and back."""
from __future__ import annotations

from ctypes import byref, c_size_t, c_void_p
from typing import Any, NamedTuple, Optional, Set, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _ffi
from ._arguments import ShapeLike, c_text, choice, dimensions, matrix, number
from ._arrays import address, floats, writable
from ._ffi import lib
from ._handle import Handle, Resource

Floats = npt.NDArray[np.float32]
Payload = Union[bytes, bytearray, memoryview]

_FORMS = ("plain", "unbiased", "contractive")


class Key(NamedTuple):
    """From what the random draws of a payload are derived.

    ``scope`` describes which workers can derive it: the rank of one worker, a
    pair of ranks, or "shared" for all. What they can derive is not sent to
    them. The decoder needs the key of the encoder, unless its scope is one
    worker.
    """

    seed: int = 1
    round: int = 0
    name: str = ""
    scope: Union[int, Tuple[int, int], str] = 0


def _scope(scope: Union[int, Tuple[int, int], str]) -> Any:
    if scope == "shared":
        return lib.lac_scope_shared()
    if isinstance(scope, tuple) and len(scope) == 2:
        return lib.lac_scope_edge(
            *(number(rank, "key: a rank", 32) for rank in scope))
    if isinstance(scope, (str, tuple)):
        raise _ffi.InvalidError(
            f"key: scope is {scope!r}, expected a rank, a pair of ranks or "
            "'shared'")
    return lib.lac_scope_worker(number(scope, "key: rank", 32))


def _check_key(key: Any) -> None:
    if not isinstance(key, Key):
        raise TypeError(f"key is {key!r}, expected a Key")


def _c_key(key: Key) -> Any:
    _check_key(key)
    return lib.lac_key_make(
        number(key.seed, "key: seed"), _ffi.PURPOSE_COMPRESS,
        number(key.round, "key: round"), _scope(key.scope),
        lib.lac_name_hash(c_text(key.name, "key: name")))


def _bytes(payload: Payload) -> bytes:
    if not isinstance(payload, (bytes, bytearray, memoryview)):
        raise TypeError(f"payload is a {type(payload).__name__}, expected "
                        "bytes")
    return bytes(payload)


class Guarantee(NamedTuple):
    """The error bound of a compressor: E|C(x) - x|^2 <= error * |x|^2, and
    E[C(x)] = x if it is unbiased.
    """

    unbiased: bool
    error: float


class Compressor(Handle):
    """Encodes arrays of floats in few bytes.

    ``spec`` is "name", "name:key=value,..." or "A+B", where B encodes the
    values that the sparsifier A keeps. ``form`` selects one of the published
    scalings: "plain", "unbiased" or "contractive". Arrays of float16 and
    float64 are converted to float32. An array is a matrix whose first
    dimension are the rows.

    >>> import numpy as np
    >>> x = np.array([3.0, -0.5, 0.25, -4.0], dtype=np.float32)
    >>> compressor = Compressor("top-k:0.5")
    >>> payload = compressor.encode(x)
    >>> compressor.decode(payload, x.shape)
    array([ 3.,  0.,  0., -4.], dtype=float32)
    >>> compressor.guarantee(x.shape)
    Guarantee(unbiased=False, error=0.5)
    """

    def __init__(self, spec: str, form: str = "plain") -> None:
        pointer = c_void_p()
        lib.lac_compressor_open(
            byref(pointer), c_text(spec, "compressor"),
            choice(form, "compressor: form", _FORMS))
        self._own(Resource(
            "compressor", pointer, lib.lac_compressor_close, forks=True))
        self.spec = spec
        self.form = form
        self.wire_id = int(lib.lac_compressor_wire_id(pointer))
        self._reserved: Set[Tuple[int, int]] = set()

    def _reserve(self, c: c_void_p, shape: Any) -> None:
        if (shape.rows, shape.cols) not in self._reserved:
            lib.lac_compressor_reserve(c, shape)
            self._reserved.add((shape.rows, shape.cols))

    def encode(self, array: npt.ArrayLike, key: Key = Key()) -> bytes:
        """Return a payload of the array."""
        x = floats(array, "encode: the array")
        shape = matrix(x.shape)
        c_key = _c_key(key)
        length = c_size_t()
        with self._resource as c:
            self._reserve(c, shape)
            cap = lib.lac_compressor_bound(c, shape, c_key.scope)
            payload = np.empty(cap, np.uint8)
            lib.lac_compressor_encode(
                c, byref(c_key), shape, address(x), address(payload), cap,
                byref(length))
        return payload[:length.value].tobytes()

    def decode(self, payload: Payload, shape: ShapeLike, key: Key = Key(), *,
               out: Optional[Floats] = None) -> Floats:
        """Return the values of a payload of an array of that shape.

        Raises CorruptError for a payload that breaks the rules of the format.
        """
        data = _bytes(payload)
        y = (np.empty(dimensions(shape), np.float32) if out is None
             else self._target(out, "decode: out"))
        c_shape = matrix(shape)
        if y.size != c_shape.rows * c_shape.cols:
            raise _ffi.InvalidError(
                f"decode: out has {y.size} values, expected "
                f"{c_shape.rows * c_shape.cols}")
        with self._resource as c:
            self._reserve(c, c_shape)
            lib.lac_compressor_decode(
                c, byref(_c_key(key)), c_shape,
                data, len(data), address(y))
        return y

    def decode_add(self, payload: Payload, y: Floats, scale: float = 1.0,
                   key: Key = Key()) -> None:
        """Add ``scale`` times the values of a payload to ``y``."""
        data = _bytes(payload)
        self._target(y, "decode_add: y")
        shape = matrix(y.shape)
        with self._resource as c:
            self._reserve(c, shape)
            lib.lac_compressor_decode_add(
                c, byref(_c_key(key)), shape, data,
                len(data), scale, address(y))

    @staticmethod
    def _target(array: Any, what: str) -> Floats:
        if writable(array, what).dtype != np.float32:
            raise _ffi.InvalidError(
                f"{what} has dtype {array.dtype}, expected float32")
        return array  # type: ignore[no-any-return]

    def bound(self, shape: ShapeLike, key: Key = Key()) -> int:
        """Return the maximum number of bytes of a payload, 0 for a shape that
        the compressor does not accept.
        """
        _check_key(key)
        with self._resource as c:
            return int(lib.lac_compressor_bound(
                c, matrix(shape), _scope(key.scope).kind))

    def kept(self, shape: ShapeLike) -> int:
        """Return how many values a payload holds."""
        with self._resource as c:
            return int(lib.lac_compressor_kept(c, matrix(shape)))

    def guarantee(self, shape: ShapeLike) -> Guarantee:
        """Return the error bound for a shape."""
        with self._resource as c:
            found = lib.lac_compressor_guarantee(c, matrix(shape))
        return Guarantee(bool(found.unbiased), float(found.error))

    @property
    def kernels(self) -> str:
        """The kernels in use, such as "avx2". All give the same bytes."""
        with self._resource as c:
            return _ffi.text(lib.lac_compressor_kernels(c))

    @property
    def prefetches(self) -> bool:
        """Whether the kernels in use have instructions that prefetch."""
        with self._resource as c:
            return bool(lib.lac_compressor_prefetches(c))

    def use_kernels(self, name: str) -> None:
        """Select the kernels: "portable", "avx2", "avx512", "neon" or "best".

        ":prefetch=on" or ":prefetch=off" after the name selects whether they
        prefetch, for measurements.
        """
        with self._resource as c:
            lib.lac_compressor_use_kernels(c, c_text(name, "kernels"))

    def use_threads(self, threads: int) -> None:
        """Let so many threads share large arrays. The bytes are the same."""
        count = number(threads, "threads", 32)
        with self._resource as c:
            lib.lac_compressor_use_threads(c, count)


class Memory(Handle):
    """The error memory of one tensor: what compression drops is added to the
    next array.

    >>> import numpy as np
    >>> memory = Memory(Compressor("top-k:0.5"), 2)
    >>> payload = memory.encode(np.float32([3.0, 1.0]))
    >>> memory.settle(payload)
    >>> memory.values
    array([0., 1.], dtype=float32)
    """

    def __init__(self, compressor: Compressor, shape: ShapeLike) -> None:
        self._compressor = compressor
        self.shape = dimensions(shape)
        self._c_shape = matrix(shape)
        pointer = c_void_p()
        with compressor._resource as c:
            lib.lac_memory_open(byref(pointer), c, self._c_shape)
            self._own(Resource(
                "memory", pointer, lib.lac_memory_close,
                needs=[compressor._resource], forks=True))

    def _floats(self, array: npt.ArrayLike, what: str) -> Floats:
        x = floats(array, what)
        if x.shape != self.shape:
            raise _ffi.InvalidError(
                f"{what} has shape {x.shape}, expected {self.shape}")
        return x

    def encode(self, array: npt.ArrayLike, key: Key = Key()) -> bytes:
        """Add the array to the memory and return a payload of the sum."""
        x = self._floats(array, "memory: the array")
        c_key = _c_key(key)
        length = c_size_t()
        with self._compressor._resource as c, self._resource as m:
            cap = lib.lac_compressor_bound(c, self._c_shape, c_key.scope)
            payload = np.empty(cap, np.uint8)
            lib.lac_memory_encode(
                m, byref(c_key), address(x), address(payload), cap,
                byref(length))
        return payload[:length.value].tobytes()

    def settle(self, payload: Payload, key: Key = Key()) -> None:
        """Subtract the values of the payload that the last encode returned,
        once it is delivered.
        """
        data = _bytes(payload)
        with self._compressor._resource, self._resource as m:
            lib.lac_memory_settle(
                m, byref(_c_key(key)), data,
                len(data))

    @property
    def values(self) -> Floats:
        """The values in memory, as a copy; assign to replace them."""
        e = np.empty(self.shape, np.float32)
        with self._resource as m:
            lib.lac_memory_read(m, address(e))
        return e

    @values.setter
    def values(self, array: npt.ArrayLike) -> None:
        e = self._floats(array, "memory: the values")
        with self._resource as m:
            lib.lac_memory_write(m, address(e))


def encode(array: npt.ArrayLike, spec: str, key: Key = Key(), *,
           form: str = "plain") -> bytes:
    """Return a payload of an array by the compressor that a spec names.

    >>> import numpy as np
    >>> len(encode(np.ones(1000, np.float32), "sign"))
    129
    """
    with Compressor(spec, form) as compressor:
        return compressor.encode(array, key)


def decode(payload: Payload, spec: str, shape: ShapeLike,
           key: Key = Key()) -> Floats:
    """Return the values of a payload.

    >>> import numpy as np
    >>> decode(encode(np.float32([2.0, -2.0]), "sign"), "sign", 2)
    array([ 2., -2.], dtype=float32)
    """
    with Compressor(spec) as compressor:
        return compressor.decode(payload, shape, key)
