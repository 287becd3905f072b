# SPDX-License-Identifier: MIT
"""encode and decode: the files they read, write and reject."""
import json
import math
import os
import resource
import struct
import subprocess
import unittest

from command import Command, FAILED, LACONIC, USAGE, npy, values_of

DETERMINISTIC = ("identity", "half", "bfloat16", "sign", "top-k")
RANDOM = ("natural", "natural-dithering", "dithering", "qsgd", "terngrad",
          "random-k", "random-block")


def lac_of(values, checksum):
    """A file of 101 bytes with so many values, compressed by random-k:1e-9. The
    standard library has no XXH3, so the checksum is an argument."""
    spec = b"random-k:1e-9"
    return (b"\x89LACONIC" + struct.pack("<4I", 1, 64 + len(spec), 9, 0)
            + bytes(16) + struct.pack("<QIIQ", 16, 1, len(spec), values)
            + spec + bytes(16) + struct.pack("<Q", checksum))


class Files(Command):
    def test_the_input_is_not_overwritten(self):
        os.link(os.path.join(self.folder, "x.npy"),
                os.path.join(self.folder, "same.npy"))
        message = ("%s: is both read and written, expected another file to "
                    "write to")
        for out in ("x.npy", "./x.npy", "same.npy"):
            self.fails(USAGE, message % out, "encode", "--compressor",
                       "natural", "x.npy", out)
        self.succeeds("encode", "--compressor", "natural", "x.npy", "x.lac")
        self.fails(USAGE, message % "x.lac", "decode", "x.lac", "x.lac")

    def test_an_endless_file_of_another_format_is_rejected_at_once(self):
        for words in (("encode", "--compressor", "sign"), ("decode",)):
            done = self.run_laconic(*words, "/dev/zero", "y")
            self.assertEqual(done.returncode, FAILED)
            self.assertIn("/dev/zero: ", done.stderr)

    def test_identity_round_trips(self):
        table = self.succeeds("encode", "--compressor", "identity", "x.npy",
                              "x.lac")
        self.assertRegex(table, r"(?m)^values +600  30 x 4 x 5$")
        self.assertRegex(table, r"(?m)^bytes in +2,528  x\.npy$")
        self.assertRegex(table,
                         r"(?m)^bits per value +32  payload of 2,400 bytes$")
        table = self.succeeds("decode", "x.lac", "y.npy")
        self.assertRegex(table, r"(?m)^bytes out +2,528  y\.npy$")
        self.assertEqual(values_of(self.read("y.npy")),
                         values_of(self.read("x.npy")))
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["x.lac", "x.npy", "y.npy"])

    def test_every_compressor_and_form_reports_the_error_it_makes(self):
        x = values_of(self.read("x.npy"))[1]
        norm = sum(v * v for v in x)
        for name in self.listed("compressors"):
            for form in ("plain", "unbiased", "contractive"):
                found = json.loads(self.succeeds(
                    "encode", "--json", "--form", form, "--compressor", name,
                    "x.npy", "x.lac"))
                self.assertEqual(found["shape"], [30, 4, 5])
                self.assertEqual(found["values"], 600)
                self.assertEqual(found["output_bytes"], len(self.read("x.lac")))
                self.assertEqual(found["bits_per_value"],
                                 found["payload_bytes"] * 8 / 600)
                decoded = json.loads(self.succeeds(
                    "decode", "--json", "x.lac", "y.npy"))
                self.assertEqual(decoded["compressor"], name)
                shape, y = values_of(self.read("y.npy"))
                self.assertEqual(shape, (30, 4, 5))
                error = sum((a - b) ** 2 for a, b in zip(x, y)) / norm
                self.assertTrue(math.isclose(error, found["relative_error"],
                                             rel_tol=1e-9, abs_tol=1e-15))

    def test_a_seed_gives_the_same_file_again(self):
        for name in self.listed("compressors"):
            for file, seed in (("a", "7"), ("b", "7"), ("c", "8")):
                self.succeeds("encode", "--compressor", name, "--seed", seed,
                              "x.npy", file)
                self.succeeds("decode", file, file + ".npy")
            self.assertEqual(self.read("a"), self.read("b"))
            # The file has the key, so files of two seeds differ anyway.
            same = self.read("a.npy") == self.read("c.npy")
            if name in RANDOM + DETERMINISTIC:
                self.assertEqual(same, name in DETERMINISTIC, name)

    def test_all_shapes_round_trip(self):
        for shape in ((), (1,), (0,), (5, 0, 2), (2, 3), (1,) * 31 + (2,)):
            values = self.values[:math.prod(shape)]
            self.write("s.npy", npy(shape, values, version=1))
            found = json.loads(self.succeeds("encode", "--json", "--compressor",
                                            "identity", "s.npy", "s.lac"))
            self.assertEqual(found["values"], len(values))
            self.assertEqual(found["bits_per_value"], 32 if values else None)
            self.succeeds("decode", "s.lac", "t.npy")
            self.assertEqual(values_of(self.read("t.npy")),
                             values_of(self.read("s.npy")))

    def test_no_values_have_no_bits_a_value(self):
        self.write("s.npy", npy((0,), ()))
        table = self.succeeds("encode", "--compressor", "identity", "s.npy",
                              "s.lac")
        self.assertRegex(table, r"(?m)^bits per value +-  payload of 0 bytes$")

    def test_numbers_that_are_not_finite_are_null(self):
        self.write("n.npy", npy((2,), (math.nan, 1)))
        found = json.loads(self.succeeds("encode", "--json", "--compressor",
                                        "identity", "n.npy", "n.lac"))
        self.assertIsNone(found["relative_error"])

    def test_the_standard_output_gets_the_file_alone(self):
        self.succeeds("encode", "--compressor", "identity", "x.npy", "x.lac")
        done = subprocess.run(
            (LACONIC, "encode", "--compressor", "identity", "x.npy",
             "/dev/stdout"), cwd=self.folder, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout, self.read("x.lac"))
        self.assertIn(b"bits per value", done.stderr)

    def test_the_standard_output_may_be_appended_to(self):
        self.succeeds("encode", "--compressor", "identity", "x.npy", "x.lac")
        self.write("all", b"before")
        with open(os.path.join(self.folder, "all"), "ab") as out:
            subprocess.run((LACONIC, "encode", "--compressor", "identity",
                            "x.npy", "/dev/stdout"), cwd=self.folder,
                           stdout=out, stderr=subprocess.PIPE, check=True)
        self.assertEqual(self.read("all"), b"before" + self.read("x.lac"))

    def test_other_npy_files_are_rejected(self):
        self.write("bad.npy", npy((2,), (1, 2), descr="<f8"))
        self.encode_fails("bad.npy: holds float64, expected float32 (<f4)")
        self.write("bad.npy", npy((2, 1), (1, 2), order="True"))
        self.encode_fails(
            "bad.npy: holds values in Fortran order, expected C order")
        self.write("bad.npy", npy((2,), (1, 2))[:-1])
        self.encode_fails(
            "bad.npy: has 7 bytes of values, expected 8 for its shape")
        self.write("bad.npy", npy((2,), (1, 2)) + b"\0")
        self.encode_fails(
            "bad.npy: has 9 bytes of values, expected 8 for its shape")
        self.write("bad.npy", b"")
        self.encode_fails("bad.npy: is not a .npy file, expected it to begin "
                          "with 0x93 NUMPY")
        os.remove(os.path.join(self.folder, "bad.npy"))
        self.encode_fails("bad.npy: cannot open: No such file or directory")

    def test_an_altered_file_is_rejected_and_the_output_unchanged(self):
        self.succeeds("encode", "--compressor", "identity", "x.npy", "x.lac")
        self.write("y.npy", b"precious")
        whole = self.read("x.lac")
        self.write("x.lac", whole[:200] + b"?" + whole[201:])
        self.fails(FAILED, "x.lac: the checksum does not match, it is altered",
                   "decode", "x.lac", "y.npy")
        self.write("x.lac", whole[:-1])
        self.fails(FAILED, "x.lac: has %d bytes, which contradicts its header; "
                   "it is truncated or altered" % (len(whole) - 1),
                   "decode", "x.lac", "y.npy")
        self.fails(FAILED, "x.npy: is not a .lac file, expected it to begin "
                   "with 0x89 LACONIC", "decode", "x.npy", "y.npy")

    def test_many_values_are_decoded_only_if_allowed(self):
        self.succeeds("encode", "--compressor", "identity", "x.npy", "x.lac")
        limit = ("decode", "x.lac", "y.npy", "--max-values")
        self.fails(FAILED, "x.lac: holds 600 values, expected at most 599; "
                   "--max-values allows more", *limit, "599")
        for most in ("600", "0"):
            self.succeeds(*limit, most)
            self.assertEqual(values_of(self.read("y.npy"))[0], (30, 4, 5))

    def test_a_small_file_does_not_decode_to_a_large_one(self):
        self.write("z.lac", lac_of(2 ** 32 - 1, 0x1f1855c7453c1251))
        self.fails(FAILED, "z.lac: holds 4294967295 values, expected at most "
                   "1073741824; --max-values allows more",
                   "decode", "z.lac", "y.npy")

    def test_too_many_values_are_reported(self):
        self.write("z.lac", lac_of(2 ** 32, 0x1eb8ab1cb4013dbe))
        self.fails(FAILED, "z.lac: random-k: a tensor of 4294967296 x 1 has "
                   "too many values, at most 4294967295 fit",
                   "decode", "--max-values", "0", "z.lac", "y.npy")

    def test_a_full_disk_leaves_the_old_file(self):
        self.write("x.lac", b"precious")

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        words = ("encode", "--compressor", "identity", "x.npy")
        self.fails(FAILED, "x.lac: cannot write: File too large", *words,
                   "x.lac", preexec_fn=limit)
        self.fails(FAILED, "/dev/full: cannot write: No space left on device",
                   *words, "/dev/full")
        self.fails(FAILED, "no/x.lac: cannot create a file in its folder: No "
                   "such file or directory", *words, "no/x.lac")


if __name__ == "__main__":
    unittest.main()
