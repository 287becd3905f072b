# SPDX-License-Identifier: MIT
"""The command line: commands, options, help; and `laconic list`."""
import json
import re
import subprocess
import unittest

from command import Command, FAILED, LACONIC, USAGE


class Words(Command):
    def commands(self):
        names = re.findall(r"(?m)^  ([a-z]+) ", self.succeeds("--help"))
        self.assertLessEqual({"train", "list", "encode", "decode", "topology",
                              "average", "size", "bench", "data"}, set(names))
        return names

    def test_version(self):
        self.assertRegex(self.succeeds("--version"),
                         r"^laconic \d+\.\d+\.\d+\n$")

    def test_help_of_a_command_describes_every_option(self):
        for name in self.commands():
            text = self.succeeds(name, "--help")
            usage, _, rest = text.partition("\n\n")
            self.assertTrue(usage.startswith("usage: laconic %s " % name))
            for option in re.findall(r"--[a-z-]+", usage) + ["--help"]:
                self.assertRegex(rest, r"\n  %s .* \w" % option)
    def test_help_fits_on_80_columns(self):
        for name in [""] + self.commands():
            for line in self.succeeds(*name.split(), "--help").splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_help_has_defaults(self):
        self.assertIn("(25557032)", self.succeeds("bench", "--help"))
        self.assertIn("(required)", self.succeeds("encode", "--help"))

    def test_help_has_several_spellings(self):
        self.assertEqual(self.succeeds("help"), self.succeeds("--help"))
        self.assertEqual(self.succeeds("-h"), self.succeeds("--help"))
        for name in self.commands():
            text = self.succeeds(name, "--help")
            self.assertEqual(self.succeeds("help", name), text)
            self.assertEqual(self.succeeds(name, "-h"), text)
        self.fails(USAGE, 'unknown command "encdoe"; did you mean encode?',
                   "help", "encdoe")

    def test_an_empty_command_line_is_usage(self):
        done = self.run_laconic()
        self.assertEqual((done.returncode, done.stdout), (USAGE, ""))
        self.assertIn("usage: laconic", done.stderr)

    def test_wrong_words_are_usage(self):
        self.fails(USAGE, 'unknown command "encdoe"; did you mean encode?',
                   "encdoe")
        self.fails(USAGE, 'unknown command "zzz"', "zzz")
        self.fails(USAGE, "encode: unknown option --sead; "
                   "did you mean --seed?", "encode", "--sead", "1")
        self.fails(USAGE, 'list: unexpected argument "x", expected only '
                   "options", "list", "x")
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
        self.assertEqual(done.stderr, "laconic: cannot write to standard "
                         "output: No space left on device\n")


class List(Command):
    def test_json_has_the_promised_keys(self):
        kinds = json.loads(self.succeeds("list", "--json"))
        self.assertEqual(list(kinds), [
            "compressors", "topologies", "transports", "algorithms", "models",
            "datasets", "defaults"])
        for row in kinds.pop("defaults"):
            self.assertEqual(list(row), [
                "algorithms", "compressors", "model", "optimizer", "lr",
                "momentum", "warmup"])
        for item in kinds["algorithms"]:
            self.assertIn("example", item)
        for item in sum(kinds.values(), []):
            item.pop("example", None)
            self.assertEqual(list(item), ["name", "summary", "params"])
            for param in item["params"]:
                self.assertLessEqual({"name", "type", "default", "min", "max",
                                      "choices", "help"}, set(param))
                self.check_param(param)

    def test_every_example_can_be_opened(self):
        for item in json.loads(self.succeeds("list", "--json"))["algorithms"]:
            with self.subTest(item["name"]):
                example = item["example"]
                self.assertEqual(example["algorithm"].split(":")[0],
                                 item["name"])
                words = ["--compressor", example["compressor"]] \
                    if example["compressor"] else []
                self.succeeds("size", "--model", "mlp", "--algorithm",
                              example["algorithm"], *words)

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

    def test_the_table_has_the_same_names(self):
        text = self.succeeds("list")
        for item in json.loads(self.succeeds("list", "--json"))["compressors"]:
            self.assertRegex(text, r"(?m)^  %s +\S" % re.escape(item["name"]))
            for param in item["params"]:
                self.assertIn("      %s=" % param["name"], text)
        self.assertRegex(text, r"(?m)^  fashion-mnist +60,000 ")

    def test_every_default_is_accepted(self):
        for item in json.loads(self.succeeds("list", "--json"))["compressors"]:
            spec = item["name"] + ":" + ",".join(
                "%s=%s" % (p["name"], p["default"]) for p in item["params"]
                if p["type"] in ("u32", "f64", "choice"))
            self.succeeds("encode", "--compressor", spec.rstrip(":"), "x.npy",
                          "x.lac")


if __name__ == "__main__":
    unittest.main()
