# SPDX-License-Identifier: MIT
"""Joins the workers of a process group of torch.

``auto`` is tcp, with addresses and keys exchanged through the group, or the
group itself (``c10d``) where some worker cannot connect. All workers decide
the same: they share what they found through the group.
"""
from __future__ import annotations

import numbers
import os
import secrets
import socket
import warnings
from typing import Any, List, NamedTuple, Optional, Tuple

import torch.distributed as dist

from .. import (Error, Hub, InvalidError, Listener, Peer, PeerError,
                Transport, UnsupportedError)
from .._arguments import c_text, seconds
from .._ffi import ERRORS
from ._c10d import C10d
from ._session import Session

# How long `auto` waits for all to connect over tcp.
_AUTO_SECONDS = 5.0
# How long a transport that was asked for waits.
_JOIN_SECONDS = 60.0
_LOOPBACK = "127.0.0.1"
_ALL_INTERFACES = ("0.0.0.0", "::")


def open_session(group: Any = None, spec: str = "auto",
                 timeout: float = 1800.0) -> Session:
    """Join the workers of ``group``; all of them call it in the same order.

    ``spec`` is "auto", "tcp" with settings other than peers and token, "c10d",
    or any other transport of the library. Without a process group, "auto" is
    one worker alone. Joining takes at most ``timeout`` seconds, or a minute.
    """
    c_text(spec, "transport")
    if not isinstance(timeout, numbers.Real):
        raise TypeError(
            f"timeout is a {type(timeout).__name__}, expected a number")
    seconds(timeout)
    _check_group(group)
    session = Session()
    try:
        session.use(_open(session, group, spec, min(timeout, _JOIN_SECONDS)))
    except BaseException:
        session.close()
        raise
    return session


def _check_group(group: Any) -> None:
    if group is None:
        return
    # Not all versions of torch have types for ProcessGroup.
    c10d: Any = dist
    if dist.is_available() and (
            isinstance(group, c10d.ProcessGroup)
            or group is c10d.GroupMember.NON_GROUP_MEMBER):
        return
    raise TypeError(f"group is a {type(group).__name__}, expected a process "
                    "group of torch.distributed")


def _open(session: Session, group: Any, spec: str,
          timeout: float) -> Transport:
    has_group = dist.is_available() and dist.is_initialized()
    group = dist.group.WORLD if has_group and group is None else group
    world = dist.get_world_size(group) if has_group else 1
    if world < 1:
        raise InvalidError(
            "transport: this process is not in the group it was given")
    own_keys = spec.partition(":")[0] == "tcp" and not any(
        setting in spec for setting in ("peers=", "token="))
    if world == 1 and (spec == "auto" or own_keys or spec == "c10d"):
        _check_alone(has_group, spec)
        hub = Hub(1)
        return session.run(lambda: hub.join(0))
    if not has_group:
        return session.run(lambda: _join(spec, timeout))
    session.number = _agree_on_transport(group, spec, own_keys)
    if spec == "auto":
        return _join_auto(session, group)
    if spec == "c10d":
        return _join_c10d(session, group)
    if own_keys:
        return _join_tcp(session, group, spec, timeout)
    return _check_rank(
        session.run(lambda: _join(spec, timeout)), group, spec)


def _agree_on_transport(group: Any, spec: str, own_keys: bool) -> int:
    """Return the number of the session, or raise on all workers if they have
    different transports. Settings such as addresses may differ.
    """
    kind = spec.partition(":")[0]
    if kind == "tcp" and not own_keys:
        kind = "tcp with peers or token"
    shared = _agree(group, (secrets.randbits(63), kind))
    number, expected = shared[0]
    for rank, (_, found) in enumerate(shared):
        if found != expected:
            raise InvalidError(
                f"transport: worker {rank} has {found}, expected {expected}, "
                "as worker 0 has")
    return int(number)


def _check_alone(has_group: bool, spec: str) -> None:
    world = os.environ.get("WORLD_SIZE", "1")
    if not has_group and world not in ("", "1"):
        raise InvalidError(
            f"transport {spec}: WORLD_SIZE is {world} and there is no process "
            "group, expected torch.distributed.init_process_group before")


def _join(spec: str, timeout: float) -> Transport:
    """Join by a spec of the library.

    Where mpi4py is installed, it starts MPI and ends it with the program; the
    library alone would end it with the first session.
    """
    if spec != "mpi":
        return Transport(spec)
    try:
        from mpi4py import MPI
    except ImportError:
        return Transport(spec)
    return Transport.mpi(MPI.COMM_WORLD, timeout=timeout)


def _check_rank(transport: Transport, group: Any, spec: str) -> Transport:
    found = transport.rank, transport.world
    expected = dist.get_rank(group), dist.get_world_size(group)
    if found != expected:
        transport.close()
        raise InvalidError(
            f"transport {spec}: this is worker {found[0]} of {found[1]}, "
            f"expected {expected[0]} of {expected[1]} as in the process group")
    return transport


def _agree(group: Any, value: Any) -> List[Any]:
    """Return what every worker of the group passes, in order of rank."""
    values: List[Any] = [None] * dist.get_world_size(group)
    gather: Any = dist.all_gather_object
    gather(values, value, group=group)
    return values


def _join_auto(session: Session, group: Any) -> Transport:
    try:
        return _join_tcp(session, group, "tcp", _AUTO_SECONDS)
    except Error as error:
        if dist.get_rank(group) == 0:
            warnings.warn(
                f"laconic: not all workers connect over tcp ({error}); "
                "messages go through the process group, which is slower",
                stacklevel=5)
    return _join_c10d(session, group)


def _join_c10d(session: Session, group: Any) -> Transport:
    backend = str(dist.get_backend(group))
    if "nccl" in backend and "gloo" not in backend:
        raise UnsupportedError(
            f"transport c10d: the backend of the group is {backend}, expected "
            "one that moves tensors of the CPU, such as gloo")
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    messages = C10d(group, session.number)
    return session.run(lambda: Transport.join_with(messages, rank, world))


# The status and the message of an error, to share.
_Failure = Tuple[int, str]
_FINE: _Failure = (0, "")


class _Offer(NamedTuple):
    """What a worker shares about itself, or why it cannot listen."""

    address: str
    port: int
    key: str
    host: str
    failure: _Failure = _FINE


def _join_tcp(session: Session, group: Any, spec: str,
              timeout: float) -> Transport:
    """Connect all workers, or raise on all of them."""
    listener: Optional[Listener] = None
    offer = _Offer("", 0, "", "")
    try:
        settings = "" if "timeout=" in spec else (
            f"{',' if ':' in spec else ':'}timeout={timeout!r}")
        listener = session.run(lambda: Listener(spec + settings))
        offer = _Offer(_address(spec), listener.port, listener.key, _host())
    except (Error, OSError) as error:
        offer = offer._replace(failure=_failure(error))
    offers = [_Offer(*values) for values in _agree(group, tuple(offer))]
    _check_all([offer.failure for offer in offers])
    assert listener is not None
    return _connect(session, group, listener, _reachable(group, offers))


def _failure(error: Exception) -> _Failure:
    return getattr(error, "status", PeerError.status), str(error)


def _check_all(failures: List[_Failure]) -> None:
    for rank, failure in enumerate(failures):
        if failure != _FINE:
            status, text = failure
            raise ERRORS.get(status, PeerError)(f"worker {rank}: {text}")


def _connect(session: Session, group: Any, listener: Listener,
             offers: List[_Offer]) -> Transport:
    peers = [Peer(_dial(offer), offer.key) for offer in offers]
    rank, failure = dist.get_rank(group), _FINE
    transport: Optional[Transport] = None
    try:
        transport = session.run(lambda: listener.join(peers, rank))
    except Error as error:
        failure = _failure(error)
    try:
        _check_all(_agree(group, failure))
    except Error:
        if transport is not None:
            session.run(transport.close)
        raise
    assert transport is not None
    return transport


def _dial(offer: _Offer) -> str:
    host = f"[{offer.address}]" if ":" in offer.address else offer.address
    return f"{host}:{offer.port}"


def _host() -> str:
    """Return what differs between machines, and not between processes."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return socket.gethostname() + file.read().strip()
    except OSError:
        return socket.gethostname()


def _address(spec: str) -> str:
    """Return the address at which others reach this machine.

    It is the one that the route to the first worker has, as torch connects by
    that route too.
    """
    for setting in spec.partition(":")[2].split(","):
        name, _, value = setting.partition("=")
        if name == "listen":
            host, bracket, _ = value.partition("]")
            host = host[1:] if bracket else value.partition(":")[0]
            if host not in _ALL_INTERFACES:
                return host
    return _towards(os.environ.get("MASTER_ADDR", _LOOPBACK))


def _towards(host: str) -> str:
    """Return this machine's own address on the route to another."""
    family, kind, _, _, address = socket.getaddrinfo(
        host, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def _reachable(group: Any, offers: List[_Offer]) -> List[_Offer]:
    """Replace loopback addresses where workers are on several machines.

    The first worker's machine often has its own name as a loopback address.
    """
    outside = [o.address for o in offers if not _is_loopback(o.address)]
    if len({offer.host for offer in offers}) == 1 or len(outside) == len(
            offers):
        return offers
    own, failure = offers[dist.get_rank(group)].address, _FINE
    try:
        if _is_loopback(own):
            own = _towards(outside[0] if outside else socket.getfqdn())
    except OSError as error:
        failure = _failure(error)
    shared = _agree(group, (own, failure))
    _check_all([failure for _, failure in shared])
    return [offer._replace(address=address)
            for offer, (address, _) in zip(offers, shared)]
