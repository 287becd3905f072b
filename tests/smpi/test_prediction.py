# SPDX-License-Identifier: MIT
"""The exchanges that `laconic plan` predicts take the time that they take on a
simulated cluster.

usage: test_prediction.py [--all] BUILD COMMAND

BUILD has the command for smpirun, COMMAND is that of an ordinary build. --all
makes every comparison, for some minutes, and prints the largest errors as a
table.
"""
import functools
import json
import os
import sys
import unittest

import cluster

ALL = "--all" in sys.argv
if ALL:
    sys.argv.remove("--all")
COMMAND = sys.argv.pop(2)
BUILD = sys.argv.pop(1)

MODEL = "resnet20"
SPEEDS = (("10Mbit", "50ms"), ("100Mbit", "10ms"), ("1Gbit", "1ms"),
          ("10Gbit", "0.1ms"))
GRADIENTS = (("allreduce", None), ("powersgd:rank=2", None),
             ("error-feedback", "sign"), ("compressed", "natural"))
GOSSIP = (("dpsgd", None), ("choco", "sign"), ("dcd", "qsgd:bucket=512"),
          ("powergossip", None))
ROUNDS = 10  # even: powergossip sends one of two factors
SOCIAL_ROUNDS = 60  # the first of which are faster

ERRORS = {}  # of a prediction relative to the simulation, by candidate and row


@functools.lru_cache(maxsize=None)
def predicted(workers, network, topology, bandwidth, latency):
    """{candidate: seconds of a round}"""
    done = cluster.finish(
        [COMMAND, "plan", "--model", MODEL, "--workers", workers,
         "--step-time", "1s", "--bandwidth", bandwidth, "--latency", latency,
         "--network", network, "--topology", topology, "--json"])
    return {(found["algorithm"], found["compressor"]): found["network_seconds"]
            for found in json.loads(done.stdout)["candidates"]}


def simulated(candidate, rounds, workers, network, topology, speed):
    """The seconds of a round."""
    algorithm, compressor = candidate
    words = ["average", "--algorithm", algorithm, "--model", MODEL,
             "--topology", topology, "--rounds", rounds, "--time-only",
             "--json"]
    if compressor is not None:
        words += ["--compressor", compressor]
    done = cluster.run_command(
        BUILD, *words, workers=workers, bandwidth=speed[0], latency=speed[1],
        network=network)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)["round_seconds"]


@unittest.skipUnless(os.path.exists(COMMAND), f"there is no {COMMAND}")
class Predictions(unittest.TestCase):
    def compare(self, limit, workers, network="star", topology="ring",
                candidates=GRADIENTS + GOSSIP, speeds=SPEEDS, rounds=ROUNDS):
        row = f"{workers}, {topology if topology != 'ring' else network}"
        for speed in speeds:
            expected = predicted(workers, network, topology, *speed)
            for candidate in candidates:
                error = expected[candidate] / simulated(
                    candidate, rounds, workers, network, topology, speed) - 1
                ERRORS.setdefault(candidate, {}).setdefault(row, []).append(
                    error)
                with self.subTest(candidate=candidate, row=row, speed=speed):
                    self.assertLess(abs(error), limit)

    def test_workers_that_stay_in_step(self):
        for workers in (8, 16) if ALL else (8,):
            self.compare(0.01, workers)

    def test_links_of_pairs(self):
        for workers in (8, 16) if ALL else (8,):
            self.compare(0.01, workers, "pairs",
                         speeds=SPEEDS if ALL else SPEEDS[1:2])

    def test_worlds_that_are_no_power_of_two(self):
        """Some workers have fewer exchanges and begin the next ones before the
        others. That hides a latency, or takes bandwidth from late messages."""
        for workers in (6, 12):
            self.compare(0.05, workers, speeds=SPEEDS if ALL else SPEEDS[:1])

    def test_neighbours_of_unequal_number(self):
        """The first rounds are faster: it takes some until all workers wait
        for the busiest one."""
        self.compare(
            0.02, 32, topology="social", rounds=SOCIAL_ROUNDS,
            candidates=GOSSIP if ALL else GOSSIP[1:2],
            speeds=SPEEDS if ALL else SPEEDS[1:2])


def print_errors():
    rows = list(dict.fromkeys(r for found in ERRORS.values() for r in found))
    print("| | " + " | ".join(rows) + " |")
    print("| --- " * (len(rows) + 1) + "|")
    for candidate, found in ERRORS.items():
        worst = (max(found[row], key=abs) if row in found else None
                 for row in rows)
        print("| " + " ".join(filter(None, candidate)) + " | " + " | ".join(
            "" if error is None else f"{100 * error:+.2f} %"
            for error in worst) + " |")


if __name__ == "__main__":
    program = unittest.main(exit=False)
    if ALL:
        print_errors()
    sys.exit(not program.result.wasSuccessful())
