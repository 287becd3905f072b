# SPDX-License-Identifier: MIT
"""The command as a user meets it: what it prints, writes and returns.

usage: test_command.py LACONIC

Needs the standard library only; .npy files are made by hand.
"""
import json
import math
import os
import pty
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

LACONIC = os.path.abspath(sys.argv.pop(1))
GOOD, FAILED, USAGE = 0, 1, 2
COMMANDS = ("list", "encode", "decode", "bench")
DETERMINISTIC = ("identity", "half", "bfloat16", "sign", "top-k")
RANDOM = ("natural", "natural-dithering", "dithering", "qsgd", "terngrad",
          "random-k", "random-block")


def npy(shape, values, descr="<f4", order="False", version=1):
    """The bytes of a .npy file."""
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (
        descr, order, tuple(shape))
    header = header.ljust(117) + "\n"
    code = "d" if descr.endswith("8") else "f"
    return (b"\x93NUMPY" + bytes([version, 0])
            + struct.pack("<H" if version == 1 else "<I", len(header))
            + header.encode() + struct.pack("<%d%s" % (len(values), code),
                                            *values))


def values_of(data):
    """The shape and values of a .npy file of version 1."""
    length, = struct.unpack("<H", data[8:10])
    header = data[10:10 + length].decode()
    shape = re.search(r"\(([^)]*)\)", header).group(1)
    body = data[10 + length:]
    return (tuple(int(d) for d in shape.split(",") if d.strip()),
            struct.unpack("<%df" % (len(body) // 4), body))


def lac_of(values, checksum):
    """101 bytes that are so many values through random-k:1e-9. The standard
    library has no XXH3, so the checksum is given."""
    spec = b"random-k:1e-9"
    return (b"\x89LACONIC" + struct.pack("<4I", 1, 64 + len(spec), 9, 0)
            + bytes(16) + struct.pack("<QIIQ", 16, 1, len(spec), values)
            + spec + bytes(16) + struct.pack("<Q", checksum))


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        generator = random.Random(1)
        self.values = [generator.gauss(0, 1) for _ in range(600)]
        self.write("x.npy", npy((30, 4, 5), self.values))

    def write(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data)

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def run_laconic(self, *words, **more):
        return subprocess.run((LACONIC,) + words, cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, **more)

    def succeeds(self, *words):
        done = self.run_laconic(*words)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, GOOD)
        return done.stdout

    def fails(self, code, sentence, *words, **more):
        """The first line of stderr is the sentence; stdout is empty."""
        before = self.files()
        done = self.run_laconic(*words, **more)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.split("\n")[0], "laconic: " + sentence)
        self.assertEqual(done.returncode, code)
        if code == USAGE:
            self.assertIn("try `laconic ", done.stderr)
        self.assertEqual(self.files(), before)

    def files(self):
        return {name: self.read(name) for name in os.listdir(self.folder)}

    def encode_fails(self, sentence):
        self.fails(FAILED, sentence, "encode", "--compressor", "identity",
                   "bad.npy", "out.lac")


class Words(Command):
    def test_version(self):
        self.assertRegex(self.succeeds("--version"),
                         r"^laconic \d+\.\d+\.\d+\n$")

    def test_help_names_every_command(self):
        text = self.succeeds("--help")
        for name in COMMANDS:
            self.assertIn("\n  %s " % name, text)

    def test_help_of_a_command_describes_every_option(self):
        for name in COMMANDS:
            text = self.succeeds(name, "--help")
            usage, _, rest = text.partition("\n")
            self.assertTrue(usage.startswith("usage: laconic %s " % name))
            for option in re.findall(r"--[a-z-]+", usage) + ["--help"]:
                self.assertRegex(rest, r"\n  %s .* \w" % option)
        self.assertIn("(25557032)", self.succeeds("bench", "--help"))
        self.assertIn("(must be given)", self.succeeds("encode", "--help"))

    def test_help_can_be_asked_for_in_other_words(self):
        self.assertEqual(self.succeeds("help"), self.succeeds("--help"))
        self.assertEqual(self.succeeds("-h"), self.succeeds("--help"))
        for name in COMMANDS:
            text = self.succeeds(name, "--help")
            self.assertEqual(self.succeeds("help", name), text)
            self.assertEqual(self.succeeds(name, "-h"), text)
        self.fails(USAGE, 'no command is named "encdoe"; did you mean encode?',
                   "help", "encdoe")

    def test_no_word_is_usage(self):
        done = self.run_laconic()
        self.assertEqual((done.returncode, done.stdout), (USAGE, ""))
        self.assertIn("usage: laconic", done.stderr)

    def test_wrong_words_are_usage(self):
        self.fails(USAGE, 'no command is named "encdoe"; did you mean encode?',
                   "encdoe")
        self.fails(USAGE, 'no command is named "zzz"', "zzz")
        self.fails(USAGE, "encode: there is no option --sead; "
                   "did you mean --seed?", "encode", "--sead", "1")
        self.fails(USAGE, 'list: cannot use "x", expected only options',
                   "list", "x")
        self.fails(USAGE, "encode: --compressor SPEC is missing",
                   "encode", "x.npy", "x.lac")
        self.fails(USAGE, "decode: 1 argument is given, expected IN.lac "
                   "OUT.npy", "decode", "x.lac")
        self.fails(USAGE, "encode: argument 2 is empty, expected IN.npy "
                   "OUT.lac", "encode", "--compressor", "identity", "x.npy",
                   "")
        self.fails(USAGE, '--form is "odd", expected one of '
                   "plain|unbiased|contractive", "encode", "--form", "odd")
        self.fails(USAGE, '--seed is "-1", expected a whole number from 0 to '
                   "18446744073709551615", "encode", "--seed", "-1")

    def test_a_wrong_spec_is_usage(self):
        for words in (("bench",), ("encode", "x.npy", "y.lac", "--compressor")):
            self.fails(USAGE, 'no compressor is named "nothing"; '
                       "`laconic list` shows those there are",
                       *words, "nothing")
            self.fails(USAGE, 'identity: "level" was given, but it has no '
                       "settings", *words, "identity:level=3")
        done = self.run_laconic("bench", "idenity")
        self.assertIn("did you mean identity?\n", done.stderr)

    def test_a_full_standard_output_is_a_failure(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run((LACONIC, "list"), stdout=full, text=True,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, FAILED)
        self.assertEqual(done.stderr, "laconic: cannot write to the standard "
                         "output: No space left on device\n")


class List(Command):
    def test_json_has_the_promised_keys(self):
        kinds = json.loads(self.succeeds("list", "--json"))
        self.assertEqual(list(kinds), [
            "compressors", "topologies", "transports", "algorithms", "models",
            "datasets"])
        for item in sum(kinds.values(), []):
            self.assertEqual(list(item), ["name", "summary", "params"])
            for param in item["params"]:
                self.assertLessEqual({"name", "type", "default", "min", "max",
                                      "choices", "help"}, set(param))
                self.check_param(param)

    def check_param(self, param):
        kind, default = param["type"], param["default"]
        self.assertIn(kind, ("bool", "u32", "f64", "choice", "f64-or-word",
                             "text", "spec"))
        if kind in ("u32", "f64"):
            self.assertLessEqual(param["min"], default)
            self.assertTrue(param["max"] is None or default <= param["max"])
        if kind == "choice":
            self.assertIn(default, param["choices"])
            self.assertIsNone(param["min"])
        if kind == "bool":
            self.assertIsInstance(default, bool)

    def test_the_table_names_the_same(self):
        text = self.succeeds("list")
        for item in json.loads(self.succeeds("list", "--json"))["compressors"]:
            self.assertRegex(text, r"(?m)^  %s +\S" % re.escape(item["name"]))
            for param in item["params"]:
                self.assertIn("      %s=" % param["name"], text)
        self.assertNotIn("topologies", text)

    def test_every_default_can_be_written_out(self):
        for item in json.loads(self.succeeds("list", "--json"))["compressors"]:
            spec = item["name"] + ":" + ",".join(
                "%s=%s" % (p["name"], p["default"]) for p in item["params"]
                if p["type"] in ("u32", "f64", "choice"))
            self.succeeds("encode", "--compressor", spec.rstrip(":"), "x.npy",
                          "x.lac")


class Files(Command):
    def compressors(self):
        kinds = json.loads(self.succeeds("list", "--json"))
        return [item["name"] for item in kinds["compressors"]]

    def test_identity_round_trips(self):
        table = self.succeeds("encode", "--compressor", "identity", "x.npy",
                              "x.lac")
        self.assertRegex(table, r"(?m)^values +600  30 x 4 x 5$")
        self.assertRegex(table, r"(?m)^bytes in +2,528  x\.npy$")
        self.assertRegex(table,
                         r"(?m)^bits a value +32  payload of 2,400 bytes$")
        table = self.succeeds("decode", "x.lac", "y.npy")
        self.assertRegex(table, r"(?m)^bytes out +2,528  y\.npy$")
        self.assertEqual(values_of(self.read("y.npy")),
                         values_of(self.read("x.npy")))
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["x.lac", "x.npy", "y.npy"])

    def test_every_compressor_and_form_reports_the_error_it_makes(self):
        x = values_of(self.read("x.npy"))[1]
        norm = sum(v * v for v in x)
        for name in self.compressors():
            for form in ("plain", "unbiased", "contractive"):
                told = json.loads(self.succeeds(
                    "encode", "--json", "--form", form, "--compressor", name,
                    "x.npy", "x.lac"))
                self.assertEqual(told["shape"], [30, 4, 5])
                self.assertEqual(told["values"], 600)
                self.assertEqual(told["output_bytes"], len(self.read("x.lac")))
                self.assertEqual(told["bits_per_value"],
                                 told["payload_bytes"] * 8 / 600)
                told_back = json.loads(self.succeeds(
                    "decode", "--json", "x.lac", "y.npy"))
                self.assertEqual(told_back["compressor"], name)
                shape, y = values_of(self.read("y.npy"))
                self.assertEqual(shape, (30, 4, 5))
                error = sum((a - b) ** 2 for a, b in zip(x, y)) / norm
                self.assertTrue(math.isclose(error, told["relative_error"],
                                             rel_tol=1e-9, abs_tol=1e-15))

    def test_a_seed_gives_the_same_file_again(self):
        for name in self.compressors():
            for file, seed in (("a", "7"), ("b", "7"), ("c", "8")):
                self.succeeds("encode", "--compressor", name, "--seed", seed,
                              "x.npy", file)
                self.succeeds("decode", file, file + ".npy")
            self.assertEqual(self.read("a"), self.read("b"))
            # The key stands in the file, so files of two seeds differ anyway.
            same = self.read("a.npy") == self.read("c.npy")
            if name in RANDOM + DETERMINISTIC:
                self.assertEqual(same, name in DETERMINISTIC, name)

    def test_all_shapes_round_trip(self):
        for shape in ((), (1,), (0,), (5, 0, 2), (2, 3), (1,) * 31 + (2,)):
            values = self.values[:math.prod(shape)]
            self.write("s.npy", npy(shape, values, version=1))
            told = json.loads(self.succeeds("encode", "--json", "--compressor",
                                            "identity", "s.npy", "s.lac"))
            self.assertEqual(told["values"], len(values))
            self.assertEqual(told["bits_per_value"], 32 if values else None)
            self.succeeds("decode", "s.lac", "t.npy")
            self.assertEqual(values_of(self.read("t.npy")),
                             values_of(self.read("s.npy")))

    def test_no_values_have_no_bits_a_value(self):
        self.write("s.npy", npy((0,), ()))
        table = self.succeeds("encode", "--compressor", "identity", "s.npy",
                              "s.lac")
        self.assertRegex(table, r"(?m)^bits a value +-  payload of 0 bytes$")

    def test_not_finite_is_null(self):
        self.write("n.npy", npy((2,), (math.nan, 1)))
        told = json.loads(self.succeeds("encode", "--json", "--compressor",
                                        "identity", "n.npy", "n.lac"))
        self.assertIsNone(told["relative_error"])

    def test_input_may_be_output(self):
        before = self.read("x.npy")
        self.succeeds("encode", "--compressor=identity", "x.npy", "x.npy")
        self.assertTrue(self.read("x.npy").startswith(b"\x89LACONIC"))
        self.succeeds("decode", "x.npy", "x.npy")
        self.assertEqual(values_of(self.read("x.npy")), values_of(before))

    def test_the_standard_output_gets_the_file_alone(self):
        self.succeeds("encode", "--compressor", "identity", "x.npy", "x.lac")
        done = subprocess.run(
            (LACONIC, "encode", "--compressor", "identity", "x.npy",
             "/dev/stdout"), cwd=self.folder, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout, self.read("x.lac"))
        self.assertIn(b"bits a value", done.stderr)

    def test_the_standard_output_may_be_appended_to(self):
        self.succeeds("encode", "--compressor", "identity", "x.npy", "x.lac")
        self.write("all", b"before")
        with open(os.path.join(self.folder, "all"), "ab") as out:
            subprocess.run((LACONIC, "encode", "--compressor", "identity",
                            "x.npy", "/dev/stdout"), cwd=self.folder,
                           stdout=out, stderr=subprocess.PIPE, check=True)
        self.assertEqual(self.read("all"), b"before" + self.read("x.lac"))

    def test_other_npy_files_are_refused(self):
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

    def test_an_altered_file_is_refused_and_the_output_untouched(self):
        self.succeeds("encode", "--compressor", "identity", "x.npy", "x.lac")
        self.write("y.npy", b"precious")
        whole = self.read("x.lac")
        self.write("x.lac", whole[:200] + b"?" + whole[201:])
        self.fails(FAILED, "x.lac: the checksum does not match, it is altered",
                   "decode", "x.lac", "y.npy")
        self.write("x.lac", whole[:-1])
        self.fails(FAILED, "x.lac: has %d bytes, which is not the length its "
                   "header tells; it is truncated or altered" %
                   (len(whole) - 1), "decode", "x.lac", "y.npy")
        self.fails(FAILED, "x.npy: is not a .lac file, expected it to begin "
                   "with 0x89 LACONIC", "decode", "x.npy", "y.npy")

    def test_many_values_are_made_only_if_allowed(self):
        self.succeeds("encode", "--compressor", "identity", "x.npy", "x.lac")
        limit = ("decode", "x.lac", "y.npy", "--max-values")
        self.fails(FAILED, "x.lac: holds 600 values, expected at most 599; "
                   "--max-values allows more", *limit, "599")
        for most in ("600", "0"):
            self.succeeds(*limit, most)
            self.assertEqual(values_of(self.read("y.npy"))[0], (30, 4, 5))

    def test_a_small_file_does_not_make_a_large_one(self):
        self.write("z.lac", lac_of(2 ** 32 - 1, 0x1f1855c7453c1251))
        self.fails(FAILED, "z.lac: holds 4294967295 values, expected at most "
                   "1073741824; --max-values allows more",
                   "decode", "z.lac", "y.npy")

    def test_too_many_values_are_told_as_such(self):
        self.write("z.lac", lac_of(2 ** 32, 0x1eb8ab1cb4013dbe))
        self.fails(FAILED, "z.lac: random-k: a tensor of 4294967296 x 1 has "
                   "too many values, at most 4294967295 fit",
                   "decode", "--max-values", "0", "z.lac", "y.npy")

    def test_no_room_leaves_the_old_file(self):
        self.write("x.lac", b"precious")

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        words = ("encode", "--compressor", "identity", "x.npy")
        self.fails(FAILED, "x.lac: cannot write: File too large", *words,
                   "x.lac", preexec_fn=limit)
        self.fails(FAILED, "/dev/full: cannot write: No space left on device",
                   *words, "/dev/full")
        self.fails(FAILED, "no/x.lac: cannot create a file beside it: No such "
                   "file or directory", *words, "no/x.lac")


class Bench(Command):
    KEYS = {"spec", "encode_gbps", "decode_add_gbps", "encode_add_gbps",
            "bits_per_value"}

    def succeeds(self, *words):
        """A slow machine may say how far it is."""
        done = self.run_laconic(*words)
        self.assertRegex(done.stderr, r"^(\d+/\d+ .*\n)*$")
        self.assertEqual(done.returncode, GOOD)
        return done.stdout

    def test_a_terminal_gets_a_bar_that_is_gone_at_the_end(self):
        reader, writer = pty.openpty()
        done = subprocess.run(
            (LACONIC, "bench", "--values", "10", "--runs", "1", "identity",
             "half"), stdout=subprocess.PIPE, stderr=writer, check=True)
        os.close(writer)
        shown = os.read(reader, 1 << 16)
        os.close(reader)
        self.assertTrue(shown.endswith(b"\r\x1b[K"))
        bars = [bar for bar in shown.split(b"\r\x1b[K") if bar]
        self.assertEqual(bars, [
            b"[" + b" " * 24 + b"] 1/2 identity",
            b"[" + b"#" * 12 + b" " * 12 + b"] 2/2 half"])
        self.assertIn(b"break-even", done.stdout)

    def test_one_value_is_one(self):
        self.assertIn("\n1 value, medians of 2 runs",
                      self.succeeds("bench", "--values", "1", "--runs", "2",
                                    "identity"))

    def test_json_has_the_promised_keys(self):
        told = json.loads(self.succeeds("bench", "--values", "10000", "--runs",
                                        "3", "--json"))
        self.assertEqual(told["values"], 10000)
        self.assertIn(told["kernels"], ("portable", "avx2"))
        self.assertGreater(told["memcpy_gbps"], 0)
        self.assertEqual(told["algorithms"], [])
        for item in told["compressors"]:
            self.assertLessEqual(self.KEYS, set(item))
            for key in self.KEYS - {"spec"}:
                self.assertGreater(item[key], 0)
        identity = told["compressors"][-1]
        self.assertEqual(identity["spec"], "identity")
        self.assertEqual(identity["bits_per_value"], 32)
        self.assertIsNone(identity["break_even_mbit"])

    def test_specs_and_kernels_can_be_chosen(self):
        told = json.loads(self.succeeds(
            "bench", "identity", "--kernels", "portable", "--values", "1",
            "--runs", "2", "identity", "--json"))
        self.assertEqual(told["kernels"], "portable")
        self.assertEqual([c["spec"] for c in told["compressors"]],
                         ["identity"] * 2)

    def test_the_table_lines_up(self):
        lines = self.succeeds("bench", "--values", "1000", "--runs",
                              "1").split("\n")
        self.assertIn("1,000 values, medians of 1 run", lines[1])
        end = lines.index("", 3)
        self.assertEqual(len({len(line) for line in lines[3:end]}), 1)


if __name__ == "__main__":
    unittest.main()
