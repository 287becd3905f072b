# SPDX-License-Identifier: MIT
"""Transports: threads, tcp, and objects of the program."""
import ctypes
import queue
import threading
import time

import numpy as np
import pytest

import laconic
from laconic import (Algorithm, Hub, Layout, Listener, Peer, Transport,
                     _ffi)
from laconic._callbacks import Callbacks


def test_messages_reach_their_peer_and_tag(workers):
    def work(t):
        right, left = (t.rank + 1) % 3, (t.rank - 1) % 3
        for round in range(3):
            sends = [(right, 0, b"r%d of %d" % (round, t.rank)),
                     (right, 7, bytearray(b"x" * 1000)), (left, 1, b"")]
            found = t.exchange(sends, [(left, 7), (left, 0), (right, 1)])
            assert found == [b"x" * 1000, b"r%d of %d" % (round, left), b""]
        return t.rank, t.world
    assert workers(3, work) == [(0, 3), (1, 3), (2, 3)]


def test_a_worker_that_leaves_is_named(workers):
    def work(t):
        if t.rank == 1:
            return None
        with pytest.raises(laconic.PeerError, match="worker 1 has left"):
            t.exchange([], [(1, 0)])
        with pytest.raises(laconic.PeerError, match="worker 1 has left"):
            t.exchange([], [])
        return t.failed
    assert workers(2, work) == [True, None]


def test_abort_ends_the_exchange_of_another_thread():
    with Hub(2) as hub, hub.join(0) as t, hub.join(1):
        threading.Timer(0.05, t.abort, ["enough"]).start()
        with pytest.raises(laconic.PeerError, match="enough"):
            t.exchange([], [(1, 0)], timeout=60)


def test_silence_ends_at_the_timeout():
    with Hub(2) as hub, hub.join(0) as t, hub.join(1):
        with pytest.raises(laconic.PeerError, match="worker 1 was silent"):
            t.exchange([], [(1, 0)], timeout=0.05)
        for timeout in (0, -1, float("nan"), float("inf")):
            with pytest.raises(laconic.InvalidError, match="timeout"):
                t.exchange([], [], timeout=timeout)


def test_wrong_joins_raise():
    with pytest.raises(laconic.NotFoundError, match="no transport"):
        Transport("pigeon")
    with pytest.raises(laconic.InvalidError, match="hub"):
        Transport("local", 0, 1)
    with Hub(2) as hub:
        with pytest.raises(laconic.InvalidError):
            hub.join(2)
        with hub.join(0):
            with pytest.raises(laconic.InvalidError):
                hub.join(0)
    with pytest.raises(laconic.InvalidError, match="rank is -1"):
        Transport("mpi", -1, 2)
    with pytest.raises(laconic.NotFoundError, match="/nowhere/key"):
        Transport("tcp:peers=/nowhere/peers.txt,key=/nowhere/key")


@pytest.mark.parametrize("sends, receives, message", [
    ([(1, 0, "x")], [], "the message for worker 1 is a str, expected bytes"),
    ([(1, 0, 5)], [], "the message for worker 1 is a int, expected bytes"),
    ([(1, 0)], [], r"a send is \(1, 0\), expected \(peer, tag, bytes\)"),
    ([3], [], r"a send is 3, expected \(peer, tag, bytes\)"),
    ([], [3], r"a receive is 3, expected \(peer, tag\)"),
    ([("1", 0, b"")], [], "peer is '1', expected a whole number"),
])
def test_wrong_messages_raise_before_anything_is_sent(
        sends, receives, message):
    with Hub(2) as hub, hub.join(0) as t, hub.join(1):
        with pytest.raises(TypeError, match=message):
            t.exchange(sends, receives)
        assert not t.failed


def test_a_hub_that_is_closed_lives_until_its_workers_have_left():
    hub = Hub(2)
    a, b = hub.join(0), hub.join(1)
    hub.close()
    a.exchange([(1, 0, b"still here")], [])
    assert b.exchange([], [(0, 0)]) == [b"still here"]
    b.close()
    a.close()
    with pytest.raises(laconic.InvalidError, match="hub: it is closed"):
        hub.join(0)


def test_tcp_joins_by_addresses_and_keys():
    listeners = [Listener("tcp:listen=127.0.0.1") for _ in range(3)]
    peers = [Peer(f"127.0.0.1:{lis.port}", lis.key) for lis in listeners]
    found = [None] * 3

    def work(rank):
        with listeners[rank].join(peers, rank) as t:
            right, left = (rank + 1) % 3, (rank - 1) % 3
            found[rank] = t.exchange([(right, 0, b"%d" % rank)], [(left, 0)])

    threads = [threading.Thread(target=work, args=(r,)) for r in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[b"2"], [b"0"], [b"1"]]
    with pytest.raises(laconic.InvalidError, match="listener: it is closed"):
        listeners[0].join(peers, 0)


def test_a_tcp_group_with_a_wrong_key_is_refused():
    listener = Listener("tcp:listen=127.0.0.1,timeout=1")
    with pytest.raises(laconic.InvalidError):
        listener.join([Peer("127.0.0.1:1", "no key")], 0)
    assert listener.closed
    Listener("tcp:listen=127.0.0.1").close()


class Queues:
    """A transport of the program: queues between threads."""

    def __init__(self, world):
        self.boxes = {(a, b): queue.Queue()
                      for a in range(world) for b in range(world)}


class Member:
    def __init__(self, queues, rank):
        self.queues, self.rank = queues, rank
        self.early = {}
        self.calls = []

    def exchange(self, sends, receives, timeout):
        assert 0 < timeout <= 60
        for peer, tag, data in sends:
            self.queues.boxes[self.rank, peer].put((tag, bytes(data)))
        return [self.take(peer, tag, timeout) for peer, tag, _ in receives]

    def take(self, peer, tag, timeout):
        kept = self.early.setdefault((peer, tag), [])
        while not kept:
            found, data = self.queues.boxes[peer, self.rank].get(
                timeout=timeout)
            self.early.setdefault((peer, found), []).append(data)
        return kept.pop(0)

    def leave(self):
        self.calls.append("leave")

    def abort(self, why):
        self.calls.append(why)


def run_members(members, work):
    results = [None] * len(members)

    def worker(rank):
        t = Transport.join_with(members[rank], rank, len(members))
        try:
            results[rank] = work(t)
        except Exception as error:
            results[rank] = error
        finally:
            t.close()

    threads = [threading.Thread(target=worker, args=(r,))
               for r in range(len(members))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def sum_of_ranks(t):
    x = np.full(1000, t.rank, np.float32)
    with Layout({"x": 1000}) as layout:
        Algorithm("allreduce", layout=layout, transport=t).reduce(
            [x], round=0)
    return x[0]


def test_an_object_of_the_program_is_a_transport(workers):
    queues = Queues(3)
    members = [Member(queues, r) for r in range(3)]
    assert run_members(members, sum_of_ranks) == [1, 1, 1]
    assert [m.calls for m in members] == [["leave"]] * 3

    def ring(t):
        return t.exchange([((t.rank + 1) % 3, 5, b"%d" % t.rank)],
                          [((t.rank - 1) % 3, 5)])
    members = [Member(queues, r) for r in range(3)]
    assert run_members(members, ring) == [[b"2"], [b"0"], [b"1"]]


def test_an_exception_of_the_object_is_the_cause_of_the_error():
    class Broken(Member):
        def exchange(self, sends, receives, timeout):
            raise KeyError("no route")
    with Transport.join_with(Broken(Queues(2), 0), 0, 2) as t:
        with pytest.raises(laconic.PeerError, match="KeyError: 'no route'") \
                as caught:
            t.exchange([], [(1, 0)])
        assert isinstance(caught.value.__cause__, KeyError)
        with pytest.raises(laconic.PeerError, match="no route"):
            t.exchange([], [(1, 0)])


def test_an_error_of_the_object_keeps_its_kind():
    class Broken(Member):
        def exchange(self, sends, receives, timeout):
            raise laconic.UnsupportedError("too far")
    with Transport.join_with(Broken(Queues(2), 0), 0, 2) as t:
        with pytest.raises(laconic.UnsupportedError, match="too far"):
            t.exchange([], [(1, 0)])


@pytest.mark.parametrize("status", [0, 3, -99])
def test_an_error_without_the_status_of_a_failure_fails(status):
    class Broken(Member):
        def exchange(self, sends, receives, timeout):
            error = laconic.Error("no route")
            error.status = status
            raise error
    with Transport.join_with(Broken(Queues(2), 0), 0, 2) as t:
        with pytest.raises(laconic.PeerError, match="no route"):
            t.exchange([], [(1, 0)])


def test_an_interrupt_in_the_object_is_raised_itself():
    class Interrupted(Member):
        def exchange(self, sends, receives, timeout):
            raise KeyboardInterrupt
    with Transport.join_with(Interrupted(Queues(2), 0), 0, 2) as t:
        with pytest.raises(KeyboardInterrupt):
            t.exchange([], [(1, 0)])


@pytest.mark.parametrize("answer, message", [
    ([], "returned 0 messages, expected 1"),
    ([b"", b""], "returned 2 messages, expected 1"),
    (None, "returned a NoneType, expected a list of messages"),
    (3, "returned a int, expected a list"),
    ({1: b""}, "returned a dict, expected a list"),
    (b"m", "returned a bytes, expected a list"),
    ((b"" for _ in range(1)), "returned a generator, expected a list"),
    (["text"], "returned a str of worker 1, expected bytes"),
    ([3], "returned a int of worker 1, expected bytes"),
    ([None], "returned a NoneType of worker 1, expected bytes"),
])
def test_answers_that_break_the_rules_are_refused(answer, message):
    class Wrong(Member):
        def exchange(self, sends, receives, timeout):
            return answer
    with Transport.join_with(Wrong(Queues(2), 0), 0, 2) as t:
        with pytest.raises(laconic.Error, match=message):
            t.exchange([], [(1, 0)])


@pytest.mark.parametrize("length, status", [
    (8, _ffi.OK), (9, laconic.SpaceError.status)])
@pytest.mark.parametrize("with_buffer", [True, False])
def test_a_message_that_is_too_long_is_refused(length, status, with_buffer):
    class Long(Member):
        def exchange(self, sends, receives, timeout):
            assert receives == [(1, 5, 8)]
            return [b"m" * length]
    callbacks = Callbacks(Long(Queues(2), 0))
    buffer = ctypes.create_string_buffer(b"." * 16)
    receive = _ffi.Receive(
        peer=1, tag=5, cap=8,
        buffer=ctypes.addressof(buffer) if with_buffer else None)
    assert callbacks.ops.exchange(
        None, None, 0, ctypes.byref(receive), 1, time.monotonic() + 9) == status
    written = 8 if with_buffer and status == _ffi.OK else 0
    assert buffer.raw[:16] == b"m" * written + b"." * (16 - written)
    if status == _ffi.OK:
        assert ctypes.string_at(receive.data, receive.len) == b"m" * 8


def test_messages_cannot_be_changed():
    class Writing(Member):
        def exchange(self, sends, receives, timeout):
            sends[0][2][0] = 1
            return []
    with Transport.join_with(Writing(Queues(2), 0), 0, 2) as t:
        with pytest.raises(laconic.PeerError, match="read-only"):
            t.exchange([(1, 0, b"secret")], [])


def test_an_array_of_a_message_that_is_kept_is_safe():
    seen = []

    class Keeping(Member):
        def exchange(self, sends, receives, timeout):
            seen.extend(np.frombuffer(data, np.uint8) for _, _, data in sends)
            return []
    with Transport.join_with(Keeping(Queues(2), 0), 0, 2) as t:
        x = bytearray(b"kept" * 10000)
        t.exchange([(1, 0, x)], [])
        t.exchange([(1, 0, b"other")], [])
        t.exchange([(1, 0, b"other")], [])
    assert seen[0].tobytes() == x


def test_the_array_of_a_sum_may_be_kept():
    kept = []

    class Keeping(Member):
        def allreduce_sum(self, array, timeout):
            kept.append(array)
    queues = Queues(2)

    def work(t):
        x = np.ones(100000, np.float32)
        with Layout({"x": x.size}) as layout:
            Algorithm("allreduce", layout=layout, transport=t).reduce([x])
        return x[0]
    results = run_members([Keeping(queues, r) for r in range(2)], work)
    assert results == [0.5, 0.5]
    assert [array[0] for array in kept] == [1, 1]


def test_calls_inside_a_call_are_refused():
    inside = []

    class Nested(Member):
        def exchange(self, sends, receives, timeout):
            for call in (self.t.close, lambda: self.t.exchange([], [])):
                with pytest.raises(laconic.InvalidError, match="inside a"):
                    call()
                inside.append(call)
            return []
    member = Nested(Queues(1), 0)
    with Transport.join_with(member, 0, 1) as t:
        member.t = t
        t.exchange([], [])
    assert len(inside) == 2


def test_an_object_may_have_its_own_sum():
    class Summing(Member):
        def allreduce_sum(self, array, timeout):
            self.calls.append(array.size)
            array *= 2
    queues = Queues(2)
    members = [Summing(queues, r) for r in range(2)]

    def work(t):
        x = np.full(100000, 3.0, np.float32)
        with Layout({"x": x.size}) as layout:
            Algorithm("allreduce", layout=layout, transport=t).reduce([x])
        return x[-1]
    assert run_members(members, work) == [3, 3]
    assert all(isinstance(m.calls[0], int) for m in members)
