# SPDX-License-Identifier: MIT
"""laconic average under mpirun: the same bytes as with threads, and workers
that are stopped or killed.

usage: test_average_mpi.py LACONIC LIBRARY
"""
import json
import math
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "transport"))
import launch  # noqa: E402

LIBRARY = sys.argv.pop(2) if __name__ == "__main__" else "openmpi"
LACONIC = os.path.abspath(sys.argv.pop(1))

# An algorithm that is not listed here must get a line.
SETTINGS = {
    "dpsgd": (["dpsgd"],),
    "naive": (["naive", "--compressor", "dithering"],),
    "dcd": (["dcd", "--compressor", "natural"],),
    "ecd": (["ecd", "--compressor", "natural"],),
    "choco": (["choco:gamma=0.1", "--compressor", "top-k:0.05"],
              ["choco:gamma=0.1", "--compressor", "random-k:0.05"]),
    "deepsqueeze": (["deepsqueeze:gamma=0.1", "--compressor", "sign"],),
    "powergossip": (["powergossip"],),
    "allreduce": (["allreduce"], ["allreduce", "--dimension", "70000"]),
    "compressed": (["compressed", "--compressor", "natural"],
                   ["compressed:server=(random-k:0.5)", "--compressor",
                    "dithering"]),
    "error-feedback": (["error-feedback", "--compressor", "top-k:0.05"],
                       ["error-feedback", "--compressor", "random-k:0.05"],
                       ["error-feedback", "--compressor", "sign"]),
    "signum": (["signum"],),
    "powersgd": (["powersgd"],),
}


def mpirun(workers, *words, options=()):
    return [*launch.launcher(LIBRARY, workers, *options), *words]


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = os.path.join(folder.name, "y.npy")

    def run_job(self, command):
        done = subprocess.run(command, env=launch.environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def average(self, prefix, words):
        code, out, err = self.run_job(
            [*prefix, LACONIC, "average", "--json", "--rounds", "12",
             "--output", self.output, "--algorithm", *words])
        self.assertEqual(code, 0, err)
        told = json.loads(out)
        told.pop("seconds")
        with open(self.output, "rb") as file:
            return told, file.read()

    def test_bytes_and_numbers_are_those_of_threads(self):
        code, out, err = self.run_job([LACONIC, "list", "--json"])
        self.assertEqual(code, 0, err)
        names = {item["name"] for item in json.loads(out)["algorithms"]}
        for name in sorted(names):
            for words in SETTINGS[name]:
                with self.subTest(words[0]):
                    threads = self.average([], [*words, "--workers", "8"])
                    processes = self.average(mpirun(8), words)
                    self.assertEqual(threads, processes)

    def test_divergence_is_the_same_result(self):
        words = ["choco:gamma=2", "--compressor", "top-k:0.01", "--rounds",
                 "5000", "--workers", "4"]
        threads = self.average([], words)
        self.assertTrue(threads[0]["diverged"])
        self.assertEqual(self.average(mpirun(4), words), threads)

    def test_a_wrong_word_is_told_and_ends_the_job(self):
        code, out, err = self.run_job(mpirun(
            2, LACONIC, "average", "--algorithm", "chocco"))
        self.assertNotEqual(code, 0)
        self.assertNotIn("error at", out)  # mpirun may have a word there
        self.assertIn('laconic: no algorithm is named "chocco"', err)

    def test_a_value_that_is_not_finite_is_told_by_every_worker(self):
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1), }"
        with open(self.output, "wb") as file:
            file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) +
                       header.encode() + struct.pack("<4f", 1, 2, math.nan, 4))
        code, out, err = self.run_job(mpirun(
            4, LACONIC, "average", "--algorithm", "dpsgd", "--input",
            self.output))
        self.assertNotEqual(code, 0)
        self.assertNotIn("error at", out)  # mpirun may have a word there
        for rank in range(4):
            self.assertRegex(err, "laconic: worker %d: .*worker 2 has a value "
                             "in x that is not finite" % rank)


class Listener:
    """Collects what a job prints, and waits for words instead of time."""

    def __init__(self, job):
        self.text, self.changed = "", threading.Condition()
        for stream in (job.stdout, job.stderr):
            threading.Thread(target=self.collect, args=(stream,),
                             daemon=True).start()

    def collect(self, stream):
        with stream:
            for line in stream:
                with self.changed:
                    self.text += line
                    self.changed.notify_all()

    def wait_for(self, pattern, count, seconds):
        """The matches, once there are `count`, or those there are."""
        def find():
            return re.findall(pattern, self.text)
        with self.changed:
            self.changed.wait_for(lambda: len(find()) >= count, seconds)
            return find()


class Failures(unittest.TestCase):
    WORKERS, VICTIM, TIMEOUT, SLACK = 4, 2, 2.0, 6.0
    # Tells which process is which worker, and how it ended.
    NURSE = ('rank=${OMPI_COMM_WORLD_RANK-$PMI_RANK}; "$@" & '
             'echo "rank $rank is $!"; wait $!; code=$?; '
             'echo "rank $rank ended with $code"; exit $code')

    def start(self, options):
        job = subprocess.Popen(
            mpirun(self.WORKERS, "sh", "-c", self.NURSE, "sh", LACONIC,
                   "average", "--algorithm", "dpsgd", "--rounds", "4000000000",
                   "--timeout", str(self.TIMEOUT), options=options),
            env=launch.environment(), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(job.kill)
        listener = Listener(job)
        ranks = listener.wait_for(r"rank (\d) is (\d+)", self.WORKERS, 30)
        pids = {int(rank): int(pid) for rank, pid in ranks}
        for pid in pids.values():
            self.addCleanup(self.kill, pid)
        self.assertEqual(len(pids), self.WORKERS, listener.text)
        # Said when the rounds have gone on for a while.
        self.assertTrue(listener.wait_for(r"\d+/\d+ rounds", 1, 30),
                        listener.text)
        return job, listener, pids

    @staticmethod
    def kill_group(pid):
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    @staticmethod
    def kill(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def loses_a_worker(self, how, *options):
        job, listener, pids = self.start(options)
        begun = time.monotonic()
        os.kill(pids[self.VICTIM], how)
        told = dict(listener.wait_for(r"laconic: worker (\d): (.*)",
                                      self.WORKERS - 1,
                                      self.TIMEOUT + self.SLACK))
        self.assertLess(time.monotonic() - begun, self.TIMEOUT + self.SLACK)
        others = set(range(self.WORKERS)) - {self.VICTIM}
        self.assertEqual({int(rank) for rank in told}, others, listener.text)
        # On a busy machine one that waited for a neighbour of the victim may
        # lose patience first, and name that one.
        for sentence in told.values():
            self.assertRegex(sentence,
                             r"worker \d (was silent for|has died)")
        self.assertRegex(listener.text, "worker %d (was silent for|has died)"
                         % self.VICTIM)
        return job, listener

    def test_a_worker_that_stops_is_named_by_all_others(self):
        job, _ = self.loses_a_worker(signal.SIGSTOP)
        self.assertNotEqual(job.wait(timeout=30), 0)

    @unittest.skipIf(LIBRARY == "openmpi", "its mpirun sees that itself")
    def test_a_worker_that_never_comes_is_noticed(self):
        job = subprocess.Popen(
            mpirun(2, "sh", "-c", 'if [ "$PMI_RANK" = 1 ]; then exec tail -f '
                   '/dev/null; fi; exec "$@"', "sh", LACONIC, "average",
                   "--algorithm", "dpsgd", "--timeout", str(self.TIMEOUT)),
            env=launch.environment(), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(job.wait)
        self.addCleanup(self.kill_group, job.pid)
        listener = Listener(job)
        self.assertTrue(listener.wait_for(
            "laconic: a process of the MPI job has not come", 1, 30),
            listener.text)

    @unittest.skipUnless(LIBRARY == "openmpi", "MPICH ends the job at once")
    def test_a_worker_that_is_killed_is_named_by_all_others(self):
        # That mpirun forgives everything, so each worker's own status counts.
        _, listener = self.loses_a_worker(signal.SIGKILL, "--enable-recovery")
        # The first to give up ends the job, and with it maybe a nurse that
        # has not yet told how its worker ended.
        ended = dict(listener.wait_for(r"rank (\d) ended with (\d+)",
                                       self.WORKERS, 10))
        self.assertEqual(ended.pop(str(self.VICTIM)), "137")
        self.assertGreater(len(ended), 0, listener.text)
        self.assertEqual(set(ended.values()), {"1"})


if __name__ == "__main__":
    launch.launcher(LIBRARY, 1)
    unittest.main()
