# SPDX-License-Identifier: MIT
"""tools/performance.py: what it changes on the page and what it leaves, with
canned results in place of measurements.
"""
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import performance

ALGORITHMS = {spec for specs, _ in performance.STEPS for spec in specs}
# Stands in for `laconic`: prints its words.
PROGRAM = """#!%s
import json, sys
print(json.dumps(sys.argv[1:]))
"""


def compressor_row(spec, figure):
    return {"spec": spec, "encode_gbps": figure, "encode_memcpys": figure,
            "decode_add_gbps": 3 * figure,
            "decode_add_memcpys": figure / 3, "encode_add_memcpys": 2 * figure,
            "bits_per_value": 32,
            "break_even_mbit": None if spec == "identity" else 1000 * figure}


def step_row(spec, compressor, figure):
    return {"spec": spec, "compressor": compressor, "layout": "resnet50",
            "model": "resnet50", "values": 4000, "degree": 0,
            "ms": 10 * figure, "memcpy_ratio": figure, "break_even_mbit": None}


class Bench:
    """Stands in for `laconic bench --json`. The figures of the first call with
    some words are `factor`, of the second twice that, and so on."""

    def __init__(self, machine, factor):
        self.machine, self.factor, self.calls = machine, factor, []

    def __call__(self, _, kernels, runs, specs, compressor=None, more=()):
        if more:  # so that the figures of the others do not depend on it
            return self.result(kernels, runs, specs, compressor, self.factor
                               * (0.5 if "2" in more else 1))
        self.calls.append((kernels, specs, compressor))
        return self.result(kernels, runs, specs, compressor,
                           self.factor * self.calls.count(self.calls[-1]))

    def result(self, kernels, runs, specs, compressor, figure):
        specs = specs or ["natural", "sign", "identity"]
        return {
            **self.machine, "values": 1000, "runs": runs,
            "kernels": "avx9" if kernels == "best" else kernels,
            "prefetch": kernels == "best", "threads": 1,
            "memcpy_gbps": 2 * figure,
            "compressors": [compressor_row(spec, figure) for spec in specs
                            if spec not in ALGORITHMS],
            "algorithms": [step_row(spec, compressor, figure) for spec in specs
                           if spec in ALGORITHMS]}


PAGE = """# Performance
before
<!-- begin history -->
| release | date | processor | figures |
| --- | --- | --- | --- |
| 0.1 | 2020-01-01 | Other | 7 |
<!-- end history -->
between
<!-- begin processors -->
<!-- begin processor other -->
tables of Other, 2020-01-01
<!-- end processor other -->
<!-- end processors -->
after
"""
ZEN = {"version": "0.2.0", "processor": "AMD EPYC (TM)",
       "processor_id": "AuthenticAMD 25 17", "processors": 2}
NAME = "amd-epyc-authenticamd-25-17"


class Performance(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.page = self.folder / "performance.md"
        self.page.write_text(PAGE)

    def record(self, date="2026-01-02", factor=0.25, **changed):
        """Records a run and returns the page."""
        self.bench = Bench({**ZEN, **changed}, factor)
        with mock.patch.object(performance, "bench", self.bench):
            performance.record("laconic", 1, self.folder, date)
        return self.page.read_text()

    def file(self, name):
        return json.loads((self.folder / "performance" / name).read_text())

    def history(self):
        text = self.page.read_text().partition("<!-- begin history -->\n")[2]
        return text.partition("<!-- end history -->")[0].splitlines()[2:]

    def test_a_new_processor_adds_a_section_and_a_line(self):
        page = self.record()
        begin = f"<!-- begin processor {NAME} -->\n"
        before, _, rest = page.partition(begin)
        section, _, after = rest.partition(f"<!-- end processor {NAME} -->\n")
        self.assertEqual(after, "<!-- end processors -->\nafter\n")
        self.assertIn("### AMD EPYC (TM) (AuthenticAMD 25 17)\n", section)
        self.assertIn("\n2 cores, laconic 0.2.0, 2026-01-02. ", section)
        self.assertIn(f"--compare docs/performance/{NAME}.json\n", section)
        self.assertEqual(self.history(), [
            "| 0.1 | 2020-01-01 | Other | 7 |",
            "| 0.2.0 | 2026-01-02 | AMD EPYC (TM) (AuthenticAMD 25 17) | 0.75 "
            "| 1.50 | 0.50 | 0.50 | 0.50 |"])
        line = self.history()[1] + "\n"
        self.assertEqual(before.replace(line, ""),
                         PAGE.partition("<!-- end processors -->")[0])

    def test_another_run_replaces_section_and_line_of_its_processor(self):
        first = self.record()
        second = self.record("2026-03-04", factor=0.5)
        self.assertNotIn("2026-01-02", second)
        self.assertEqual(len(second.splitlines()), len(first.splitlines()))
        self.assertEqual(second.count(f"begin processor {NAME}"), 1)
        self.assertEqual(len(self.history()), 2)
        self.assertIn("| 2026-03-04 |", self.history()[1])
        self.assertIn("tables of Other, 2020-01-01\n", second)
        self.assertEqual(self.file(NAME + ".json")["date"], "2026-03-04")

    def test_a_release_adds_a_line_and_replaces_the_section(self):
        self.record()
        page = self.record("2026-05-06", version="0.3.0")
        self.assertEqual([performance.cells(line)[:2]
                          for line in self.history()],
                         [["0.1", "2020-01-01"], ["0.2.0", "2026-01-02"],
                          ["0.3.0", "2026-05-06"]])
        self.assertEqual(page.count(f"begin processor {NAME}"), 1)
        self.assertNotIn("laconic 0.2.0", page)

    def test_a_processor_of_the_same_name_and_another_model_is_another(self):
        self.record()
        page = self.record("2026-03-04", processor_id="AuthenticAMD 25 1")
        self.assertIn("laconic 0.2.0, 2026-01-02. ", page)
        self.assertIn("laconic 0.2.0, 2026-03-04. ", page)
        self.assertIn(f"begin processor {NAME[:-1]} -->", page)
        self.assertEqual(len(self.history()), 3)
        self.assertEqual(len(list((self.folder / "performance").iterdir())), 4)

    def test_the_kernels_are_the_best_and_portable_ones(self):
        page = self.record()
        self.assertEqual({kernels for kernels, _, _ in self.bench.calls},
                         {"best", "portable"})
        self.assertEqual(page.count("avx9 kernels with prefetch, medians of"),
                         3)
        self.assertEqual(page.count("portable kernels without prefetch"), 1)

    def test_tables_have_medians_and_mark_missed_aims(self):
        page = self.record()
        # The calls have 0.25, 0.5, 0.75 and so on, five of the usual
        # compressors and three of steps.
        self.assertIn(
            "| natural | 32.00 | 0.75 (aim 0.8; 0.25 to 1.25) "
            "| 0.25 (aim 1.0; 0.08 to 0.42) | 1.50 | 0.8 |\n", page)
        self.assertIn("| **1.50 (aim 0.85; 0.50 to 2.50)** |", page)
        self.assertIn("| identity | 32.00 | 0.75 | 0.25 | 1.50 | - |\n", page)
        self.assertIn("| dpsgd | 0.50 (aim 2.5; 0.25 to 0.75) | 5.0 | - |\n",
                      page)
        page = self.record(factor=2)
        self.assertIn("| choco with sign | **4.00 (aim 2.5; 2.00 to 6.00)** ",
                      page)
        self.assertIn("| allreduce | 4.00 |", page)
        self.assertIn("memcpy of 4,000 floats: 0.0 ms (8.0 GB/s of floats)",
                      page)

    def test_threads_are_compared_with_one(self):
        # Half the figures of one thread: half the speed, or half the time.
        page = self.record(factor=4)
        self.assertIn("| | values | 1 thread | 2 threads | gain |\n", page)
        self.assertIn("| natural, encode | 1,000 | 4.0 GB/s | 2.0 GB/s | 0.50 "
                      "|\n", page)
        self.assertIn("| natural, decode-add | 1,000 | 12.0 GB/s | 6.0 GB/s "
                      "| 0.50 |\n", page)
        self.assertIn("| dpsgd | 4,000 | 40.0 ms | 20.0 ms | 2.00 |\n", page)
        self.assertIn("| choco with natural | 4,000 | 40.0 ms | 20.0 ms "
                      "| 2.00 |\n", page)

    def test_portable_c_has_no_aims(self):
        page = self.record(factor=2)
        portable = page.partition("#### Portable C")[2]
        self.assertIn("| natural | 32.00 | 4.00 | 1.33 | 8.00 |", portable)
        self.assertNotIn("aim", portable)

    def test_the_files_have_every_row_with_its_median(self):
        self.record(factor=1 / 3)
        file = self.file(NAME + ".json")
        self.assertEqual([row["spec"] for row in file["compressors"]],
                         ["natural", "sign", "identity", *performance.SLOW])
        self.assertEqual(
            [(row["spec"], row["compressor"]) for row in file["algorithms"]],
            [(spec, compressor) for specs, compressor in performance.STEPS
             for spec in specs])
        self.assertEqual(file["kernels"], "avx9")
        self.assertEqual({key: file[key] for key in ZEN}, ZEN)
        # Without the ranges, rounded.
        self.assertEqual(file["compressors"][0], {
            "spec": "natural", "encode_gbps": 1, "encode_memcpys": 1,
            "decode_add_gbps": 3, "decode_add_memcpys": 0.33333,
            "encode_add_memcpys": 2, "bits_per_value": 32,
            "break_even_mbit": 1000})
        portable = self.file(NAME + "-portable.json")
        self.assertEqual(portable["kernels"], "portable")
        self.assertEqual(portable["algorithms"], [])

    def test_the_command_is_called_with_kernels_runs_and_specs(self):
        laconic = self.folder / "laconic"
        laconic.write_text(PROGRAM % sys.executable)
        laconic.chmod(0o755)
        self.assertEqual(
            performance.bench(str(laconic), "best", 7, ["choco"], "sign"),
            ["bench", "--json", "--kernels", "best", "--runs", "7",
             "--compressor", "sign", "choco"])

    def test_a_page_without_marks_is_refused_before_measuring(self):
        for mark in "history", "processors":
            self.page.write_text(PAGE.replace(f"end {mark}", "end"))
            with self.assertRaises(SystemExit) as refused:
                self.record()
            self.assertIn(f'"begin {mark}"', str(refused.exception))
            self.assertEqual(self.bench.calls, [])

    def test_every_aim_has_its_row(self):
        steps = {(spec, compressor) for specs, compressor in performance.STEPS
                 for spec in specs}
        self.assertLessEqual(set(performance.STEP_AIMS), steps)

    def test_the_page_of_this_tree_has_the_marks(self):
        page = (ROOT / "docs" / "performance.md").read_text()
        self.page.write_text(page)
        self.assertIn("### Intel(R) Xeon(R) Processor\n", self.record())
        for line in self.history():
            self.assertEqual(len(performance.cells(line)),
                             3 + len(performance.HISTORY))


if __name__ == "__main__":
    unittest.main()
