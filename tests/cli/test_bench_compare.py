# SPDX-License-Identifier: MIT
"""bench --compare. Saved runs are real ones whose figures are multiplied or
divided by so much that no interruption of a measurement matters: one of
microseconds would have to last seconds.
"""
import json
import sys
import unittest

sys.dont_write_bytecode = True
from command import Command, FAILED, GOOD, USAGE

FIGURES = ("encode_memcpys", "decode_add_memcpys", "encode_add_memcpys",
           "memcpy_ratio")
FACTOR = 1e6
WORDS = ("natural", "sign", "choco", "error-feedback", "--compressor", "sign",
         "--model", "lenet", "--values", "20000", "--runs", "2")


class Compare(Command):
    def setUp(self):
        super().setUp()
        self.saved = json.loads(
            self.run_laconic("bench", *WORDS, "--json").stdout)

    def rows(self):
        return self.saved["compressors"] + self.saved["algorithms"]

    def scale(self, factor, *rows):
        for row in rows or self.rows():
            row.update({key: factor * row[key] for key in FIGURES
                        if key in row})

    def save(self, name="saved.json"):
        self.write(name, json.dumps(self.saved).encode())

    def bench(self, code, *words):
        """Compares with the saved run and returns the output."""
        self.save()
        done = self.run_laconic("bench", "--compare", "saved.json", *words)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def compared(self, code, *words):
        found = json.loads(self.bench(code, *words, "--json").stdout)
        return found, found["comparison"]

    def refused(self, message, *words, code=FAILED):
        self.save()
        self.fails(code, message, "bench", "--compare", "saved.json", *words)

    def test_a_slower_saved_run_is_good(self):
        self.scale(FACTOR)
        found, comparison = self.compared(GOOD)
        self.assertEqual(comparison["slower"], 0)
        self.assertEqual(len(comparison["figures"]), 2 * 3 + 2)
        for figure in comparison["figures"]:
            self.assertIs(figure["slower"], False)
            self.assertLess(figure["change"], 0)
        text = self.bench(GOOD)
        self.assertIn("Nothing is slower", text.stdout)
        self.assertRegex(text.stdout, r"(?m)^natural, encode .* faster$")

    def test_one_figure_that_is_slower_fails(self):
        self.scale(FACTOR)
        self.saved["compressors"][1]["decode_add_memcpys"] /= FACTOR ** 2
        _, comparison = self.compared(FAILED)
        self.assertEqual(comparison["slower"], 1)
        slow, = [f for f in comparison["figures"] if f["slower"]]
        self.assertEqual((slow["spec"], slow["figure"]),
                         ("sign", "decode_add_memcpys"))
        done = self.bench(FAILED)
        self.assertRegex(done.stdout, r"(?m)^sign, decode-add .* slower$")
        self.assertEqual(done.stdout.count("slower\n"), 1)
        self.assertIn("laconic: bench: 1 of 8 figures is more than 10 % slower "
                      "than in saved.json\n", done.stderr)

    def test_a_step_that_is_slower_fails(self):
        self.scale(FACTOR)
        self.scale(FACTOR ** -2, self.saved["algorithms"][0])
        done = self.bench(FAILED)
        self.assertRegex(
            done.stdout, r"(?m)^choco with sign of lenet +0\.00 .* slower$")
        self.bench(GOOD, "error-feedback", "natural")

    def test_figures_are_those_of_the_file_and_of_this_run(self):
        self.scale(FACTOR)
        found, comparison = self.compared(GOOD)
        now = [row[key] for row in found["compressors"] + found["algorithms"]
               for key in FIGURES if key in row]
        then = [row[key] for row in self.rows() for key in FIGURES
                if key in row]
        self.assertEqual([f["now"] for f in comparison["figures"]], now)
        for figure, expected in zip(comparison["figures"], then):
            # The JSON has 15 digits or more.
            self.assertAlmostEqual(figure["then"] / expected, 1, places=13)
        for figure in comparison["figures"]:
            self.assertAlmostEqual(figure["change"],
                                   figure["now"] / figure["then"] - 1)

    def test_what_the_file_has_is_measured(self):
        self.scale(FACTOR)
        found, comparison = self.compared(GOOD)
        for key in ("values", "runs", "kernels", "prefetch", "threads",
                    "version"):
            self.assertEqual(found[key], self.saved[key])
        for kind in "compressors", "algorithms":
            for now, then in zip(found[kind], self.saved[kind]):
                for key in set(then) - set(FIGURES):
                    if key.endswith(("_gbps", "_mbit")) or key == "ms":
                        continue
                    self.assertEqual(now[key], then[key])
        self.assertEqual(comparison["file"], "saved.json")
        self.assertEqual(comparison["limit"], 0.1)

    def test_a_layout_of_the_file_must_be_a_file(self):
        """Not a device that never ends, and no escape reaches a terminal."""
        for layout, message in (
                ("/dev/zero", "/dev/zero: is no regular file, expected one"),
                ("x\x1b[31m", "x?[31m: cannot open: ")):
            row = self.saved["algorithms"][0]
            row["model"], row["layout"] = None, layout
            done = self.bench(FAILED)
            self.assertIn("saved.json: " + message, done.stderr)

    def test_rows_may_have_their_own_compressor_layout_and_degree(self):
        """As in a file that was merged from several runs."""
        self.write("shapes.txt", b"a 30 20\nb 7\n")
        other = json.loads(self.run_laconic(
            "bench", "choco", "--compressor", "top-k:0.1", "--layout",
            "shapes.txt", "--degree", "3", "--runs", "1", "--json").stdout)
        self.saved["algorithms"] += other["algorithms"]
        self.scale(FACTOR)
        found, _ = self.compared(GOOD)
        self.assertEqual([
            (row["spec"], row["compressor"], row["layout"], row["degree"])
            for row in found["algorithms"]], [
            ("choco", "sign", "lenet", 1),
            ("error-feedback", "sign", "lenet", 0),
            ("choco", "top-k:0.1", "shapes.txt", 3)])
        for words in (("--compressor", "top-k:0.1"), ("--degree", "3"),
                      ("--layout", "shapes.txt")):
            found, _ = self.compared(GOOD, "choco", *words)
            row, = found["algorithms"]
            self.assertEqual(row["compressor"], "top-k:0.1")
        found, _ = self.compared(GOOD, "choco", "sign", "--model", "lenet")
        self.assertEqual([r["spec"] for r in found["compressors"]], ["sign"])
        row, = found["algorithms"]
        self.assertEqual(row["compressor"], "sign")
        self.assertIn("choco with top-k:0.1 of shapes.txt, degree 3",
                      self.bench(GOOD).stdout)
        self.write("shapes.txt", b"a 30 20\nb 8\n")
        self.refused("saved.json: shapes.txt has 608 values, expected 607")

    def test_runs_and_kernels_can_be_chosen(self):
        self.scale(FACTOR)
        found, comparison = self.compared(GOOD, "--runs", "3", "--kernels",
                                          "portable", "natural")
        self.assertEqual(found["runs"], 3)
        self.assertEqual(found["kernels"], "portable")
        self.assertIs(found["prefetch"], False)
        self.assertEqual(comparison["kernels"], self.saved["kernels"])
        self.saved.update(kernels="portable", prefetch=False)
        found, _ = self.compared(GOOD, "natural")
        self.assertEqual(found["kernels"], "portable")
        found, _ = self.compared(GOOD, "natural", "--values", "20000")
        self.assertEqual(found["values"], 20000)

    def test_the_output_can_be_compared_with(self):
        self.scale(FACTOR)
        self.saved, _ = self.compared(GOOD)
        self.scale(FACTOR)
        self.compared(GOOD)

    def test_another_processor_is_refused(self):
        name, number = self.saved["processor"], self.saved["processor_id"]
        for other in (("Nothing 9000", number), (name, "Vendor 1 2")):
            self.saved["processor"], self.saved["processor_id"] = other
            self.refused(
                "saved.json: was measured on another processor, %s (%s), "
                "expected that of this machine, %s (%s)" % (
                    *other, name, number))

    def test_rows_that_the_file_lacks_are_refused(self):
        self.refused('saved.json: has no row of "half", expected a SPEC that '
                     "it has", "natural", "half", code=USAGE)
        self.refused('saved.json: has no row of "choco" with these options, '
                     "expected a SPEC that it has", "choco", "--compressor",
                     "half", code=USAGE)
        self.refused("bench: --values is 5, expected 20000 as in saved.json",
                     "--values", "5", code=USAGE)
        self.saved["compressors"] = []
        self.refused("saved.json: has no row with these options, expected "
                     "those of a row", "--degree", "7", code=USAGE)

    def test_rows_that_cannot_be_measured_are_refused(self):
        compressor = self.saved["compressors"][0]
        step = self.saved["algorithms"][0]
        for row, key, value, message in (
                (compressor, "spec", "nothing",
                 'no compressor is named "nothing"'),
                (compressor, "spec", "choco", 'no compressor is named "choco"'),
                (compressor, "spec", "sign:x=1",
                 'sign: "x" was given, but it has no settings'),
                (step, "spec", "sign", 'no algorithm is named "sign"'),
                (step, "compressor", None, "choco: a compressor is needed"),
                (step, "model", "resnet21", 'no model is named "resnet21"'),
                (step, "model", None,
                 "lenet: cannot open: No such file or directory"),
                (step, "values", 7, "lenet has 61706 values, expected 7")):
            kept, row[key] = row[key], value
            self.save()
            done = self.run_laconic("bench", "--compare", "saved.json")
            self.assertEqual(done.returncode, FAILED)
            self.assertTrue(done.stderr.startswith(
                "laconic: saved.json: " + message), done.stderr)
            row[key] = kept
        self.saved["kernels"] = "sse"
        self.refused('saved.json: "kernels" is "sse", expected portable, avx2, '
                     "avx512 or neon")

    def test_files_that_are_no_run_are_refused(self):
        text = json.dumps(self.saved).encode()
        no_object = ("bad.json: is not one JSON object, or is truncated, "
                     "expected the output of `laconic bench --json`")
        for data, message in (
                (b"", no_object), (b"[]", no_object), (b"\x93NUMPY", no_object),
                (text[:-1], no_object), (text + text, no_object),
                (text[:len(text) // 2], no_object),
                (b"{}", 'bad.json: "version" is missing, expected a text')):
            self.write("bad.json", data)
            self.fails(FAILED, message, "bench", "--compare", "bad.json")
        self.fails(FAILED, "nowhere: cannot open: No such file or directory",
                   "bench", "--compare", "nowhere")
        self.fails(FAILED, no_object.replace("bad.json", "/dev/zero"),
                   "bench", "--compare", "/dev/zero")


if __name__ == "__main__":
    unittest.main()
