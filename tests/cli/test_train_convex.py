# SPDX-License-Identifier: MIT
"""The settings of convex experiments: logistic regression with one output, the
inverse schedule, the training objective; and the differences of models.

usage: test_train_convex.py LACONIC
"""
import json
import math
import os
import random
import struct
import unittest

from command import Command, GOOD, USAGE, npy
import training

WIDTH, TRAIN, TEST, WORKERS = 6, 60, 25, 3
DECAY = 0.01
CONVEX = ("--model", "logistic:outputs=1,bias=no", "--data", "libsvm",
          "--data-dir", "table", "--momentum", "0", "--weight-decay",
          str(DECAY))


def vectors(blob):
    """The floats of a tensor."""
    return struct.unpack("<%df" % (len(blob) // 4), blob)


def logistic(w, rows):
    """Mean loss and its gradient at w."""
    loss, gradient = 0, [0.0] * len(w)
    for y, x in rows:
        margin = y * sum(a * b for a, b in zip(w, x, strict=True))
        loss += math.log1p(math.exp(-margin)) / len(rows)
        for i, value in enumerate(x):
            gradient[i] -= y * value / (1 + math.exp(margin)) / len(rows)
    return loss, gradient


class Tables(Command):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        self.rows = []
        for _ in range(TRAIN + TEST):
            x = [round(draw.gauss(0, 1), 3) for _ in range(WIDTH)]
            y = 1 if x[0] - 2 * x[1] + draw.gauss(0, 1) > 0 else -1
            self.rows.append((y, x))
        for name, rows in (("table", self.rows[:TRAIN]),
                           ("table.t", self.rows[TRAIN:])):
            self.write(name, "".join(
                "%+d %s\n" % (y, " ".join("%d:%g" % (i + 1, v)
                                          for i, v in enumerate(x)))
                for y, x in rows).encode())

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def train(self, out, *more):
        done = self.run_laconic("train", "--out", out, "--json", *more)
        self.assertEqual(done.returncode, GOOD, done.stderr)
        return json.loads(done.stdout)

    def weights(self, *parts):
        return vectors(training.tensors(self.path(*parts))["fc.weight"][2])

    def lines(self, out):
        return [json.loads(line) for line in
                self.read(out + "/differences.jsonl").splitlines()]

    def rejected(self, code, part, *words):
        done = self.run_laconic("train", "--out", "out", *words)
        self.assertEqual((done.returncode, done.stdout), (code, ""),
                         done.stderr)
        self.assertIn(part, done.stderr)
        self.assertFalse(os.path.exists(self.path("out")))


class Convex(Tables):
    def test_the_objective_is_that_of_the_formula(self):
        run = self.train("out", *CONVEX, "--workers", str(WORKERS),
                         "--algorithm", "dpsgd", "--batch", "4", "--lr", "0.3",
                         "--epochs", "3", "--split", "sorted",
                         "--train-objective")
        w = self.weights("out", "model.safetensors")
        self.assertEqual((len(w), run["parameters"]), (WIDTH, WIDTH))
        loss, _ = logistic(w, self.rows[:TRAIN])
        penalty = DECAY / 2 * sum(value * value for value in w)
        self.assertAlmostEqual(run["train_objective"], loss + penalty, 6)
        self.assertGreater(penalty, 1e-4)
        found = [m["train_objective"]
                 for m in training.metrics(self.path("out"))]
        self.assertEqual((len(found), found[-1]), (3, run["train_objective"]))
        self.assertLess(found[-1], found[0])
        # Elsewhere too: the test set, evaluate and predict.
        loss, _ = logistic(w, self.rows[TRAIN:])
        self.assertAlmostEqual(run["averaged_loss"], loss, 6)
        data = ("--data", "libsvm", "--data-dir", "table")
        again = json.loads(self.succeeds("evaluate", "out", *data, "--json"))
        self.assertAlmostEqual(again["test_loss"], loss, 6)
        self.assertEqual(again["test_accuracy"], run["averaged_accuracy"])
        y, x = self.rows[-1]
        self.write("x.npy", npy((WIDTH,), x))
        guess, = json.loads(self.succeeds(
            "predict", "out", "x.npy", "--json"))["predictions"]
        output = sum(a * b for a, b in zip(w, x, strict=True))
        self.assertEqual(guess["label"], int(output > 0))
        self.assertAlmostEqual(guess["probability"],
                               1 / (1 + math.exp(-abs(output))), 6)

    def test_without_the_option_there_is_no_objective(self):
        run = self.train("out", *CONVEX, "--workers", "2", "--epochs", "1",
                         "--batch", "4", "--algorithm", "dpsgd")
        self.assertNotIn("train_objective", run)
        self.assertNotIn("differences.jsonl", os.listdir(self.path("out")))

    def test_an_inverse_rate_divides_by_the_steps(self):
        """One step an epoch, on all examples: only the rate is unknown."""
        a, b, steps = 0.02, 3, 5
        words = (*CONVEX, "--workers", "1", "--algorithm", "allreduce",
                 "--batch", str(TRAIN), "--schedule", "inverse:%g,%g" % (a, b))
        run = self.train("out", *words, "--epochs", str(steps - 1))
        self.assertAlmostEqual(run["lr"], a / (DECAY * b), 12)
        # A resume takes the rate from the manifest.
        self.train("out", "--resume", "--epochs", str(steps))
        names = ["step-%d" % s for s in (steps - 1, steps)]
        before, after = (self.weights("out", name, "worker-0.safetensors")
                         for name in names)
        _, gradient = logistic(before, self.rows[:TRAIN])
        rate = a / (DECAY * (steps - 1 + b))
        for x, g, y in zip(before, gradient, after, strict=True):
            self.assertAlmostEqual(x - rate * (g + DECAY * x), y, 6)

    def test_inverse_needs_a_weight_decay_and_no_rate(self):
        inverse = ("--schedule", "inverse:0.1,10")
        self.rejected(USAGE, "--weight-decay, its lambda, is 0, expected one "
                      "above 0", *CONVEX, "--weight-decay", "0", *inverse)
        self.rejected(USAGE, "whose first rate is 1, but --lr was given too",
                      *CONVEX, "--lr", "0.5", *inverse)
        self.rejected(USAGE, "but --lr was given too",
                      *CONVEX, "--lr", "auto", *inverse)
        self.rejected(USAGE, "expected at most 1e+06", *CONVEX, "--schedule",
                      "inverse:1e9,1")
        self.rejected(USAGE, "--schedule is \"inverse:1\", expected constant, "
                      "step, cosine or inverse:A,B", *CONVEX, "--schedule",
                      "inverse:1")

    def test_one_output_needs_two_classes(self):
        self.write("three", b"0 1:1\n1 1:2\n2 1:3\n" * 20)
        self.rejected(USAGE, "examples have 3 classes, expected 2", "--model",
                      "logistic:outputs=1", "--data", "libsvm", "--data-dir",
                      "three")

    def test_the_worst_worker_is_in_the_table(self):
        done = self.run_laconic(
            "train", "--out", "out", *CONVEX, "--workers", str(WORKERS),
            "--batch", "4", "--algorithm", "dpsgd", "--split", "sorted",
            "--epochs", "1", "--lr", "0.5")
        self.assertEqual(done.returncode, GOOD, done.stderr)
        worst = training.metrics(self.path("out"))[0]["worst_accuracy"]
        self.assertRegex(done.stdout, r"\b%.2f %%  of the worst worker"
                         % (100 * worst))


class Differences(Tables):
    WORDS = ("--data", "libsvm", "--data-dir", "table", "--model", "mlp",
             "--workers", str(WORKERS), "--batch", "5", "--algorithm",
             "dpsgd", "--differences", "--lr", "0.1")

    def check(self, line, step):
        """The sum of squares is that of the difference itself."""
        one, two = training.checkpoint(self.path("out"), step, WORKERS)[:2]
        self.assertEqual((line["step"], line["workers"]), (step, [0, 1]))
        self.assertEqual(set(line["tensors"]), {"fc1.weight", "fc2.weight"})
        for name, values in line["tensors"].items():
            rows, cols = one[name][1]
            self.assertEqual(len(values), min(rows, cols))
            self.assertEqual(values, sorted(values, reverse=True))
            square = sum((a - b) ** 2 for a, b in zip(
                vectors(one[name][2]), vectors(two[name][2]), strict=True))
            found = sum(value ** 2 for value in values)
            self.assertGreater(square, 1e-6)
            self.assertAlmostEqual(found / square, 1, 5)

    def test_singular_values_of_two_neighbours_are_recorded(self):
        self.train("out", *self.WORDS, "--epochs", "2")
        lines = self.lines("out")
        self.assertEqual([line["epoch"] for line in lines], [1, 2])
        for line, step in zip(lines, (4, 8), strict=True):
            self.check(line, step)

    def test_a_resume_removes_later_lines(self):
        self.train("out", *self.WORDS, "--epochs", "2")
        whole = self.lines("out")
        with open(self.path("out", "differences.jsonl"), "a",
                  encoding="ascii") as file:
            file.write('{"step":9}\n{"st')
        self.train("out", "--resume", "--epochs", "3")
        lines = self.lines("out")
        self.assertEqual(lines[:2], whole)
        self.assertEqual([line["step"] for line in lines], [4, 8, 12])

    def test_equal_models_have_no_differences(self):
        for words in (("--algorithm", "allreduce"), ("--workers", "1")):
            self.rejected(USAGE, "--differences: ", *self.WORDS, *words)
        training.text(self.path("words"))
        self.rejected(USAGE, "--train-objective: wikitext-2 is a text",
                      "--data", "wikitext-2", "--data-dir", "words",
                      "--model", "lstm:hidden=8,layers=1",
                      "--train-objective")


if __name__ == "__main__":
    unittest.main(verbosity=1)
