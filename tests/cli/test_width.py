# SPDX-License-Identifier: MIT
"""Everything that a command prints for people fits into 80 columns: its help,
its results and its progress. Messages of failures are one line each, and files
and JSON may have lines of any length.
"""
import json
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
from command import npy
from runs import Runs, epoch
from training import images

# Specs as long as those of users may be.
COMPRESSOR = ("top-k:ratio=0.0123456789012345"
              "+dithering:levels=127,norm=inf,bucket=128")
GRAPH = "erdos-renyi:probability=0.98765432109876,weights=metropolis"
GOSSIP = "powergossip:rank=2,iterations=2,warm-start=no,rate=0.98765432109876"
# launch prints the output of other programs, key a line to be copied, and peers
# needs machines. manual and completion print sources for other programs.
OTHERS = {"launch", "key", "peers", "manual", "completion"}


class Width(Runs):
    def commands(self):
        return re.findall(r"(?m)^  ([a-z]+) ", self.succeeds("--help"))

    def fits(self, *words):
        """Runs the command and returns what it printed."""
        done = self.run_laconic(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in done.stdout.splitlines():
            self.assertLessEqual(len(line), 80, "%s:\n%s" % (words, line))
            self.assertEqual(line, line.rstrip())
        for line in done.stderr.splitlines():
            if not line.startswith("laconic: "):
                self.assertLessEqual(len(line), 80, line)
        return done.stdout

    def test_help(self):
        for name in [""] + self.commands():
            self.fits(*name.split(), "--help")

    def test_every_command_is_tested(self):
        with open(__file__, encoding="ascii") as file:
            tested = re.findall(r'self\.fits\("([a-z]+)"', file.read())
        self.assertEqual(set(self.commands()), set(tested) | OTHERS)

    def test_lists(self):
        text = self.fits("list")
        for kind in re.findall(r"(?m)^[a-z]+$", text):
            self.assertIn(self.fits("list", kind).split("\n\n")[1], text)
        text = self.fits("data", "list")
        for name in self.listed("datasets"):
            self.assertRegex(text, r"(?m)^%s " % name)

    def test_versions(self):
        self.fits("version")

    def test_topologies(self):
        for name in set(self.listed("topologies")) - {"file", "social"}:
            for workers in "8", "16", "64":
                self.fits("topology", name, "--workers", workers)
        for workers in "1", "32", "42", "43", "56", "57":
            self.fits("topology", "erdos-renyi:0.9", "--workers", workers)
        self.fits("topology", "social", "--workers", "32")

    def test_average(self):
        choco = "choco:gamma=0.01234567890123456789012"
        for words in (("allreduce",), (GOSSIP,),
                      (choco, "--compressor", COMPRESSOR)):
            self.fits("average", "--workers", "4", "--rounds", "2",
                      "--topology", GRAPH, "--algorithm", *words)

    def test_size(self):
        self.write("shapes.txt", b"%s 30 20\nb 7\n" % (b"a.long.name" * 12))
        for words in (GOSSIP,), ("choco", "--compressor", COMPRESSOR):
            for model in (("--model", "lstm:vocabulary=28869,hidden=650"),
                          ("--layout", "shapes.txt")):
                self.fits("size", *model, "--topology", GRAPH, "--algorithm",
                          *words)

    def test_plan(self):
        network = ("--bandwidth", "1Gbit", "--latency", "0.1ms",
                   "--step-time", "229ms", "--workers", "8", "--topology",
                   "exponential")
        for words in (), ("--overlap",), ("--map",):
            self.fits("plan", "--model", "resnet50", *network, *words)

    def test_bench(self):
        small = ("--values", "100", "--runs", "1", "--model", "lenet")
        self.fits("bench", *small[:4])
        self.fits("bench", *small, "--compressor", COMPRESSOR, "sign", "choco",
                  "error-feedback")
        saved = json.loads(self.run_laconic(
            "bench", *small, "--compressor", COMPRESSOR, COMPRESSOR, "choco",
            "--json").stdout)
        # Figures that no measurement exceeds.
        for row in saved["compressors"] + saved["algorithms"]:
            row.update({key: 1e300 for key in row if "memcpy" in key})
        saved["version"] = "0.1.0" * 40
        name = "saved/" * 30 + "x.json"
        os.makedirs(os.path.join(self.folder, os.path.dirname(name)))
        self.write(name, json.dumps(saved).encode())
        self.fits("bench", "--compare", name)

    def test_training(self):
        images(self.folder + "/mnist")
        words = ("--model", "mlp", "--data", "mnist", "--data-dir", "mnist",
                 "--workers", "2", "--batch", "60", "--epochs", "2",
                 "--topology", GRAPH, "--seed", "18446744073709551615")
        self.fits("train", *words, "--out", "dry", "--dry-run",
                  "--algorithm", "choco", "--compressor", COMPRESSOR)
        self.fits("train", *words, "--out", "a", "--algorithm", "choco",
                  "--compressor", COMPRESSOR)
        self.fits("train", *words, "--out", "b", "--algorithm", GOSSIP)
        self.fits("compare", "a", "b")
        self.fits("report", "a", "b", "--out", "report.html")
        self.fits("evaluate", "a", "--data", "mnist", "--data-dir", "mnist")
        self.write("one.npy", npy((1, 28, 28), [0.5] * 784))
        self.fits("predict", "a", "one.npy")
        self.fits("plan", "--run", "a", "--bandwidth", "1Gbit", "--latency",
                  "0.1ms")

    def test_compared_runs(self):
        for name in "allreduce", "powersgd":
            self.run_of("long-name-of-a-run-" * 8 + name, [epoch(1), epoch(2)],
                        algorithm=name, topology=GRAPH, epochs="2")
        self.fits("compare", *("long-name-of-a-run-" * 8 + name for name in (
            "allreduce", "powersgd")))

    def test_files(self):
        self.fits("encode", "--compressor", COMPRESSOR, "x.npy", "x.lac")
        self.fits("decode", "x.lac", "y.npy")


if __name__ == "__main__":
    unittest.main()
