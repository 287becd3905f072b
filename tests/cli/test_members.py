# SPDX-License-Identifier: MIT
"""laconic train by workers of a peers file, each with a terminal of its own:
what every one of them prints, and what remains when one is lost.

usage: test_members.py LACONIC
"""
import json
import re
import signal
import subprocess
import unittest

from command import Command, FAILED, GOOD, HANG, LACONIC
from processes import Reader, free_port
import training

NAMES = ("anna", "berta")
LOST = (r"laconic: worker 0 \(anna\): worker 1 \(berta\) was lost: its "
        r"connection to worker 0 \(anna\) ended.*\n"
        r"laconic: continue with `laconic (train --resume --out anna)` on all "
        r"machines\n")


class Members(Command):
    def setUp(self):
        super().setUp()
        training.images(self.folder + "/images")
        self.keys = [json.loads(self.run_laconic(
            "key", "--file", name + ".key", "--json").stdout)["key"]
            for name in NAMES]

    def write_peers(self):
        lines = ["# two workers on one machine\n", "\n"]
        for name, key in zip(NAMES, self.keys):
            lines.append("%s 127.0.0.1:%d %s\n" % (name, free_port(), key))
        self.write("peers.txt", "".join(lines).encode())

    def words(self, name, *more):
        return ("train", "--model", "mlp", "--data", "mnist", "--data-dir",
                "images", "--batch", "20", "--lr", "0.02", "--algorithm",
                "dpsgd", "--transport",
                "tcp:peers=peers.txt,key=%s.key" % name, "--out", name, *more)

    def start(self, *commands):
        """Starts a process for each worker, and collects what it prints."""
        jobs = []
        for words in commands:
            job = subprocess.Popen((LACONIC,) + words, cwd=self.folder,
                                   text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
            self.addCleanup(job.wait)
            self.addCleanup(job.kill)
            job.out, job.err = Reader(job.stdout), Reader(job.stderr)
            jobs.append(job)
        return jobs

    def start_all(self, *more):
        """Again if a port was taken meanwhile."""
        for _ in range(5):
            self.write_peers()
            jobs = self.start(*(self.words(name, *more) for name in NAMES))
            if all(job.err.wait_for(lambda text: "joined" in text
                                    or "--quiet" in more) for job in jobs):
                break
            for job in jobs:
                job.kill()
        return jobs

    def end(self, job, code):
        """Waits until a process has ended, and returns what it printed."""
        self.assertEqual(job.wait(HANG), code, job.err.text)
        for reader in job.out, job.err:
            reader.wait_for(lambda text: False)  # until it ends
        return job.out.text, job.err.text

    def test_every_worker_reports_join_epochs_and_end(self):
        first, other = self.start_all("--epochs", "2")
        out, err = self.end(first, GOOD)
        self.assertIn("accuracy", out)
        self.assertRegex(err, r"^laconic: joined 2 workers as anna\n(.*\n)*"
                         r"epoch 1/2  loss .*\n(.*\n)*epoch 2/2 ")
        out, err = self.end(other, GOOD)
        self.assertEqual(out, "")
        self.assertRegex(
            err, r"^laconic: joined 2 workers as berta\n"
            r"epoch 1/2  loss \d\.\d{4} of this worker\n"
            r"epoch 2/2  loss \d\.\d{4} of this worker\n"
            r"laconic: the run is complete; worker 0 has its results\n$")

    def test_quiet_workers_print_nothing(self):
        first, other = self.start_all("--epochs", "1", "--quiet")
        out, err = self.end(first, GOOD)
        self.assertEqual(("accuracy" in out, err), (True, ""))
        self.assertEqual(self.end(other, GOOD), ("", ""))

    def test_a_lost_worker_is_named_with_the_command_that_resumes(self):
        first, other = self.start_all("--epochs", "100000")
        for job in first, other:
            self.assertTrue(job.err.wait_for(lambda text: "epoch 2/" in text))
        other.kill()
        out, err = self.end(first, FAILED)
        self.assertEqual(out, "")
        self.assertRegex(err, LOST + "$")
        command = re.search(LOST, err)[1]
        resumed = self.start(*(
            tuple(command.replace("anna", name).split()) for name in NAMES))
        self.assertTrue(resumed[0].err.wait_for(
            lambda text: "laconic: resuming after step " in text))
        for job in resumed:
            job.send_signal(signal.SIGINT)
        for job in resumed:
            self.end(job, 128 + signal.SIGINT)

    def test_workers_that_are_launched_leave_it_to_worker_0(self):
        done = self.run_laconic(
            "launch", "-n", "2", "--", "train", "--model", "mlp", "--data",
            "mnist", "--data-dir", "images", "--batch", "20", "--epochs", "1",
            "--out", "out")
        self.assertEqual(done.returncode, GOOD, done.stderr)
        self.assertNotIn("joined", done.stderr)
        self.assertEqual(len(re.findall("epoch 1/1 ", done.stderr)), 1)


if __name__ == "__main__":
    unittest.main()
