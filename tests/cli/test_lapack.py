# SPDX-License-Identifier: MIT
"""LAPACK is loaded by the first spectrum, and only by that: commands without
one are as before where LAPACK starts threads, is broken, or hangs for lack of
memory. FOLDER has a LAPACK that does as OpenBLAS does (lapack.c).

usage: test_lapack.py LACONIC FOLDER
"""
import json
import os
import resource
import sys
import unittest

sys.dont_write_bytecode = True
from command import FAILED, GOOD, LACONIC
from image_runs import ImageRuns

FOLDER = os.path.abspath(sys.argv.pop(1))
TOPOLOGY = ("topology", "ring", "--workers", "8", "--json")
PLAN = ("plan", "--model", "mlp", "--workers", "4", "--step-time", "10ms",
        "--bandwidth", "100Mbit", "--latency", "1ms", "--json")
LOADED = "LAPACK: 1 threads\n"


class Lapack(ImageRuns):
    def run_with(self, folder, *words, limit=None, **environment):
        more = {} if limit is None else {
            "preexec_fn": lambda: resource.setrlimit(
                resource.RLIMIT_AS, (limit << 20, limit << 20))}
        return self.run_laconic(*words, env={
            **os.environ, "LD_LIBRARY_PATH": folder, **environment}, **more)

    def training(self, name="out"):
        return self.words(name, "--epochs", "1", "--algorithm",
                          "choco:gamma=auto", "--compressor", "sign")

    def test_a_spectrum_loads_it(self):
        for words in (TOPOLOGY, PLAN):
            with self.subTest(words[0]):
                done = self.run_with(FOLDER, *words)
                self.assertEqual((done.stderr, done.returncode),
                                 (LOADED, GOOD))
        done = self.run_with(FOLDER, *TOPOLOGY)
        self.assertEqual(json.loads(done.stdout)["gap"], 0.5)

    def test_nothing_else_loads_it(self):
        for words in (("--version",), ("list",), self.training(),
                      ("topology", "random-matching", "--workers", "8"),
                      ("average", "--algorithm", "dpsgd", "--workers", "3")):
            with self.subTest(words[0]):
                done = self.run_with(FOLDER, *words)
                self.assertEqual(done.returncode, GOOD, done.stderr)
                self.assertNotIn("LAPACK", done.stderr)

    def test_a_user_may_ask_for_threads_of_openblas(self):
        done = self.run_with(FOLDER, *TOPOLOGY, OPENBLAS_NUM_THREADS="3")
        self.assertEqual(done.stderr, "LAPACK: 3 threads\n")

    def test_launched_programs_keep_their_threads(self):
        if "tcp" not in self.listed("transports"):
            self.skipTest("no launch without tcp")
        environment = {name: value for name, value in os.environ.items()
                       if name != "OPENBLAS_NUM_THREADS"}
        done = self.run_laconic(
            "launch", "-n", "1", "--", "sh", "-c",
            "echo ${OPENBLAS_NUM_THREADS-all}", env=environment)
        self.assertEqual((done.returncode, done.stdout.split()[-1:]),
                         (GOOD, ["all"]), done.stderr)

    def test_what_is_missing_is_named(self):
        os.mkdir(self.path("broken"))
        self.write("broken/liblapack.so.3", b"")
        done = self.run_with(self.path("broken"), *TOPOLOGY)
        self.assertRegex(
            done.stderr, r"^laconic: ring: no LAPACK for the spectrum: "
            r"\S*liblapack\.so\.3: .*; on Debian, install liblapack3 or "
            r"libopenblas0\n$")
        self.assertEqual(done.returncode, GOOD)
        found = json.loads(done.stdout)
        self.assertEqual((found["edges"], found["gap"]), (8, None))
        for words in (PLAN, self.training()):
            done = self.run_with(self.path("broken"), *words)
            self.assertEqual(done.returncode, GOOD, done.stderr)

    def test_no_memory_limit_hangs_or_crashes(self):
        with open(LACONIC, "rb") as file:
            code = file.read()
        if b"__asan_init" in code or b"__tsan_init" in code:
            self.skipTest("a sanitizer needs an unlimited address space")
        for words, part in ((TOPOLOGY, "memory"), (PLAN, "memory"),
                            (self.training(), "memory|room|thread")):
            codes = set()
            for limit in (100, 120, 140, 180, 220, 300, 400, 500, 600, None):
                with self.subTest(words[0], limit=limit):
                    if words[0] == "train":
                        words = self.training("out-%s" % limit)
                    done = self.run_with(FOLDER, *words, limit=limit)
                    self.assertIn(done.returncode, (GOOD, FAILED),
                                  done.stderr)
                    if done.returncode == FAILED:
                        self.assertRegex(done.stderr, r"^laconic: .*\n$")
                        self.assertRegex(done.stderr, part)
                    codes.add(done.returncode)
            self.assertIn(GOOD, codes)


if __name__ == "__main__":
    unittest.main()
