# SPDX-License-Identifier: MIT
"""tools/simulate.py: its messages, and what it forwards.

usage: test_simulate.py BUILD
"""
import os
import sys
import tempfile
import unittest

import cluster

BUILD = sys.argv.pop(1)
NETWORK = {"--workers": "2", "--bandwidth": "1Gbit", "--latency": "1ms"}
LIST = ("--", "list")


class Simulate(unittest.TestCase):
    def run_tool(self, changed=(), command=LIST, build=BUILD, **more):
        options = {"--build": build, **NETWORK, **dict(changed)}
        return cluster.finish(
            [sys.executable, "-B", cluster.SIMULATE,
             *(word for pair in options.items() for word in pair), *command],
            **more)

    def fails(self, code, message, **more):
        done = self.run_tool(**more)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.rstrip("\n").endswith(message),
                        done.stderr)
        self.assertEqual(done.returncode, code)

    def test_units(self):
        rate = cluster.simulate.bandwidth
        for text in ("100Mbit", "100 Mbit/s", "100Mbps", "0.1Gbit", "12.5MB/s",
                     "100000kbit"):
            self.assertAlmostEqual(rate(text), 1e8, msg=text)
        for text in ("10ms", "10 ms", "0.01s", "10000us"):
            self.assertAlmostEqual(cluster.simulate.latency(text), 0.01,
                                   msg=text)

    def test_wrong_options_are_usage(self):
        rate = ("expected a number above 0 and a unit, such as 100Mbit or "
                "10MB/s")
        time = "expected a number above 0 and a unit, such as 10ms or 50us"
        for option, value, message in (
                ("--bandwidth", "100", rate), ("--bandwidth", "10mb/s", rate),
                ("--bandwidth", "0Mbit", rate), ("--bandwidth", "Mbit", rate),
                ("--bandwidth", "nanMbit", rate), ("--latency", "10", time),
                ("--latency", "0ms", time), ("--latency", "1 hour", time),
                ("--workers", "0", "expected a number from 1 to 4096"),
                ("--workers", "x", "expected a number from 1 to 4096")):
            with self.subTest(f"{option} {value}"):
                self.fails(2, f'argument {option}: "{value}", {message}',
                           changed=[(option, value)])

    def test_an_argument_with_spaces_is_usage(self):
        self.fails(2, 'smpirun would split the argument "a b", expected one '
                   "without spaces", command=("--", "list", "a b"))

    def test_a_missing_build_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(os.path.realpath(folder), "laconic")
            self.fails(1, f"there is no {path}; build it with `make "
                       "simulator`", build=folder)

    def test_a_missing_smpirun_is_named(self):
        self.fails(1, "there is no smpirun; on Debian install libsimgrid-dev",
                   env={**os.environ, "PATH": "/nowhere"})

    def test_code_and_output_are_those_of_the_command(self):
        """smpirun would expand a pattern, and print a line of its own."""
        with tempfile.TemporaryDirectory() as folder:
            open(os.path.join(folder, "list"), "wb").close()
            done = self.run_tool(command=("--", "lis?"), cwd=folder)
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr.split("\n")[0]),
            (2, "", 'laconic: unknown command "lis?"; did you mean list?'))

    def test_temporary_files_are_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_tool(
                command=("--", "average", "--algorithm", "dpsgd", "--rounds",
                         "1"), env={**os.environ, "TMPDIR": folder})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
