# SPDX-License-Identifier: MIT
"""laconic average over tcp, in processes that laconic launch starts: it gives
the same bytes as with threads.

usage: test_tcp.py LACONIC
"""
import json
import os
import subprocess
import tempfile
import unittest

import averaging
from command import HANG, LACONIC

WORLDS = (1, 2, 3, 5, 8)


class Tcp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.output = os.path.join(folder.name, "y.npy")

    def average(self, prefix, *words):
        done = subprocess.run(
            [LACONIC, *prefix, "average", "--json", "--rounds", "12",
             "--output", self.output, "--algorithm", *words], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG,
            check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        result.pop("seconds")
        with open(self.output, "rb") as file:
            return result, file.read()

    def compare(self, world, *words):
        with self.subTest(world=world, algorithm=words[0]):
            threads = self.average((), *words, "--workers", str(world))
            self.assertEqual(
                self.average(("launch", "-n", str(world), "--"), *words),
                threads)

    def test_every_algorithm_gives_the_bytes_of_threads(self):
        for words in averaging.settings(LACONIC):
            self.compare(5, *words)

    def test_every_world_gives_the_bytes_of_threads(self):
        for world in WORLDS:
            self.compare(world, "choco:gamma=0.1", "--compressor", "sign")
            self.compare(world, "powersgd:rank=2")

    def sweep(self, *prefix):
        trace = os.path.join(self.folder, "t.csv")
        done = subprocess.run(
            [LACONIC, *prefix, *averaging.SWEEP, "--trace", trace],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG,
            check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return averaging.sweep_results(done.stdout, trace)

    def test_a_sweep_gives_the_results_of_threads(self):
        threads = self.sweep("average", "--workers", "4")
        self.assertEqual(self.sweep("launch", "-n", "4", "--", "average"),
                         threads)

    def test_long_sums_are_streamed_to_the_bytes_of_threads(self):
        for world in (2, 3):
            self.compare(world, "allreduce", "--dimension", "3000000",
                         "--rounds", "3")


if __name__ == "__main__":
    unittest.main()
