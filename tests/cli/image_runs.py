# SPDX-License-Identifier: MIT
"""Shared by the tests of `laconic train` on images: the data, the options of a
short run, and how runs are started.
"""
import os

from command import Command, GOOD
import training

WORKERS, STEPS = 3, 16  # 240 examples, 5 a worker and step


class ImageRuns(Command):
    def setUp(self):
        super().setUp()
        training.images(os.path.join(self.folder, "images"))

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def words(self, out, *more, model="lenet", data="mnist", folder="images"):
        return ("train", "--model", model, "--data", data, "--data-dir",
                folder, "--workers", str(WORKERS), "--batch", "5",
                "--lr", "0.02", "--epochs", "2", "--out", out, *more)

    def train(self, out, *more, **which):
        done = self.run_laconic(*self.words(out, *more, **which))
        self.assertEqual(done.returncode, GOOD, done.stderr)
        return done

    def rejected(self, code, part, *words, **more):
        done = self.run_laconic(*words, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(part, done.stderr)
        self.assertEqual(done.stdout, "")
