# SPDX-License-Identifier: MIT
"""laconic train with a hostile worker, which sends huge values.

usage: test_train_hostile.py LACONIC
"""
import json
import os
import struct
import unittest

from command import FAILED, USAGE
from image_runs import ImageRuns
import training

WORKERS, LAST = 4, 24  # 240 examples, 5 a worker and step, two epochs
CLIPPED = ("--algorithm", "dpsgd:clip=1")
GRAPH = ("--workers", str(WORKERS), "--topology", "complete")


def values(tensor):
    _, _, data = tensor
    return struct.unpack("<%df" % (len(data) // 4), data)


class Hostile(ImageRuns):
    def result(self, out, *more):
        return json.loads(self.train(out, *GRAPH, "--json", *more,
                                     model="logistic").stdout)

    def test_plain_gossip_fails_and_clipping_trains(self):
        exact = self.result("exact", *CLIPPED)
        self.assertGreater(exact["test_accuracy"], 0.9)
        self.rejected(FAILED, "diverges", *self.words(
            "plain", *GRAPH, "--algorithm", "dpsgd", "--hostile", "1"))
        for rank in (0, 3):
            out = "clipped-%d" % rank
            found = self.result(out, *CLIPPED, "--hostile", str(rank))
            self.assertGreater(found["worst_accuracy"], 0.9)
            manifest = json.loads(self.read(out + "/manifest.json"))
            self.assertEqual(manifest["settings"]["hostile"], str(rank))

    def test_only_honest_workers_count(self):
        """Averaged model and consensus are those of their checkpoints, and
        there is no loss of the hostile worker. It sends as much as others."""
        exact = self.result("exact", *CLIPPED)
        found = self.result("out", *CLIPPED, "--hostile", "2")
        saved = training.checkpoint(self.path("out"), LAST, WORKERS)
        del saved[2]
        model = training.tensors(self.path("out", "model.safetensors"))
        distance = 0.0
        for name, tensor in model.items():
            for mean, *each in zip(values(tensor), *(values(worker[name])
                                                     for worker in saved)):
                self.assertAlmostEqual(mean, sum(each) / 3, delta=1e-5)
                distance += sum((x - mean) ** 2 for x in each) / 3
        # The mean above is rounded to a float.
        self.assertAlmostEqual(found["consensus"], distance,
                               delta=1e-3 * distance)
        self.assertLess(found["train_loss"], 3)
        self.assertGreaterEqual(found["test_accuracy"],
                                found["worst_accuracy"])
        self.assertEqual(found["payload_bytes"], exact["payload_bytes"])

    def test_a_run_resumes_bit_for_bit(self):
        more = (*GRAPH, *CLIPPED, "--hostile", "1")
        self.train("whole", *more)
        self.train("parts", *more, "--epochs", "1")
        self.train("parts", *more, "--resume")
        whole, parts = (training.checkpoint(self.path(name), LAST, WORKERS)
                        for name in ("whole", "parts"))
        self.assertEqual(whole, parts)
        for row in training.metrics(self.path("whole")):
            # That of a LeNet of huge values is above 1e9.
            self.assertLess(row["test_loss"], 3)

    def test_it_takes_part_in_the_rounds_of_local_steps(self):
        """Even if there is only the one after the last step."""
        for period in ("5", "1000"):
            more = ("--local-steps", period, "--hostile", "1")
            found = self.result("clipped-" + period, *CLIPPED, *more)
            self.assertGreater(found["worst_accuracy"], 0.9)
            self.result("plain-" + period, "--algorithm", "dpsgd", *more)
            model = training.tensors(self.path("plain-" + period,
                                               "model.safetensors"))
            for tensor in model.values():
                # A fourth of 1e6, which the weights do not change much.
                self.assertGreater(min(values(tensor)), 2e5)

    def test_what_makes_no_sense_is_rejected(self):
        for part, more in (
                ('--hostile is "4", expected the rank of a worker, 0 to 3',
                 ("--hostile", "4")),
                ('--hostile is "x", expected', ("--hostile", "x")),
                ('--hostile is "1x", expected', ("--hostile", "1x")),
                ('--hostile is "-1", expected', ("--hostile", "-1")),
                ("there is no other worker",
                 ("--hostile", "0", "--workers", "1")),
                ("powersgd averages gradients over all workers",
                 ("--hostile", "1", "--algorithm", "powersgd")),
                ("--differences compares the models",
                 ("--hostile", "1", "--differences"))):
            with self.subTest(more):
                self.rejected(USAGE, part, *self.words("out", *GRAPH, *more))
                self.assertFalse(os.path.exists(self.path("out")))


if __name__ == "__main__":
    unittest.main(verbosity=1)
