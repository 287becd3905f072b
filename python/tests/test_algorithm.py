# SPDX-License-Identifier: MIT
"""Algorithms of both families with threads."""
import numpy as np
import pytest

import laconic
from laconic import Algorithm, Hub, Layout, Topology

SHAPES = {"weight": (12, 8), "bias": 12, "scale": (), "none": (0, 3)}


def gradients(rank, round=0, dtype=np.float32):
    rng = np.random.default_rng([rank, round])
    return {name: np.asarray(rng.standard_normal(shape), dtype)
            for name, shape in SHAPES.items()}


def mean(world, round=0):
    every = [gradients(rank, round) for rank in range(world)]
    return {name: np.mean([g[name] for g in every], axis=0)
            for name in SHAPES}


def opened(t, spec="allreduce", compressor=None, **options):
    return Algorithm(spec, compressor, layout=Layout(SHAPES), transport=t,
                     **options)


def test_allreduce_gives_the_mean_in_place_and_elsewhere(workers):
    def work(t):
        a = opened(t)
        x = gradients(t.rank)
        out = {name: np.empty_like(v) for name, v in x.items()}
        before = {name: v.copy() for name, v in x.items()}
        a.reduce(x, out=out)
        assert all(np.array_equal(x[n], before[n]) for n in x)
        a.reduce(x)
        assert all(np.array_equal(x[n], out[n]) for n in x)
        assert a.round("weight") == a.round(1) == 2
        assert a.traffic.messages > 0 and a.family == "gradient"
        return x
    for x in workers(3, work):
        for name, expected in mean(3).items():
            assert np.allclose(x[name], expected, atol=1e-6)


def test_some_tensors_of_a_round_may_come_first(workers):
    def work(t):
        a = opened(t, "powersgd:rank=1")
        x = gradients(t.rank)
        a.reduce({"bias": x["bias"]})
        a.reduce({n: x[n] for n in ("weight", "scale", "none")})
        whole = gradients(t.rank)
        opened(t, "powersgd:rank=1").reduce(list(whole.values()))
        assert all(np.array_equal(x[n], whole[n]) for n in SHAPES)
        return [a.round(n) for n in SHAPES]
    assert workers(2, work) == [[1] * 4] * 2


def test_tensors_of_different_rounds_are_refused(workers):
    def work(t):
        a = opened(t)
        x = gradients(t.rank)
        a.reduce({"bias": x["bias"]})
        with pytest.raises(laconic.InvalidError, match=r"rounds: \[0, 1\]"):
            a.reduce(x)
        with pytest.raises(laconic.InvalidError, match="round"):
            a.reduce({"bias": x["bias"]}, round=7)
    workers(1, work)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats(workers, dtype):
    def work(t):
        x = gradients(t.rank, dtype=dtype)
        opened(t).reduce(x)
        return x
    for x in workers(2, work):
        for name, expected in mean(2).items():
            assert x[name].dtype == dtype
            assert np.allclose(x[name], expected, atol=2e-3)


def test_inputs_that_are_not_contiguous_are_copied(workers):
    def work(t):
        wide = np.arange(2 * 96, dtype=np.float32).reshape(96, 2)[:, 0]
        out = np.zeros(96, np.float32)
        a = Algorithm("allreduce", layout=Layout({"x": 96}), transport=t)
        a.reduce([wide], out=[out])
        assert np.array_equal(out, wide)
        shifted = np.arange(97, dtype=np.float32)
        a.reduce([shifted[1:]], out=[shifted[:-1]])
        assert shifted[:-1].tolist() == list(range(1, 97))
        a.reduce([out.astype(">f4")], out=[out])
        assert np.array_equal(out, wide)
        with pytest.raises(laconic.InvalidError, match="not contiguous"):
            a.reduce([wide])
        assert a.round() == 3
    workers(1, work)


def test_wrong_arrays_raise(workers):
    def work(t):
        a = opened(t)
        x = gradients(0)
        for arrays, message in (
                ({"wieght": x["weight"]}, "no tensor is named 'wieght'"),
                ({"bias": x["weight"]}, "bias has 96 values, expected 12"),
                ({"bias": np.zeros(12, np.int32)}, "dtype int32"),
                ([x["weight"]], "has 1 arrays, expected 4")):
            with pytest.raises(laconic.Error, match=message):
                a.reduce(arrays)
        with pytest.raises(laconic.InvalidError, match="bias is not in out"):
            a.reduce({"bias": x["bias"]}, out={})
        with pytest.raises(laconic.InvalidError, match="its result float64"):
            a.reduce({"bias": x["bias"]}, out={"bias": np.zeros(12)})
        with pytest.raises(TypeError, match="is a list"):
            a.reduce({"bias": [1.0] * 12})
        with pytest.raises(laconic.InvalidError, match="tensor is 4"):
            a.round(4)
    workers(1, work)


def test_wrong_settings_raise(workers):
    def work(t):
        with pytest.raises(laconic.NotFoundError, match="no algorithm"):
            opened(t, "fedavg")
        with pytest.raises(laconic.InvalidError, match="topology"):
            opened(t, "dpsgd")
        with pytest.raises(laconic.InvalidError, match="nonfinite is 'wait'"):
            opened(t, nonfinite="wait")
        with pytest.raises(laconic.InvalidError, match="compressor"):
            opened(t, "allreduce", "sign")
        with pytest.raises(laconic.InvalidError, match="timeout"):
            opened(t, timeout=0)
    workers(1, work)


GOSSIP = [("dpsgd", None), ("choco:gamma=0.4", "top-k:0.5"), ("dcd", "qsgd"),
          ("powergossip", None)]


@pytest.mark.parametrize("spec, compressor", GOSSIP)
def test_gossip_reaches_consensus(workers, spec, compressor):
    topology = Topology("ring", 4)

    def work(t):
        x = gradients(t.rank)
        a = opened(t, spec, compressor, topology=topology)
        a.start(x)
        for round in range(200):
            if a.takes_update:
                a.mix(x, {n: np.zeros_like(v) for n, v in x.items()})
            elif round % 2:
                a.mix(x)
            else:
                a.begin(x)
                a.end(x, [None] * 4)
        assert a.round() == 200 and a.family == "model"
        assert a.gamma == (0.4 if "gamma" in spec else None)
        return x
    results = workers(4, work)
    for name, expected in mean(4).items():
        for x in results:
            assert np.allclose(x[name], expected, atol=0.05)


def test_updates_are_added(workers):
    topology = Topology("ring", 3)

    def work(t):
        x = {n: np.zeros_like(v) for n, v in gradients(0).items()}
        a = opened(t, "dpsgd", topology=topology)
        a.start(x)
        a.mix(x, {"bias": np.ones(12)})
        assert np.all(x["bias"] == 1) and not x["weight"].any()
        with pytest.raises(laconic.InvalidError, match="update of bias"):
            a.mix(x, {"bias": np.ones(3)})
    workers(3, work)


@pytest.mark.parametrize("spec, compressor, topology", [
    ("powersgd:rank=1", None, None), ("error-feedback", "top-k:0.1", None),
    ("choco:gamma=0.4", "sign", "ring")])
def test_a_saved_state_continues_bit_for_bit(
        workers, spec, compressor, topology):
    network = topology and Topology(topology, 2)

    def step(a, x, rank, round):
        if a.family == "model":
            a.mix(x)
        else:
            x.update(gradients(rank, round))
            a.reduce(x)

    def work(t):
        x = gradients(t.rank)
        a = opened(t, spec, compressor, topology=network)
        if a.family == "model":
            a.start(x)
        for round in range(3):
            step(a, x, t.rank, round)
        state, copy = a.save(), {n: v.copy() for n, v in x.items()}
        step(a, x, t.rank, 3)
        b = opened(t, spec, compressor, topology=network)
        b.load(state)
        assert b.round() == 3
        step(b, copy, t.rank, 3)
        assert all(np.array_equal(x[n], copy[n]) for n in x)
        with pytest.raises(laconic.CorruptError):
            b.load(state[:-1])
        with pytest.raises(laconic.InvalidError, match="algorithm"):
            opened(t, "signum" if network is None else "dpsgd",
                   topology=network).load(state)
        return state
    workers(2, work)


def test_a_state_of_another_world_is_loaded_on_request(workers):
    def save(t):
        a = opened(t, "powersgd:rank=1")
        a.reduce(gradients(t.rank))
        return a.save()

    state = workers(2, save)[1]

    def load(t):
        a = opened(t, "powersgd:rank=1")
        with pytest.raises(laconic.InvalidError, match="worker"):
            a.load(state)
        a.load(state, other_world=True)
        return a.round()
    assert workers(3, load) == [1, 1, 1]


@pytest.mark.parametrize("nonfinite", ["stop", "skip", "raw", "propagate"])
def test_the_policy_of_nonfinite_values_reaches_all_workers(
        workers, nonfinite):
    def work(t):
        a = opened(t, "powersgd:rank=1", nonfinite=nonfinite)
        x = gradients(t.rank)
        if t.rank == 1:
            x["bias"][3] = np.inf
        if nonfinite == "stop":
            with pytest.raises(laconic.InvalidError, match="bias"):
                a.reduce(x)
            return None
        a.reduce(x)
        if nonfinite == "propagate":
            assert all(np.isnan(v).all() for v in x.values())
        elif nonfinite == "skip":
            assert not any(v.any() for v in x.values())
        else:
            assert x["bias"][3] == np.inf and np.isfinite(x["weight"]).all()
        return a.round()
    workers(2, work)


def test_a_warning_is_text_or_none():
    with Hub(1) as hub, hub.join(0) as t:
        assert opened(t).warning is None
        bad = opened(t, "naive", "sign", topology=Topology("ring", 1))
        assert bad.warning and bad.warning == bad.warning.strip()


def test_waiting_is_measured_on_request(workers):
    def work(t):
        a, b = opened(t, timing=True), opened(t)
        a.reduce(gradients(t.rank))
        b.reduce(gradients(t.rank))
        return a.waited > 0, b.waited
    assert workers(2, work) == [(True, 0.0)] * 2
