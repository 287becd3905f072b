# SPDX-License-Identifier: MIT
"""laconic average with threads: its results, output, files and errors.

usage: test_average.py LACONIC
"""
import json
import math
import os
import struct
import subprocess
import unittest

from command import Command, FAILED, GOOD, LACONIC, USAGE
from command import npy, values_of

KEYS = ("rounds", "initial_error", "final_error", "mean_drift",
        "payload_bytes", "wire_bytes", "messages", "seconds")


def single(x):
    """x as a float32."""
    return struct.unpack("f", struct.pack("f", x))[0]


class Average(Command):
    def average(self, *words):
        return json.loads(self.succeeds("average", "--json", *words))

    def rejected(self, code, message, *words):
        self.fails(code, message, "average", *words)

    def write_rows(self, name, rows):
        self.write(name, npy((len(rows), len(rows[0])),
                             [value for row in rows for value in row]))

    def trace(self, name):
        header, *lines = self.read(name).decode().split("\n")
        self.assertEqual(header, "round,error,mean_drift,payload_bytes")
        self.assertEqual(lines.pop(), "")
        return [[float(cell) for cell in line.split(",")] for line in lines]


class Results(Average):
    def test_json_has_the_promised_keys(self):
        found = self.average("--algorithm", "dpsgd", "--rounds", "3")
        self.assertLessEqual(set(KEYS), set(found))
        self.assertNotIn("gamma", found)
        # Ring of 8: two neighbours, three rounds, 1000 floats.
        self.assertEqual(found["messages"], 8 * 2 * 3)
        self.assertEqual(found["payload_bytes"], 8 * 2 * 3 * 4000)
        self.assertGreater(found["wire_bytes"], found["payload_bytes"])
        self.assertEqual(found["rounds"], 3)
        self.assertFalse(found["diverged"])

    def test_gamma_is_reported_where_there_is_one(self):
        found = self.average("--algorithm", "choco:gamma=0.25", "--compressor",
                            "sign", "--rounds", "1")
        self.assertEqual(found["gamma"], 0.25)
        self.assertEqual(found["compressor"], "sign")

    def test_threads_change_no_bit(self):
        for words in (("--algorithm", "dpsgd"),
                      ("--algorithm", "choco:gamma=0.3", "--compressor",
                       "natural"),
                      ("--algorithm", "error-feedback", "--compressor",
                       "dithering:bucket=512")):
            found = [self.average(
                *words, "--workers", "2", "--rounds", "3", "--dimension",
                "200000", "--threads", threads) for threads in "13"]
            for one in found:
                del one["seconds"]
            self.assertEqual(*found)
        self.rejected(USAGE, "--threads is \"0\", expected a whole number from "
                      "1 to 256", "--threads", "0")

    def test_drawn_values_are_nearly_normal(self):
        found = self.average("--algorithm", "dpsgd", "--rounds", "0",
                            "--dimension", "20000")
        # Variance 1 less that of a mean of 8. The squares of 160,000 values
        # have a standard deviation of sqrt(2): 5 of them are 0.018.
        self.assertAlmostEqual(found["initial_error"] / 20000, 7 / 8,
                               delta=0.018)
        self.assertEqual(found["final_error"], found["initial_error"])
        self.assertEqual(found["payload_bytes"], 0)

    def test_gossip_on_a_ring_contracts_by_lambda2_squared(self):
        # The slowest mode of the ring of 8, an eigenvector of W.
        self.write_rows("x.npy", [[math.cos(math.pi * i / 4)] * 3
                                  for i in range(8)])
        self.average("--algorithm", "dpsgd", "--rounds", "20", "--input",
                     "x.npy", "--trace", "t.csv")
        lambda2 = (1 + 2 * math.cos(math.pi / 4)) / 3
        rows = self.trace("t.csv")
        self.assertEqual([row[0] for row in rows], list(range(21)))
        for done, error, drift, payload in rows:
            # A round adds at most some 2e-7 to values that have shrunk to
            # lambda2^20 = 0.013: 20 of them are 3e-4 of it, squared twice.
            self.assertAlmostEqual(error / rows[0][1] / lambda2**(2 * done), 1,
                                   delta=6e-4)
            self.assertLess(drift, 1e-12)
            self.assertEqual(payload, done * 8 * 2 * 12)

    def test_one_round_of_a_complete_graph_gives_the_mean(self):
        rows = [[single(value) for value in self.values[5 * i:5 * i + 5]]
                for i in range(6)]
        self.write_rows("x.npy", rows)
        self.average("--algorithm", "dpsgd", "--topology", "complete",
                     "--workers", "6", "--rounds", "1", "--input", "x.npy",
                     "--output", "y.npy")
        shape, values = values_of(self.read("y.npy"))
        self.assertEqual(shape, (6, 5))
        for i, value in enumerate(values):
            mean = sum(row[i % 5] for row in rows) / 6
            self.assertAlmostEqual(value, mean, delta=1e-6)

    def test_errors_are_distances_to_the_initial_mean(self):
        self.write_rows("x.npy", [[1, 0], [3, 4]])
        found = self.average("--algorithm", "dpsgd", "--rounds", "0",
                            "--workers", "2", "--input", "x.npy")
        self.assertEqual(found["initial_error"], 1 + 4)
        self.assertEqual(found["mean_drift"], 0)

    def test_final_numbers_are_those_of_the_output(self):
        rows = [self.values[50 * i:50 * i + 50] for i in range(8)]
        self.write_rows("x.npy", rows)
        found = self.average("--algorithm", "naive", "--compressor", "natural",
                            "--rounds", "9", "--input", "x.npy", "--output",
                            "y.npy")
        values = values_of(self.read("y.npy"))[1]
        error = drift = 0
        for i in range(50):
            mean = sum(single(row[i]) for row in rows) / 8
            column = values[i::50]
            error += sum((value - mean)**2 for value in column) / 8
            drift += (sum(column) / 8 - mean)**2
        self.assertAlmostEqual(found["final_error"] / error, 1, delta=1e-9)
        self.assertAlmostEqual(found["mean_drift"] / drift, 1, delta=1e-9)

    def test_matrices_keep_their_shape(self):
        self.write("x.npy", npy((4, 5, 6), self.values[:120]))
        self.average("--algorithm", "dpsgd", "--rounds", "0", "--workers", "4",
                     "--input", "x.npy", "--output", "y.npy")
        shape, values = values_of(self.read("y.npy"))
        self.assertEqual(shape, (4, 5, 6))
        self.assertEqual(values, tuple(map(single, self.values[:120])))

    def test_one_worker_sends_nothing(self):
        for words in (["dpsgd"], ["choco:gamma=0.5", "--compressor", "sign"]):
            found = self.average("--workers", "1", "--rounds", "4",
                                "--algorithm", *words)
            self.assertEqual(found["messages"], 0)
            self.assertEqual(found["wire_bytes"], 0)
            self.assertEqual(found["initial_error"], 0)

    def test_the_same_seed_gives_the_same_bytes(self):
        outputs = []
        for seed in ("5", "5", "6"):
            self.average("--algorithm", "choco:gamma=0.1", "--compressor",
                         "random-k:0.1", "--rounds", "20", "--seed", seed,
                         "--output", "y.npy")
            outputs.append(self.read("y.npy"))
        self.assertEqual(outputs[0], outputs[1])
        self.assertNotEqual(outputs[0], outputs[2])

    def test_a_trace_does_not_change_the_result(self):
        words = ("--algorithm", "dcd", "--compressor", "natural", "--rounds",
                 "30", "--output", "y.npy")
        plain = self.average(*words)
        output = self.read("y.npy")
        traced = self.average(*words, "--trace", "t.csv")
        self.assertEqual(self.read("y.npy"), output)
        rows = self.trace("t.csv")
        self.assertEqual(len(rows), 31)
        self.assertEqual(rows[0][1], plain["initial_error"])
        self.assertEqual(rows[-1][1:], [plain[key] for key in
                                        ("final_error", "mean_drift",
                                         "payload_bytes")])
        for found in (plain, traced):
            found.pop("seconds")
        self.assertEqual(plain, traced)

    def test_the_drift_of_the_mean_is_reported(self):
        found = self.average("--algorithm", "choco:gamma=0.2", "--compressor",
                            "top-k:0.1", "--rounds", "50")
        self.assertLess(found["mean_drift"], 1e-8)
        moved = self.average("--algorithm", "naive", "--compressor",
                             "natural", "--rounds", "50")
        self.assertGreater(moved["mean_drift"], 1)

    def test_divergence_is_a_result_and_the_same_each_time(self):
        words = ("--algorithm", "choco:gamma=2", "--compressor", "top-k:0.01",
                 "--rounds", "5000", "--output", "y.npy")
        found = [self.average(*words) for _ in range(2)]
        for one in found:
            self.assertTrue(one["diverged"])
            self.assertIsNone(one["final_error"])
            self.assertIsNone(one["mean_drift"])
            self.assertLess(one["rounds"], 5000)
            one.pop("seconds")
        self.assertEqual(found[0], found[1])
        shape, values = values_of(self.read("y.npy"))
        self.assertEqual(shape, (8, 1000))
        # The limit is 1e6 times the start, whose values are below 6. It is
        # checked after every round by then, which grows less than tenfold.
        self.assertGreater(max(map(abs, values)), 1e6)
        self.assertLess(max(map(abs, values)), 6e7)
        text = self.succeeds("average", *words)
        self.assertIn("the values diverge", text)

    def test_the_error_over_rounds_is_drawn_on_a_logarithmic_axis(self):
        # It falls by the same factor in every round, so it is a line.
        self.write_rows("x.npy", [[math.cos(math.pi * i / 4)] * 3
                                  for i in range(8)])
        words = ("average", "--algorithm", "dpsgd", "--rounds", "20",
                 "--input", "x.npy")
        text = self.succeeds(*words, "--trace", "t.csv")
        _, found, plot = text.partition(
            "\nerror over rounds, the error logarithmic\n")
        self.assertTrue(found, text)
        *rows, ends = plot.splitlines()
        self.assertEqual(ends.split(), ["0", "20"])
        marks = [(row, column) for row, line in enumerate(rows)
                 for column, mark in enumerate(line.partition("|")[2])
                 if mark == "*"]
        self.assertEqual(len(marks), 21)
        self.assertEqual((min(marks), max(marks)), ((0, 0), (13, 67)))
        for row, column in marks:
            self.assertLess(abs(row / 13 - column / 67), 1 / 13)
        self.assertNotIn("error over", self.succeeds(*words))

    def test_the_table_is_for_people(self):
        text = self.succeeds("average", "--algorithm", "choco:gamma=0.3",
                             "--compressor", "top-k:0.1", "--workers", "4")
        for word in ("choco:gamma=0.3", "top-k:0.1", "ring of 1,000 values",
                     "initial error", "final error", "fewer bytes",
                     "gamma", "rounds", "time"):
            self.assertIn(word, text)

    def test_the_tensors_of_a_model_are_averaged(self):
        found = self.average("--algorithm", "powersgd:rank=2", "--model",
                            "resnet20", "--workers", "4", "--rounds", "2")
        size = json.loads(self.succeeds(
            "size", "--algorithm", "powersgd:rank=2", "--model", "resnet20",
            "--workers", "4", "--json"))
        self.assertEqual(found["dimension"], size["parameters"])
        self.assertEqual(found["payload_bytes"],
                         2 * 4 * size["payload_bytes_per_step"])
        self.assertLess(found["final_error"], found["initial_error"])

    def test_a_layout_of_one_tensor_is_a_dimension(self):
        """Its name is part of random draws, which top-k has none of."""
        self.write("layout", b"x 50 1\n")
        words = ("--algorithm", "choco:gamma=0.2", "--compressor", "top-k:0.1",
                 "--rounds", "5", "--output")
        self.average(*words, "a.npy", "--layout", "layout")
        self.average(*words, "b.npy", "--dimension", "50")
        self.assertEqual(self.read("a.npy"), self.read("b.npy"))

    def test_rounds_can_be_timed_only(self):
        words = ("--algorithm", "dpsgd", "--rounds", "40", "--step-time",
                 "2 ms")
        found = self.average(*words, "--time-only")
        self.assertGreaterEqual(found["round_seconds"], 0.002)
        self.assertGreaterEqual(found["seconds"],
                                40 * found["round_seconds"])
        for key in ("initial_error", "final_error", "mean_drift"):
            self.assertIsNone(found[key], key)
        text = self.succeeds("average", *words, "--time-only")
        self.assertIn("ms per round", text)
        self.assertNotIn("error", text)
        found = self.average(*words)
        self.assertNotIn("round_seconds", found)
        self.assertGreaterEqual(found["seconds"], 40 * 0.002)

    def test_rounds_that_are_timed_send_the_same(self):
        for words in (["powersgd"], ["choco:gamma=0.1", "--compressor",
                                     "sign"], ["allreduce"]):
            with self.subTest(words[0]):
                words = ("--rounds", "12", "--input", "x.npy", "--workers",
                         "30", "--algorithm", *words)
                timed = self.average(*words, "--time-only")
                found = self.average(*words)
                for key in ("rounds", "payload_bytes", "messages"):
                    self.assertEqual(timed[key], found[key], key)

    def test_warnings_go_to_stderr(self):
        done = self.run_laconic("average", "--algorithm", "dcd",
                                "--compressor", "sign", "--rounds", "1")
        self.assertEqual(done.returncode, GOOD)
        self.assertIn("unbiased", done.stderr)

    def test_a_hundred_workers_run(self):
        found = self.average("--algorithm", "dpsgd", "--workers", "100",
                            "--topology", "torus", "--rounds", "20",
                            "--dimension", "10")
        self.assertLess(found["final_error"], found["initial_error"])

    def test_a_thousand_workers_run(self):
        done = self.run_laconic(
            "average", "--json", "--workers", "1024", "--topology", "torus",
            "--algorithm", "choco:gamma=0.05", "--compressor", "top-k:0.01",
            "--rounds", "20", "--dimension", "10000")
        self.assertEqual(done.returncode, GOOD, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["rounds"], 20)
        self.assertLess(found["final_error"], 0.9 * found["initial_error"])


class Refusals(Average):
    DPSGD = ("--algorithm", "dpsgd")

    def test_usage(self):
        for message, *words in (
                ("average: --algorithm SPEC is missing",),
                ("dpsgd: compressor sign was given, but it takes none",
                 *self.DPSGD, "--compressor", "sign"),
                ("choco: a compressor is needed, such as sign",
                 "--algorithm", "choco:gamma=0.1"),
                ("ecd: a compressor is needed, such as dithering:levels=65535",
                 "--algorithm", "ecd"),
                ('no algorithm is named "chocco"; did you mean choco?',
                 "--algorithm", "chocco"),
                ("hypercube: 6 workers, expected a power of two", *self.DPSGD,
                 "--topology", "hypercube", "--workers", "6"),
                ('--workers is "0", expected a whole number from 1 to 16384',
                 *self.DPSGD, "--workers", "0"),
                ("average: --input and --dimension were given, expected one",
                 *self.DPSGD, "--input", "x.npy", "--dimension", "4"),
                ("average: --dimension and --model were given, expected one",
                 *self.DPSGD, "--model", "lenet", "--dimension", "4"),
                ("average: --model and --layout were given, expected one",
                 *self.DPSGD, "--model", "lenet", "--layout", "x"),
                ("average: --time-only gathers no values, expected no "
                 "--output", *self.DPSGD, "--time-only", "--output", "y.npy"),
                ("average: --time-only gathers no values, expected no "
                 "--trace", *self.DPSGD, "--time-only", "--trace", "t.csv"),
                ('--step-time is "5", expected a time from 1e-09 to 1e+07 s '
                 "with a unit, such as 229ms, 0.1 s or 50us", *self.DPSGD,
                 "--step-time", "5"),
                ('no transport is named "pigeon"; `laconic list` shows those '
                 "there are", *self.DPSGD, "--transport", "pigeon")):
            self.rejected(USAGE, message, *words)

    def test_another_number_of_workers_than_the_job_has_is_usage(self):
        self.fails(USAGE, "average: --workers is 8, but the job has 4",
                   "average", *self.DPSGD, "--workers", "8",
                   env={**os.environ, "OMPI_COMM_WORLD_SIZE": "4"})

    def test_a_batch_system_alone_is_no_launcher(self):
        done = self.run_laconic("average", *self.DPSGD, "--rounds", "1",
                                env={**os.environ, "SLURM_NTASKS": "4",
                                     "SLURM_PROCID": "0"})
        self.assertEqual((done.returncode, done.stderr), (GOOD, ""))

    def test_an_input_of_the_wrong_shape_fails(self):
        self.write("x.npy", npy((3, 2), range(6)))
        self.rejected(FAILED, "x.npy: is 3 x 2, expected its first dimension "
                     "to be the 4 workers", *self.DPSGD, "--input", "x.npy",
                     "--workers", "4")
        self.write("x.npy", npy((4,), range(4)))
        self.rejected(FAILED, "x.npy: has 1 dimensions, expected workers x "
                     "values or workers x rows x columns", *self.DPSGD,
                     "--input", "x.npy", "--workers", "4")

    def test_values_that_are_not_finite_fail(self):
        for value in (math.nan, math.inf):
            self.write_rows("x.npy", [[0, 1], [2, 3], [4, value], [5, 6]])
            self.rejected(FAILED, "dpsgd: worker 2 has a value in x that is "
                         "not finite", *self.DPSGD, "--input", "x.npy",
                         "--workers", "4", "--output", "y.npy")

    def test_a_failure_leaves_no_files(self):
        self.rejected(FAILED, "none/y.npy: cannot create a file in its folder: "
                     "No such file or directory", *self.DPSGD, "--rounds", "1",
                     "--output", "none/y.npy", "--trace", "t.csv")


class Streams(Average):
    def test_results_go_to_a_pipe(self):
        done = subprocess.run(
            [LACONIC, "average", "--algorithm", "dpsgd", "--rounds", "1",
             "--output", "/dev/stdout", "--dimension", "3"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        self.assertEqual(values_of(done.stdout)[0], (8, 3))
        self.assertIn(b"final error", done.stderr)


if __name__ == "__main__":
    unittest.main()
