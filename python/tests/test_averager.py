# SPDX-License-Identifier: MIT
"""Means of arrays over workers."""
import concurrent.futures
import pickle

import numpy as np
import pytest

import laconic
from laconic import Averager

ALGORITHMS = [("allreduce", None), ("powersgd:rank=2", None),
              ("error-feedback", "top-k:0.1"), ("error-feedback", "sign"),
              ("compressed", "natural"), ("signum", None)]


def arrays(rank, round=0):
    rng = np.random.default_rng([rank, round])
    return {"a weight": rng.standard_normal((6, 5, 2)).astype(np.float32),
            "bias": rng.standard_normal(6).astype(np.float32)}


def test_values_keep_their_form(workers):
    def work(t):
        averager = Averager(transport=t)
        x = np.float32([[1, 2], [3, 4]]) * (t.rank + 1)
        single = averager.mean(x)
        assert single.tolist() == [[1.5, 3], [4.5, 6]] and x is not single
        first, second = averager.mean([x, x[0]])
        assert np.array_equal(first, single) and second.tolist() == [1.5, 3]
        named = averager.mean({"a weight": x, "": x[:, 1]})
        assert list(named) == ["a weight", ""]
        assert named[""].tolist() == [3, 6]
        assert averager.mean({}) == {} and averager.mean([]) == []
        scalar = averager.mean(np.float32(t.rank))
        assert scalar.shape == () and scalar == 0.5
        assert averager.mean(np.zeros((0, 3), np.float32)).shape == (0, 3)
        assert (averager.rank, averager.world) == (t.rank, 2)
    workers(2, work)


def test_results_may_replace_the_values(workers):
    def work(t):
        averager = Averager(transport=t)
        x = arrays(t.rank)
        kept = x["bias"]
        new = averager.mean(x)
        assert averager.mean(x, out=x) is x and x["bias"] is kept
        assert np.array_equal(x["bias"], new["bias"])
        into = np.empty(6, np.float32)
        assert averager.mean(kept, out=into) is into
        assert np.array_equal(into, new["bias"])
    workers(2, work)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ">f8", ">f4"])
def test_types_are_kept_in_native_order(workers, dtype):
    def work(t):
        x = np.arange(5).astype(dtype) * (t.rank + 1)
        y = Averager(transport=t).mean(x)
        assert y.dtype == np.dtype(dtype).newbyteorder("=")
        return y.tolist()
    assert workers(2, work) == [[0, 1.5, 3, 4.5, 6]] * 2


def test_doubles_are_summed_in_double(workers):
    def work(t):
        return Averager(transport=t).mean(np.array([1 + 2.0**-40]))[0]
    assert workers(2, work) == [1 + 2.0**-40] * 2


@pytest.mark.parametrize("algorithm, compressor", ALGORITHMS)
def test_every_worker_gets_the_same_bits(workers, algorithm, compressor):
    def work(t):
        averager = Averager(algorithm, compressor, transport=t)
        return [averager.mean(arrays(t.rank, round)) for round in range(3)]
    first, second, third = workers(3, work)
    for mine, yours, theirs in zip(first, second, third):
        for name in mine:
            assert mine[name].tobytes() == yours[name].tobytes()
            assert mine[name].tobytes() == theirs[name].tobytes()


def test_error_memory_is_kept_between_calls(workers):
    def work(t):
        averager = Averager("error-feedback", "top-k:0.2", transport=t)
        x = np.float32([5, 4, 3, 2, 1])
        return sum(averager.mean(x) for _ in range(40))
    total = workers(2, work)[0] / 40
    # What was not delivered is in the memory: less than 20 of each value.
    assert np.all(np.abs(total - [5, 4, 3, 2, 1]) < 0.5)


@pytest.mark.parametrize("algorithm, compressor", ALGORITHMS)
def test_a_saved_state_continues_bit_for_bit(workers, algorithm, compressor):
    def work(t):
        averager = Averager(algorithm, compressor, transport=t)
        for round in range(3):
            averager.mean(arrays(t.rank, round))
            averager.mean(arrays(t.rank, round)["bias"])
        state = pickle.loads(pickle.dumps(averager.state_dict()))
        sent = averager.traffic
        expected = averager.mean(arrays(t.rank, 3))
        fresh = Averager(algorithm, compressor, transport=t)
        for resumed in (fresh, averager):
            resumed.load_state_dict(state)
            found = resumed.mean(arrays(t.rank, 3))
            assert all(np.array_equal(found[n], expected[n]) for n in found)
        assert averager.traffic.messages > sent.messages
    workers(2, work)


def test_wrong_states_leave_the_averager_as_it_was(workers):
    def save(t):
        averager = Averager("powersgd:rank=1", transport=t)
        averager.mean(arrays(t.rank))
        return averager.state_dict()
    state = workers(2, save)[1]

    def work(t):
        averager = Averager("powersgd:rank=1", transport=t)
        averager.mean(arrays(0))
        before = averager.state_dict()
        with pytest.raises(laconic.InvalidError, match="worker"):
            averager.load_state_dict(state)
        with pytest.raises(laconic.InvalidError, match="version None"):
            averager.load_state_dict({})
        damaged = pickle.loads(pickle.dumps(state))
        damaged["states"][0]["state"] = b"?"
        with pytest.raises(laconic.CorruptError):
            averager.load_state_dict(damaged)
        assert averager.state_dict() == before
        averager.load_state_dict(state, other_world=True)
        averager.mean(arrays(0, 1))
    workers(1, work)


def test_wrong_values_raise_before_anything_is_sent(workers):
    def work(t):
        averager = Averager(transport=t)
        x = np.zeros(4, np.float32)
        frozen = np.zeros(4, np.float32)
        frozen.flags.writeable = False
        strided = np.zeros(8, np.float32)[::2]
        for values, out, message in (
                (np.arange(4), None, "mean: array has dtype int64"),
                ({"a": x.astype(complex)}, None, "a has dtype complex128"),
                ({"a": x}, {"b": x}, "other names"),
                (x, np.zeros(5, np.float32), r"shape \(5,\)"),
                (x, frozen, "read-only"),
                (strided, strided, "not contiguous"),
                (x, np.zeros(4), "its result float64")):
            with pytest.raises(laconic.InvalidError, match=message):
                averager.mean(values, out=out)
        with pytest.raises(TypeError, match="a name is 3"):
            averager.mean({3: x})
        averager.mean(strided)
        return averager.traffic.messages
    workers(1, work)


def test_workers_with_different_values_are_refused(workers):
    def work(t):
        averager = Averager(transport=t)
        with pytest.raises(laconic.PeerError):
            averager.mean(np.zeros(4 + t.rank, np.float32))
    workers(2, work)


def test_wrong_settings_raise_at_once(workers, monkeypatch):
    def work(t):
        with pytest.raises(laconic.NotFoundError, match="no algorithm"):
            Averager("sgd", transport=t)
        for model in (("dpsgd", None), ("choco", "sign")):
            with pytest.raises(laconic.InvalidError, match="a model algo"):
                Averager(*model, transport=t)
        with pytest.raises(laconic.InvalidError, match="both comm and"):
            Averager(comm=object(), transport=t)
        assert not t.closed
    workers(1, work)
    monkeypatch.delenv("LACONIC_TRANSPORT", raising=False)
    with pytest.raises(laconic.InvalidError, match="laconic launch"):
        Averager()
    monkeypatch.setenv("LACONIC_TRANSPORT", "pigeon")
    with pytest.raises(laconic.NotFoundError, match="pigeon"):
        Averager()


def test_closing_leaves_a_transport_that_was_given_open(workers):
    def work(t):
        with Averager(transport=t) as averager:
            averager.mean(np.ones(3, np.float32))
        assert not t.closed
        for call in (lambda: averager.mean(np.ones(3, np.float32)),
                     averager.state_dict,
                     lambda: averager.load_state_dict({})):
            with pytest.raises(laconic.InvalidError, match="averager: it is"):
                call()
        again = Averager(transport=t)
        t.close()
        with pytest.raises(laconic.InvalidError, match="closed"):
            again.mean(np.ones(3, np.float32))
    workers(1, work)


def test_threads_may_share_an_averager(workers):
    def work(t):
        averager = Averager("error-feedback", "sign", transport=t)
        shapes = [3, 4, 5]

        def use(_):
            for _ in range(100):
                for shape in shapes:
                    averager.mean(np.ones(shape, np.float32))

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(use, range(4)))
        saved = averager.state_dict()["states"]
        assert sorted(one["shapes"] for one in saved) == [[[3]], [[4]], [[5]]]
        rounds = [a.round() for a in averager._algorithms.values()]
        assert rounds == [400] * 3
    workers(1, work)


def test_averagers_of_one_transport_do_not_mix(workers):
    # The second worker uses them in the other order.
    def work(t):
        averagers = [Averager(transport=t), Averager(transport=t)]
        with pytest.raises(laconic.PeerError, match="session"):
            averagers[t.rank].mean(np.ones(3, np.float32))
    workers(2, work)


def test_a_mistake_does_not_count_as_an_averager(workers):
    def work(t):
        if t.rank == 0:
            with pytest.raises(laconic.NotFoundError):
                Averager("sgd", transport=t)
        return Averager(transport=t).mean(np.float32([t.rank])).tolist()
    assert workers(2, work) == [[0.5]] * 2


def test_results_need_memory_of_their_own(workers):
    def work(t):
        averager = Averager(transport=t)
        x, y = np.float32([1, 2]), np.float32([3, 4])
        z = np.empty(3, np.float32)
        for out in ([z[:2], z[:2]], [z[:2], z[1:]]):
            with pytest.raises(laconic.InvalidError, match="share memory"):
                averager.mean([x, y], out=out)
        with pytest.raises(laconic.InvalidError, match="share memory"):
            averager.mean([x, x], out=[x, x])
        # The results may replace the values of others.
        averager.mean([x, y], out=[y, x])
        assert (x.tolist(), y.tolist()) == ([3, 4], [1, 2])
        one = np.float32([1, 2, 3])
        averager.mean([one[:2], y], out=[one[1:], z[:2]])
        assert (one.tolist(), z[:2].tolist()) == ([1, 1, 2], [1, 2])
        none = np.empty(0, np.float32)
        averager.mean([none, none], out=[none, none])
    workers(1, work)


def test_masked_arrays_are_refused(workers):
    def work(t):
        x = np.ma.array([1.0, 2.0], mask=[False, True])
        with pytest.raises(laconic.InvalidError, match="masked array"):
            Averager(transport=t).mean(x)
        with pytest.raises(laconic.InvalidError, match="masked array"):
            Averager(transport=t).mean(np.ones(2), out=x)
        with pytest.raises(laconic.InvalidError, match="masked array"):
            laconic.encode(x, "sign")
    workers(1, work)
