# SPDX-License-Identifier: MIT
"""bench: its results and its progress bar."""
import json
import os
import pty
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from command import Command, FAILED, GOOD, HANG, LACONIC, USAGE
from training import algorithm_words


class Bench(Command):
    KEYS = {"spec", "encode_gbps", "decode_add_gbps", "encode_add_gbps",
            "bits_per_value"}

    def succeeds(self, *words):
        """On a slow machine stderr has lines of progress."""
        done = self.run_laconic(*words)
        self.assertRegex(done.stderr, r"^(\d+/\d+ .*\n)*$")
        self.assertEqual(done.returncode, GOOD)
        return done.stdout

    def test_a_terminal_shows_a_bar_that_is_removed_at_the_end(self):
        try:
            reader, writer = pty.openpty()
        except OSError as problem:
            self.skipTest(f"this machine has no pseudo-terminal: {problem}")
        done = subprocess.run(
            (LACONIC, "bench", "--values", "10", "--runs", "1", "identity",
             "half"), stdout=subprocess.PIPE, stderr=writer,
            check=True, timeout=HANG, env={**os.environ, "NO_COLOR": "1"})
        os.close(writer)
        shown = b""
        try:
            while True:  # until no writer is left
                shown += os.read(reader, 1 << 16)
        except OSError:
            os.close(reader)
        self.assertTrue(shown.endswith(b"\r\x1b[K"))
        bars = [bar for bar in shown.split(b"\r\x1b[K") if bar]
        self.assertEqual(bars, [
            b"[" + b" " * 20 + b"] 1/2 identity",
            b"[" + b"#" * 10 + b" " * 10 + b"] 2/2 half"])
        self.assertIn(b"break-even", done.stdout)

    def test_one_value_is_one(self):
        self.assertIn("\n1 value, medians of 2 runs",
                      self.succeeds("bench", "--values", "1", "--runs", "2",
                                    "identity"))

    def test_json_has_the_promised_keys(self):
        found = json.loads(self.succeeds("bench", "--values", "10000", "--runs",
                                        "3", "--json"))
        self.assertEqual(found["values"], 10000)
        self.assertIn(found["kernels"],
                      ("portable", "avx2", "avx512", "neon"))
        self.assertIn(found["prefetch"], (True, False))
        version = self.succeeds("--version").split()[1]
        self.assertEqual(found["version"], version)
        self.assertGreater(found["memcpy_gbps"], 0)
        self.assertEqual(found["algorithms"], [])
        for item in found["compressors"]:
            self.assertLessEqual(self.KEYS, set(item))
            for key in self.KEYS - {"spec"}:
                self.assertGreater(item[key], 0)
        identity = found["compressors"][-1]
        self.assertEqual(identity["spec"], "identity")
        self.assertEqual(identity["bits_per_value"], 32)
        self.assertIsNone(identity["break_even_mbit"])

    def test_json_names_the_processor(self):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = dict(re.findall(r"(?m)^([^\t\n:]+)\t*: (.*)",
                                    file.read().partition("\n\n")[0]))
        found = json.loads(self.succeeds("bench", "--values", "10", "--runs",
                                         "1", "identity", "--json"))
        self.assertEqual(found["processor"],
                         lines.get("model name", "an unknown processor"))
        self.assertEqual(found["processor_id"], " ".join(
            lines[key] for key in ("vendor_id", "cpu family", "model",
                                   "CPU implementer", "CPU part")
            if key in lines))
        self.assertEqual(found["processors"],
                         os.sysconf("SC_NPROCESSORS_ONLN"))

    def test_specs_and_kernels_can_be_chosen(self):
        found = json.loads(self.succeeds(
            "bench", "identity", "--kernels", "portable", "--values", "1",
            "--runs", "2", "identity", "--json"))
        self.assertEqual(found["kernels"], "portable")
        self.assertEqual([c["spec"] for c in found["compressors"]],
                         ["identity"] * 2)

    def kernels(self, *words):
        return self.run_laconic("bench", "identity", "allreduce", "--model",
                                "lenet", "--values", "10", "--runs", "1",
                                *words)

    def test_kernels_that_the_machine_lacks_are_refused(self):
        for name in "avx2", "avx512", "neon":
            done = self.kernels("--kernels", name)
            if done.returncode == GOOD:
                self.assertIn(f"{name} kernels with", done.stdout)
            else:
                self.assertEqual(done.returncode, FAILED)
                self.assertRegex(
                    done.stderr, rf"^laconic: (kernels {name} need an "
                    rf"|this build has no kernels {name}\n$)")
        done = self.kernels("--kernels", "sse")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("avx512", done.stderr)

    def test_threads_can_be_chosen(self):
        found = json.loads(self.kernels("--json").stdout)
        self.assertEqual(found["threads"], 1)
        found = json.loads(self.kernels("--threads", "3", "--json").stdout)
        self.assertEqual(found["threads"], 3)
        done = self.kernels("--threads", "257")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("from 1 to 256", done.stderr)

    def test_prefetching_can_be_chosen(self):
        off = self.kernels("--prefetch", "off", "--json")
        self.assertIs(json.loads(off.stdout)["prefetch"], False)
        on = self.kernels("--prefetch", "on", "--json")
        if on.returncode == GOOD:
            self.assertIs(json.loads(on.stdout)["prefetch"], True)
        else:
            self.assertRegex(on.stderr,
                             r"^laconic: kernels \w+ do not prefetch\n$")
        done = self.kernels("--kernels", "portable", "--prefetch", "on")
        self.assertEqual(done.returncode, FAILED)
        self.assertEqual(done.stderr,
                         "laconic: kernels portable do not prefetch\n")

    def test_a_step_of_an_algorithm_is_measured(self):
        found = json.loads(self.succeeds(
            "bench", "powersgd:rank=2", "allreduce", "--runs", "1", "--json"))
        self.assertEqual(found["compressors"], [])
        powersgd, allreduce = found["algorithms"]
        self.assertEqual(powersgd["spec"], "powersgd:rank=2")
        self.assertEqual(powersgd["layout"], "resnet50")
        for key in ("ms", "memcpy_ratio", "break_even_mbit"):
            self.assertGreater(powersgd[key], 0)
        self.assertIsNone(allreduce["break_even_mbit"])
        self.assertGreater(found["memcpy_gbps"], 0)

    def test_a_step_of_an_algorithm_with_a_compressor_is_measured(self):
        found = json.loads(self.succeeds(
            "bench", "choco", "error-feedback", "--compressor", "sign",
            "--runs", "1", "--json"))
        choco, feedback = found["algorithms"]
        self.assertEqual(choco["payload_bytes"], feedback["payload_bytes"])
        for step in choco, feedback:
            for key in ("ms", "memcpy_ratio", "break_even_mbit"):
                self.assertGreater(step[key], 0)

    def steps(self, *words):
        found = json.loads(self.succeeds("bench", *words, "--runs", "1",
                                         "--json"))
        for step in found["algorithms"]:
            self.assertGreater(step["ms"], 0)
            self.assertGreater(step["memcpy_ratio"], 0)
        return found["algorithms"]

    def test_a_step_is_of_the_model_that_is_named(self):
        step, = self.steps("allreduce", "--model", "lenet")
        self.assertEqual((step["model"], step["layout"]), ("lenet", "lenet"))
        self.assertEqual(step["values"], 61706)
        self.assertEqual(step["payload_bytes"], 4 * 61706)
        text = self.succeeds("bench", "allreduce", "--model", "lenet",
                             "--runs", "1")
        self.assertRegex(text, r"(?m)^61,706 values of lenet, ")

    def test_a_step_is_of_the_layout_that_is_named(self):
        self.write("shapes.txt", b"a 30 20\nb 7\n")
        step, = self.steps("powersgd:rank=2", "--layout", "shapes.txt")
        self.assertEqual((step["model"], step["layout"]),
                         (None, "shapes.txt"))
        self.assertEqual(step["payload_bytes"], 4 * (2 * (30 + 20) + 7))

    def test_every_algorithm_has_a_step_with_several_other_workers(self):
        self.write("shapes.txt", b"a 30 20\nb 7\n")
        for name in self.listed("algorithms"):
            spec, *more = algorithm_words(name, self.run_laconic)
            compressor = more if "--compressor" in more else []
            step, = self.steps(spec, *compressor, "--layout", "shapes.txt",
                               "--degree", "4")
            self.assertEqual((step["spec"], step["degree"]), (spec, 4))

    def test_the_degree_is_the_number_of_other_workers(self):
        words = "compressed", "--compressor", "identity", "--model", "lenet"
        alone, = self.steps(*words)
        two, = self.steps(*words, "--degree", "1")
        eight, = self.steps(*words, "--degree", "7")
        self.assertEqual([s["degree"] for s in (alone, two, eight)], [0, 1, 7])
        # The way back counts once for all workers.
        self.assertEqual(two["payload_bytes"], 4 * 61706 * (1 + 1 / 2))
        self.assertEqual(eight["payload_bytes"], 4 * 61706 * (1 + 1 / 8))
        gossip, = self.steps("dpsgd", "--model", "lenet")
        self.assertEqual(gossip["degree"], 1)

    def test_the_table_states_the_degree(self):
        text = self.succeeds("bench", "dpsgd", "--model", "lenet", "--degree",
                             "3", "--runs", "1")
        self.assertIn("the messages of 3 other workers", text)
        self.assertLessEqual(max(map(len, text.split("\n"))), 80)

    def test_options_of_steps_need_an_algorithm(self):
        for option, value in (("model", "lenet"), ("layout", "x"),
                              ("degree", "2")):
            self.fails(USAGE, f"--{option} is for algorithms, but no SPEC is "
                       "one", "bench", "sign", f"--{option}", value)

    def test_bad_shapes_and_degrees_are_refused(self):
        self.fails(USAGE, "bench: both of --model and --layout given, "
                   "expected one", "bench", "allreduce", "--model", "lenet",
                   "--layout", "x")
        self.fails(FAILED, "nowhere: cannot open: No such file or "
                   "directory", "bench", "allreduce", "--layout", "nowhere")
        for degree in "0", "256", "many":
            done = self.run_laconic("bench", "dpsgd", "--degree", degree)
            self.assertEqual(done.returncode, USAGE)
            self.assertIn("--degree", done.stderr)
        done = self.run_laconic("bench", "dpsgd", "--model", "resnet21")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("resnet20", done.stderr)

    def test_more_workers_than_the_memory_holds_are_refused(self):
        self.write("large.txt", b"a 30000 30000\n")
        done = self.run_laconic("bench", "dpsgd", "--layout", "large.txt",
                                "--degree", "255")
        self.assertEqual(done.returncode, FAILED)
        self.assertRegex(
            done.stderr, r"^laconic: bench: dpsgd with 255 other workers needs "
            r"\d.*B of memory, this machine has \d.*B\n$")

    def test_compressors_and_algorithms_can_be_mixed(self):
        done = self.run_laconic(
            "bench", "powersgd:rank=33", "--runs", "1")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("powersgd: rank", done.stderr)
        done = self.run_laconic("bench", "choco", "--runs", "1")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("choco: a compressor is needed", done.stderr)
        done = self.run_laconic("bench", "sign", "--compressor", "sign")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("--compressor", done.stderr)
        text = self.succeeds("bench", "identity", "powersgd", "--runs", "1",
                             "--values", "1000", "--kernels", "portable")
        self.assertIn("portable kernels", text)
        self.assertRegex(text, r"(?m)^1,000 values, medians of 1 run; "
                         r"a memcpy takes \d")
        self.assertRegex(text, r"(?m)^25,557,032 values of resnet50, medians "
                         r"of 1 run; a memcpy takes \d")
        self.assertRegex(text, r"(?m)^powersgd +\d")
        self.assertRegex(text, r"(?m)^identity ")

    def test_a_table_of_algorithms_names_what_was_measured(self):
        text = self.succeeds("bench", "choco", "--compressor", "sign",
                             "--runs", "1", "--values", "1000")
        self.assertNotIn("1,000 values", text)
        self.assertRegex(text, r"(?m)^25,557,032 values of resnet50, ")
        self.assertRegex(text, r"(?m)^choco with sign +\d")

    def test_slow_compressors_have_figures_too(self):
        """A call for one value takes long for its four bytes."""
        text = self.succeeds("bench", "sign", "dithering", "--values", "1",
                             "--runs", "1", "choco", "--compressor", "sign",
                             "--model", "lenet")
        heads, *rows = re.search(r"(?m)^compressor .*\n(.+\n)+", text)[0].strip(
            ).split("\n")
        self.assertEqual(heads.split(), ["compressor", "value"]
                         + ["MB/s", "memcpys"] * 3 + ["Mbit/s"])
        self.assertEqual([row.split()[0] for row in rows],
                         ["sign", "dithering"])
        for row in rows:
            for figure in row.split()[2::2]:
                self.assertTrue(figure == "-" or float(figure) > 0, row)
        self.assertRegex(text, r"\nwhole step of +ms +memcpys +break-even "
                         r"Mbit/s\nchoco with sign .* [1-9][0-9.]*\n")

    def test_the_table_lines_up(self):
        lines = self.succeeds("bench", "--values", "1000", "--runs",
                              "1").split("\n")
        self.assertIn("1,000 values, medians of 1 run", lines[1])
        end = lines.index("", 3)
        figures = [line for line in lines[3:end] if " " in line]
        self.assertEqual(len({len(line) for line in figures}), 1)
        self.assertGreater(len(figures), 10)
        self.assertIn("dithering:bucket=512,norm=inf", lines[3:end])


if __name__ == "__main__":
    unittest.main()
