# SPDX-License-Identifier: MIT
"""laconic train over tcp between two hosts, network namespaces with a cable
between them, that share no folder. Needs root; otherwise it is skipped.

usage: test_hosts.py LACONIC
"""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import training
from cable import ADDRESSES, Cable, skip
from command import HANG, LACONIC

PORT = 7000  # nobody else is in the namespaces
STEPS = 24  # of 2 workers in an epoch; 240 examples, 5 a worker and step
HOSTS = ("a", "b")
ENDLESS = "100000"


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cable = Cable()
        cls.addClassCleanup(cls.cable.remove)
        try:
            cls.cable.connect()
        except (OSError, subprocess.CalledProcessError) as error:
            skip("no network namespaces: %s" % error)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        lines = ["# a line for each host\n", "\n"]
        for host, address in zip(HOSTS, ADDRESSES):
            training.images(self.path(host, "images"))
            shown = subprocess.run(
                (LACONIC, "key", "--file", self.path(host, "key")), check=True,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                timeout=HANG).stdout
            lines.append("%s %s:%d %s\n" % (host, address, PORT,
                                            shown.split()[-1]))
        for host in HOSTS:
            training.write(self.path(host), "peers", "".join(lines).encode())

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def words(self, *more):
        return (LACONIC, "train", "--data", "mnist", "--data-dir", "images",
                "--batch", "5", "--lr", "0.02", "--out", "run", "--algorithm",
                *training.ALGORITHMS["choco"], *more)

    def start(self, *more):
        """Starts a worker on each host, in a folder of its own."""
        jobs = [subprocess.Popen(
            ("ip", "netns", "exec", name, *self.words(
                "--transport", "tcp:peers=peers,key=key", *more)),
            cwd=self.path(host), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
            for name, host in zip(self.cable.names, HOSTS)]
        for job in jobs:
            self.addCleanup(job.communicate)
            self.addCleanup(job.kill)
        return jobs

    def train(self, *more):
        """Returns what worker 0 prints, and all error messages."""
        jobs = self.start(*more)
        ends = [job.communicate(timeout=HANG) for job in jobs]
        for job, (_, err) in zip(jobs, ends):
            self.assertEqual(job.returncode, 0, err)
        return ends[0][0], ends[0][1] + ends[1][1]

    def whole(self, *more):
        """The same run by two threads, undisturbed."""
        os.makedirs(self.path("whole"))
        shutil.copytree(self.path("a", "images"), self.path("whole", "images"))
        subprocess.run(self.words("--workers", "2", *more), check=True,
                       cwd=self.path("whole"), timeout=HANG,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def assert_same_bits(self, step):
        for rank, host in enumerate(HOSTS):
            name = os.path.join("step-%d" % step,
                                "worker-%d.safetensors" % rank)
            self.assertEqual(
                training.tensors(self.path(host, "run", name)),
                training.tensors(self.path("whole", "run", name)))
        self.assertEqual(
            training.tensors(self.path("a", "run", "model.safetensors")),
            training.tensors(self.path("whole", "run", "model.safetensors")))

    def test_hosts_train_to_the_bits_of_threads(self):
        out, _ = self.train("--epochs", "2", "--json")
        self.whole("--epochs", "2")
        self.assert_same_bits(2 * STEPS)
        self.assertEqual(json.loads(out)["workers"], 2)
        self.assertEqual(
            sorted(os.listdir(self.path("b", "run"))),
            ["latest", "manifest.json", "step-24", "step-48"])

    def latest(self, host):
        path = self.path(host, "run", "latest")
        if not os.path.exists(path):
            return 0
        with open(path, encoding="ascii") as file:
            return int(file.read()[5:])

    def kill_one(self, rank):
        """Kills a worker in the middle of a run with many checkpoints, and
        returns what the other one prints."""
        jobs = self.start("--checkpoint-every", "1", "--epochs", ENDLESS)
        while min(map(self.latest, HOSTS)) == 0:
            for job in jobs:
                self.assertIsNone(job.poll())
        jobs[rank].send_signal(signal.SIGKILL)
        _, err = jobs[1 - rank].communicate(timeout=HANG)
        self.assertEqual(jobs[1 - rank].returncode, 1, err)
        self.assertIn("worker %d (%s) was lost" % (rank, HOSTS[rank]), err)

    def test_hosts_resume_after_one_was_killed(self):
        for rank in range(2):
            with self.subTest(rank):
                self.kill_one(rank)
                newest = max(map(self.latest, HOSTS))
                epochs = newest // STEPS + 1
                words = ("--checkpoint-every", "1", "--epochs", str(epochs))
                _, err = self.train(*words, "--resume")
                self.assertIn("resuming after step %d\n" % newest, err)
                self.whole(*words)
                self.assert_same_bits(epochs * STEPS)
                for host in (*HOSTS, "whole"):
                    shutil.rmtree(self.path(host, "run"))
                shutil.rmtree(self.path("whole"))


if __name__ == "__main__":
    unittest.main()
