# SPDX-License-Identifier: MIT
"""Layouts, topologies and lists of plug-ins."""
import numpy as np
import pytest

import laconic
from laconic import Layout, Topology
from laconic._layout import escape


def test_layouts_list_tensors_in_order():
    layout = Layout([("conv", (8, 3, 5, 5)), ("scale", ()), ("none", (0, 4))])
    assert [t.values for t in layout] == [600, 1, 0]
    assert layout["conv"][:3] == ("conv", 8, 75)
    assert (len(layout), layout.values) == (3, 601)
    assert layout.index("scale") == 1
    assert layout[1].offset == 600


def test_layouts_of_text_and_of_shapes_have_one_hash():
    text = Layout.parse("# model\nw 3 4\nb, 3\n")
    assert text.hash == Layout({"w": (3, 4), "b": 3}).hash
    assert text.hash != Layout({"b": 3, "w": (3, 4)}).hash


def test_wrong_layouts_raise():
    for tensors, message in (({"a b": 1}, "blank"), ({"": 1}, "empty"),
                             ([("a", 1), ("a", 2)], "two tensors"),
                             ({"a": (2**33, 2**33)}, "shape of a is"),
                             ({"a": 2**57, "b": 2**57, "c": 2**57,
                               "d": 2**57}, "in all")):
        with pytest.raises(laconic.InvalidError, match=message):
            Layout(tensors)
    with pytest.raises(laconic.InvalidError, match="line 2"):
        Layout.parse("a 1\nb x\n")
    with pytest.raises(laconic.NotFoundError, match="'c'"):
        Layout({"a": 1})["c"]


def test_escaped_names_are_accepted_and_differ():
    names = ["", "%", "a b", "a,b", "a#b", "a%20b", "a\tb", "naïve", "\x7f"]
    assert len(Layout([(escape(n), 1) for n in names])) == len(names)


@pytest.mark.parametrize("spec", ["ring", "star", "hypercube", "social",
                                  "one-peer-exponential"])
def test_matrices_are_doubly_stochastic_and_match_the_edges(spec):
    workers = 32 if spec == "social" else 8
    t = Topology(spec, workers)
    for round in range(t.period):
        w = t.matrix(round)
        assert np.allclose(w.sum(axis=0), 1) and np.array_equal(w, w.T)
        for rank in range(workers):
            row = np.zeros(workers)
            row[rank] = t.self_weight(rank, round)
            for peer, weight in t.neighbours(rank, round).items():
                row[peer] = weight
            assert np.array_equal(row, w[rank])
            assert set(t.neighbours(rank, round)) <= set(t.peers(rank))
    assert t.max_degree == max(
        len(t.neighbours(r, n)) for r in range(workers)
        for n in range(t.period))


def test_the_spectrum_is_numpys():
    t = Topology("torus", 16)
    values = np.sort(np.linalg.eigvalsh(t.matrix()))
    assert t.spectrum.lambda2 == pytest.approx(values[-2])
    assert t.spectrum.lambdan == pytest.approx(values[0])
    assert t.spectrum.beta == pytest.approx(1 - values[0])
    assert t.gap == pytest.approx(1 - max(abs(values[-2]), abs(values[0])))


def test_random_networks_depend_on_the_seed():
    a, b, c = (Topology("random-regular:3", 20, seed=s) for s in (1, 1, 2))
    assert a.hash == b.hash != c.hash
    assert a.edge_count == 30


def test_wrong_topologies_raise():
    with pytest.raises(laconic.InvalidError, match="hypercube"):
        Topology("hypercube", 6)
    with pytest.raises(laconic.NotFoundError):
        Topology("circle", 6)
    with pytest.raises(laconic.InvalidError, match="workers is 4294967296"):
        Topology("ring", 2**32)
    ring = Topology("ring", 4)
    for call in (ring.neighbours, ring.self_weight, ring.peers):
        with pytest.raises(laconic.InvalidError, match="rank is 4"):
            call(4)
    with pytest.raises(laconic.InvalidError, match="round is -1"):
        ring.matrix(-1)


def test_plugins_are_those_of_the_specs():
    assert {"top-k", "sign"} <= {c.name for c in laconic.compressors()}
    gamma = next(p for a in laconic.algorithms() if a.name == "choco"
                 for p in a.params if p.name == "gamma")
    assert gamma.type == "f64 or word" and "auto" in gamma.choices
    assert gamma.help and gamma.default and gamma.min == 0.0
    rank = next(a for a in laconic.algorithms()
                if a.name == "powersgd").params[0]
    assert (rank.name, rank.type) == ("rank", "u32") and rank.max >= 1
    for topology in laconic.topologies():
        assert topology.summary and topology.name == topology.name.lower()
