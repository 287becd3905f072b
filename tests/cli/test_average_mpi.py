# SPDX-License-Identifier: MIT
"""laconic average under mpirun: it gives the same bytes as with threads, and
reports workers that are stopped or killed.

usage: test_average_mpi.py LACONIC LIBRARY
"""
import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "transport"))
import averaging  # noqa: E402
import launch  # noqa: E402

LIBRARY = sys.argv.pop(2) if __name__ == "__main__" else "openmpi"
LACONIC = os.path.abspath(sys.argv.pop(1))


def mpirun(workers, *words, options=()):
    return [*launch.launcher(LIBRARY, workers, *options), *words]


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.output = os.path.join(folder.name, "y.npy")
        self.result = os.path.join(folder.name, "result.json")

    def run_job(self, command, **environment):
        done = launch.run(command, env=launch.environment(**environment))
        return done.returncode, done.stdout, done.stderr

    def average(self, prefix, words, **environment):
        code, _, err = self.run_job(
            [*prefix, *launch.output_to(self.result), LACONIC, "average",
             "--json", "--rounds", "12", "--output", self.output,
             "--algorithm", *words], **environment)
        self.assertEqual(code, 0, err)
        with open(self.result, encoding="utf-8") as file:
            result = json.load(file)
        result.pop("seconds")
        with open(self.output, "rb") as file:
            return result, file.read()

    def test_the_result_is_read_beside_what_the_launcher_prints(self):
        name = launch.launcher(LIBRARY, 1)[0]
        noisy = os.path.join(self.folder, name)
        with open(noisy, "w", encoding="ascii") as file:
            file.write('#!/bin/sh\necho "{ WARNING: a launcher prints this"\n'
                       '"%s" "$@"; code=$?\necho "} and this"\nexit $code\n'
                       % shutil.which(name))
        os.chmod(noisy, 0o755)
        path = self.folder + os.pathsep + os.environ["PATH"]
        words = ["dpsgd", "--workers", "2"]
        code, out, _ = self.run_job(mpirun(2, "true"), PATH=path)
        self.assertEqual((code, out.count("launcher prints")), (0, 1))
        self.assertEqual(self.average(mpirun(2), words, PATH=path),
                         self.average([], words))

    def test_the_launcher_decides_the_library(self):
        words = ["dpsgd", "--dimension", "5"]
        expected = self.average([], [*words, "--workers", "2"])
        for spec in "mpi", "mpi:timeout=50", "mpi:" + LIBRARY:
            self.assertEqual(expected, self.average(
                mpirun(2), [*words, "--transport", spec]))
            self.assertEqual(expected, self.average(
                mpirun(2), words, LACONIC_TRANSPORT=spec))

    def test_bytes_and_numbers_are_those_of_threads(self):
        for words in averaging.settings(LACONIC):
            with self.subTest(words[0]):
                # MPI adds large arrays of 4 workers in our order.
                threads = self.average([], [*words, "--workers", "4"])
                processes = self.average(mpirun(4), words)
                self.assertEqual(threads[0], processes[0])
                # Without the search for differences of assertEqual.
                self.assertTrue(threads[1] == processes[1], "other values")

    def test_divergence_is_the_same_result(self):
        words = ["choco:gamma=2", "--compressor", "top-k:0.01", "--rounds",
                 "5000", "--workers", "4"]
        threads = self.average([], words)
        self.assertTrue(threads[0]["diverged"])
        self.assertEqual(self.average(mpirun(4), words), threads)

    def test_a_plan_that_needs_no_other_worker_is_printed_once(self):
        code, out, err = self.run_job(mpirun(
            3, LACONIC, "plan", "--model", "mlp", "--step-time", "1ms",
            "--bandwidth", "1Gbit", "--latency", "1ms"))
        self.assertEqual((code, out.count("accuracy is not predicted")),
                         (0, 1), err)

    def sweep(self, prefix, *words):
        trace = os.path.join(self.folder, "t.csv")
        code, _, err = self.run_job(
            [*prefix, *launch.output_to(self.result), LACONIC, "average",
             *averaging.SWEEP, "--trace", trace, *words])
        self.assertEqual(code, 0, err)
        with open(self.result, "rb") as file:
            return averaging.sweep_results(file.read(), trace)

    def test_a_sweep_gives_the_results_of_threads(self):
        threads = self.sweep([], "--workers", "4")
        self.assertEqual(self.sweep(mpirun(4)), threads)

    def test_an_unknown_algorithm_ends_the_job(self):
        code, out, err = self.run_job(mpirun(
            2, LACONIC, "average", "--algorithm", "chocco"))
        self.assertTrue(launch.is_failure(LIBRARY, code))
        self.assertNotIn("final error", out)  # mpirun may print there
        self.assertIn('laconic: no algorithm is named "chocco"', err)

    def test_a_nonfinite_value_is_reported_by_every_worker(self):
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1), }"
        with open(self.output, "wb") as file:
            file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) +
                       header.encode() + struct.pack("<4f", 1, 2, math.nan, 4))
        code, out, err = self.run_job(mpirun(
            4, LACONIC, "average", "--algorithm", "dpsgd", "--input",
            self.output))
        self.assertTrue(launch.is_failure(LIBRARY, code))
        self.assertNotIn("final error", out)  # mpirun may print there
        for rank in range(4):
            self.assertRegex(err, "laconic: worker %d: .*worker 2 has a value "
                             "in x that is not finite" % rank)


class Failures(unittest.TestCase):
    WORKERS, VICTIM = 4, 2
    # Prints which process is which worker, and how it ended.
    WRAPPER = (f'rank={launch.RANK}; "$@" & echo "rank $rank is $!"; '
               'wait $!; code=$?; echo "rank $rank ended with $code"; '
               'exit $code')

    def start(self, timeout, options):
        job = subprocess.Popen(
            mpirun(self.WORKERS, "sh", "-c", self.WRAPPER, "sh", LACONIC,
                   "average", "--algorithm", "dpsgd", "--rounds", "4000000000",
                   "--timeout", timeout, options=options),
            env=launch.environment(), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(job.kill)
        listener = launch.Listener(job)
        ranks = listener.wait_for(r"rank (\d) is (\d+)", self.WORKERS)
        pids = {int(rank): int(pid) for rank, pid in ranks}
        for pid in pids.values():
            self.addCleanup(self.kill, pid)
        self.assertEqual(len(pids), self.WORKERS, listener.text)
        # Printed after some rounds.
        self.assertTrue(listener.wait_for(r"\d+/\d+ rounds", 1),
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

    def lose_a_worker(self, how, timeout, *options):
        """Returns the job, its listener and the error of each other worker."""
        job, listener, pids = self.start(timeout, options)
        os.kill(pids[self.VICTIM], how)
        errors = dict(listener.wait_for(r"laconic: worker (\d): (.*)",
                                        self.WORKERS - 1))
        others = set(range(self.WORKERS)) - {self.VICTIM}
        # A worker that was stopped may be continued when the job is ended, and
        # then report an error too.
        errors.pop(str(self.VICTIM), None)
        self.assertEqual({int(rank) for rank in errors}, others, listener.text)
        return job, listener, errors

    def test_a_worker_that_stops_is_named(self):
        """By a neighbour; the others name a worker that they waited for."""
        job, listener, errors = self.lose_a_worker(signal.SIGSTOP, "2")
        for error in errors.values():
            self.assertRegex(error, r"worker \d was silent for")
        self.assertIn("worker %d was silent for" % self.VICTIM, listener.text)
        code = job.wait(timeout=launch.HANG / 3)
        self.assertTrue(launch.is_failure(LIBRARY, code))

    @unittest.skipIf(LIBRARY == "openmpi", "its mpirun notices that itself")
    def test_a_worker_that_never_joins_is_noticed(self):
        job = subprocess.Popen(
            mpirun(2, "sh", "-c", 'if [ "$PMI_RANK" = 1 ]; then exec tail -f '
                   '/dev/null; fi; exec "$@"', "sh", LACONIC, "average",
                   "--algorithm", "dpsgd", "--timeout", "2"),
            env=launch.environment(), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(job.wait)
        self.addCleanup(self.kill_group, job.pid)
        listener = launch.Listener(job)
        self.assertTrue(listener.wait_for(
            "laconic: MPI_Init timed out: a process of the MPI job", 1),
            listener.text)

    @unittest.skipUnless(LIBRARY == "openmpi", "MPICH ends the job at once")
    @unittest.skipUnless(os.path.exists("/proc/self/ns/pid"), "no /proc")
    def test_a_worker_that_is_killed_is_named_by_all_others(self):
        """Where processes can be looked up, and before the deadline."""
        _, listener, errors = self.lose_a_worker(
            signal.SIGKILL, "300", *launch.recovery(LIBRARY))
        for error in errors.values():
            self.assertIn("worker %d has died" % self.VICTIM, error)
        # The first worker that fails ends the job, perhaps before a wrapper
        # has printed how its worker ended.
        ended = r"rank %s ended with (\d+)"
        self.assertEqual(listener.wait_for(ended % self.VICTIM, 1), ["137"])
        codes = listener.wait_for(ended % f"[^{self.VICTIM}]", 1)
        self.assertEqual(set(codes), {"1"}, listener.text)


if __name__ == "__main__":
    launch.launcher(LIBRARY, 1)
    unittest.main()
