# SPDX-License-Identifier: MIT
"""Test the C example, with threads or under mpirun.

usage: test_logistic.py PROGRAM [LIBRARY]
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "transport"))
import launch

WORKERS = 4
PROGRAM = sys.argv[1]
LIBRARY = sys.argv[2] if len(sys.argv) > 2 else None
LINE = re.compile(r"^(\S+): after (\d+) steps loss (\S+), before (\S+); "
                  r"worker 0 sent (\d+) bytes in (\d+) messages$", re.M)


class Logistic(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def start(self, algorithm, compressor="-", *rest):
        command = [PROGRAM, algorithm, compressor]
        if LIBRARY is not None:
            command = [*launch.launcher(LIBRARY, WORKERS), *command, "mpi"]
        else:
            command.append("local")
        return self.run_program(*command, *rest)

    def run_program(self, *command):
        return launch.run(command, cwd=self.folder.name)

    def learn(self, *words):
        """Return steps, loss, initial loss, bytes and messages as printed."""
        done = self.start(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = LINE.findall(done.stdout)
        self.assertEqual(len(found), 1, done.stdout)
        return found[0][1:]

    def test_every_algorithm_learns_and_sends_less(self):
        # 84 floats in each of 100 steps, to two neighbours or to the mean.
        gossip, mean = 84 * 4 * 2 * 100, 84 * 4 * 100
        self.assertEqual(int(self.learn("dpsgd")[3]), gossip)
        self.assertEqual(int(self.learn("allreduce")[3]), mean)
        for words, exact in (("choco", "top-k:0.1"), gossip), \
                (("powergossip",), gossip), \
                (("error-feedback", "sign"), mean):
            steps, loss, before, sent, _ = self.learn(*words)
            self.assertEqual(steps, "100")
            self.assertLess(float(loss), 0.5 * float(before))
            self.assertLess(int(sent), exact / 4)

    def test_a_process_that_cannot_join_has_no_rank(self):
        done = self.run_program(PROGRAM, "dpsgd", "-", "mpi:library=nosuch")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\Ampi: .*nosuch.*\n\Z")

    def test_a_checkpoint_continues_bit_for_bit(self):
        for words in ("choco:gamma=0.3", "top-k:0.2"), \
                ("error-feedback", "sign"):
            kept = words[1].replace(":", "-")
            whole = self.learn(*words, "60")
            self.learn(*words, "25", kept)
            rest = self.learn(*words, "35", kept)
            self.assertEqual((rest[0], rest[1]), (whole[0], whole[1]))

    def test_a_checkpoint_of_another_run_is_refused(self):
        self.learn("choco:gamma=0.3", "top-k:0.2", "5", "kept")
        done = self.start("deepsqueeze", "top-k:0.2", "5", "kept")
        self.assertTrue(launch.is_failure(LIBRARY, done.returncode))
        self.assertRegex(done.stderr, r"worker \d: state: algorithm "
                         "is choco:gamma=0.3, expected deepsqueeze")

    def test_a_wrong_word_is_explained(self):
        done = self.start("nothing")
        self.assertTrue(launch.is_failure(LIBRARY, done.returncode))
        self.assertIn('no algorithm is named "nothing"', done.stderr)

    @unittest.skipIf(LIBRARY is None, "threads are what MPI is compared with")
    def test_processes_and_threads_learn_the_same(self):
        threads = subprocess.run([PROGRAM, "powergossip"], text=True,
                                 stdout=subprocess.PIPE, check=True)
        self.assertEqual(LINE.findall(threads.stdout)[0][1:],
                         self.learn("powergossip"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
