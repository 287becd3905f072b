#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A second decoder, written from docs/format.md alone.

usage: decoder.py LACONIC

Encodes tensors with every compressor in every form, decodes the files with
this program and with `laconic decode`, and compares the bits.
"""
import array
import ctypes
import ctypes.util
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

MASK = 0xFFFFFFFF


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


XXHASH = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
XXHASH.XXH3_64bits.restype = ctypes.c_uint64
XXHASH.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
XXHASH.XXH3_128bits.restype = Hash128
XXHASH.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def f32(x):
    """Round to float, once."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def make_key(seed, purpose, round_):
    source = struct.pack("<QQQIIII", seed, round_, 0, purpose, 2, 0, 0)
    mixed = XXHASH.XXH3_128bits(source, len(source))
    return mixed.low, mixed.high


def draw(key, index):
    k = (key[0] & MASK, key[0] >> 32, key[1] & MASK, key[1] >> 32)
    z = (index * 0x9E3779B9 + k[0]) & MASK
    z = ((z ^ z >> 16) * 0x21F0AAAD + k[1]) & MASK
    z = ((z ^ z >> 15) * 0x735A2D97 + k[2]) & MASK
    return z ^ z >> 15 ^ k[3]


def stream_bits(data):
    return [byte >> i & 1 for byte in data for i in range(8)]


def codes(data, n, bits):
    flat = stream_bits(data)
    return [sum(flat[i * bits + j] << j for j in range(bits))
            for i in range(n)]


def floats(data):
    return list(struct.unpack("<%df" % (len(data) // 4), data))


def power(sign, field):
    return struct.unpack("<f", struct.pack("<I", sign << 31 | field << 23))[0]


def decode_natural(p, data, key, rows, cols):
    n = rows * cols
    if p["bits"] == "9":
        signs = stream_bits(data[n:])
        return [power(signs[i], data[i]) for i in range(n)]
    top = data[0]
    return [power(c >> 7, top - 127 + (c & 127) if c & 127 else 0)
            for c in data[1:]]


def level_bits(levels):
    return math.ceil(math.log2(levels + 1)) + 1


def decode_dithering(p, data, key, rows, cols):
    n, s = rows * cols, int(p["levels"])
    bucket = int(p["bucket"]) or n
    count = -(-n // bucket)
    norms = floats(data[:4 * count])
    b = level_bits(s)
    result = []
    for i, code in enumerate(codes(data[4 * count:], n, b)):
        norm = norms[i // bucket]
        size = f32((code & (1 << b - 1) - 1) * f32(norm / s))
        result.append(-size if code >> b - 1 else size)
    return result


def decode_natural_dithering(p, data, key, rows, cols):
    n, s = rows * cols, int(p["levels"])
    norm = floats(data[:4])[0]
    b = level_bits(s)
    result = []
    for code in codes(data[4:], n, b):
        level = code & (1 << b - 1) - 1
        size = f32(norm * 2.0 ** (level - s)) if level else 0.0 * norm
        result.append(-size if code >> b - 1 else size)
    return result


def decode_sign(p, data, key, rows, cols):
    scale = floats(data[:4])[0]
    bits = stream_bits(data[4:])
    return [-scale if bits[i] else scale for i in range(rows * cols)]


def product(left, right, r, rows, cols):
    """Return P Q^T; the columns of P and of Q follow one another."""
    result = []
    for i in range(rows):
        for j in range(cols):
            total = f32(left[i] * right[j])
            for k in range(1, r):
                term = f32(left[k * rows + i] * right[k * cols + j])
                total = f32(total + term)
            result.append(total)
    return result


def decode_low_rank(p, data, key, rows, cols):
    n = rows * cols
    if p["fold"] == "yes" and min(rows, cols) == 1:
        rows = math.isqrt(n - 1) + 1
        cols = -(-n // rows)
    r = min(int(p["rank"]), rows, cols)
    values = floats(data)
    if r * (rows + cols) >= n:
        return values
    return product(values, values[r * rows:], r, rows, cols)[:n]


def normal(key, index):
    """Return the deviate as a float: a sum of twelve bytes."""
    total = sum(draw(key, 3 * index + i) >> 8 * j & 255
                for i in range(3) for j in range(4))
    return f32((total - 1530) / 255.998046875)


def decode_unbiased_rank(p, data, key, rows, cols):
    r = int(p["rank"])
    values = floats(data)
    if min(rows, cols) <= 1 or r >= cols:
        return values
    drawn = [normal(key, i) for i in range(r * cols)]
    return product(values, drawn, r, rows, cols)


CENTRES = {
    1: [3268],
    2: [1855, 6187],
    3: [1004, 3097, 5505, 8814],
    4: [526, 1589, 2690, 3860, 5146, 6628, 8475, 11193],
}


def stage(values, bit, unequal=False):
    for i in range(len(values)):
        if not i >> bit & 1:
            u, v = values[i], values[i | 1 << bit]
            if unequal:
                values[i] = f32(f32(0.75 * u) + v)
                values[i | 1 << bit] = f32(u - f32(0.75 * v))
            else:
                values[i] = f32(u + v)
                values[i | 1 << bit] = f32(u - v)


def rotate_back(values, key, first):
    m = len(values)
    high = range(6, (m - 1).bit_length())
    for bit in (3, 4, 5, 0, 1, 2, *high):
        stage(values, bit)
    for i in range(m):
        p = i & ~63 | i >> 3 & 7 | (i & 7) << 3
        word = draw(key, first + m // 8 + p // 256 * 8 + p % 8)
        if word >> 31 - p // 8 % 32 & 1:
            values[i] = -values[i]
    for bit in high:
        stage(values, bit)
    for bit in range(6):
        stage(values, bit, unequal=bit not in (2, 5))
    for i in range(m):
        word = draw(key, first + i // 256 * 8 + i % 8)
        if word >> 31 - i // 8 % 32 & 1:
            values[i] = -values[i]
    return values


def decode_rotated(p, data, key, rows, cols):
    n, b, block = rows * cols, int(p["bits"]), int(p["block"])
    seed = make_key(key[0], 3, key[1])[0]
    drawn = make_key(seed, 3, 0)
    sizes, left = [], n
    while left >= 64:
        while block > left:
            block //= 2
        sizes.append(block)
        left -= block
    scales = floats(data[:4 * len(sizes)])
    at = 4 * len(sizes)
    end = at + b * (n - left) // 8
    all_codes = codes(data[at:end], n - left, b)
    result = []
    for m, scale in zip(sizes, scales):
        start = len(result)
        step = f32(scale / (m / 4 * 625 / 256))
        values = []
        for code in all_codes[start:start + m]:
            centre = CENTRES[b][code & (1 << b - 1) - 1] / 4096
            value = f32(centre * step)
            values.append(-value if code >> b - 1 else value)
        result += rotate_back(values, drawn, start // 4)
    return result + floats(data[end:])


def kept(p, n, rows, cols):
    if int(p.get("rank", 0)) > 0:
        return min(n, int(p["rank"]) * (rows + cols))
    chunk = int(p.get("chunk", 0)) or n
    return sum(max(1, int(float(p["ratio"]) * min(chunk, n - start)))
               for start in range(0, n, chunk))


def top_k_indices(data, n, k):
    """Return the indices, and how many bytes encode them."""
    if k == n:
        return list(range(n)), 0
    if data[0] == 0:
        return list(struct.unpack("<%dI" % k, data[1:1 + 4 * k])), 1 + 4 * k
    if data[0] == 2:
        bits = stream_bits(data[1:1 + -(-n // 8)])
        return [i for i in range(n) if bits[i]], 1 + -(-n // 8)
    b, bits, at, last, found = data[1], stream_bits(data[2:]), 0, -1, []
    for _ in range(k):
        high = bits.index(1, at) - at
        at += high + 1
        low = sum(bits[at + j] << j for j in range(b))
        at += b
        last += (high << b | low) + 1
        found.append(last)
    return found, 2 + -(-at // 8)


def random_k_indices(key, n, k):
    if k == n:
        return list(range(n))
    choice = make_key(key[0], 3, 0)
    b = max(8, (n - 1).bit_length())
    high_bits = b // 2
    low_bits = b - high_bits
    found = []
    for j in range(k):
        value = j
        while True:
            low, high = value & (1 << low_bits) - 1, value >> low_bits
            for t in range(8):
                if t % 2 == 0:
                    low ^= draw(choice, t << 16 | high) & (1 << low_bits) - 1
                else:
                    high ^= draw(choice, t << 16 | low) & (1 << high_bits) - 1
            value = high << low_bits | low
            if value < n:
                break
        found.append(value)
    return found


def random_block_indices(key, n, k):
    start = 0
    if k < n:
        start = draw(make_key(key[0], 3, 0), 0) * n >> 32
    return [(start + j) % n for j in range(k)]


DEFAULTS = {
    "identity": [], "half": [], "bfloat16": [], "sign": [], "two-bit": [],
    "natural": [("bits", "9")],
    "natural-dithering": [("levels", "8"), ("norm", "2")],
    "dithering": [("levels", "127"), ("norm", "2"), ("bucket", "0")],
    "top-k": [("ratio", "0.01"), ("chunk", "0")],
    "random-k": [("ratio", "0.01"), ("rank", "0")],
    "random-block": [("ratio", "0.01"), ("rank", "0")],
    "low-rank": [("rank", "1"), ("iterations", "1"), ("fold", "no")],
    "unbiased-rank": [("rank", "1")],
    "atomo": [("rank", "1")],
    "rotated": [("bits", "4"), ("block", "1024")],
}

ALIASES = {
    "qsgd": ("dithering", {"norm": "2"}),
    "terngrad": ("dithering", {"levels": "1", "norm": "inf"}),
}

DENSE = {
    "identity": lambda p, data, key, rows, cols: floats(data),
    "half": lambda p, data, key, rows, cols: list(
        struct.unpack("<%de" % (rows * cols), data)),
    "bfloat16": lambda p, data, key, rows, cols: [
        struct.unpack("<f", b"\0\0" + data[i:i + 2])[0]
        for i in range(0, len(data), 2)],
    "natural": decode_natural,
    "dithering": decode_dithering,
    "natural-dithering": decode_natural_dithering,
    "sign": decode_sign,
    "low-rank": decode_low_rank,
    "unbiased-rank": decode_unbiased_rank,
    "atomo": lambda p, data, key, rows, cols: decode_low_rank(
        {**p, "fold": "no"}, data, key, rows, cols),
    "rotated": decode_rotated,
    "two-bit": lambda p, data, key, rows, cols: [
        floats(data[:16])[code] for code in codes(data[16:], rows * cols, 2)],
}


def settings(spec):
    name, _, rest = spec.partition(":")
    name, preset = ALIASES.get(name, (name, {}))
    p = {**dict(DEFAULTS[name]), **preset}
    for i, item in enumerate(rest.split(",") if rest else []):
        key, equals, value = item.partition("=")
        p[key if equals else DEFAULTS[name][i][0]] = value if equals else item
    return name, p


def decode_payload(spec, data, key, rows, cols):
    outer, _, inner = spec.partition("+")
    name, p = settings(outer)
    if name in DENSE:
        return DENSE[name](p, data, key, rows, cols)
    n = rows * cols
    k = kept(p, n, rows, cols)
    used = 0
    if name == "top-k":
        indices, used = top_k_indices(data, n, k)
    elif name == "random-k":
        indices = random_k_indices(key, n, k)
    else:
        indices = random_block_indices(key, n, k)
    inner_key = make_key(key[0], 2, key[1])
    values = decode_payload(
        inner or "identity", data[used:], inner_key, k, 1)
    result = [0.0] * n
    for index, value in zip(indices, values):
        result[index] = value
    return result


def decode_file(data):
    assert data[:8] == b"\x89LACONIC"
    (_, head, _, _, low, high, size, dims, chars) = struct.unpack(
        "<IIIIQQQII", data[8:56])
    shape = struct.unpack("<%dQ" % dims, data[56:56 + 8 * dims])
    spec = data[head - chars:head].decode()
    (checksum,) = struct.unpack("<Q", data[-8:])
    assert checksum == XXHASH.XXH3_64bits(data[:-8], len(data) - 8)
    rows = shape[0] if shape else 1
    cols = math.prod(shape[1:])
    return decode_payload(
        spec, data[head:head + size], (low, high), rows, cols)


def write_npy(path, shape, values):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (shape,)
    text += " " * (-(len(text) + 11) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)))
        out.write(text.encode() + array.array("f", values).tobytes())


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<H", data[8:10])
    return data[10 + length:]


SPECS = [
    "identity", "half", "bfloat16", "sign", "natural", "natural:8",
    "natural-dithering", "natural-dithering:3,norm=inf", "dithering",
    "dithering:levels=4,bucket=64", "dithering:1000,norm=inf,bucket=7",
    "top-k", "top-k:0.3", "top-k:0.9", "top-k:1", "random-k:0.2",
    "random-k:rank=2", "random-k:1", "random-block:0.3",
    "random-block:rank=1", "qsgd:15", "terngrad", "low-rank",
    "low-rank:rank=3,iterations=2", "low-rank:fold=yes",
    "low-rank:rank=2,fold=yes",
    "unbiased-rank", "unbiased-rank:rank=3", "top-k:0.5+unbiased-rank",
    "atomo", "atomo:rank=3",
    "rotated", "rotated:1", "rotated:2,block=64", "rotated:3,block=256",
    "top-k:0.5+rotated", "two-bit", "top-k:0.2,chunk=16",
    "top-k:0.3,chunk=64+two-bit", "top-k:0.015625,chunk=1024+sign",
    "top-k:0.1+natural", "random-k:0.3+dithering:levels=15",
    "top-k:0.5+random-k:0.5+half", "random-block:0.5+sign",
]
SHAPES = [(1,), (37,), (12, 31), (5, 6, 7)]
LARGE = (3365,)  # for those that cut a tensor into blocks
CUT = ("rotated", "chunk")


def replace_payload(data, payload):
    """Return the same file with another payload."""
    (head,) = struct.unpack("<I", data[12:16])
    data = (data[:40] + struct.pack("<Q", len(payload)) + data[48:head]
            + payload)
    return data + struct.pack("<Q", XXHASH.XXH3_64bits(data, len(data)))


def check_other_encoders(laconic, folder):
    """An encoder may write indices in any of the three ways, not only the one
    that laconic selects: 1 and 2 of 4 as a list, as gaps and as a bitmap."""
    source, packed, unpacked = (
        os.path.join(folder, name) for name in ("o.npy", "o.lac", "p.npy"))
    write_npy(source, (4,), [0.0, 3.0, -2.0, 0.0])
    subprocess.run([laconic, "encode", "--compressor", "top-k:0.5", source,
                    packed], check=True, stdout=subprocess.DEVNULL)
    with open(packed, "rb") as file:
        data = file.read()
    values = struct.pack("<2f", 3.0, -2.0)
    for indices in (b"\0" + struct.pack("<2I", 1, 2), b"\1\0\x06",
                    b"\2\x06"):
        other = replace_payload(data, indices + values)
        with open(packed, "wb") as file:
            file.write(other)
        subprocess.run([laconic, "decode", packed, unpacked], check=True,
                       stdout=subprocess.DEVNULL)
        theirs = read_npy(unpacked)
        if not (array.array("f", decode_file(other)).tobytes() == theirs
                == struct.pack("<4f", 0, 3, -2, 0)):
            sys.exit(f"indices written as {indices!r}: values differ")


def check_defaults(laconic):
    """The defaults of settings must never change. A compressor that is being
    added may be missing from docs/format.md."""
    listed = json.loads(subprocess.run(
        [laconic, "list", "--json"], check=True, capture_output=True).stdout)
    names = {plugin["name"] for plugin in listed["compressors"]}
    lost = sorted((DEFAULTS.keys() | ALIASES.keys()) - names)
    if lost:
        sys.exit(f"laconic list: {', '.join(lost)} missing")
    for plugin in listed["compressors"]:
        name, params = plugin["name"], plugin["params"]
        alias, preset = ALIASES.get(name, (name, {}))
        if alias not in DEFAULTS:
            print(f"{name}: not decoded, this decoder does not know its "
                  "payload")
            continue
        expected = {**dict(DEFAULTS[alias]), **preset}
        for param in params:
            value = param["default"]
            if isinstance(value, bool):
                value = "yes" if value else "no"
            text = value if isinstance(value, str) else f"{value:g}"
            if expected[param["name"]] != text:
                sys.exit(f"{name}: {param['name']} is {text} by default, "
                         f"expected {expected[param['name']]}")


def main():
    laconic = sys.argv[1]
    check_defaults(laconic)
    random.seed(1)
    passed = 0
    with tempfile.TemporaryDirectory() as folder:
        source, packed, unpacked = (
            os.path.join(folder, name) for name in ("x.npy", "x.lac", "y.npy"))
        check_other_encoders(laconic, folder)
        for shape in SHAPES + [LARGE]:
            values = [random.gauss(0, 1) for _ in range(math.prod(shape))]
            write_npy(source, shape, values)
            for spec in SPECS:
                if shape == LARGE and not any(name in spec for name in CUT):
                    continue
                for form in ("plain", "unbiased", "contractive"):
                    subprocess.run(
                        [laconic, "encode", "--compressor", spec, "--form",
                         form, source, packed],
                        check=True, stdout=subprocess.DEVNULL)
                    subprocess.run(
                        [laconic, "decode", packed, unpacked],
                        check=True, stdout=subprocess.DEVNULL)
                    with open(packed, "rb") as file:
                        mine = decode_file(file.read())
                    theirs = read_npy(unpacked)
                    if array.array("f", mine).tobytes() != theirs:
                        sys.exit(f"{spec}, {form}, {shape}: values differ")
                    passed += 1
    print(f"{passed} files decoded to the same bits")


if __name__ == "__main__":
    main()
