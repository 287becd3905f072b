# SPDX-License-Identifier: MIT
"""The transport smpi has the duties of all transports, except those of workers
that fail: a failure ends the simulation. And each rank has its own message.

usage: test_transport.py TRANSPORTS MESSAGES
"""
import sys
import unittest
from unittest import mock

import cluster

MESSAGES = sys.argv.pop(2)
TRANSPORTS = sys.argv.pop(1)
# Duties of failures that a worker reports on its own.
ALONE = ("reject_messages_to_oneself", "reject_unknown_workers",
         "report_a_buffer_too_small", "report_a_large_buffer_too_small",
         "refuse_a_message_above_the_limit")


class Transport(unittest.TestCase):
    def all_are_good(self, workers, *words):
        done = cluster.run_program(TRANSPORTS, workers, "smpi", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(
            sorted(done.stdout.splitlines()),
            [f"worker {i} of {workers}: good" for i in range(workers)])

    def test_messages_and_sums_arrive(self):
        for workers in (1, 3, 4):
            with self.subTest(workers):
                self.all_are_good(workers)

    def test_wrong_messages_fail(self):
        for duty in ALONE:
            with self.subTest(duty):
                self.all_are_good(3, duty)

    def test_each_rank_has_its_own_message(self):
        done = cluster.run_program(MESSAGES, 4)
        self.assertEqual(sorted(done.stdout.splitlines()),
                         [f"worker {i}: good" for i in range(4)])

    def test_ranks_that_share_a_thread_are_rejected(self):
        with mock.patch.dict(cluster.simulate.SETTINGS,
                             {"contexts/factory": "raw"}):
            done = cluster.run_program(MESSAGES, 4)
        self.assertIn("smpi: two ranks share a thread, expected smpirun with "
                      "--cfg=contexts/factory:thread", done.stderr)


if __name__ == "__main__":
    unittest.main()
