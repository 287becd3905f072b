# SPDX-License-Identifier: MIT
"""The search for a rate of laconic train, --lr auto.

usage: test_train_rate.py LACONIC
"""
import json
import os
import signal
import subprocess
import unittest

from command import HANG, LACONIC
from image_runs import ImageRuns, WORKERS
import training


class Rates(ImageRuns):
    def test_a_rate_that_is_searched_leaves_no_trace(self):
        """Only the rate: the run has the bits, and the traffic, of one for
        which it was given. A resume takes it from the manifest."""
        for name, more, model in (
                ("error-feedback", (), "lenet"), ("powersgd", (), "resnet8"),
                ("allreduce", ("--optimizer", "adam"), "lenet"),
                ("signum", (), "lenet"), ("ecd", (), "lenet"),
                ("choco", (), "lenet"), ("powergossip", (), "resnet8")):
            with self.subTest(name):
                more = (*more, "--algorithm", *training.ALGORITHMS[name],
                        "--limit", "120", "--lr")
                self.train(name, *more, "auto", "--epochs", "1", model=model)
                done = self.train(name, *more, "auto", "--resume", "--json",
                                  model=model)
                found = json.loads(done.stdout)
                facts = json.loads(self.read(name + "/manifest.json"))["facts"]
                self.assertEqual(found["lr"], facts["lr"])
                self.assertTrue(found["lr_found"] and facts["lr_found"])
                self.assertIn(found["lr"],
                              [trial["lr"] for trial in facts["lr_trials"]])
                self.assertGreater(found["search_seconds"], 0)
                self.assertGreater(found["seconds"], found["search_seconds"])
                given = json.loads(self.train(
                    name + "-given", *more, repr(found["lr"]), "--json",
                    model=model).stdout)
                for key in ("train_loss", "payload_bytes", "messages"):
                    self.assertEqual(found[key], given[key], key)
                self.assertEqual(
                    *(training.checkpoint(self.path(folder), 16, WORKERS)
                      for folder in (name, name + "-given")))

    def test_metrics_have_the_rate_of_the_last_step(self):
        done = self.train("out", "--lr", "0.04", "--epochs", "3", "--json",
                          "--warmup", "1", "--schedule", "step",
                          "--milestones", "2")
        rows = training.metrics(self.path("out"))
        # The warm-up has reached the rate in the last step of its epoch, up to
        # a step of it; the milestone divides it by ten.
        self.assertAlmostEqual(rows[0]["lr"], 0.04, delta=0.04 / 16)
        self.assertEqual([row["lr"] for row in rows[1:]], [0.04, 0.004])
        self.assertEqual(json.loads(done.stdout)["lr"], 0.04)

    def test_a_rate_is_searched_around_the_usual_one(self):
        rows = json.loads(self.succeeds("list", "--json"))["defaults"]
        usual = next(r["lr"] for r in rows if r["model"] == "images"
                     and r["algorithms"] is None)
        found = json.loads(self.train(
            "out", "--lr", "auto", "--algorithm", "dpsgd", "--json").stdout)
        self.assertIn(found["lr"] / usual,
                      [2.0 ** k for k in range(-3, 3)])
        self.assertTrue(found["learned"])
        self.assertGreater(found["test_accuracy"], 0.5)

    def test_the_search_for_a_rate_is_reported(self):
        done = self.train("out", "--lr", "auto", "--algorithm", "dpsgd")
        facts = json.loads(self.read("out/manifest.json"))["facts"]
        tried = ", ".join(
            "loss %.4g with %g" % (t["loss"], t["lr"])
            if t["loss"] is not None else "%g diverges" % t["lr"]
            for t in facts["lr_trials"])
        self.assertIn("laconic: --lr auto: %s; the rate is %g\n"
                      % (tried, facts["lr"]), done.stderr)
        text = " ".join(done.stdout.split())
        self.assertIn("rate %g of sgd, found by --lr auto" % facts["lr"], text)
        self.assertRegex(text, r"time [\d.]+ s per worker: searched a rate "
                         r"[\d.]+ s, computed")
        given = self.train("given")
        self.assertNotIn("auto", given.stdout + given.stderr)
        self.assertNotIn("searched", given.stdout)
        self.assertFalse(json.loads(self.read("given/manifest.json"))
                         ["facts"]["lr_found"])
        quiet = self.train("quiet", "--lr", "auto", "--quiet")
        self.assertEqual(quiet.stderr, "")

    def test_a_rate_that_is_too_small_is_doubled(self):
        """That of a momentum of 0.9, without momentum."""
        found = json.loads(self.train(
            "out", "--lr", "auto", "--algorithm", "dpsgd", "--momentum", "0",
            "--json").stdout)
        trials = json.loads(self.read("out/manifest.json"))["facts"][
            "lr_trials"]
        usual = trials[0]["lr"]
        self.assertEqual([t["lr"] / usual for t in trials], [1, 2, 4])
        self.assertGreater(found["lr"], usual)

    def test_a_rate_that_is_far_too_large_is_not_kept(self):
        """Momentum multiplies the steps by up to 100."""
        found = json.loads(self.train(
            "out", "--lr", "auto", "--algorithm", "dpsgd", "--momentum",
            "0.99", "--nesterov", "powersgd", "--json").stdout)
        trials = json.loads(self.read("out/manifest.json"))["facts"][
            "lr_trials"]
        self.assertIsNone(trials[0]["loss"])
        self.assertLess(found["lr"], trials[0]["lr"])

    def test_a_signal_in_the_search_for_a_rate_ends_it(self):
        """A step takes 50 ms at least, a search more than two seconds."""
        more = ("--lr", "auto", "--step-time", "50ms")
        for number in (signal.SIGINT, signal.SIGTERM):
            out = "out%d" % number
            job = subprocess.Popen(
                (LACONIC,) + self.words(out, *more), cwd=self.folder,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            line = job.stderr.readline()
            self.assertRegex(line, r"^\d+/128 trying rate 0\.\d+$")
            job.send_signal(number)
            shown, err = job.communicate(timeout=HANG)
            self.assertEqual((job.returncode, shown), (128 + number, ""))
            self.assertIn("laconic: stopped in the search for a rate; begin it "
                          f"again with `laconic train --resume --out {out}`",
                          err)
            self.assertEqual(os.listdir(self.path(out)), ["manifest.json"])
            facts = json.loads(self.read(out + "/manifest.json"))["facts"]
            self.assertNotIn("lr", facts)
        done = self.run_laconic("train", "--resume", "--out", "out2", "--json")
        found = json.loads(done.stdout)
        self.train("straight", "--lr", "auto")
        self.assertEqual(
            found["lr"],
            json.loads(self.read("straight/manifest.json"))["facts"]["lr"])
        self.assertEqual(
            training.checkpoint(self.path("out2"), 32, WORKERS),
            training.checkpoint(self.path("straight"), 32, WORKERS))


if __name__ == "__main__":
    unittest.main(verbosity=1)
