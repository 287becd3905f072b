# SPDX-License-Identifier: MIT
"""Compressors and error memories by NumPy."""
import numpy as np
import pytest

import laconic
from laconic import Compressor, Key, Memory, decode, encode

NORMAL = np.random.default_rng(1).standard_normal((64, 48), np.float32)


@pytest.mark.parametrize("spec", [c.name for c in laconic.compressors()])
def test_every_compressor_keeps_its_error_bound(spec):
    compressor = Compressor(spec, "contractive")
    bound = compressor.guarantee(NORMAL.shape).error
    payload = compressor.encode(NORMAL)
    assert len(payload) <= compressor.bound(NORMAL.shape)
    y = compressor.decode(payload, NORMAL.shape)
    assert y.shape == NORMAL.shape and y.dtype == np.float32
    error = np.sum((y - NORMAL) ** 2) / np.sum(NORMAL ** 2)
    # A bound of the mean; one draw of 3072 values is near it.
    assert error <= 1.1 * bound + 1e-6


def test_identity_gives_the_same_bits():
    assert np.array_equal(
        decode(encode(NORMAL, "identity"), "identity", NORMAL.shape), NORMAL)


def test_a_shape_is_a_matrix_of_its_first_dimension():
    x = NORMAL.reshape(8, 4, 6, 16)
    low_rank = Compressor("low-rank:1")
    assert low_rank.encode(x) == low_rank.encode(x.reshape(8, -1))
    assert low_rank.decode(low_rank.encode(x), x.shape).shape == x.shape


def test_keys_change_random_draws():
    payloads = {encode(NORMAL, "qsgd", key) for key in (
        Key(), Key(seed=2), Key(round=1), Key(name="a"), Key(scope=1),
        Key(scope=(0, 1)), Key(scope="shared"))}
    assert len(payloads) == 7
    assert encode(NORMAL, "qsgd", Key(scope=(3, 1))) == encode(
        NORMAL, "qsgd", Key(scope=(1, 3)))


def test_a_shared_key_saves_the_indices():
    random = Compressor("random-k:0.1")
    mine, shared = Key(scope=0), Key(scope="shared", round=5)
    assert random.bound(1000, shared) < random.bound(1000, mine)
    x = np.arange(1000, dtype=np.float32)
    y = random.decode(random.encode(x, shared), 1000, shared)
    assert np.count_nonzero(y) in (99, 100)
    assert random.kept(1000) == 100


def test_decode_add_has_the_bits_of_decoding_and_adding():
    c = Compressor("natural")
    payload = c.encode(NORMAL)
    y = NORMAL.copy()
    c.decode_add(payload, y, 0.5)
    assert np.array_equal(
        y, NORMAL + np.float32(0.5) * c.decode(payload, NORMAL.shape))


def test_decode_writes_to_out():
    out = np.full(NORMAL.shape, np.nan, np.float32)
    c = Compressor("half")
    assert c.decode(c.encode(NORMAL), NORMAL.shape, out=out) is out
    assert np.allclose(out, NORMAL, rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ">f4"])
def test_other_floats_are_converted(dtype):
    x = np.array([1.0, -2.5, 0.25]).astype(dtype)
    assert decode(encode(x, "identity"), "identity", 3).tolist() == [
        1.0, -2.5, 0.25]


def test_scalars_empty_and_strided_arrays():
    assert decode(encode(np.float32(2.5), "identity"), "identity", ()) == 2.5
    assert encode(np.zeros((3, 0), np.float32), "sign") == b""
    assert decode(b"", "sign", (3, 0)).shape == (3, 0)
    strided = NORMAL[::2, ::3]
    assert encode(strided, "identity") == strided.tobytes()
    assert encode(NORMAL.T, "identity") == NORMAL.T.tobytes()


@pytest.mark.parametrize("spec", [c.name for c in laconic.compressors()])
def test_damaged_payloads_raise(spec):
    c = Compressor(spec)
    payload = c.encode(NORMAL)
    before = np.zeros(NORMAL.shape, np.float32)
    for bad in (b"", payload[:-1], payload + b"x"):
        with pytest.raises(laconic.CorruptError, match="^[a-z0-9-]+: "):
            c.decode(bad, NORMAL.shape, out=before)
    assert not before.any()


def test_wrong_arguments_raise():
    x = np.zeros(4, np.float32)
    with pytest.raises(laconic.NotFoundError, match="no compressor is named"):
        encode(x, "zip")
    with pytest.raises(laconic.InvalidError, match="top-k"):
        encode(x, "top-k:7")
    with pytest.raises(laconic.InvalidError, match="form is 'best'"):
        Compressor("sign", "best")
    with pytest.raises(laconic.InvalidError, match="NUL"):
        Compressor("sign\0")
    with pytest.raises(TypeError, match="expected a str"):
        Compressor(b"sign")
    with pytest.raises(laconic.InvalidError, match="dtype int64"):
        encode(np.arange(4), "sign")
    with pytest.raises(laconic.InvalidError, match="scope is 'all'"):
        encode(x, "sign", Key(scope="all"))
    with pytest.raises(laconic.InvalidError, match="seed is -1"):
        encode(x, "sign", Key(seed=-1))
    with pytest.raises(TypeError, match="payload is a str"):
        decode("abc", "sign", 4)
    for shape in ((2**40, 2**40), (0, 2**63), -1, (2**70,)):
        with pytest.raises(laconic.InvalidError, match="shape is"):
            Compressor("sign").bound(shape)


def test_targets_that_cannot_be_written_are_refused():
    c = Compressor("identity")
    payload = c.encode(np.ones(4, np.float32))
    frozen = np.zeros(4, np.float32)
    frozen.flags.writeable = False
    for out, message in ((np.zeros(4), "dtype float64, expected float32"),
                         (np.zeros(3, np.float32), "has 3 values"),
                         (np.zeros(8, np.float32)[::2], "not contiguous"),
                         (np.zeros(4, ">f4"), "byte order"),
                         (frozen, "read-only")):
        with pytest.raises(laconic.InvalidError, match=message):
            c.decode(payload, 4, out=out)
    with pytest.raises(TypeError, match="is a list"):
        c.decode(payload, 4, out=[0.0] * 4)


def test_kernels_give_the_same_bytes():
    c = Compressor("natural")
    best = c.encode(NORMAL)
    c.use_kernels("portable")
    assert c.kernels == "portable"
    assert c.encode(NORMAL) == best
    assert not c.prefetches
    c.use_kernels("best:prefetch=off")
    assert not c.prefetches
    assert c.encode(NORMAL) == best
    with pytest.raises(laconic.NotFoundError):
        c.use_kernels("abacus")


def test_threads_give_the_same_bytes():
    c = Compressor("natural")
    x = np.random.default_rng(1).standard_normal(300000, np.float32)
    one = c.encode(x)
    c.use_threads(3)
    assert c.encode(x) == one
    with pytest.raises(laconic.InvalidError, match="threads are 0"):
        c.use_threads(0)
    assert c.encode(x) == one


def test_memory_delivers_everything_in_time():
    memory = Memory(Compressor("top-k:0.25"), 4)
    x = np.float32([4.0, 3.0, 2.0, 1.0])
    delivered = np.zeros(4, np.float32)
    for round in range(40):
        payload = memory.encode(x, Key(round=round))
        delivered += decode(payload, "top-k:0.25", 4)
        memory.settle(payload, Key(round=round))
    assert np.array_equal(delivered + memory.values, 40 * x)
    assert np.all(memory.values <= 12.0)


def test_memory_continues_from_written_values():
    first = Memory(Compressor("sign"), (2, 3))
    first.settle(first.encode(NORMAL[:2, :3]))
    second = Memory(Compressor("sign"), (2, 3))
    second.values = first.values
    assert first.encode(NORMAL[2:4, :3]) == second.encode(NORMAL[2:4, :3])
    with pytest.raises(laconic.InvalidError, match="has shape"):
        second.encode(NORMAL)
    with pytest.raises(laconic.InvalidError, match="finite"):
        second.encode(np.full((2, 3), np.nan, np.float32))


def test_memory_outlives_the_name_of_its_compressor():
    c = Compressor("sign")
    memory = Memory(c, 3)
    c.close()
    with pytest.raises(laconic.InvalidError, match="compressor: it is closed"):
        memory.encode(np.ones(3, np.float32))
    assert memory.values.tolist() == [0, 0, 0]


@pytest.mark.parametrize("call, kind, message", [
    (lambda: encode(np.ones(3), "sign", 5), TypeError,
     "key is 5, expected a Key"),
    (lambda: Compressor("sign").bound(3, 5), TypeError,
     "key is 5, expected a Key"),
    (lambda: encode(np.ones(3), "sign", Key(name="\udc80")),
     laconic.InvalidError, "key: name is '.udc80', expected UTF-8"),
    (lambda: laconic.Layout({"\udc80": 3}), laconic.InvalidError,
     "layout: a name is '.udc80', expected UTF-8"),
    (lambda: laconic.Layout({"a": 2.5}), TypeError,
     "shape of a is 2.5, expected whole numbers"),
    (lambda: laconic.Layout({"a": None}), TypeError, "of a is None"),
    (lambda: laconic.Layout({"a": "23"}), TypeError, "of a is '23'"),
    (lambda: laconic.Layout({"a": (2, 2.5)}), TypeError,
     r"of a is \(2, 2.5\)"),
    (lambda: Compressor("sign").decode(b"", 2.5), TypeError,
     "shape is 2.5, expected whole numbers"),
    (lambda: laconic.Hub("2"), TypeError, "world is '2', expected a whole"),
    (lambda: laconic.Algorithm("allreduce", layout=5, transport=None),
     TypeError, "layout is a int, expected a Layout"),
    (lambda: laconic.Algorithm("allreduce", layout=laconic.Layout({"a": 1}),
                               transport="tcp"),
     TypeError, "transport is a str, expected a Transport"),
    (lambda: laconic.Averager(transport=laconic.Hub(1).join(0), timeout="x"),
     TypeError, "timeout is 'x', expected a number of seconds"),
])
def test_wrong_arguments_are_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
