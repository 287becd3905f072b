# SPDX-License-Identifier: MIT
"""laconic train with threads.

usage: test_train.py LACONIC
"""
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import time
import unittest

from command import FAILED, GOOD, HANG, LACONIC, USAGE
from image_runs import ImageRuns, STEPS, WORKERS
import training


class Train(ImageRuns):
    def latest(self, out):
        return int(self.read(out + "/latest").decode().strip()[5:])

    def test_a_run_writes_the_promised_files(self):
        done = self.train("out", "--json", "--algorithm", "choco:gamma=auto",
                          "--compressor", "sign")
        found = json.loads(done.stdout)
        rows = training.metrics(self.path("out"))
        self.assertEqual([r["epoch"] for r in rows], [1, 2])
        self.assertEqual([r["step"] for r in rows], [STEPS, 2 * STEPS])
        for row in rows:
            for key in training.METRICS:
                self.assertIsInstance(row[key], (int, float), key)
        self.assertEqual(found["payload_bytes"], rows[1]["payload_bytes"])
        self.assertGreater(found["test_accuracy"], 0.9)
        self.assertGreater(found["times_fewer"], 20)
        self.assertEqual(found["memory_bytes"], sum(found["memory"].values()))
        size = json.loads(self.succeeds(
            "size", "--model", "lenet", "--algorithm", "choco:gamma=auto",
            "--compressor", "sign", "--workers", str(WORKERS), "--json"))
        self.assertEqual(found["memory"]["algorithm"], size["memory_bytes"])
        self.assertEqual(found["memory"]["parameters"], 4 * 61706)
        self.assertEqual(found["memory"]["optimiser"], 4 * 61706)
        manifest = json.loads(self.read("out/manifest.json"))
        self.assertEqual(manifest["settings"]["lr"], 0.02)
        self.assertEqual(manifest["settings"]["workers"], WORKERS)
        self.assertEqual(manifest["facts"]["gamma"], found["gamma"])
        self.assertIn("processor", manifest["machine"])
        self.assertEqual(self.read("out/latest").strip(), b"step-32")
        self.assertTrue(os.path.isdir(self.path("out", "step-16")))

    def test_workers_that_share_processors_have_no_break_even(self):
        processors = len(os.sched_getaffinity(0))
        words = "--algorithm", "choco:gamma=0.2", "--compressor", "sign"
        for workers, known in {2: processors >= 2,
                               min(processors, 15) + 1: False}.items():
            if workers <= processors and not known:
                continue  # there are not enough examples for more
            out = "out-%d" % workers
            more = *words, "--workers", str(workers), "--epochs", "1"
            found = json.loads(self.train(out, *more, "--json").stdout)
            self.assertEqual(found["break_even_mbit"] is not None, known)
            self.assertEqual(found["workers_share_processors"], not known)
            table = self.train(out + "-table", *more).stdout
            self.assertEqual("unknown  the workers shared processors" in table,
                             not known)

    def test_processes_that_share_processors_have_no_break_even(self):
        if "tcp" not in self.listed("transports"):
            self.skipTest("this build has no tcp")
        processors = sorted(os.sched_getaffinity(0))
        for used in {1, min(2, len(processors))}:
            out = "out-%d" % used
            done = self.run_laconic(
                "launch", "-n", "2", "--", *self.words(
                    out, "--algorithm", "choco:gamma=0.2", "--compressor",
                    "sign", "--workers", "2", "--epochs", "1", "--json"),
                preexec_fn=lambda: os.sched_setaffinity(
                    0, processors[:used]))
            self.assertEqual(done.returncode, GOOD, done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual(found["workers_share_processors"], used == 1)

    def test_the_table_has_quality_and_cost(self):
        out = self.train("out", "--algorithm", "powergossip").stdout
        for word in ("accuracy", "fewer bytes", "memory", "break-even",
                     "algorithm", "waited", "tested"):
            self.assertIn(word, out)
        for line in out.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_the_model_has_the_names_and_shapes_of_pytorch(self):
        self.train("out", "--epochs", "1")
        model = training.tensors(self.path("out", "model.safetensors"))
        self.assertEqual({name: t[1] for name, t in model.items()}, {
            "conv1.weight": [6, 1, 5, 5], "conv1.bias": [6],
            "conv2.weight": [16, 6, 5, 5], "conv2.bias": [16],
            "fc1.weight": [120, 400], "fc1.bias": [120],
            "fc2.weight": [84, 120], "fc2.bias": [84],
            "fc3.weight": [10, 84], "fc3.bias": [10]})

    def test_every_algorithm_resumes_bit_for_bit_from_the_middle(self):
        """A checkpoint from the middle of an epoch becomes the latest, as if
        the run had been killed right after it."""
        for name in sorted(self.listed("algorithms")):
            with self.subTest(name):
                out, again = "out-" + name, "again-" + name
                more = ("--checkpoint-every", "7", "--algorithm",
                        *training.algorithm_words(name, self.run_laconic))
                self.train(out, *more)
                shutil.copytree(self.path(out), self.path(again))
                self.write(again + "/latest", b"step-28")
                shutil.rmtree(self.path(again, "step-32"))
                done = self.train(again, *more, "--resume")
                self.assertIn("resuming after step 28", done.stderr)
                self.assertEqual(
                    training.checkpoint(self.path(again), 32, WORKERS),
                    training.checkpoint(self.path(out), 32, WORKERS))
                ours, theirs = (training.metrics(self.path(f))
                                for f in (again, out))
                for key in ("epoch", "step", "train_loss", "test_accuracy",
                            "payload_bytes", "wire_bytes", "consensus"):
                    self.assertEqual([r[key] for r in ours],
                                     [r[key] for r in theirs], key)

    def test_gradient_algorithms_keep_all_models_equal(self):
        for name in ("allreduce", "powersgd", "error-feedback"):
            self.train(name, "--algorithm", *training.ALGORITHMS[name])
            saved = training.checkpoint(self.path(name), 32, WORKERS)
            weights = [worker["fc1.weight"] for worker in saved]
            self.assertEqual(weights[0], weights[1])
            self.assertEqual(weights[0], weights[2])
            rows = training.metrics(self.path(name))
            self.assertEqual(rows[-1]["consensus"], 0)

    def test_overlap_changes_no_bit(self):
        for name in ("powergossip", "choco", "dcd"):
            with self.subTest(name):
                more = ("--algorithm", *training.ALGORITHMS[name])
                self.train(name, *more)
                self.train(name + "-beside", *more, "--overlap")
                self.assertEqual(
                    training.checkpoint(self.path(name), 32, WORKERS),
                    training.checkpoint(self.path(name + "-beside"), 32,
                                        WORKERS))

    def test_a_step_time_is_computation_and_changes_no_bit(self):
        self.train("plain")
        for more in ((), ("--overlap",)):
            found = json.loads(self.train(
                "slow", "--step-time", "3ms", "--epochs", "1", "--json",
                *more).stdout)
            self.assertGreaterEqual(found["compute_seconds"], 0.003 * STEPS)
            self.train("slow", *more, "--resume")  # without it
            self.assertEqual(
                training.checkpoint(self.path("slow"), 32, WORKERS),
                training.checkpoint(self.path("plain"), 32, WORKERS))
            shutil.rmtree(self.path("slow"))
        self.rejected(USAGE, '--step-time is "3", expected a time from 1e-09',
                      *self.words("slow", "--step-time", "3"))

    def test_a_finished_run_can_be_resumed_for_more_epochs(self):
        self.train("whole", "--epochs", "3")
        self.train("parts")
        self.train("parts", "--epochs", "3", "--resume")
        self.assertEqual(training.checkpoint(self.path("parts"), 48, WORKERS),
                         training.checkpoint(self.path("whole"), 48, WORKERS))
        done = self.train("parts", "--epochs", "3", "--resume")
        self.assertIn("accuracy", done.stdout)
        self.assertNotIn("nan", done.stderr)
        rows = training.metrics(self.path("parts"))
        self.assertEqual(len(rows), 3)
        again = json.loads(self.train(
            "parts", "--epochs", "3", "--resume", "--json").stdout)
        for key, value in rows[2].items():
            if key != "test_seconds":
                self.assertEqual(again[key], value, key)

    def test_an_interrupted_run_continues_bit_for_bit(self):
        words = ("--epochs", "400", "--algorithm", "choco:gamma=0.2",
                 "--compressor", "sign")
        job = subprocess.Popen(
            (LACONIC,) + self.words("out", *words), cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not os.path.exists(self.path("out", "latest")):
            self.assertIsNone(job.poll())
            time.sleep(0.01)
        job.send_signal(signal.SIGINT)
        _, err = job.communicate(timeout=HANG)
        self.assertEqual(job.returncode, 128 + signal.SIGINT)
        self.assertIn("laconic train --resume --out out", err)
        step = self.latest("out")
        saved = training.checkpoint(self.path("out"), step, WORKERS)
        epochs = step // STEPS + 1
        self.train("out", *words, "--epochs", str(epochs), "--resume")
        self.train("straight", *words, "--epochs", str(epochs))
        self.assertNotEqual(step, 0)
        self.assertEqual(
            training.checkpoint(self.path("out"), epochs * STEPS, WORKERS),
            training.checkpoint(self.path("straight"), epochs * STEPS,
                                WORKERS))
        self.assertEqual(len(saved), WORKERS)

    def test_two_runs_do_not_write_to_one_folder(self):
        words = ("--epochs", "100000", "--checkpoint-every", "1")
        job = subprocess.Popen(
            (LACONIC,) + self.words("out", *words), cwd=self.folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not os.path.exists(self.path("out", "latest")):
                self.assertIsNone(job.poll())
                time.sleep(0.01)
            job.send_signal(signal.SIGSTOP)
            self.rejected(FAILED, "another run is writing to it",
                         *self.words("out", *words, "--resume"), timeout=HANG)
        finally:
            job.kill()
            job.wait()
        self.assertIsNotNone(training.checkpoint(
            self.path("out"), self.latest("out"), WORKERS))

    def test_partial_files_of_a_killed_run_are_removed(self):
        self.train("out")
        host = socket.gethostname()
        left = ".laconic-999999999-0-" + host  # no process has this number
        alive = f".laconic-{os.getpid()}-3-{host}"
        others = (alive, ".laconic-notes", ".laconic-999999999-0x",
                  ".laconic-999999999", ".laconic-999999999-0-elsewhere")
        for name in (left, *others):
            self.write("out/" + name, b"")
        self.train("out", "--epochs", "3", "--resume")
        names = os.listdir(self.path("out"))
        self.assertNotIn(left, names)
        for name in others:
            self.assertIn(name, names)

    def test_a_run_is_neither_overwritten_nor_resumed_with_other_settings(self):
        self.train("out")
        before = self.read("out/metrics.jsonl")
        self.rejected(FAILED, "already holds a run", *self.words("out"))
        for more, part in (
                (("--lr", "0.3"), '--lr is "0.3", but the '
                 'run to resume was started with "0.02'),
                (("--seed", "2"), "--seed"), (("--batch", "6"), "--batch"),
                (("--workers", "4"), "--workers"),
                (("--model", "mlp"), "--model"),
                (("--algorithm", "dpsgd"), "--algorithm")):
            with self.subTest(more[0]):
                self.rejected(FAILED, part, *self.words("out", *more),
                             "--resume")
        self.rejected(FAILED, "expected no more than the 1 epochs",
                     *self.words("out", "--epochs", "1"), "--resume")
        self.assertEqual(self.read("out/metrics.jsonl"), before)

    def test_defaults_depend_on_the_run_and_are_recorded(self):
        rows = json.loads(self.succeeds("list", "--json"))["defaults"]
        found = {}
        for name in ("allreduce", "signum"):
            words = [w for w in self.words(name, "--algorithm", name)
                     if w not in ("--lr", "0.02")]
            done = self.run_laconic(*words)
            self.assertEqual(done.returncode, GOOD, done.stderr)
            used = json.loads(self.read(name + "/manifest.json"))["settings"]
            row = next(r for r in rows if r["model"] == "images"
                       and r["algorithms"] in (None, [name])
                       and r["compressors"] is None)
            for key in ("lr", "momentum", "warmup"):
                self.assertEqual(float(used[key]), row[key], key)
            found[name] = used["lr"]
        self.assertNotEqual(*found.values())

    def test_a_run_keeps_the_defaults_it_was_started_with(self):
        """As a run of a version with other defaults."""
        given = ("--momentum", "0.25", "--warmup", "0.5")
        self.train("out", *given, "--epochs", "1")
        words = [w for w in self.words("out", "--resume")
                 if w not in ("--lr", "0.02")]
        done = self.run_laconic(*words)
        self.assertEqual(done.returncode, GOOD, done.stderr)
        self.train("whole", *given)
        self.assertEqual(training.checkpoint(self.path("out"), 32, WORKERS),
                         training.checkpoint(self.path("whole"), 32, WORKERS))
        self.rejected(FAILED, '--momentum is "0.5", but the run to resume was '
                      'started with "0.25"', *words, "--momentum", "0.5")

    def test_a_run_that_learns_nothing_is_named(self):
        for rate, learned in (("0.02", True), ("0", False)):
            done = self.train(rate, "--lr", rate, "--json")
            self.assertIs(json.loads(done.stdout)["learned"], learned)
            self.assertEqual("nothing was learned" in done.stderr,
                             not learned)

    def test_options_without_an_effect_are_named(self):
        for more, part in (
                (("--schedule", "step"), "--schedule has no effect: step "
                 "needs --milestones"),
                (("--milestones", "1"), "--milestones has no effect: only"),
                (("--schedule", "step", "--milestones", "2"),
                 "--milestones has no effect: the run ends"),
                (("--bptt", "10"), "--bptt has no effect"),
                (("--algorithm", "allreduce", "--topology", "complete"),
                 "--topology has no effect"),
                (("--nesterov", "no", "--momentum", "0"), "--nesterov has"),
                (("--momentum-kind", "quasi-global", "--momentum", "0"),
                 "--momentum-kind has no effect"),
                (("--algorithm", "allreduce", "--optimizer", "adam",
                  "--momentum", "0.5"), "--momentum has no effect"),
                (("--workers", "1", "--split", "fixed"),
                 "--split has no effect"),
                (("--schedule", "step", "--milestones", "1", "--topology",
                  "complete", "--nesterov", "no", "--split", "fixed"), None)):
            with self.subTest(more):
                out = "-".join(more).replace("--", "")
                stderr = self.train(out, *more, "--limit", "30").stderr
                found = stderr.count("has no effect")
                self.assertEqual(found, 0 if part is None else 1, stderr)
                self.assertIn(part or "", stderr)

    def test_what_is_hardly_meant_is_named(self):
        for more, part in (
                (("--algorithm", "signum", "--workers", "2"), ":tie=zero is"),
                (("--algorithm", "signum", "--workers", "3"), None),
                (("--algorithm", "signum:tie=zero", "--workers", "2"), None),
                (("--algorithm", "outer"), "--local-steps above 1"),
                (("--algorithm", "outer", "--local-steps", "2"), None),
                (("--lr", "0"), "--lr is 0")):
            with self.subTest(more):
                out = "-".join(more).replace("--", "")
                stderr = self.train(out, *more, "--limit", "30").stderr
                advice = [line for line in stderr.split("\n") if any(
                    word in line for word in ("signum:", "outer:", "--lr is"))]
                self.assertEqual(len(advice), part is not None, stderr)
                self.assertIn(part or "", stderr)

    def test_files_of_others_are_not_overwritten(self):
        for name in ("latest", "metrics.jsonl", "model.safetensors"):
            for more in ((), ("--resume",)):
                with self.subTest((name, more)):
                    os.makedirs(self.path("of-" + name), exist_ok=True)
                    self.write(f"of-{name}/{name}", b"mine")
                    self.rejected(FAILED, "there is no manifest.json",
                                 *self.words("of-" + name, *more))
                    self.assertEqual(self.read(f"of-{name}/{name}"), b"mine")
        os.makedirs(self.path("kept"))
        self.write("kept/notes.txt", b"mine")
        self.train("kept", "--epochs", "1")
        self.assertEqual(self.read("kept/notes.txt"), b"mine")

    def test_a_run_without_a_valid_manifest_is_rejected(self):
        self.train("out", "--epochs", "1")
        self.write("out/manifest.json", b'{"settings": {"lr": 1')
        self.rejected(FAILED, "manifest.json", *self.words("out"), "--resume")
        os.remove(self.path("out", "manifest.json"))
        self.rejected(FAILED, "manifest.json", *self.words("out"), "--resume")

    def test_the_manifest_does_not_truncate_settings(self):
        long = "./" * 300 + "images"
        self.train("out", "--epochs", "1", folder=long)
        manifest = json.loads(self.read("out/manifest.json"))
        self.assertEqual(manifest["settings"]["data-dir"], long)

    def test_data_without_a_test_set_are_trained_on(self):
        self.write("table", b"-1 1:1 2:0.5\n+1 1:-1 3:0.5\n" * 40)
        done = self.train("out", model="logistic", data="libsvm",
                          folder="table")
        self.assertIn("no test set", done.stdout)
        self.assertNotIn("nan", done.stdout + done.stderr)
        self.assertIsNone(
            training.metrics(self.path("out"))[1]["test_accuracy"])

    def test_a_damaged_checkpoint_is_rejected(self):
        self.train("out")
        path = "out/step-32/worker-1.safetensors"
        data = bytearray(self.read(path))
        data[-3] ^= 1
        self.write(path, bytes(data))
        self.rejected(FAILED, "worker-1.safetensors",
                     *self.words("out", "--epochs", "3"), "--resume")

    def test_a_missing_file_makes_all_workers_resume_from_the_set_before(self):
        self.train("straight", "--epochs", "3")
        self.train("out")
        os.remove(self.path("out/step-32/worker-1.safetensors"))
        done = self.train("out", "--epochs", "3", "--resume")
        self.assertIn("worker 1 has no checkpoint of step 32", done.stderr)
        self.assertIn("resuming after step 16", done.stderr)
        self.assertEqual(
            training.checkpoint(self.path("out"), 48, WORKERS),
            training.checkpoint(self.path("straight"), 48, WORKERS))
        self.assertEqual(
            [r["epoch"] for r in training.metrics(self.path("out"))],
            [1, 2, 3])
        for step in (32, 48):
            os.remove(self.path(f"out/step-{step}/worker-2.safetensors"))
        self.rejected(FAILED, "worker 2 has no checkpoint of step 48 in out",
                     *self.words("out", "--epochs", "4"), "--resume")

    def test_a_diverging_run_is_reported_and_keeps_its_metrics(self):
        self.rejected(FAILED, "diverges", *self.words(
            "out", "--lr", "1e5", "--algorithm", "dpsgd"))
        self.rejected(FAILED, "diverges", *self.words(
            "alone", "--lr", "1e6", "--algorithm", "allreduce"),
            "--workers", "1")
        self.assertIn("settings", json.loads(self.read("out/manifest.json")))

    def test_an_overflow_in_an_algorithm_is_divergence_too(self):
        """At this rate losses are finite, gradients are not, and error
        memories overflow."""
        for name in ("powersgd", "error-feedback"):
            self.rejected(FAILED, "the run diverges: in step", *self.words(
                name, "--algorithm", *training.ALGORITHMS[name], "--lr",
                "300"))

    def test_a_full_disk_ends_the_run_and_leaves_the_last_checkpoint(self):
        self.train("out", "--epochs", "1")
        size = os.path.getsize(
            self.path("out", "step-16", "worker-0.safetensors"))

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))
        self.rejected(FAILED, "last complete checkpoint is that of step 16",
                     *self.words("out"), "--resume", preexec_fn=limit,
                     restore_signals=False)
        self.assertEqual(self.read("out/latest").strip(), b"step-16")
        self.assertFalse(os.path.exists(self.path("out", "step-32")))
        self.train("out", "--resume")

    def test_wrong_settings_are_rejected_before_anything_is_written(self):
        words = self.words("out")
        cases = (
            (USAGE, "did you mean lenet?", ("--model", "lenett")),
            (USAGE, "did you mean choco?", ("--algorithm", "Choko")),
            (USAGE, "try --algorithm error-feedback --compressor top-k:0.1",
             ("--algorithm", "top-k:0.1")),
            (USAGE, "did you mean sign?",
             ("--algorithm", "choco", "--compressor", "sgn")),
            (USAGE, "did you mean mnist?", ("--data", "mnits")),
            (USAGE, "resnet50", ("--model", "resnet50")),
            (USAGE, "expected a text", ("--model", "lstm")),
            (USAGE, "nosuch", ("--data", "nosuch")),
            (FAILED, "nowhere", ("--data-dir", "nowhere")),
            (USAGE, "adam", ("--optimizer", "adam")),
            (USAGE, "quasi-global: adam has its own momentum",
             ("--momentum-kind", "quasi-global", "--optimizer", "adam")),
            (USAGE, "quasi-global: powersgd averages gradients",
             ("--momentum-kind", "quasi-global", "--algorithm", "powersgd")),
            (USAGE, "--momentum 0.9: beer", ("--algorithm", "beer",
             "--compressor", "sign", "--momentum", "0.9")),
            (USAGE, "--overlap", ("--algorithm", "allreduce", "--overlap")),
            (USAGE, "takes none", ("--compressor", "sign")),
            (USAGE, "a compressor is needed", ("--algorithm", "choco")),
            (USAGE, "--lr", ("--lr", "fast")),
            (USAGE, "milestones", ("--milestones", "2,x")),
            (USAGE, "split", ("--split", "randomly")),
            (USAGE, "--epoch", ("--epoch", "3")),
            (USAGE, "square", ("--topology", "square")),
        )
        for code, part, more in cases:
            with self.subTest(more):
                self.rejected(code, part, *words, *more)
                self.assertFalse(os.path.exists(self.path("out")))
        self.rejected(USAGE, "--out", *words[:-2])
        self.rejected(FAILED, "240", *self.words("few", "--batch", "100"))
        self.assertFalse(os.path.exists(self.path("few")))
        self.write("table", b"0 1:1\n1 2:1\n")
        self.rejected(USAGE, "expected no --augment", *self.words(
            "out", "--augment", model="logistic", data="libsvm",
            folder="table"))
        self.assertFalse(os.path.exists(self.path("out")))
        self.write("file", b"")
        self.rejected(FAILED, "file", *self.words("file/out"))

    def test_damaged_data_are_rejected(self):
        self.write("images/train-labels-idx1-ubyte", b"\0\0\x08\x01\0\0")
        self.rejected(FAILED, "train-labels-idx1-ubyte", *self.words("out"))

    def test_one_worker_sends_nothing(self):
        done = self.train("out", "--workers", "1", "--json")
        found = json.loads(done.stdout)
        self.assertEqual(found["payload_bytes"], 0)
        self.assertIsNone(found["times_fewer"])
        self.assertIsNone(found["break_even_mbit"])

    def test_a_language_model_learns_and_resumes(self):
        training.text(self.path("words"))
        which = {"model": "lstm:hidden=16,layers=1,dropout=0.1",
                 "data": "wikitext-2", "folder": "words"}
        more = ("--bptt", "10", "--lr", "5", "--momentum", "0", "--clip",
                "0.5", "--algorithm", "powersgd:rank=2", "--epochs", "3")
        found = json.loads(
            self.train("out", *more, "--json", **which).stdout)
        self.assertLess(found["test_perplexity"], 10)  # of 42 words
        rows = training.metrics(self.path("out"))
        self.assertGreater(rows[0]["averaged_perplexity"],
                           rows[2]["averaged_perplexity"])
        steps = rows[0]["step"]
        self.train("parts", *more, "--checkpoint-every", str(steps - 3),
                   "--epochs", "1", **which)
        self.write("parts/latest", b"step-%d" % (steps - 3))
        self.train("parts", *more, "--checkpoint-every", str(steps - 3),
                   "--resume", **which)
        self.assertEqual(
            training.checkpoint(self.path("parts"), 3 * steps, WORKERS),
            training.checkpoint(self.path("out"), 3 * steps, WORKERS))

    def test_splits_and_optimisers_run(self):
        for more in (("--split", "fixed"), ("--split", "sorted"),
                     ("--split", "dirichlet:0.5"),
                     ("--split", "dirichlet:0.01,balanced"),
                     ("--nesterov", "no"),
                     ("--momentum-kind", "quasi-global"),
                     ("--optimizer", "adam", "--algorithm", "powersgd",
                      "--lr", "0.001"),
                     ("--nesterov", "powersgd", "--algorithm", "powersgd"),
                     ("--schedule", "step", "--milestones", "1"),
                     ("--schedule", "cosine", "--warmup", "0.5"),
                     ("--augment",), ("--weight-decay", "0.001"),
                     ("--clip", "0.5"), ("--limit", "60")):
            with self.subTest(more):
                out = "out" + "".join(more).replace(":", "")
                self.train(out, *more, "--epochs", "1")

    def test_a_damaged_line_of_the_metrics_stops_a_resume(self):
        self.train("out")
        lines = self.read("out/metrics.jsonl").splitlines(keepends=True)
        damaged = lines[0][:40] + b"\n" + lines[1]
        self.write("out/metrics.jsonl", damaged)
        more = ("--epochs", "3", "--resume")
        self.rejected(FAILED, "out/metrics.jsonl: line 1 is damaged",
                     *self.words("out", *more))
        self.assertEqual(self.read("out/metrics.jsonl"), damaged)
        self.write("out/metrics.jsonl", lines[0] + lines[1] + lines[1][:40])
        self.train("out", *more)
        self.assertEqual(
            [r["epoch"] for r in training.metrics(self.path("out"))],
            [1, 2, 3])

    def test_a_run_whose_folder_is_removed_fails(self):
        job = subprocess.Popen(
            [LACONIC, *self.words("out", "--epochs", "100000",
                                  "--checkpoint-every", "5")],
            cwd=self.folder, stderr=subprocess.PIPE, text=True)
        try:
            while not job.stderr.readline().startswith("epoch 1/"):
                self.assertIsNone(job.poll())
            os.rename(self.path("out"), self.path("elsewhere"))
            _, err = job.communicate(timeout=600)
        finally:
            job.kill()
            job.wait()
        self.assertEqual(job.returncode, FAILED)
        self.assertIn("out: the folder of the run is missing", err)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_a_first_checkpoint_that_fails_is_not_called_complete(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        self.rejected(FAILED, "the run ends without a checkpoint",
                     *self.words("out"), preexec_fn=limit,
                     restore_signals=False)

    def test_a_memory_limit_never_crashes_a_run(self):
        with open(LACONIC, "rb") as file:
            code = file.read()
        if b"__asan_init" in code or b"__tsan_init" in code:
            self.skipTest("a sanitizer needs an unlimited address space")
        codes = set()
        for megabytes in (100, 140, 180, 220, 260, 300, 2000):
            size = (megabytes << 20, megabytes << 20)
            done = self.run_laconic(
                *self.words("out-%d" % megabytes, "--epochs", "1"),
                preexec_fn=lambda: resource.setrlimit(
                    resource.RLIMIT_AS, size))
            with self.subTest(megabytes):
                self.assertIn(done.returncode, (GOOD, FAILED), done.stderr)
                if done.returncode == FAILED:
                    self.assertRegex(done.stderr, "memory|room|thread")
            codes.add(done.returncode)
        self.assertEqual(codes, {GOOD, FAILED})


if __name__ == "__main__":
    unittest.main(verbosity=1)
