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

    def test_a_name_with_settings_is_not_listed(self):
        for spec, name in (("top-k:0.1", "top-k"), ("ring:", "ring"),
                           ("choco:gamma=0.1", "choco"),
                           ("top-k+natural", "top-k")):
            self.fails(USAGE, 'list: "%s" is a spec, expected a name: %s'
                       % (spec, name), "list", spec)
        self.fails(USAGE, 'list: nothing is named "nosuch:3"', "list",
                   "nosuch:3")

    def test_examples_are_options(self):
        for name in self.listed("algorithms"):
            text = self.succeeds("list", name)
            example = re.search(r"(?m)^ +example +(--.*)$", text).group(1)
            self.assertIn("--algorithm " + name, example)
            self.succeeds("size", "--model", "mlp", *example.split())

    def test_a_space_in_a_spec_is_explained(self):
        for words, tried in (
                ("ecd dithering:levels=9",
                 "--algorithm ecd --compressor dithering:levels=9"),
                ("choco:gamma=0.1  sign",
                 "--algorithm choco:gamma=0.1 --compressor sign"),
                ("powersgd rank=2", "--algorithm powersgd:rank=2")):
            self.fails(USAGE, 'no algorithm is named "%s"; try %s' % (
                words, tried), "size", "--model", "mlp", "--algorithm", words)
        self.fails(USAGE, 'no compressor is named "top-k 0.1"; try --compressor'
                   " top-k:0.1", "size", "--model", "mlp", "--algorithm",
                   "choco", "--compressor", "top-k 0.1")

    def test_wrong_words_are_usage(self):
        self.fails(USAGE, 'unknown command "encdoe"; did you mean encode?',
                   "encdoe")
        self.fails(USAGE, 'unknown command "zzz"', "zzz")
        self.fails(USAGE, "encode: unknown option --sead; "
                   "did you mean --seed?", "encode", "--sead", "1")
        self.fails(USAGE, 'size: unexpected argument "x", expected only '
                   "options", "size", "x")
        self.fails(USAGE, "size: unknown option -m, expected --NAME", "size",
                   "-m", "mlp")
        self.fails(USAGE, "size: unknown option -model; did you mean --model?",
                   "size", "-model", "mlp")
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
        for spec, name, meant in (
                ("idenity", "idenity", "identity"),
                ("TopK", "TopK", "top-k"),
                ("top_k:0.1+natural", "top_k", "top-k"),
                ("top-k+natrual:bits=8", "natrual", "natural"),
                ("bflo", "bflo", "bfloat16"),
                ("chocco", "chocco", "the algorithm choco")):
            self.fails(USAGE, f'no compressor is named "{name}"; did you mean '
                       f"{meant}?", "bench", spec)

    def test_a_name_of_another_kind_is_explained(self):
        train = ("train", "--out", "run", "--data-dir", "none")
        size = ("size", "--model", "mlp", "--algorithm")
        for words, kinds, hint in (
                (size + ("top-k:0.1+sign",),
                 'algorithm is named "top-k": it is a compressor',
                 "--algorithm error-feedback --compressor top-k:0.1+sign"),
                (("average", "--algorithm", "choco", "--compressor", "ecd"),
                 'compressor is named "ecd": it is an algorithm',
                 "--algorithm ecd --compressor dithering:levels=65535"),
                (size + ("choco", "--compressor", "powersgd"),
                 'compressor is named "powersgd": it is an algorithm',
                 "--algorithm powersgd:rank=4"),
                (size + ("ring",), 'algorithm is named "ring": it is a '
                 "topology", "--topology ring"),
                (train + ("--topology", "mnist"), 'topology is named "mnist": '
                 "it is a data set", "--data mnist"),
                (train + ("--transport", "choco"), 'transport is named '
                 '"choco": it is an algorithm',
                 "--algorithm choco --compressor sign")):
            self.fails(USAGE, f"no {kinds}; try {hint}", *words)
        self.fails(USAGE, 'no compressor is named "choco": it is an algorithm',
                   "encode", "--compressor", "choco", "x.npy", "y.lac")

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

    def names(self, *words):
        """The names that are listed, by kind, in JSON and in the table."""
        kinds = json.loads(self.succeeds("list", *words, "--json"))
        table = self.succeeds("list", *words)
        found = {kind: [item["name"] for item in items]
                 for kind, items in kinds.items()
                 if items and kind != "defaults"}
        shown = re.findall(r"(?m)^(?:  )?([a-z][a-z0-9-]*)(?:\n|  )", table)
        self.assertEqual(shown, [word for kind in found for word in
                                 [kind] + found[kind]])
        return found

    def test_a_name_selects_its_entry(self):
        everything = json.loads(self.succeeds("list", "--json"))
        for name in "choco", "sign", "qsgd":
            kind, = [kind for kind in ("algorithms", "compressors") if any(
                item["name"] == name for item in everything[kind])]
            self.assertEqual(self.names(name), {kind: [name]})
            item, = json.loads(self.succeeds("list", name, "--json"))[kind]
            self.assertIn(item, everything[kind])
            text = self.succeeds("list", name)
            for param in item["params"]:
                self.assertIn("      %s=%s" % (param["name"],
                                               param["default"]), text)

    def test_a_part_selects_all_names_that_contain_it(self):
        self.assertEqual(self.names("power"),
                         {"algorithms": ["powergossip", "powersgd"]})
        self.assertEqual(self.names("-k", "dcd"),
                         {"compressors": ["top-k", "random-k"],
                          "algorithms": ["dcd"]})

    def test_a_kind_selects_all_of_it(self):
        everything = json.loads(self.succeeds("list", "--json"))
        for words, kind in ((("topologies", "topology"), "topologies"),
                            (("datasets", "data"), "datasets"),
                            (("models", "model"), "models")):
            for word in words:
                self.assertEqual(self.names(word), {
                    kind: [item["name"] for item in everything[kind]]})
        self.assertEqual(
            json.loads(self.succeeds("list", "defaults", "--json"))["defaults"],
            everything["defaults"])
        self.assertNotIn("defaults", json.loads(
            self.succeeds("list", "choco", "--json")))

    def test_an_unknown_name_is_usage(self):
        for word, meant in (("chocco", "choco"), ("algoritms", "algorithms"),
                            ("DPSGD", "dpsgd"), ("default", "defaults")):
            self.fails(USAGE, f'list: nothing is named "{word}"; did you mean '
                       f"{meant}?", "list", "choco", word)
        self.fails(USAGE, 'list: nothing is named "zzzzz"', "list", "zzzzz",
                   "--json")

    def test_every_default_is_accepted(self):
        for item in json.loads(self.succeeds("list", "--json"))["compressors"]:
            spec = item["name"] + ":" + ",".join(
                "%s=%s" % (p["name"], p["default"]) for p in item["params"]
                if p["type"] in ("u32", "f64", "choice"))
            self.succeeds("encode", "--compressor", spec.rstrip(":"), "x.npy",
                          "x.lac")


if __name__ == "__main__":
    unittest.main()
