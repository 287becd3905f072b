# SPDX-License-Identifier: MIT
"""The C interface by ctypes: structures, functions and errors.

Structures and functions have the names and members of ``include/laconic``.
Functions are attributes of ``lib``; they are looked up when first used, so an
older library can be imported and only lacks what it lacks. A function that
fails raises the error of its status, with the message of the library. ctypes
releases the GIL during a call and takes it for a callback.
"""
from __future__ import annotations

import ctypes
import threading
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_double,
                    c_float, c_int, c_size_t, c_uint, c_uint16, c_uint32,
                    c_uint64, c_void_p)
from typing import Any, Dict, List, Optional, Tuple, Type

from . import _library

OK = 0
RANK_ANY = 0xFFFFFFFF

F32, F16, BF16, F64 = range(4)
FAMILY_MODEL, FAMILY_GRADIENT = range(2)
FORM_PLAIN, FORM_UNBIASED, FORM_CONTRACTIVE = range(3)
SCOPE_WORKER, SCOPE_EDGE, SCOPE_SHARED = range(3)
PURPOSE_COMPRESS = 1
TRAIT_LINEAR, TRAIT_DETERMINISTIC, TRAIT_ELEMENTWISE = 1, 2, 4
TRAIT_FIXED_SIZE = 8
NONFINITE_STOP, NONFINITE_SKIP, NONFINITE_RAW, NONFINITE_PROPAGATE = range(4)
LOAD_OTHER_WORLD = 1
PARAM_TYPES = ("bool", "u32", "f64", "choice", "f64 or word", "text", "spec")


class Error(RuntimeError):
    """A call of the library failed; the message is the library's.

    ``status`` is the ``lac_status`` of the failure.
    """

    status: int = 0


class InvalidError(Error, ValueError):
    """An argument breaks a documented precondition."""

    status = -1


class NoMemoryError(Error, MemoryError):
    """Out of memory."""

    status = -2


class NotFoundError(Error, LookupError):
    """Nothing of that kind has this name."""

    status = -3


class SpaceError(Error):
    """The destination buffer is too small."""

    status = -4


class CorruptError(Error, ValueError):
    """The bytes break the rules of the format."""

    status = -5


class UnsupportedError(Error, NotImplementedError):
    """This machine or build cannot do that."""

    status = -6


class PeerError(Error, ConnectionError):
    """A worker is gone, silent or sends unexpected messages."""

    status = -7


ERRORS: Dict[int, Type[Error]] = {
    kind.status: kind
    for kind in (InvalidError, NoMemoryError, NotFoundError, SpaceError,
                 CorruptError, UnsupportedError, PeerError)}


class Shape(Structure):
    _fields_ = [("rows", c_size_t), ("cols", c_size_t)]


class Tensor(Structure):
    _fields_ = [("name", c_char_p), ("shape", Shape), ("offset", c_size_t),
                ("name_hash", c_uint64)]


class Scope(Structure):
    _fields_ = [("kind", c_int), ("low", c_uint32), ("high", c_uint32)]


class Key(Structure):
    _fields_ = [("low", c_uint64), ("high", c_uint64), ("scope", c_int)]


class Guarantee(Structure):
    _fields_ = [("unbiased", c_bool), ("error", c_double)]


class Edge(Structure):
    _fields_ = [("peer", c_uint32), ("weight", c_double)]


class Spectrum(Structure):
    _fields_ = [("lambda2", c_double), ("lambdan", c_double),
                ("gap", c_double), ("beta", c_double),
                ("reserved", c_double * 4)]


class Send(Structure):
    _fields_ = [("peer", c_uint32), ("tag", c_uint32), ("data", c_void_p),
                ("len", c_size_t), ("reserved", c_uint64 * 2)]


class Receive(Structure):
    _fields_ = [("peer", c_uint32), ("tag", c_uint32), ("buffer", c_void_p),
                ("cap", c_size_t), ("data", c_void_p), ("len", c_size_t),
                ("reserved", c_uint64 * 2)]


EXCHANGE = CFUNCTYPE(c_int, c_void_p, POINTER(Send), c_size_t,
                     POINTER(Receive), c_size_t, c_double)
ABORT = CFUNCTYPE(None, c_void_p, c_char_p)
LEAVE = CFUNCTYPE(None, c_void_p)
ALLREDUCE_SUM = CFUNCTYPE(c_int, c_void_p, POINTER(c_float), c_size_t,
                          c_double)


class TransportOps(Structure):
    _fields_ = [("size", c_size_t), ("exchange", EXCHANGE), ("abort", ABORT),
                ("leave", LEAVE), ("allreduce_sum", ALLREDUCE_SUM),
                ("intact", c_size_t)]


class TcpPeer(Structure):
    _fields_ = [("name", c_char_p), ("address", c_char_p), ("key", c_char_p),
                ("reserved", c_uint64 * 2)]


class Slice(Structure):
    """One tensor of a call; ``inp`` is the member ``in`` of the C struct."""

    _fields_ = [("tensor", c_size_t), ("dtype", c_int), ("inp", c_void_p),
                ("out", c_void_p)]


class AlgorithmOptions(Structure):
    _fields_ = [("size", c_size_t), ("spec", c_char_p),
                ("compressor", c_char_p), ("layout", c_void_p),
                ("topology", c_void_p), ("transport", c_void_p),
                ("seed", c_uint64), ("session", c_uint64),
                ("timeout", c_double), ("training", c_bool),
                ("nonfinite", c_int), ("timing", c_bool),
                ("workers", c_uint32), ("transport_name", c_char_p),
                ("threads", c_uint32)]


class Traffic(Structure):
    _fields_ = [("payload_bytes", c_uint64), ("wire_bytes", c_uint64),
                ("messages", c_uint64)]


class Cost(Structure):
    _fields_ = [("payload_bytes", c_double), ("messages", c_double),
                ("phases", c_double), ("memory_bytes", c_size_t),
                ("family", c_int), ("flags", c_uint64),
                ("fragments", c_uint32), ("delay", c_uint32),
                ("reserved", c_uint64 * 2)]


class Param(Structure):
    _fields_ = [("name", c_char_p), ("aliases", c_char_p), ("type", c_int),
                ("offset", c_size_t), ("default_value", c_char_p),
                ("min", c_double), ("max", c_double), ("above_min", c_bool),
                ("choices", c_char_p), ("help", c_char_p)]


class Plugin(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p),
                ("summary", c_char_p), ("params", c_void_p),
                ("param_size", c_size_t), ("state_size", c_size_t),
                ("example", c_char_p), ("reserved", c_void_p * 1)]


class Alias(Structure):
    _fields_ = [("name", c_char_p), ("target", c_char_p),
                ("preset", c_char_p)]


_OUT = POINTER(c_void_p)
_STATUS = "status"

# Name, result (_STATUS: raises an error unless it is OK), arguments.
_PROTOTYPES: List[Tuple[str, Any, List[Any]]] = [
    ("lac_version", c_char_p, []),
    ("lac_error_message", c_char_p, []),
    # Not _STATUS: a callback reports its failure by this call.
    ("lac_fail_text", c_int, [c_int, c_char_p]),

    ("lac_scope_worker", Scope, [c_uint32]),
    ("lac_scope_edge", Scope, [c_uint32, c_uint32]),
    ("lac_scope_shared", Scope, []),
    ("lac_name_hash", c_uint64, [c_char_p]),
    ("lac_key_make", Key, [c_uint64, c_uint32, c_uint64, Scope, c_uint64]),

    ("lac_layout_open", _STATUS, [_OUT, POINTER(Tensor), c_size_t]),
    ("lac_layout_parse", _STATUS, [_OUT, c_char_p, c_size_t]),
    ("lac_layout_close", None, [c_void_p]),
    ("lac_layout_count", c_size_t, [c_void_p]),
    ("lac_layout_values", c_size_t, [c_void_p]),
    ("lac_layout_tensor", POINTER(Tensor), [c_void_p, c_size_t]),
    ("lac_layout_find", POINTER(Tensor), [c_void_p, c_char_p]),
    ("lac_layout_hash", c_uint64, [c_void_p]),

    ("lac_compressor_open", _STATUS, [_OUT, c_char_p, c_int]),
    ("lac_compressor_close", None, [c_void_p]),
    ("lac_compressor_reserve", _STATUS, [c_void_p, Shape]),
    ("lac_compressor_use_kernels", _STATUS, [c_void_p, c_char_p]),
    ("lac_compressor_use_threads", _STATUS, [c_void_p, c_uint32]),
    ("lac_compressor_kernels", c_char_p, [c_void_p]),
    ("lac_compressor_prefetches", c_bool, [c_void_p]),
    ("lac_compressor_wire_id", c_uint32, [c_void_p]),
    ("lac_compressor_traits", c_uint, [c_void_p, c_int]),
    ("lac_compressor_guarantee", Guarantee, [c_void_p, Shape]),
    ("lac_compressor_bound", c_size_t, [c_void_p, Shape, c_int]),
    ("lac_compressor_kept", c_size_t, [c_void_p, Shape]),
    ("lac_compressor_encode", _STATUS,
     [c_void_p, POINTER(Key), Shape, c_void_p, c_void_p, c_size_t,
      POINTER(c_size_t)]),
    ("lac_compressor_check", _STATUS,
     [c_void_p, POINTER(Key), Shape, c_void_p, c_size_t]),
    ("lac_compressor_decode", _STATUS,
     [c_void_p, POINTER(Key), Shape, c_void_p, c_size_t, c_void_p]),
    ("lac_compressor_decode_add", _STATUS,
     [c_void_p, POINTER(Key), Shape, c_void_p, c_size_t, c_float, c_void_p]),
    ("lac_compressors", POINTER(POINTER(Plugin)), [POINTER(c_size_t)]),
    ("lac_compressor_aliases", POINTER(Alias), [POINTER(c_size_t)]),

    ("lac_memory_open", _STATUS, [_OUT, c_void_p, Shape]),
    ("lac_memory_close", None, [c_void_p]),
    ("lac_memory_encode", _STATUS,
     [c_void_p, POINTER(Key), c_void_p, c_void_p, c_size_t,
      POINTER(c_size_t)]),
    ("lac_memory_settle", _STATUS,
     [c_void_p, POINTER(Key), c_void_p, c_size_t]),
    ("lac_memory_read", None, [c_void_p, c_void_p]),
    ("lac_memory_write", None, [c_void_p, c_void_p]),
    ("lac_memory_size", c_size_t, [c_void_p]),

    ("lac_topology_open", _STATUS, [_OUT, c_char_p, c_uint32, c_uint64]),
    ("lac_topology_close", None, [c_void_p]),
    ("lac_topology_workers", c_uint32, [c_void_p]),
    ("lac_topology_period", c_uint32, [c_void_p]),
    ("lac_topology_is_drawn", c_bool, [c_void_p]),
    ("lac_topology_edges", c_uint32,
     [c_void_p, c_uint32, c_uint64, POINTER(POINTER(Edge))]),
    ("lac_topology_self_weight", c_double, [c_void_p, c_uint32, c_uint64]),
    ("lac_topology_peers", c_uint32,
     [c_void_p, c_uint32, POINTER(POINTER(c_uint32))]),
    ("lac_topology_edge_count", c_size_t, [c_void_p]),
    ("lac_topology_max_degree", c_uint32, [c_void_p]),
    ("lac_topology_hash", c_uint64, [c_void_p]),
    ("lac_topology_matrix", None, [c_void_p, c_uint64, c_void_p]),
    ("lac_topology_spectrum", _STATUS, [c_void_p, POINTER(Spectrum)]),
    ("lac_topologies", POINTER(POINTER(Plugin)), [POINTER(c_size_t)]),

    ("lac_hub_open", _STATUS, [_OUT, c_uint32]),
    ("lac_hub_close", None, [c_void_p]),
    ("lac_transport_join", _STATUS,
     [_OUT, c_char_p, c_void_p, c_uint32, c_uint32]),
    ("lac_transport_join_with", _STATUS,
     [_OUT, POINTER(TransportOps), c_void_p, c_uint32, c_uint32]),
    ("lac_transport_leave", None, [c_void_p]),
    ("lac_transport_rank", c_uint32, [c_void_p]),
    ("lac_transport_world", c_uint32, [c_void_p]),
    ("lac_transport_now", c_double, [c_void_p]),
    ("lac_transport_exchange", _STATUS,
     [c_void_p, POINTER(Send), c_size_t, POINTER(Receive), c_size_t,
      c_double]),
    ("lac_transport_abort", None, [c_void_p, c_char_p]),
    ("lac_transport_failed", c_bool, [c_void_p]),
    ("lac_transport_sockets", c_size_t,
     [c_void_p, POINTER(c_int), c_size_t]),
    ("lac_transport_kill_job", None, [c_void_p, c_int]),
    ("lac_transports", POINTER(POINTER(Plugin)), [POINTER(c_size_t)]),

    ("lac_tcp_listen", _STATUS, [_OUT, c_char_p]),
    ("lac_tcp_port", c_uint16, [c_void_p]),
    ("lac_tcp_key", c_char_p, [c_void_p]),
    ("lac_tcp_socket", c_int, [c_void_p]),
    ("lac_tcp_join", _STATUS,
     [_OUT, c_void_p, POINTER(TcpPeer), c_uint32, c_uint32]),
    ("lac_tcp_close", None, [c_void_p]),

    ("lac_algorithm_options_init", None,
     [POINTER(AlgorithmOptions), c_size_t]),
    ("lac_algorithm_open", _STATUS, [_OUT, POINTER(AlgorithmOptions)]),
    ("lac_algorithm_close", None, [c_void_p]),
    ("lac_algorithm_family", c_int, [c_void_p]),
    ("lac_algorithm_gamma", c_double, [c_void_p]),
    ("lac_algorithm_warning", c_char_p, [c_void_p]),
    ("lac_algorithm_use_kernels", _STATUS, [c_void_p, c_char_p]),
    ("lac_algorithm_set_rate", _STATUS, [c_void_p, c_double]),
    ("lac_algorithm_start", _STATUS, [c_void_p, c_void_p, c_size_t]),
    ("lac_algorithm_begin", _STATUS,
     [c_void_p, c_uint64, c_void_p, c_size_t]),
    ("lac_algorithm_end", _STATUS,
     [c_void_p, c_uint64, c_void_p, c_void_p, c_size_t]),
    ("lac_algorithm_mix", _STATUS,
     [c_void_p, c_uint64, c_void_p, c_void_p, c_size_t]),
    ("lac_algorithm_takes_update", c_bool, [c_void_p]),
    ("lac_algorithm_reduce", _STATUS,
     [c_void_p, c_uint64, c_void_p, c_size_t]),
    ("lac_algorithm_round", c_uint64, [c_void_p, c_size_t]),
    ("lac_algorithm_traffic", Traffic, [c_void_p]),
    ("lac_algorithm_waited", c_double, [c_void_p]),
    ("lac_algorithm_state_size", c_size_t, [c_void_p]),
    ("lac_algorithm_save", _STATUS, [c_void_p, c_void_p, c_size_t]),
    ("lac_algorithm_load", _STATUS, [c_void_p, c_char_p, c_size_t]),
    ("lac_algorithm_load_with", _STATUS,
     [c_void_p, c_char_p, c_size_t, c_uint]),
    ("lac_algorithm_cost", _STATUS,
     [POINTER(AlgorithmOptions), POINTER(Cost)]),
    ("lac_algorithms", POINTER(POINTER(Plugin)), [POINTER(c_size_t)]),
]


class _Callbacks(threading.local):
    """The exception that a callback on this thread raised, until reported."""

    raised: Optional[BaseException] = None


_callbacks = _Callbacks()


def fail(error: BaseException) -> int:
    """Report an exception from a callback and return its status.

    The library call around the callback then fails. It raises an error whose
    cause is this exception, or the exception itself if it is no ``Exception``,
    such as KeyboardInterrupt.
    """
    _callbacks.raised = error
    kind = getattr(error, "status", OK)
    if not isinstance(error, Error) or kind not in ERRORS:
        kind = PeerError.status
    text = str(error) if isinstance(error, Error) else (
        f"{type(error).__name__}: {error}")
    status = lib.lac_fail_text(kind, text.encode(errors="replace"))
    return int(status)


def check(status: int, function: Any = None, arguments: Any = None) -> int:
    """Raise the error of ``status`` unless it is OK; an ``errcheck``."""
    cause, _callbacks.raised = _callbacks.raised, None
    if status == OK:
        return status
    if cause is not None and not isinstance(cause, Exception):
        raise cause
    message = lib.lac_error_message().decode(errors="replace")
    error = ERRORS.get(status, Error)(message)
    error.status = status
    raise error from cause


class Functions:
    """The functions of the library, bound when they are first used."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._prototypes = {
            name: (result, arguments)
            for name, result, arguments in _PROTOTYPES}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._prototypes:
            raise AttributeError(name)
        result, arguments = self._prototypes[name]
        try:
            function: Any = self._library[name]
        except AttributeError:
            version = self.lac_version().decode()
            raise UnsupportedError(
                f"{self._library._name} (version {version}) has no {name}; "
                f"a later version is needed") from None
        function.argtypes = arguments
        function.restype = c_int if result is _STATUS else result
        if result is _STATUS:
            function.errcheck = check
        setattr(self, name, function)
        return function

    def has(self, name: str) -> bool:
        """Return whether the loaded library has the function."""
        try:
            getattr(self, name)
        except UnsupportedError:
            return False
        return True


lib = Functions(_library.load())


def text(value: Optional[bytes]) -> str:
    """Return a string of the library as text, NULL as the empty one."""
    return "" if value is None else value.decode(errors="replace")
