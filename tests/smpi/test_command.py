# SPDX-License-Identifier: MIT
"""The command on simulated clusters: it trains to the same bits as in threads,
its time is that of the network, and it finds that network.

usage: test_command.py BUILD THREADS
"""
import json
import math
import os
import struct
import sys
import tempfile
import unittest

import cluster

sys.path.insert(0, str(cluster.ROOT / "tests" / "cli"))
import training  # noqa: E402

THREADS = sys.argv.pop(2)
BUILD = sys.argv.pop(1)
BYTES_PER_SECOND = 1e9 / 8
LATENCY = 1e-3
GRID = 1e-8  # seconds: the clock of SimGrid has a precision of 1e-9
ENVELOPE = 16  # bytes that SMPI adds to each message


def sent(found, rounds):
    """The bytes that a worker sends in a round."""
    return ((found["wire_bytes"] + ENVELOPE * found["messages"])
            / rounds / found["workers"])


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def succeeds(self, *words, **network):
        done = cluster.run_command(BUILD, *words, "--json", **network)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def fails(self, code, message, *words):
        done = cluster.run_command(BUILD, *words)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("laconic: "), 1, done.stderr)
        self.assertEqual(done.stderr.split("\n")[0], "laconic: " + message)
        self.assertEqual(done.returncode, code)


class Training(Command):
    def words(self, name, out, *more):
        """The first epoch of LeNet on made-up images."""
        if not os.path.exists(self.path("images")):
            training.images(self.path("images"))
        return ("train", "--workers", "4", "--data", "mnist", "--data-dir",
                self.path("images"), "--batch", "5", "--epochs", "1", "--lr",
                "0.02", "--algorithm", *training.ALGORITHMS[name], "--out",
                self.path(out), *more)

    def model(self, out):
        with open(self.path(out, "model.safetensors"), "rb") as file:
            return file.read()

    def test_the_model_is_that_of_threads(self):
        if not os.path.exists(THREADS):
            self.skipTest(f"there is no {THREADS}")
        for name in ("choco", "powersgd", "error-feedback"):
            with self.subTest(name):
                done = cluster.finish([THREADS, *self.words(name, name)])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.succeeds(*self.words(name, name + "-smpi"))
                self.assertEqual(self.model(name + "-smpi"), self.model(name))

    def test_a_step_takes_its_computation_and_its_messages(self):
        found = self.succeeds(
            *self.words("dpsgd", "timed", "--step-time", "50ms"))
        steps = found["step"]
        network = LATENCY + sent(found, steps) / BYTES_PER_SECOND
        self.assertAlmostEqual(found["compute_seconds"], 0.05 * steps,
                               delta=GRID * steps)
        self.assertEqual(found["compress_seconds"], 0)
        # After each of three synchronisations, one worker of four begins a
        # latency before the others.
        self.assertAlmostEqual(found["wait_seconds"],
                               steps * network + 3 / 4 * LATENCY,
                               delta=LATENCY / 100)
        self.assertGreater(found["seconds"],
                           found["compute_seconds"] + found["wait_seconds"])

    def test_overlap_is_rejected(self):
        self.fails(2, "--overlap: a rank of a simulated cluster has one "
                   "thread, expected a run without it",
                   *self.words("dpsgd", "x", "--overlap"))


class Rounds(Command):
    def rounds(self, *words, **network):
        return self.succeeds(
            "average", "--algorithm", "dpsgd", "--model", "resnet20",
            "--rounds", "6", "--time-only", *words, **network)

    def test_a_round_of_a_ring_takes_latency_and_bytes(self):
        found = self.rounds()
        expected = LATENCY + sent(found, 6) / BYTES_PER_SECOND
        self.assertAlmostEqual(found["round_seconds"], expected, delta=GRID)
        self.assertAlmostEqual(found["round_seconds"], 0.01845, delta=5e-6)
        self.assertEqual(self.rounds(), found)
        # Latencies of the start, two; of a synchronisation, two; and of the
        # last reports.
        self.assertAlmostEqual(found["seconds"],
                               6 * found["round_seconds"] + 5 * LATENCY,
                               delta=LATENCY / 10)

    def test_links_of_pairs_carry_one_message_each(self):
        found = self.rounds(network="pairs", bandwidth="100Mbit",
                            latency="10ms")
        expected = 0.01 + sent(found, 6) / 2 / (BYTES_PER_SECOND / 10)
        self.assertAlmostEqual(found["round_seconds"], expected, delta=GRID)

    def test_computation_is_added(self):
        found, base = self.rounds("--step-time", "0.25s"), self.rounds()
        self.assertAlmostEqual(found["round_seconds"],
                               0.25 + base["round_seconds"], delta=GRID)

    def test_a_native_sum_is_used(self):
        """Rabenseifner's: twice log2 of the workers latencies, and a check."""
        found = self.rounds("--algorithm", "allreduce", workers=8)
        size = 4 * 272474 * 2 * 7 / 8
        self.assertLess(found["round_seconds"],
                        8 * LATENCY + size / BYTES_PER_SECOND)
        self.assertGreater(found["round_seconds"],
                           6 * LATENCY + size / BYTES_PER_SECOND)

    def test_errors_are_those_of_threads(self):
        if not os.path.exists(THREADS):
            self.skipTest(f"there is no {THREADS}")
        words = ("average", "--algorithm", "choco:gamma=0.3", "--compressor",
                 "sign", "--rounds", "5", "--workers", "4", "--layout",
                 self.path("layout"), "--json")
        with open(self.path("layout"), "w", encoding="ascii") as file:
            file.write("a 30 20\nb 7 1\n")
        threads = json.loads(cluster.finish([THREADS, *words]).stdout)
        found = self.succeeds(*words)
        for key in ("initial_error", "final_error", "payload_bytes"):
            self.assertEqual(found[key], threads[key], key)
        self.assertGreater(found["final_error"], 0)

    def test_a_sweep_has_the_errors_of_threads(self):
        if not os.path.exists(THREADS):
            self.skipTest(f"there is no {THREADS}")
        words = ("average", "--algorithm", "powergossip", "--workers", "4",
                 "--rounds", "6", "--dimension", "30x20", "--low-rank", "2",
                 "--sweep", "rate=0.5,1", "--json")
        threads = json.loads(cluster.finish([THREADS, *words]).stdout)
        found = self.succeeds(*words)
        for one, expected in zip(found["results"], threads["results"],
                                 strict=True):
            for key in ("value", "final_error", "payload_bytes"):
                self.assertEqual(one[key], expected[key], key)


class Failures(Command):
    def test_a_rank_that_fails_ends_the_job(self):
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1), }"
        with open(self.path("x.npy"), "wb") as file:
            file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) +
                       header.encode() + struct.pack("<4f", 1, 2, math.nan, 4))
        self.fails(1, "worker 2: dpsgd: worker 2 has a value in x that is "
                   "not finite", "average", "--algorithm", "dpsgd", "--input",
                   self.path("x.npy"))

    def test_wrong_words_are_reported_once(self):
        for message, words in (
                ('no algorithm is named "dpsd"; did you mean dpsgd?',
                 ["average", "--algorithm", "dpsd"]),
                ("average: unknown option --round; did you mean --rounds?",
                 ["average", "--round", "4"]),
                ("average: --workers is 3, but the job has 4",
                 ["average", "--algorithm", "dpsgd", "--workers", "3"]),
                ("average: the transport is local, expected smpi, and smpirun",
                 ["average", "--algorithm", "dpsgd", "--transport", "local"])):
            with self.subTest(message):
                self.fails(2, message, *words)


class Probe(Command):
    def test_the_network_is_found(self):
        words = ("plan", "--probe", "--model", "mlp", "--step-time", "1s")
        for workers, mbit, ms, kind in (
                (8, 10000, 0.1, "star"), (8, 1000, 1, "star"),
                (8, 100, 10, "star"), (2, 1000, 1, "star"),
                (8, 1000, 1, "pairs")):
            with self.subTest(f"{workers} workers, {mbit} Mbit, {kind}"):
                found = self.succeeds(
                    *words, workers=workers, bandwidth=f"{mbit}Mbit",
                    latency=f"{ms}ms", network=kind)["network"]
                self.assertEqual(found["kind"], kind)
                self.assertAlmostEqual(found["bandwidth_mbit"] / mbit, 1, 3)
                self.assertAlmostEqual(
                    1000 * found["latency_seconds"] / ms, 1, 3)


if __name__ == "__main__":
    unittest.main()
