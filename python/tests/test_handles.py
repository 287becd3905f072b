# SPDX-License-Identifier: MIT
"""Objects that are closed, dropped, shared by threads, forked or left open."""
import gc
import os
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

import laconic
from laconic import (Algorithm, Averager, Compressor, Hub, Layout, Listener,
                     Memory, Peer, Topology)


def make_everything():
    hub = Hub(1)
    transport = hub.join(0)
    layout = Layout({"x": 3})
    topology = Topology("ring", 4)
    compressor = Compressor("sign")
    algorithm = Algorithm("allreduce", layout=layout, transport=transport)
    return {"hub": hub, "transport": transport, "layout": layout,
            "topology": topology, "compressor": compressor,
            "memory": Memory(compressor, 3), "algorithm": algorithm,
            "listener": Listener("tcp:listen=127.0.0.1")}


USES = {
    "hub": lambda h: h.join(0),
    "transport": lambda t: t.exchange([], []),
    "layout": lambda lay: Algorithm(
        "allreduce", layout=lay, transport=Hub(1).join(0)),
    "topology": lambda t: t.matrix(),
    "compressor": lambda c: c.encode(np.ones(3, np.float32)),
    "memory": lambda m: m.values,
    "algorithm": lambda a: a.reduce([np.ones(3, np.float32)]),
    "listener": lambda lis: lis.join([], 0),
}


@pytest.mark.parametrize("kind", sorted(USES))
def test_use_after_close_raises(kind):
    thing = make_everything()[kind]
    with thing as same:
        assert same is thing and not thing.closed
    assert thing.closed
    thing.close()
    with pytest.raises(laconic.InvalidError, match=f"{kind}: it is closed"):
        USES[kind](thing)


def test_other_uses_after_close_raise():
    things = make_everything()
    for thing in things.values():
        thing.close()
    a, t, c = (things[n] for n in ("algorithm", "transport", "compressor"))
    for call in (a.save, lambda: a.gamma, lambda: a.traffic, a.round,
                 lambda: a.load(b""), lambda: a.waited, lambda: t.failed,
                 lambda: c.decode(b"", 3), lambda: c.guarantee(3),
                 lambda: c.kernels, lambda: things["topology"].spectrum):
        with pytest.raises(laconic.InvalidError, match="it is closed"):
            call()
    t.abort("no harm")


def test_any_order_of_closing_is_safe():
    names = list(make_everything())
    for shift in range(len(names)):
        things = make_everything()
        for name in names[shift:] + names[:shift]:
            things[name].close()


def test_an_algorithm_of_a_closed_layout_goes_on():
    things = make_everything()
    things["layout"].close()
    x = np.ones(3, np.float32)
    things["algorithm"].reduce([x])
    things["transport"].close()
    with pytest.raises(laconic.InvalidError, match="transport: it is closed"):
        things["algorithm"].reduce([x])
    things["algorithm"].close()


def test_objects_that_are_dropped_are_released():
    with open("/proc/self/fd/0"):
        pass
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        make_everything()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_threads_wait_for_each_other():
    compressor = Compressor("dithering")
    arrays = [np.full(1000 + i, i, np.float32) for i in range(4)]
    failures = []

    def work(x):
        for _ in range(200):
            y = compressor.decode(compressor.encode(x), x.shape)
            if not np.allclose(x, y, rtol=0.2):
                failures.append(x[0])

    threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def run_python(code, **options):
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code], text=True,
        capture_output=True, timeout=300, **options)


EXIT = """
import os, sys, threading
import numpy as np
import laconic

def leave_open(case):
    # Everything stays open; in odd cases a daemon thread is in a call.
    hub = laconic.Hub(2)
    transports = [hub.join(0), hub.join(1)]
    averager = laconic.Averager("powersgd", transport=transports[0])
    listener = laconic.Listener("tcp:listen=127.0.0.1")
    if case % 2:
        def wait():
            try:
                averager.mean(np.ones((9, 9), np.float32))
            except laconic.Error:
                pass    # aborted in the call, or closed before it
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        while averager._algorithms == {}:
            pass
    return locals()

for case in range(50):
    child = os.fork()
    if child == 0:
        kept = leave_open(case)
        sys.exit(0)     # the ordinary end, with atexit and finalizers
    status = os.waitpid(child, 0)[1]
    if status != 0:
        sys.exit(f"case {case} ended with {status}")
"""


def test_fifty_exits_without_close():
    done = run_python(EXIT)
    assert (done.returncode, done.stderr) == (0, "")


FORK = """
import os, sys
import laconic
hub = laconic.Hub(1)
transport = hub.join(0)
compressor = laconic.Compressor("sign")
child = os.fork()
if child == 0:
    compressor.encode([1.0])
    try:
        transport.exchange([], [])
    except laconic.InvalidError as error:
        assert "used by its fork" in str(error), error
        try:
            transport.abort("in a fork")
        except laconic.InvalidError as error:
            assert "used by its fork" in str(error), error
        else:
            sys.exit(2)
        transport.close()
        sys.exit(7)
    sys.exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
transport.exchange([], [])
"""


def test_a_forked_process_does_not_use_its_parents_transport():
    done = run_python(FORK)
    assert (done.returncode, done.stderr) == (0, "")


FORK_IN_USE = """
import os, signal, sys, threading
import numpy as np
import laconic
x = np.ones(1, np.float32)
hub = laconic.Hub(1)
averager = laconic.Averager(transport=hub.join(0))
compressor = laconic.Compressor("sign")
memory = laconic.Memory(compressor, 1)
idle = laconic.Compressor("sign")
entered, done = threading.Event(), threading.Event()
def call():
    with averager._lock, compressor._resource, averager.transport._resource:
        entered.set()
        done.wait()
thread = threading.Thread(target=call)
thread.start()
entered.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)    # ends a child that hangs
    idle.encode(x)
    for use, why in (
            (lambda: compressor.encode(x), "compressor: another thread"),
            (lambda: memory.encode(x), "compressor: another thread"),
            (lambda: averager.mean(x), "used by its fork"),
            (averager.state_dict, "used by its fork")):
        try:
            use()
        except laconic.InvalidError as error:
            assert why in str(error), error
        else:
            sys.exit(2)
    assert memory.values.tolist() == [0.0]
    for one in (memory, compressor, averager, averager.transport, hub, idle):
        one.close()
    sys.exit(7)
status = os.waitpid(child, 0)[1]
done.set()
thread.join()
assert os.waitstatus_to_exitcode(status) == 7
compressor.encode(x)
averager.mean(x)
"""


def test_a_fork_does_not_wait_for_the_calls_of_other_threads():
    done = run_python(FORK_IN_USE)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_averager_in_use_can_be_closed_by_another_thread(workers):
    # Closing waits for the call, then the next one raises.
    def work(t):
        averager = Averager(transport=t)
        x = np.ones(1000, np.float32)
        for _ in range(50):
            averager.mean(x)
        closer = threading.Thread(target=t.close)
        closer.start()
        closer.join()
        with pytest.raises(laconic.InvalidError):
            averager.mean(x)
    workers(2, work)


def test_a_thousand_layouts_release_their_memory():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def reopen(count):
        for _ in range(count):
            with Algorithm("powersgd", layout=layout, transport=t) as a:
                a.reduce([x])

    with Hub(1) as hub, hub.join(0) as t, Layout({"x": (64, 64)}) as layout:
        x = np.ones((64, 64), np.float32)
        reopen(50)
        before = resident()
        reopen(1000)
        assert resident() - before < 10e6


def test_dropping_an_algorithm_leaves_the_call_of_a_thread_alone(workers):
    # Its transport is in use: it is released when the call has returned.
    started = threading.Event()

    def work(t):
        if t.rank == 1:
            assert started.wait(60)
            t.exchange([(0, 0, b"late")], [])
            return None
        layout = Layout({"x": 3})
        spare = Algorithm("allreduce", layout=layout, transport=t)
        resource = spare._resource
        found = []
        thread = threading.Thread(
            target=lambda: found.extend(t.exchange([], [(1, 0)])))
        thread.start()
        while not t._resource._inside:
            pass
        del spare
        gc.collect()
        assert not resource.closed
        started.set()
        thread.join()
        assert resource.closed
        return found
    assert workers(2, work) == [[b"late"], None]


def test_a_memory_can_be_closed_while_a_thread_uses_it():
    compressor = Compressor("sign")
    x = np.ones(3, np.float32)

    def use(memory):
        try:
            while True:
                memory.encode(x)
        except laconic.InvalidError:
            pass

    for _ in range(20):
        memory = Memory(compressor, 3)
        thread = threading.Thread(target=use, args=(memory,), daemon=True)
        thread.start()
        memory.close()
        thread.join(60)
        assert not thread.is_alive()


EXIT_ORDER = """
import time, weakref
import laconic
class Session:
    pass
session = Session()
weakref.finalize(session, lambda: print(transport.exchange([], [])))
hub = laconic.Hub(1)
transport = hub.join(0)
"""


def test_objects_outlive_the_finalizers_of_the_program():
    done = run_python(EXIT_ORDER)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


EXIT_DEAF = """
import threading, time
import laconic
class Deaf:
    def exchange(self, sends, receives, timeout):
        entered.set()
        threading.Event().wait()
entered = threading.Event()
transport = laconic.Transport.join_with(Deaf(), 0, 2)
layout = laconic.Layout({"x": 3})
kept = [laconic.Algorithm("allreduce", layout=layout, transport=transport)
        for _ in range(20)]
threading.Thread(target=lambda: transport.exchange([], [(1, 0)]),
                 daemon=True).start()
entered.wait()
"""


def test_the_end_waits_once_for_a_call_that_cannot_be_interrupted():
    # 20 algorithms wait for one lock; the time limit of run_python is 60 s.
    done = run_python(EXIT_DEAF)
    assert (done.returncode, done.stderr) == (0, "")


KILLED = """
import os, sys
import laconic
listener = laconic.Listener("tcp:listen=127.0.0.1")
spare = laconic.Listener("tcp:listen=127.0.0.1")
print(listener.port, listener.key, spare.port, flush=True)
port, key = input().split()
transport = listener.join([
    laconic.Peer("127.0.0.1:" + port, key),
    laconic.Peer(f"127.0.0.1:{listener.port}", listener.key)], 1)
if os.fork() == 0:
    sys.stdin.read()    # lives on until the test has ended
    os._exit(0)
os._exit(0)
"""


def test_a_fork_does_not_keep_the_connections_of_a_killed_worker():
    with Listener("tcp:listen=127.0.0.1") as listener, subprocess.Popen(
            [sys.executable, "-c", KILLED], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE) as other:
        port, key, spare = other.stdout.readline().split()
        other.stdin.write(f"{listener.port} {listener.key}\n")
        other.stdin.flush()
        with listener.join([Peer(f"127.0.0.1:{listener.port}", listener.key),
                            Peer(f"127.0.0.1:{port}", key)], 0) as t:
            other.wait(60)
            with pytest.raises(laconic.PeerError) as caught:
                t.exchange([], [(1, 0)], timeout=20)
            assert "silent" not in str(caught.value)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(spare)))


FORK_SOCKETS = """
import os, socket, sys, threading
import laconic
def sockets():
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + name).startswith("socket:"):
                found.add(int(name))
        except FileNotFoundError:
            pass    # that of the list itself
    return found - before
before = set()
before = sockets()
listeners = [laconic.Listener("tcp:listen=127.0.0.1") for _ in range(2)]
spare = laconic.Listener("tcp:listen=127.0.0.1")
peers = [laconic.Peer(f"127.0.0.1:{one.port}", one.key) for one in listeners]
transports, others = {}, []
def join(rank):
    transports[rank] = listeners[rank].join(peers, rank)
first = threading.Thread(target=join, args=(0,))
first.start()
while not listeners[0].closed:
    pass    # until it is inside the join, which waits for worker 1
others.append(socket.create_server(("127.0.0.1", 0)))
others.append(socket.create_connection(others[0].getsockname()))
others.append(others[0].accept()[0])
join(1)
first.join()
assert len(sockets()) == 6
child = os.fork()
if child == 0:
    assert sockets() == {one.fileno() for one in others}
    others[1].sendall(b"not ours")
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert others[2].recv(8) == b"not ours"
assert len(sockets()) == 6
"""


def test_a_fork_closes_the_sockets_of_the_library_and_no_others():
    done = run_python(FORK_SOCKETS)
    assert (done.returncode, done.stderr) == (0, "")
