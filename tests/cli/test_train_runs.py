# SPDX-License-Identifier: MIT
"""How runs of laconic train test their models and describe themselves, and in
which steps they average them.

usage: test_train_runs.py LACONIC
"""
import contextlib
import fcntl
import glob
import json
import math
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios
import time
import unittest

from command import FAILED, GOOD, HANG, LACONIC, USAGE
from image_runs import ImageRuns, STEPS, WORKERS
import training


class Runs(ImageRuns):
    def on_a_terminal(self, *words, **environment):
        """What a terminal of 80 columns receives on stderr."""
        given = {k: v for k, v in os.environ.items()
                 if k not in ("NO_COLOR", "TERM")}
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 24, 80, 0, 0))
        job = subprocess.Popen((LACONIC,) + words, cwd=self.folder,
                               stdout=subprocess.PIPE, stderr=theirs,
                               env={**given, **environment})
        os.close(theirs)
        shown = b""
        try:
            while True:
                shown += os.read(ours, 4096)
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        job.communicate(timeout=HANG)
        self.assertEqual(job.returncode, GOOD)
        return shown.decode()


class LocalSteps(Runs):
    def test_local_steps_have_fewer_rounds_and_a_last_one(self):
        """32 steps of three workers. outer starts with a sum; its rounds
        contain the step, those of dpsgd, to two neighbours, do not."""
        for spec, steps, messages in (
                ("outer", "1", 1 + 32), ("outer", "5", 1 + 6 + 1),
                ("outer", "8", 1 + 4), ("outer", "1:4@1", 1 + 16 + 4),
                ("dpsgd", "1", 2 * 32), ("dpsgd", "5", 2 * (6 + 1)),
                ("dpsgd", "8", 2 * (4 + 1))):
            with self.subTest(spec + " " + steps):
                out = (spec + steps).replace(":", "-")
                done = self.train(out, "--algorithm", spec, "--local-steps",
                                  steps, "--json")
                found = json.loads(done.stdout)
                self.assertEqual(found["messages"], WORKERS * messages)
                self.assertEqual(json.loads(self.read(
                    out + "/manifest.json"))["settings"]["local-steps"],
                    steps)
                # All workers end with the model of the last round.
                if spec == "outer":
                    self.assertEqual(found["consensus"], 0)
        self.rejected(USAGE, "--local-steps 2: allreduce averages gradients "
                      "in every step, expected a model algorithm, such as "
                      "outer:inner=(allreduce)",
                      *self.words("no", "--algorithm", "allreduce",
                                  "--local-steps", "2"))
        self.rejected(USAGE, '--local-steps is "2:3"',
                      *self.words("no", "--local-steps", "2:3"))


class Tests(Runs):
    def steps(self, out):
        return [r["step"] for r in training.metrics(self.path(out))]

    def test_models_are_tested_when_asked_and_at_the_end(self):
        for every, steps in (("1e", [16, 32]), ("5", [5, 10, 15, 20, 25, 30,
                                                      32]),
                             ("2e", [32]), ("0", [32]), ("3e", [32])):
            with self.subTest(every):
                self.train(every, "--test-every", every)
                self.assertEqual(self.steps(every), steps)
        rows = training.metrics(self.path("5"))
        self.assertEqual([r["epoch"] for r in rows],
                         [s / STEPS for s in (5, 10, 15, 20, 25, 30, 32)])
        # The loss of a line is that of its own steps: those of the first epoch
        # are 5, 5, 5 and 1.
        whole = training.metrics(self.path("1e"))
        self.assertGreater(rows[0]["train_loss"], whole[0]["train_loss"])
        self.assertLess(rows[2]["train_loss"], whole[0]["train_loss"])
        self.assertEqual(
            training.checkpoint(self.path("5"), 32, WORKERS),
            training.checkpoint(self.path("1e"), 32, WORKERS))
        for wrong in ("e", "-1", "1.5e", "5ee", "", "99999999999"):
            self.rejected(USAGE, "--test-every is", *self.words(
                "wrong", "--test-every=" + wrong))

    def test_tests_between_epochs_resume_bit_for_bit(self):
        more = ("--test-every", "5", "--checkpoint-every", "7")
        self.train("straight", *more)
        self.train("parts", *more, "--epochs", "1")
        self.assertEqual(self.steps("parts"), [5, 10, 15, 16])
        self.train("parts", *more, "--resume")
        ours, theirs = (
            [{k: v for k, v in r.items() if "seconds" not in k}
             for r in training.metrics(self.path(f)) if r["step"] != 16]
            for f in ("parts", "straight"))
        self.assertEqual(ours, theirs)

    def test_a_run_resumes_with_other_threads(self):
        self.train("straight", "--threads", "1")
        self.train("parts", "--threads", "3", "--epochs", "1")
        self.train("parts", "--threads", "2", "--resume")
        self.assertEqual(training.checkpoint(self.path("parts"), 32, WORKERS),
                         training.checkpoint(self.path("straight"), 32,
                                             WORKERS))

    def test_quasi_global_momentum_resumes_bit_for_bit(self):
        more = ("--checkpoint-every", "7", "--algorithm", "dcd", "--compressor",
                "natural", "--momentum-kind", "quasi-global")
        self.train("out", *more)
        manifest = json.loads(self.read("out/manifest.json"))
        self.assertIn('"momentum-kind": "quasi-global"',
                      json.dumps(manifest))
        shutil.copytree(self.path("out"), self.path("again"))
        self.write("again/latest", b"step-28")
        shutil.rmtree(self.path("again", "step-32"))
        self.train("again", "--resume")  # with the settings of the manifest
        self.assertEqual(
            training.checkpoint(self.path("again"), 32, WORKERS),
            training.checkpoint(self.path("out"), 32, WORKERS))
        self.train("local", *more[:-2])
        self.assertNotEqual(
            training.checkpoint(self.path("local"), 32, WORKERS),
            training.checkpoint(self.path("out"), 32, WORKERS))

    def test_the_limit_is_on_both_kinds_of_models(self):
        def run(out, *more):
            return json.loads(self.train(out, "--json", "--epochs", "1",
                                         *more).stdout)
        every = run("all", "--test-limit", "0")
        few = run("few", "--test-limit", "7")
        self.assertEqual((every["test_examples"], few["test_examples"]),
                         (60, 7))
        self.assertEqual(run("auto")["test_examples"], 60)
        for found, n in ((every, 60), (few, 7)):
            correct = n * found["averaged_accuracy"]
            self.assertAlmostEqual(correct, round(correct), 6)
            self.assertLessEqual(found["worst_accuracy"],
                                 found["test_accuracy"])
            worst = n * found["worst_accuracy"]
            self.assertAlmostEqual(worst, round(worst), 6)
        self.assertGreater(every["test_seconds"], 0)
        self.assertEqual(
            training.checkpoint(self.path("all"), STEPS, WORKERS),
            training.checkpoint(self.path("few"), STEPS, WORKERS))
        for wrong in ("some", "-1", "1.5", "", "99999999999"):
            self.rejected(USAGE, "--test-limit is", *self.words(
                "wrong", "--test-limit=" + wrong))

    def test_a_short_trial_has_a_short_test(self):
        """Of a text whole batches of 5 rows of 10 words."""
        training.text(self.path("words"), words=20000)
        for more, expected in (((), 1900), (("--test-limit", "510"), 550),
                               (("--test-limit", "0"), 19950)):
            found = json.loads(self.train(
                "words" + "-".join(more), "--json", "--epochs", "1", "--bptt",
                "10", "--limit", "1900", *more, model="lstm:hidden=8,layers=1",
                data="wikitext-2", folder="words").stdout)
            self.assertEqual(found["test_examples"], expected)
            self.assertGreater(found["averaged_loss"], 0)
        found = json.loads(self.train("images-few", "--json", "--limit", "30",
                                      "--algorithm", "allreduce").stdout)
        self.assertEqual(found["test_examples"], 30)

    def assert_examples(self, examples, *accuracies):
        """These are fractions of so many examples."""
        for accuracy in accuracies:
            correct = examples * accuracy
            self.assertAlmostEqual(correct, round(correct), 6)

    def test_every_algorithm_is_tested_on_the_same_examples(self):
        """A sample of 1,000 and, after the last step, all."""
        training.images(self.path("many"), train=240, test=1100)
        for algorithm in "dpsgd", "allreduce":
            found = json.loads(self.train(
                algorithm, "--json", "--epochs", "2", "--algorithm", algorithm,
                model="logistic", folder="many").stdout)
            self.assertEqual((found["test_examples"], found["final_examples"]),
                             (1000, 1100))
            self.assert_examples(1000, found["averaged_accuracy"],
                                 found["worst_accuracy"])
            self.assert_examples(1100, found["final_averaged_accuracy"],
                                 found["final_worst_accuracy"])
            self.assertLessEqual(found["final_worst_accuracy"],
                                 found["final_accuracy"])
            self.assertNotEqual(found["final_loss"], found["test_loss"])
            first, last = training.metrics(self.path(algorithm))
            self.assertNotIn("final_accuracy", first)
            self.assertEqual(first["test_examples"], 1000)
            for key in ("final_loss", "final_accuracy", "final_averaged_loss",
                        "final_averaged_accuracy", "final_examples"):
                self.assertEqual(last[key], found[key])
            if algorithm == "allreduce":  # all models are the same
                self.assertEqual(found["final_accuracy"],
                                 found["final_averaged_accuracy"])

    def test_the_table_has_the_whole_test_set(self):
        training.images(self.path("many"), train=240, test=1100)
        done = self.train("out", "--epochs", "1", "--test-limit", "7",
                          model="logistic", folder="many")
        last = training.metrics(self.path("out"))[-1]
        self.assertEqual((last["test_examples"], last["final_examples"]),
                         (7, 1100))
        self.assertRegex(done.stdout, r"accuracy +%.2f %% +mean of the "
                         r"workers' own models, on 1,100 examples\n"
                         % (100 * last["final_accuracy"]))
        self.assertRegex(done.stdout, r"\n +%.2f %% +of the averaged model\n"
                         % (100 * last["final_averaged_accuracy"]))

    def test_a_short_trial_has_no_test_on_the_whole_set(self):
        found = json.loads(self.train("out", "--json", "--epochs", "1",
                                      "--limit", "30").stdout)
        self.assertEqual(found["test_examples"], 30)
        self.assertNotIn("final_accuracy", found)

    def test_a_sample_of_all_examples_is_tested_once(self):
        found = json.loads(self.train("out", "--json", "--epochs", "1").stdout)
        for key in "accuracy", "worst_accuracy", "averaged_accuracy":
            sample = key if key != "accuracy" else "test_accuracy"
            self.assertEqual(found["final_" + key], found[sample])
        self.assertEqual(found["final_examples"], found["test_examples"])

    def test_a_text_has_final_perplexities(self):
        training.text(self.path("words"), words=20000)
        found = json.loads(self.train(
            "out", "--json", "--epochs", "1", "--bptt", "10", "--test-limit",
            "510", model="lstm:hidden=8,layers=1", data="wikitext-2",
            folder="words").stdout)
        self.assertEqual((found["test_examples"], found["final_examples"]),
                         (550, 19950))
        for kind in "", "averaged_":
            self.assertAlmostEqual(
                found["final_%sperplexity" % kind],
                math.exp(found["final_%sloss" % kind]), 9)

    def test_a_run_that_goes_on_is_tested_at_its_new_end(self):
        self.train("out", "--epochs", "2")
        lines = training.metrics(self.path("out"))
        self.assertEqual(["final_accuracy" in line for line in lines],
                         [False, True])
        # More epochs follow, so the former end is one of many tests.
        self.train("out", "--epochs", "3", "--resume")
        lines = training.metrics(self.path("out"))
        self.assertEqual("final_accuracy" in lines[-1], True)

    def test_any_number_of_workers_has_the_same_score_of_a_text(self):
        """One step of rate 0 leaves the initial model, which they share."""
        training.text(self.path("words"))
        found = [json.loads(self.train(
            "out%d" % workers, "--json", "--lr", "0", "--epochs", "1",
            "--bptt", "10", "--test-limit", "0", "--limit", "2000",
            "--workers", str(workers), model="lstm:hidden=8,layers=1",
            data="wikitext-2", folder="words").stdout)
            for workers in (1, 2, 3, 7)]
        for other in found[1:]:
            self.assertAlmostEqual(other["averaged_loss"],
                                   found[0]["averaged_loss"], 6)
            self.assertAlmostEqual(other["test_loss"],
                                   other["averaged_loss"], 6)
        self.assertEqual({f["test_examples"] for f in found},
                         {found[0]["test_examples"]})

    def test_a_good_initial_model_has_not_learned(self):
        """That of seed 8 is better than chance, and stays as it is."""
        training.images(self.path("many"), test=900)
        for rate, learned in (("1e-9", False), ("0.02", True)):
            found = json.loads(self.train(
                rate, "--lr", rate, "--seed", "8", "--data-dir", "many",
                "--json").stdout)
            self.assertLess(found["train_loss"], math.log(10))
            self.assertGreater(found["test_accuracy"], 0.13)
            self.assertIs(found["learned"], learned)

    def test_a_model_with_batch_norms_is_tested_in_shares(self):
        training.cifar(self.path("cifar"))
        found = json.loads(self.train(
            "out", "--json", "--epochs", "1", "--test-limit", "20",
            model="resnet8", data="cifar-10", folder="cifar").stdout)
        self.assertEqual(found["test_examples"], 20)

    def test_a_terminal_shows_the_progress_of_tests(self):
        training.images(self.path("many"), train=240, test=900)
        shown = self.on_a_terminal(*self.words("out", folder="many"))
        self.assertNotIn("\x1b[3", shown)  # TERM is not set
        counts = re.findall(r"\] (\d+)/(\d+) testing", shown)
        # Nine batches of 100 for a worker's own model, three for its share.
        self.assertEqual(counts, [(str(i), "12") for i in range(1, 13)] * 2)
        self.assertRegex(shown, r"\] \d+/32 epoch [12]/2  loss \d\S*  \d+ "
                         r"images/s  \d")
        for line in re.split(r"\r\x1b\[K|\n", shown):
            self.assertLess(len(line.strip("\r")), 80)


class Descriptions(Runs):
    def test_results_and_metrics_name_the_run(self):
        expected = {"model": "lenet", "data": "mnist", "algorithm": "choco",
                    "compressor": "sign", "topology": "ring",
                    "workers": WORKERS, "seed": 5}
        found = json.loads(self.train(
            "out", "--json", "--epochs", "1", "--seed", "5", "--algorithm",
            "choco", "--compressor", "sign").stdout)
        row, = training.metrics(self.path("out"))
        for key, value in expected.items():
            self.assertEqual((found[key], row[key]), (value, value), key)
        found = json.loads(self.train(
            "all", "--json", "--epochs", "1", "--algorithm", "allreduce",
            "--seed", str(2**64 - 1)).stdout)
        self.assertIsNone(found["compressor"])
        self.assertIsNone(found["topology"])
        self.assertEqual(found["seed"], str(2**64 - 1))

    def test_numbers_in_the_manifest_are_numbers(self):
        self.train("out", "--epochs", "1", "--seed", str(2**64 - 1))
        settings = json.loads(self.read("out/manifest.json"))["settings"]
        for key, value in (("lr", 0.02), ("momentum", 0.9), ("epochs", 1),
                           ("workers", WORKERS), ("timeout", 60),
                           ("model", "lenet"), ("overlap", "no"),
                           # not exact as a number
                           ("seed", str(2**64 - 1))):
            self.assertEqual(settings[key], value)

    def assert_close(self, ours, theirs):
        """Checkpoints of versions of oneDNN that round in other places: their
        values agree to some units of the last place. The bytes of an algorithm
        contain such values."""
        self.assertEqual(ours.keys(), theirs.keys())
        for name, (dtype, shape, data) in ours.items():
            self.assertEqual((dtype, shape), theirs[name][:2], name)
            if dtype == "F32":
                pairs = zip(*(memoryview(found).cast("f")
                              for found in (data, theirs[name][2])))
                for a, b in pairs:
                    self.assertAlmostEqual(a, b, delta=1e-6, msg=name)

    def test_a_run_of_version_0_1_resumes_bit_for_bit(self):
        """The folder was written when all settings were strings and
        checkpoints had no seconds of tests, with oneDNN 2.6.3."""
        golden = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                              "..", "golden", "run-0.1")
        shutil.copytree(golden, self.path("old"))
        words = ("train", "--model", "logistic", "--data", "a9a",
                 "--data-dir", "old/data", "--workers", "2", "--batch", "5",
                 "--epochs", "1", "--lr", "0.05", "--algorithm",
                 "choco:gamma=0.3", "--compressor", "top-k:0.5",
                 "--checkpoint-every", "4", "--out", "old/run", "--resume",
                 "--momentum", "0.9")
        self.rejected(FAILED, '--lr is "1", but the run to resume was started '
                      'with "0.05', *words, "--lr", "1")
        done = self.run_laconic(*words)
        self.assertEqual(done.returncode, GOOD, done.stderr)
        self.assertIn("resuming after step 4", done.stderr)
        version = json.loads(self.run_laconic("version", "--json").stdout)
        same = version["onednn"]["version"] == "2.6.3"
        for rank, ours in enumerate(
                training.checkpoint(self.path("old", "run"), 6, 2)):
            theirs = training.tensors(
                self.path("old", f"worker-{rank}.safetensors"))
            (self.assertEqual if same else self.assert_close)(ours, theirs)
        ours, = training.metrics(self.path("old", "run"))
        theirs, = training.metrics(self.path("old"))
        for key in ("epoch", "step", "payload_bytes", "wire_bytes",
                    "messages"):
            self.assertEqual(ours[key], theirs[key], key)
        for key in ("train_loss", "consensus"):
            self.assertAlmostEqual(ours[key], theirs[key],
                                   delta=0 if same else 1e-6, msg=key)


class Settings(Runs):
    MORE = ("--algorithm", "choco:gamma=0.2", "--compressor", "sign",
            "--momentum", "0.8", "--clip", "1.5", "--overlap", "--schedule",
            "cosine", "--seed", "9", "--limit", "210")

    def setUp(self):
        super().setUp()
        self.steps = 2 * (210 // (5 * WORKERS))

    def same(self, out, other):
        self.assertEqual(
            *(training.checkpoint(self.path(f), self.steps, WORKERS)
              for f in (out, other)))

    def test_a_resume_takes_all_settings_from_the_manifest(self):
        self.train("straight", *self.MORE)
        self.train("parts", *self.MORE, "--checkpoint-every", "5")
        self.write("parts/latest", b"step-25")
        shutil.rmtree(self.path("parts", "step-%d" % self.steps))
        for wrong, value in (("--lr", "0.3"), ("--seed", "1"),
                             ("--workers", "4")):
            self.rejected(FAILED, f"{wrong} is ", "train", "--resume", "--out",
                          "parts", wrong, value)
        done = self.run_laconic("train", "--resume", "--out", "parts")
        self.assertEqual(done.returncode, GOOD, done.stderr)
        self.assertIn("resuming after step 25", done.stderr)
        self.same("parts", "straight")
        settings = json.loads(self.read("parts/manifest.json"))["settings"]
        self.assertEqual((settings["clip"], settings["overlap"]), (1.5, "yes"))

    def test_a_setting_that_a_manifest_lacks_has_its_default(self):
        self.train("out", *self.MORE)
        manifest = json.loads(self.read("out/manifest.json"))
        for key in ("clip", "overlap", "schedule", "split"):
            del manifest["settings"][key]
        self.write("out/manifest.json", json.dumps(manifest).encode())
        for words, part in (
                (("--clip", "1.5"), '--clip is "1.5", but the run to resume '
                 'was started with "0"'),
                (("--overlap",), '--overlap is "yes", but the run to resume '
                 'was started with "no"'),
                (("--schedule", "cosine"), 'was started with "constant"'),
                (("--split", "fixed"), 'was started with "shuffle"')):
            self.rejected(FAILED, part, "train", "--resume", "--out", "out",
                          *words)

    def test_a_manifest_is_a_config(self):
        self.train("first", *self.MORE)
        os.rename(self.path("first", "manifest.json"), self.path("c.json"))
        done = self.run_laconic("train", "--config", "c.json", "--out", "new")
        self.assertEqual(done.returncode, GOOD, done.stderr)
        self.same("new", "first")
        done = self.run_laconic("train", "--config", "c.json", "--out", "less",
                                "--epochs", "1", "--json")
        self.assertEqual(json.loads(done.stdout)["epoch"], 1)
        self.assertEqual(json.loads(done.stdout)["seed"], 9)

    def test_a_config_may_be_short(self):
        self.write("c.json", json.dumps({"settings": {
            "model": "logistic", "epochs": 1, "lr": "0.02", "overlap": True,
            "augment": False, "workers": 2, "data": "mnist",
            "data-dir": "images"}}).encode())
        found = json.loads(self.run_laconic(
            "train", "--config", "c.json", "--out", "out", "--json").stdout)
        self.assertEqual((found["model"], found["workers"]), ("logistic", 2))
        manifest = json.loads(self.read("out/manifest.json"))
        self.assertEqual(manifest["settings"]["overlap"], "yes")
        self.assertEqual(manifest["settings"]["augment"], "no")

    def test_configs_that_are_none_are_rejected(self):
        for content, part in (
                (b"", "expected a JSON object"), (b"{}", "with settings"),
                (b'{"settings": []}', "with settings"),
                (b"[" * 100000, "expected a JSON object"),
                (b'{"settings": {"colour": 1}}', '"colour" is not a setting'),
                (b'{"settings": {"lr": []}}', '"lr" is no number'),
                (b'{"settings": {"lr": "fast"}}', '--lr is "fast"'),
                (b'{"settings": {"epochs": 1.5}}', '--epochs is "1.5"'),
                (b'{"settings": {"overlap": 3}}', '--overlap is "3"'),
                (b'{"settings": {"lr": 1e999}}', "--lr is")):
            self.write("c.json", content)
            self.rejected(FAILED, part, "train", "--config", "c.json",
                          "--out", "out")
        self.rejected(FAILED, "missing.json", "train", "--config",
                      "missing.json", "--out", "out")
        self.assertFalse(os.path.exists(self.path("out")))


class Calls(Runs):
    def test_a_terminal_has_colours_unless_there_is_no_color(self):
        words = self.words("out", "--epochs", "1")
        for environment, colour in (
                ({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False),
                ({"TERM": "xterm", "NO_COLOR": "1"}, False),
                ({"TERM": "xterm", "NO_COLOR": ""}, True)):
            shown = self.on_a_terminal(*words, **environment)
            self.assertEqual("\x1b[32m" in shown, colour, environment)
            shutil.rmtree(self.path("out"))
        self.assertNotIn("\x1b", self.train("out", "--epochs", "1").stderr)

    def test_quiet_prints_the_result_only(self):
        done = self.train("out", "--quiet")
        self.assertEqual(done.stderr, "")
        self.assertIn("accuracy", done.stdout)
        self.assertEqual(
            self.on_a_terminal(*self.words("again", "--quiet")), "")
        done = self.run_laconic("train", "--resume", "--out", "out", "--epochs",
                                "3", "--quiet", "--json")
        self.assertEqual((done.stderr, json.loads(done.stdout)["epoch"]),
                         ("", 3))

    def dry_run(self, *words):
        """What it prints, without the time, which is another every time."""
        text = self.train(*words, "--dry-run").stdout
        self.assertRegex(text, r"(?m)^time +about \S+ \w+ with the processors "
                         r"of this\s+machine: \S+ \w+\s+for a gradient")
        return re.sub(r"\ntime .*(\n +.*)*", "", text)

    def test_a_dry_run_estimates_the_time(self):
        def planned(*more):
            return json.loads(self.train("out", "--dry-run", "--json",
                                         *more).stdout)
        for algorithm in "allreduce", "dpsgd":
            found = planned("--algorithm", algorithm)
            self.assertGreater(found["gradient_seconds"], 0)
            self.assertGreater(found["round_seconds"], 0)
            # Three workers share the processors, if there are fewer.
            once = 2 * STEPS * (found["gradient_seconds"]
                                + found["round_seconds"])
            self.assertGreaterEqual(found["seconds"], 0.999 * once)
            self.assertLessEqual(found["seconds"], 3.001 * once)
        # A second of computation that is added to each step.
        self.assertGreater(planned("--step-time", "1s")["seconds"], 2 * STEPS)
        # Local steps have fewer rounds.
        found = planned("--algorithm", "dpsgd", "--local-steps", "16")
        self.assertLess(found["seconds"], 3.001 * (
            2 * STEPS * found["gradient_seconds"]
            + 3 * found["round_seconds"]))
        self.assertIsNone(planned("--workers", "1")["round_seconds"])

    def test_a_dry_run_names_no_topology_for_an_all_reduce(self):
        self.assertIn("\n--topology ", self.dry_run("out", "--algorithm",
                                                    "dpsgd"))
        for algorithm in "allreduce", "powersgd", "outer:inner=(allreduce)":
            self.assertNotIn("--topology", self.dry_run(
                "out", "--algorithm", algorithm))

    def test_a_dry_run_knows_steps_bytes_and_memory(self):
        for more in (("--algorithm", "dpsgd"), ("--algorithm", "allreduce"),
                     ("--algorithm", "choco", "--compressor", "sign")):
            dry = json.loads(self.train("out", "--dry-run", "--json",
                                        *more).stdout)
            self.assertFalse(os.path.exists(self.path("out")))
            run = json.loads(self.train("out", "--json", *more).stdout)
            self.assertEqual((dry["steps"], dry["epoch_steps"]),
                             (2 * STEPS, STEPS))
            for key in ("parameters", "payload_bytes", "memory",
                        "memory_bytes"):
                self.assertEqual(dry[key], run[key], key)
            self.assertEqual(dry["settings"]["lr"], 0.02)
            shutil.rmtree(self.path("out"))
        text = self.dry_run("out")
        for line in ("steps               32, 16 per epoch",
                     "--lr                0.02", "--momentum          0.9"):
            self.assertIn(line + "\n", text)
        self.rejected(FAILED, "expected at least one batch per worker",
                      *self.words("out", "--dry-run", "--batch", "1000"))
        self.train("out")
        self.assertEqual(self.dry_run("out"), text)
        self.assertEqual(self.dry_run(""), text)
        self.rejected(USAGE, "train: --out DIR is missing", *self.words(""))

    def test_a_run_that_left_no_checkpoint_makes_room(self):
        self.rejected(FAILED, "the run diverges", *self.words(
            "out", "--lr", "1e6", "--test-every", "1"))
        self.assertIn("manifest.json", os.listdir(self.path("out")))
        self.train("out")
        self.train("other")
        self.assertEqual(*(training.checkpoint(self.path(f), 2 * STEPS, WORKERS)
                           for f in ("out", "other")))
        self.assertEqual(len(training.metrics(self.path("out"))), 2)
        self.rejected(FAILED, "already holds a run", *self.words("out"))

    def test_the_table_of_seeds_has_the_fewer_bytes_of_the_runs(self):
        for words in (("--algorithm", "choco", "--compressor", "sign"),
                      ("--algorithm", "allreduce")):
            text = self.train(words[1], "--epochs", "1", "--seeds", "4,9",
                              *words).stdout
            runs = re.findall(r"(?m)^fewer bytes +(\S+) x ", text)
            self.assertEqual(len(runs), 2)
            row = re.search(r"(?m)^seed-\* \(2\) .* (\S+) x ", text)
            self.assertEqual({row[1]}, set(runs))
            self.assertIn("\nfewer: times fewer bytes than without "
                          "compression\n", text)

    def test_a_run_for_each_seed(self):
        self.train("one", "--epochs", "1", "--seed", "4")
        done = self.train("out", "--epochs", "1", "--seeds", "4,9", "--json")
        found = json.loads(done.stdout)["runs"]
        self.assertEqual([r["seed"] for r in found], [4, 9])
        self.assertEqual(sorted(os.listdir(self.path("out"))),
                         ["seed-4", "seed-9"])
        ours, theirs = (training.checkpoint(self.path(*f), STEPS, WORKERS)
                        for f in (("out", "seed-4"), ("one",)))
        self.assertEqual(ours, theirs)
        self.assertNotEqual(theirs, training.checkpoint(
            self.path("out", "seed-9"), STEPS, WORKERS))
        done = self.run_laconic("train", "--resume", "--out", "out", "--seeds",
                                "4,9", "--epochs", "2", "--json")
        self.assertEqual([r["epoch"] for r in json.loads(done.stdout)["runs"]],
                         [2, 2])
        done = self.train("both", "--epochs", "1", "--limit", "30", "--seeds",
                          "4", "--seed", "3")
        self.assertEqual(done.stderr.count("--seed has no effect"), 1)
        text = self.train("table", "--epochs", "1", "--seeds", "4,9").stdout
        self.assertEqual([line for line in text.split("\n")
                          if line.startswith("seed")][:2], ["seed 4", "seed 9"])
        self.assertIn("\nseed-* (2) ", text)
        for wrong in ("4,", "4,4", "a", "-1", "1 2"):
            self.rejected(USAGE, "--seeds is", *self.words(
                "wrong", "--seeds", wrong))

    def test_after_a_resume_the_time_is_that_of_the_whole_run(self):
        """Each of the 16 steps of an epoch takes 50 ms at least."""
        more = ("--step-time", "50ms")
        table = self.train("out", *more, "--epochs", "1").stdout
        self.assertNotIn("before the resume", table)
        found = json.loads(self.train("out", *more, "--resume",
                                      "--json").stdout)
        for key in ("seconds", "compute_seconds"):
            self.assertGreaterEqual(found[key], 1.6)
        table = self.train("out", *more, "--resume").stdout
        before = float(re.search(r"all with the ([\d.]+) s before the resume",
                                 table)[1])
        self.assertGreaterEqual(before, 1.6)
        self.assertGreaterEqual(
            float(re.search(r"time +([\d.]+) s ", table)[1]), before)

    def test_a_warm_up_that_is_longer_than_the_run_is_named(self):
        for warmup, named in (("3", True), ("2", False)):
            done = self.train(warmup, "--warmup", warmup, "--limit", "30")
            self.assertEqual("--warmup is 3 epochs, but the run ends after 2"
                             in done.stderr, named)

    def test_numbers_are_short(self):
        more = ("--lr", "0.3", "--limit", "30")
        self.train("out", *more)
        self.rejected(FAILED, '--lr is "0.7", but the run to resume was '
                      'started with "0.3"', "train", "--resume", "--out",
                      "out", "--lr", "0.7")
        # As an older version has written it.
        manifest = json.loads(self.read("out/manifest.json"))
        manifest["settings"]["lr"] = "0.29999999999999999"
        self.write("out/manifest.json", json.dumps(manifest).encode())
        self.train("out", *more, "--resume")

    def test_the_time_of_a_long_name_is_wrapped_at_words(self):
        training.text(self.path("words"))
        out = self.train("out", "--limit", "2000", "--bptt", "10",
                         model="lstm:hidden=16,layers=1", data="wikitext-2",
                         folder="words").stdout
        lines = out.splitlines()
        at = next(i for i, l in enumerate(lines) if l.startswith("time"))
        self.assertRegex(" ".join(" ".join(lines[at:]).split()),
                         r"^time \S+ s per worker: computed \S+ s, tested "
                         r"\S+ s, compressed \S+ s, waited \S+ s$")
        # A line is full before the next begins.
        self.assertGreater(len(lines[at]), 60)
        self.assertLessEqual(max(map(len, lines)), 80)

    def test_a_resume_alone_needs_a_run(self):
        """A wrong folder would else begin a long run with other settings."""
        os.mkdir(self.path("empty"))
        for out, why in (("empty", "no manifest.json"), ("none", "no folder")):
            for more in ((), ("--epochs", "9"), ("--seeds", "1,2"),
                         ("--quiet", "--json", "--data-dir", "images")):
                with self.subTest(out=out, more=more):
                    self.rejected(FAILED, f"{out}: has no run to resume: "
                                  f"there is {why}", "train", "--resume",
                                  "--out", out, *more)
        self.assertEqual(os.listdir(self.path("empty")), [])
        self.assertFalse(os.path.exists(self.path("none")))

    def test_a_resume_with_settings_may_be_the_start(self):
        begins = "laconic: nothing to resume in out, starting from the begin"
        more = ("--resume", "--epochs", "1")
        self.assertIn(begins, self.train("out", *more).stderr)
        self.assertNotIn(begins, self.train("out", *more).stderr)
        shutil.copy(self.path("out", "manifest.json"), self.path("config"))
        done = self.run_laconic("train", "--resume", "--config", "config",
                                "--out", "other", "--quiet")
        self.assertEqual((done.returncode, done.stderr), (GOOD, ""))

    def test_a_resume_continues_the_runs_of_all_seeds(self):
        self.train("out", "--epochs", "1", "--seeds", "4,9,5")
        # As if it had been killed early in the second run.
        shutil.rmtree(self.path("out", "seed-5"))
        shutil.rmtree(self.path("out", "seed-9"))
        os.mkdir(self.path("out", "seed-9"))
        done = self.run_laconic("train", "--resume", "--out", "out", "--epochs",
                                "2", "--json")
        found = json.loads(done.stdout)["runs"]
        self.assertEqual([(r["seed"], r["epoch"], r["model"], r["workers"])
                          for r in found],
                         [(seed, 2, "lenet", WORKERS) for seed in (4, 9, 5)])
        self.assertEqual(sorted(os.listdir(self.path("out"))),
                         ["seed-4", "seed-5", "seed-9"])
        self.train("more", "--epochs", "1", "--seeds", "1")
        self.train("more", "--epochs", "1", "--seeds", "2")
        done = self.run_laconic("train", "--resume", "--out", "more", "--json")
        self.assertEqual([r["seed"] for r in json.loads(done.stdout)["runs"]],
                         [1, 2])
        self.rejected(FAILED, "--batch is", "train", "--resume", "--out",
                      "out", "--batch", "6")

    @contextlib.contextmanager
    def endless(self, latest, *words):
        """A run without end that has written its first checkpoint."""
        job = subprocess.Popen(
            (LACONIC,) + self.words(*words, "--epochs", "100000"),
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True)
        try:
            while not os.path.exists(self.path(*latest)):
                self.assertIsNone(job.poll())
                time.sleep(0.01)
            yield job
        finally:
            job.kill()
            job.communicate()

    def test_a_run_of_seeds_that_was_stopped_is_resumed_as_a_whole(self):
        with self.endless(("out", "seed-1", "latest"), "out", "--seeds",
                          "1,2") as job:
            job.send_signal(signal.SIGINT)
            _, err = job.communicate(timeout=HANG)
        self.assertIn("laconic train --resume --out out`", err)

    def test_a_signal_has_an_exit_code(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            out = "out%d" % number
            with self.endless((out, "latest"), out) as job:
                job.send_signal(number)
                _, err = job.communicate(timeout=HANG)
            self.assertEqual(job.returncode, 128 + number)
            self.assertIn(f"laconic train --resume --out {out}`", err)

    def test_no_thread_that_computes_receives_a_signal(self):
        with self.endless(("out", "latest"), "out") as job:
            masks = []
            for path in glob.glob(f"/proc/{job.pid}/task/*/status"):
                with open(path) as file:
                    found = re.search(r"^SigBlk:\s*(\w+)$", file.read(), re.M)
                    masks.append(int(found.group(1), 16))
        self.assertGreater(len(masks), WORKERS)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            blocked = sum(mask >> (number - 1) & 1 for mask in masks)
            self.assertEqual(blocked, len(masks) - 1, (number, masks))


if __name__ == "__main__":
    unittest.main(verbosity=1)
