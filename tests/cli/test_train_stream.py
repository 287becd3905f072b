# SPDX-License-Identifier: MIT
"""Runs of laconic train in which outer exchanges fragments of the model in turn
and uses the results some steps later.

usage: test_train_stream.py LACONIC
"""
import json
import shutil
import unittest

from command import FAILED, USAGE
from image_runs import ImageRuns, STEPS, WORKERS
import training

STEPS_ALL = 2 * STEPS


def rounds(local_steps, fragments):
    """The rounds of all fragments in a run, with those at its end: the last
    step averages at most one of them."""
    turns = STEPS_ALL * fragments // local_steps
    last = STEPS_ALL % (local_steps // fragments) == 0
    return turns + fragments - last


class Streams(ImageRuns):
    def stream(self, out, settings, local_steps, *more):
        spec = "outer" + (":" + settings if settings else "")
        done = self.train(out, "--algorithm", spec, "--local-steps",
                          str(local_steps), "--json", *more)
        return json.loads(done.stdout)

    def models(self, out, step=STEPS_ALL):
        return training.checkpoint(self.path(out), step, WORKERS)

    def assert_same(self, one, other):
        self.assertEqual(self.models(one), self.models(other))

    def parameters(self, out):
        """The models without the states of the algorithm, which have its
        spec."""
        return [{k: v for k, v in m.items() if k != "algorithm"}
                for m in self.models(out)]

    def test_bytes_and_messages_are_those_of_a_dry_run_and_of_size(self):
        """A run has in addition one message at the start, without payload:
        all workers start from the same model."""
        for settings, steps, fragments in (
                ("", 8, 1), ("fragments=2", 8, 2), ("fragments=4", 8, 4),
                ("fragments=4,delay=1", 8, 4), ("fragments=3,delay=2", 9, 3),
                ("delay=4,alpha=0.5", 5, 1), ("delay=6,alpha=0.5", 7, 1),
                ("fragments=10,delay=0", 10, 10)):
            with self.subTest(settings):
                out = "out" + settings
                found = self.stream(out, settings, steps)
                self.assertEqual(found["messages"],
                                 WORKERS * (1 + rounds(steps, fragments)))
                planned = self.stream("none", settings, steps, "--dry-run")
                self.assertEqual(found["payload_bytes"],
                                 planned["payload_bytes"])
                spec = "outer" + (":" + settings if settings else "")
                done = self.run_laconic(
                    "size", "--model", "lenet", "--algorithm", spec,
                    "--workers", str(WORKERS), "--local-steps", str(steps),
                    "--json")
                size = json.loads(done.stdout)
                self.assertAlmostEqual(size["payload_bytes_per_step"] * steps,
                                       4 * found["parameters"])
                self.assertAlmostEqual(size["messages_per_step"] * steps,
                                       fragments)
                if "alpha" not in settings:
                    self.assertEqual(found["consensus"], 0)

    def test_an_alpha_leaves_the_models_apart(self):
        plain = self.stream("plain", "", 8)
        apart = self.stream("apart", "alpha=0.5", 8)
        self.assertEqual(plain["consensus"], 0)
        self.assertGreater(apart["consensus"], 0)

    def test_neutral_settings_are_plain_outer(self):
        self.stream("plain", "", 8)
        self.stream("neutral", "fragments=1,delay=0,alpha=0", 8)
        self.assertEqual(self.parameters("plain"), self.parameters("neutral"))

    def test_runs_resume_bit_for_bit_at_every_step_of_a_delay(self):
        """Turns are after every fourth step, and a round ends three steps
        later: one is in flight at steps 29 and 30. The last two checkpoints
        are kept."""
        words = ("fragments=2,delay=3,alpha=0.5", 8)
        self.stream("out", *words)
        for step in range(STEPS_ALL - 4, STEPS_ALL):
            out = "out%d" % step
            self.stream(out, *words, "--checkpoint-every", str(step))
            self.assert_same(out, "out")
            shutil.rmtree(self.path(out, "step-%d" % STEPS_ALL))
            self.write(out + "/latest", b"step-%d" % step)
            self.train(out, "--resume")
            self.assert_same(out, "out")

    def test_exchanges_beside_steps_give_the_same_bits(self):
        """Tests and checkpoints within a delay divide it."""
        for settings in ("delay=7,alpha=0.5", "fragments=2,delay=3",
                         "inner=(dpsgd),momentum=0.5,delay=5,alpha=0.25"):
            with self.subTest(settings):
                self.stream("out" + settings, settings, 8)
                for more in ((), ("--test-every", "5", "--checkpoint-every",
                                  "3")):
                    out = "overlap%d" % len(more) + settings
                    self.stream(out, settings, 8, "--overlap", *more)
                    self.assert_same(out, "out" + settings)

    def test_a_finished_run_is_continued(self):
        """Its last rounds ended what was in flight: the step of its end is
        within a delay."""
        self.stream("out", "fragments=2,delay=5,alpha=0.5", 14)
        found = self.stream("out", "fragments=2,delay=5,alpha=0.5", 14,
                            "--epochs", "3", "--resume")
        turns = (STEPS_ALL + STEPS) // 7
        self.assertEqual(found["messages"], WORKERS * (1 + turns + 2 + 2))

    def test_a_search_for_a_rate_leaves_no_round_in_flight(self):
        """Its 24 steps end within a delay."""
        more = ("--lr", "auto", "--epochs", "2")
        self.stream("auto", "delay=6,alpha=0.5", 20, *more)
        rate = json.loads(self.read("auto/manifest.json"))["facts"]["lr"]
        self.stream("given", "delay=6,alpha=0.5", 20, "--lr", repr(rate))
        self.assert_same("auto", "given")

    def test_settings_that_do_not_fit_are_rejected(self):
        for settings, steps, why in (
                ("fragments=3", 8,
                 "--local-steps 8: expected a multiple of fragments=3"),
                ("fragments=2", 1,
                 "--local-steps 1: expected a multiple of fragments=2"),
                ("fragments=2,delay=4", 8,
                 "--local-steps 8: delay=4, expected less than 4, the steps "
                 "from one exchange to the next"),
                ("delay=1", 1, "--local-steps 1: delay=1, expected less than "
                 "1"),
                ("fragments=11", 11, "outer:fragments=11: fragments is 11, "
                 "expected at most 10, the number of tensors"),
                ("alpha=1", 8, "outer: alpha is 1, expected less"),
                ("inner=(dpsgd),lr=0.5,delay=1", 2,
                 "--momentum-kind quasi-global: outer:inner=(dpsgd),lr=0.5,"
                 "delay=1 has fragments or a delay, expected rounds of all "
                 "tensors at the same time")):
            with self.subTest(settings):
                more = (("--momentum-kind", "quasi-global")
                        if "quasi" in why else ())
                self.rejected(USAGE, why, *self.words(
                    "no", "--algorithm", "outer:" + settings, "--local-steps",
                    str(steps), *more))

    def test_an_altered_checkpoint_of_a_delay_is_refused(self):
        self.stream("out", "delay=6,alpha=0.5", 20, "--checkpoint-every", "24")
        shutil.rmtree(self.path("out", "step-32"))
        self.write("out/latest", b"step-24")
        name = "out/step-24/worker-1.safetensors"
        whole = bytearray(self.read(name))
        whole[whole.index(b"arrived") + 30] ^= 1
        self.write(name, bytes(whole))
        self.rejected(FAILED, "worker-1.safetensors",
                      *self.words("out"), "--resume")


if __name__ == "__main__":
    unittest.main(verbosity=1)
