# SPDX-License-Identifier: MIT
"""laconic topology.

usage: test_topology.py LACONIC
"""
import json
import re
import struct
import sys
import unittest

sys.dont_write_bytecode = True
from command import Command, FAILED, GOOD, USAGE


class Topology(Command):
    def numbers(self, *words):
        return json.loads(self.succeeds("topology", *words, "--json"))

    def matrix(self):
        data = self.read("w.npy")
        length, = struct.unpack("<H", data[8:10])
        header = data[10:10 + length].decode()
        self.assertIn("'descr': '<f8', 'fortran_order': False", header)
        rows = int(re.search(r"\((\d+), (\d+)\)", header).group(1))
        body = struct.unpack("<%dd" % (rows * rows), data[10 + length:])
        return [body[i * rows:(i + 1) * rows] for i in range(rows)]

    def test_json_has_the_promised_keys(self):
        found = self.numbers("ring", "--workers", "8")
        self.assertLessEqual({"workers", "edges", "max_degree", "lambda2",
                              "lambdan", "gap", "beta"}, set(found))
        self.assertEqual([found[k] for k in ("workers", "edges",
                                             "max_degree")], [8, 8, 2])
        self.assertAlmostEqual(found["gap"], 0.195262, 6)
        self.assertAlmostEqual(found["beta"], 4 / 3, 12)

    def test_the_matrix_is_written(self):
        self.succeeds("topology", "torus", "--workers", "8", "--matrix",
                      "w.npy")
        rows = self.matrix()
        self.assertEqual(rows[0][1:5], (0.2, 0, 0.2, 0.4))
        self.assertAlmostEqual(rows[0][0], 0.2, 15)
        self.assertEqual([list(c) for c in zip(*rows)],
                         [list(r) for r in rows])

    def test_the_matrix_of_a_period_is_its_product(self):
        self.succeeds("topology", "one-peer-exponential", "--workers", "8",
                      "--matrix", "w.npy")
        self.assertEqual(self.matrix(), [(0.125,) * 8] * 8)

    def test_the_spectrum_of_drawn_rounds_is_that_of_their_mean(self):
        words = ("topology", "random-matching", "--workers")
        found = self.numbers(*words[1:], "8")
        self.assertEqual((found["max_degree"], found["edges"]), (1, 28))
        self.assertAlmostEqual(found["gap"], 4 / 7, 15)
        self.assertAlmostEqual(found["lambda2"], 3 / 7, 15)
        self.assertEqual(self.numbers(*words[1:], "7")["gap"], 0.5)
        text = self.succeeds(*words, "4", "--matrix", "w.npy")
        self.assertIn("eigenvalue of the mean of W", text)
        self.assertIn("drawn for 256 rounds", text)
        for i, row in enumerate(self.matrix()):
            for j, value in enumerate(row):
                self.assertAlmostEqual(value, 1 / 2 if i == j else 1 / 6, 15)

    def test_small_networks_are_printed(self):
        text = self.succeeds("topology", "path", "--workers", "3")
        self.assertRegex(text, r"\n +0  \\#\. .* 1\n +1  #\\# .* 0 2\n")
        text = self.succeeds("topology", "hypercube", "--workers", "32")
        self.assertIn("\n     0  \\##.#...#.......#...............  ", text)
        text = self.succeeds("topology", "ring", "--workers", "100")
        self.assertNotIn("#", text)
        self.assertNotIn(" \n", text)

    def test_the_seed_decides_a_random_network(self):
        words = ("topology", "erdos-renyi", "--workers", "30", "--seed")
        self.assertEqual(self.succeeds(*words, "1"),
                         self.succeeds(*words, "1"))
        self.assertNotEqual(self.succeeds(*words, "1"),
                            self.succeeds(*words, "2"))

    def test_a_network_without_a_spectrum_has_null(self):
        done = self.run_laconic("topology", "ring", "--workers", "20000",
                                "--json")
        self.assertEqual(done.returncode, GOOD)
        self.assertIn("laconic: ring: ", done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["edges"], found["gap"]), (20000, None))

    def test_a_wrong_spec_is_usage(self):
        self.fails(USAGE, "hypercube: 6 workers, expected a power of two",
                   "topology", "hypercube", "--workers", "6")
        self.fails(USAGE, 'no topology is named "rng"; did you mean ring?',
                   "topology", "rng", "--workers", "6")
        self.fails(USAGE, "topology: --workers N is missing", "topology",
                   "ring")

    def test_a_wrong_file_is_a_failure(self):
        self.write("edges.txt", b"0 1\n1 2\n2 9\n")
        self.fails(FAILED, "file: line 3 names worker 9, expected 0 to 3",
                   "topology", "file:edges.txt", "--workers", "4")
        self.fails(FAILED, "topology: no matrix for 20000 workers, expected "
                   "at most 16384", "topology", "ring", "--workers", "20000",
                   "--matrix", "w.npy")


if __name__ == "__main__":
    unittest.main()
