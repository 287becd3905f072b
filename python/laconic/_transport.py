# SPDX-License-Identifier: MIT
"""Transports: how the messages of a group of workers travel."""
from __future__ import annotations

import ctypes
import itertools
import threading
from ctypes import byref, c_void_p
from typing import (Any, List, NamedTuple, Optional, Sequence, Tuple, Type,
                    Union)

from . import _ffi
from ._arguments import c_text, number, seconds
from ._callbacks import Callbacks, TransportLike
from ._ffi import lib
from ._forks import ClosedInForks
from ._handle import Handle, Resource

Buffer = Union[bytes, bytearray, memoryview]


class Hub(Handle):
    """Connects threads of one process; each joins with its own rank.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> hub = Hub(2)
    >>> def work(rank):
    ...     with hub.join(rank) as transport:
    ...         peer = 1 - rank
    ...         return transport.exchange(
    ...             [(peer, 0, b"from %d" % rank)], [(peer, 0)])
    >>> with ThreadPoolExecutor(2) as pool:
    ...     list(pool.map(work, range(2)))
    [[b'from 1'], [b'from 0']]
    """

    def __init__(self, world: int) -> None:
        self.world = number(world, "hub: world", 32)
        pointer = c_void_p()
        lib.lac_hub_open(byref(pointer), self.world)
        self._own(Resource("hub", pointer, lib.lac_hub_close))

    def join(self, rank: int) -> Transport:
        """Return the transport of worker ``rank``."""
        return Transport("local", rank, self.world, hub=self)


class Transport(Handle):
    """The membership of this worker in a group.

    ``spec`` is "local" with a Hub, "mpi", or "tcp" with its settings. Over MPI
    and tcp, rank and world may be omitted: the job or the peers file has them.
    ``close()`` leaves the group; ``with`` does so at its end.

    Calls of two threads wait for each other, except ``abort``. A call that
    waits for other workers ends at its timeout; Ctrl-C takes effect then.

    >>> with Hub(1) as hub, Transport("local", 0, 1, hub=hub) as transport:
    ...     transport.rank, transport.world
    (0, 1)
    """

    rank: int
    world: int

    def __init__(
            self, spec: str, rank: Optional[int] = None,
            world: Optional[int] = None, *,
            hub: Optional[Hub] = None) -> None:
        own = _ffi.RANK_ANY if rank is None else number(
            rank, "transport: rank", 32)
        size = _ffi.RANK_ANY if world is None else number(
            world, "transport: world", 32)
        name = c_text(spec, "transport")
        pointer = c_void_p()
        if hub is None:
            lib.lac_transport_join(byref(pointer), name, None, own, size)
            self._adopt(pointer, [])
            return
        with hub._resource as h:
            lib.lac_transport_join(byref(pointer), name, h, own, size)
            self._adopt(pointer, [hub._resource])

    @classmethod
    def mpi(cls: Type[Transport], comm: Any, *,
            timeout: float = 60.0) -> Transport:
        """Join by a communicator of mpi4py; all its processes must.

        Joining waits for the others at most ``timeout`` seconds. The transport
        uses a duplicate of the communicator.
        """
        from mpi4py import MPI
        if not isinstance(comm, MPI.Comm):
            raise TypeError(f"comm is a {type(comm).__name__}, expected a "
                            "communicator of mpi4py")
        if comm == MPI.COMM_NULL:
            raise _ffi.InvalidError(
                "transport: comm is COMM_NULL, expected a communicator that "
                "this process is in")
        version = MPI.Get_library_version()
        library = ("openmpi" if "Open MPI" in version else
                   "mpich" if "MPICH" in version else "auto")
        return cls(f"mpi:library={library},comm={comm.py2f()},"
                   f"timeout={seconds(timeout)!r}")

    @classmethod
    def join_with(cls: Type[Transport], object: TransportLike, rank: int,
                  world: int) -> Transport:
        """Join by an object of the program that moves the messages.

        ``object.exchange(sends, receives, timeout)`` is called with a list of
        (peer, tag, message) and a list of (peer, tag, limit). It sends all
        messages, waits for all receives at most ``timeout`` seconds and
        returns the bytes of each in order, none longer than its limit unless
        that is 0. Messages are read-only memoryviews, which it may keep. What
        it returns must not change before its next call. An exception makes
        the call of the library fail.

        Optional methods: ``abort(why)``, called by any thread; ``leave()``,
        the last call; ``allreduce_sum(array, timeout)``, which replaces a
        float32 array by its sum over all workers, with the same bits on each.
        """
        callbacks = Callbacks(object)
        pointer = c_void_p()
        lib.lac_transport_join_with(
            byref(pointer), byref(callbacks.ops), None,
            number(rank, "transport: rank", 32),
            number(world, "transport: world", 32))
        transport = cls.__new__(cls)
        transport._adopt(pointer, [], callbacks)
        return transport

    def _adopt(self, pointer: c_void_p, needs: Sequence[Resource],
               callbacks: Optional[Callbacks] = None) -> None:
        membership = Membership(pointer, callbacks)
        self._membership = membership
        self._own(Resource(
            "transport", pointer, membership.leave, needs=needs,
            interrupt=lambda: membership.abort(b"the program ends")))
        self.rank = int(lib.lac_transport_rank(pointer))
        self.world = int(lib.lac_transport_world(pointer))
        sockets = (ctypes.c_int * self.world)()
        count = lib.lac_transport_sockets(pointer, sockets, self.world)
        self._sockets = ClosedInForks(sockets[:count])
        self._averagers = itertools.count()

    def exchange(
            self, sends: Sequence[Tuple[int, int, Buffer]],
            receives: Sequence[Tuple[int, int]], *,
            timeout: float = 60.0) -> List[bytes]:
        """Send all (peer, tag, bytes), wait for all (peer, tag), and return
        their bytes.
        """
        for send in sends:
            _check_send(send)
        for receive in receives:
            _check_tuple(receive, "a receive", "(peer, tag)")
        out = (_ffi.Send * len(sends))()
        kept = [bytes(data) for _, _, data in sends]
        for place, (peer, tag, _), data in zip(out, sends, kept):
            place.peer = number(peer, "exchange: peer", 32)
            place.tag = number(tag, "exchange: tag", 32)
            place.data = ctypes.cast(ctypes.c_char_p(data), c_void_p)
            place.len = len(data)
        into = (_ffi.Receive * len(receives))()
        for found, (peer, tag) in zip(into, receives):
            found.peer = number(peer, "exchange: peer", 32)
            found.tag = number(tag, "exchange: tag", 32)
        limit = seconds(timeout)
        with self._resource as t:
            self._membership.lend(kept)
            lib.lac_transport_exchange(
                t, out, len(out), into, len(into),
                lib.lac_transport_now(t) + limit)
            self._membership.returned()
            return [ctypes.string_at(m.data, m.len) if m.len else b""
                    for m in into]

    def abort(self, why: str) -> None:
        """Make the exchanges of this worker, and soon those of its peers, fail
        with this message. Any thread may call it at any time.
        """
        reason = c_text(why, "abort: why")
        self._resource.check_process()
        self._membership.abort(reason)

    @property
    def failed(self) -> bool:
        """Whether an exchange has failed; every later one fails too."""
        with self._resource as t:
            return bool(lib.lac_transport_failed(t))


def _check_tuple(value: Any, what: str, expected: str) -> None:
    size = expected.count(",") + 1
    if not isinstance(value, (tuple, list)) or len(value) != size:
        raise TypeError(f"exchange: {what} is {value!r}, expected {expected}")


def _check_send(send: Any) -> None:
    _check_tuple(send, "a send", "(peer, tag, bytes)")
    try:
        memoryview(send[2])
    except TypeError:
        raise TypeError(
            f"exchange: the message for worker {send[0]} is a "
            f"{type(send[2]).__name__}, expected bytes") from None


class Membership:
    """What a transport needs until it is left, also after its Python object
    is gone.
    """

    def __init__(self, pointer: c_void_p,
                 callbacks: Optional[Callbacks]) -> None:
        self._pointer = pointer
        self._callbacks = callbacks
        self._lent: List[List[bytes]] = []
        self._left = False
        # abort may run in any thread, also during an exchange, but not after
        # the end of the membership.
        self._abort_lock = threading.Lock()

    def lend(self, messages: List[bytes]) -> None:
        """Keep messages until the exchange after their own has returned."""
        self._lent.append(messages)

    def returned(self) -> None:
        """An exchange has returned: peers no longer read older messages."""
        del self._lent[:-1]

    def abort(self, why: bytes) -> None:
        with self._abort_lock:
            if not self._left:
                lib.lac_transport_abort(self._pointer, why)

    def leave(self, pointer: c_void_p) -> None:
        with self._abort_lock:
            self._left = True
        lib.lac_transport_leave(pointer)
        self._lent.clear()


class Peer(NamedTuple):
    """A worker of a group over tcp."""

    address: str  #: "host:port" or "[IPv6]:port"
    key: str      #: its public key
    name: str = ""


class Listener(Handle):
    """Listens for workers over tcp, for programs that share addresses and keys
    by other means.

    >>> listener = Listener("tcp:listen=127.0.0.1")
    >>> me = Peer(f"127.0.0.1:{listener.port}", listener.key)
    >>> with listener.join([me], 0) as transport:
    ...     transport.world
    1
    """

    def __init__(self, spec: str = "tcp") -> None:
        pointer = c_void_p()
        lib.lac_tcp_listen(byref(pointer), c_text(spec, "listener"))
        self._sockets = ClosedInForks([lib.lac_tcp_socket(pointer)])
        self._own(Resource("listener", pointer, lib.lac_tcp_close))
        self.port = int(lib.lac_tcp_port(pointer))
        self.key = _ffi.text(lib.lac_tcp_key(pointer))

    def join(self, peers: Sequence[Peer], rank: int) -> Transport:
        """Connect with all workers, of which this one is number ``rank``.

        It closes the listener, also when it fails.
        """
        array = (_ffi.TcpPeer * len(peers))()
        for place, peer in zip(array, peers):
            place.address = c_text(peer.address, "peer: address")
            place.key = c_text(peer.key, "peer: key")
            if peer.name:
                place.name = c_text(peer.name, "peer: name")
        own = number(rank, "peers: rank", 32)
        pointer = c_void_p()
        lib.lac_tcp_join(
            byref(pointer), self._resource.take(), array, own, len(peers))
        transport = Transport.__new__(Transport)
        transport._adopt(pointer, [])
        return transport
