# SPDX-License-Identifier: MIT
"""laconic train under mpirun: it gives the same bits as with threads.

usage: test_train_mpi.py LACONIC LIBRARY
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "transport"))
import launch  # noqa: E402
import training  # noqa: E402

LIBRARY = sys.argv.pop(2) if __name__ == "__main__" else "openmpi"
LACONIC = os.path.abspath(sys.argv.pop(1))
GOSSIP = ("choco", "powergossip")


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def train(self, out, workers, *words, processes=False):
        result = self.path("result.json")
        prefix = launch.launcher(LIBRARY, workers) if processes else []
        done = launch.run(
            [*prefix, *launch.output_to(result), LACONIC, "train", "--workers",
             str(workers), "--out", self.path(out), "--json", *words])
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(result, encoding="utf-8") as file:
            return json.load(file)

    def compare(self, name, workers, step, *words):
        words = (*words, "--algorithm", *training.ALGORITHMS[name])
        alone = self.train(name, workers, *words)
        apart = self.train(name + "-mpi", workers, *words, processes=True)
        self.assertEqual(
            training.checkpoint(self.path(name + "-mpi"), step, workers),
            training.checkpoint(self.path(name), step, workers))
        self.assertEqual(training.tensors(self.path(name, "model.safetensors")),
                         training.tensors(self.path(name + "-mpi",
                                                    "model.safetensors")))
        for key in ("train_loss", "test_loss", "test_accuracy", "consensus",
                    "averaged_accuracy", "payload_bytes", "wire_bytes"):
            self.assertEqual(alone[key], apart[key], key)

    def test_gossip_gives_the_bits_of_threads(self):
        training.images(self.path("images"))
        for name in (*GOSSIP, "dcd", "streaming outer"):
            with self.subTest(name):
                self.compare(name, 3, 16, "--data", "mnist", "--data-dir",
                             self.path("images"), "--batch", "5", "--epochs",
                             "1", "--lr", "0.02")

    def test_processes_find_the_rate_of_threads(self):
        training.images(self.path("images"))
        self.compare("choco", 3, 16, "--data", "mnist", "--data-dir",
                     self.path("images"), "--batch", "5", "--epochs", "1",
                     "--lr", "auto")

    def take_some(self, source, folder, images=128, size=3073):
        """The first images of each of the six files."""
        os.makedirs(folder)
        for name in os.listdir(source):
            if name.endswith(".bin"):
                with open(os.path.join(source, name), "rb") as file:
                    training.write(folder, name, file.read(images * size))

    def test_resnet20_on_cifar_gives_the_bits_of_threads(self):
        """Twenty steps of four workers on the real images."""
        listed = json.loads(subprocess.run(
            [LACONIC, "data", "list", "--json"], stdout=subprocess.PIPE,
            check=True).stdout)
        found = next(d for d in listed["datasets"] if d["name"] == "cifar-10")
        if found["folder"] is None:
            self.skipTest("CIFAR-10 is not installed; `laconic data fetch "
                          "cifar-10` downloads it")
        self.take_some(found["folder"], self.path("cifar"))
        for name in GOSSIP:
            with self.subTest(name):
                self.compare(name, 4, 20, "--model", "resnet20", "--data",
                             "cifar-10", "--data-dir", self.path("cifar"),
                             "--batch", "8", "--epochs", "1", "--augment",
                             "--lr", "0.1", "--weight-decay", "1e-4")

    def test_a_checkpoint_of_threads_goes_on_as_processes(self):
        training.images(self.path("images"))
        words = ("--data", "mnist", "--data-dir", self.path("images"),
                 "--batch", "5", "--lr", "0.02", "--algorithm", "powergossip")
        self.train("parts", 3, *words, "--epochs", "1")
        self.train("parts", 3, *words, "--epochs", "2", "--resume",
                   processes=True)
        self.train("whole", 3, *words, "--epochs", "2")
        self.assertEqual(training.checkpoint(self.path("parts"), 32, 3),
                         training.checkpoint(self.path("whole"), 32, 3))


if __name__ == "__main__":
    unittest.main(verbosity=1)
