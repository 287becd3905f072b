# SPDX-License-Identifier: MIT
"""laconic plan --run: a finished run on another network's clock.

usage: test_plan_run.py LACONIC
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
from command import Command, FAILED, GOOD, HANG, LACONIC, USAGE
from training import images, metrics, text

NETWORK = "--bandwidth", "100Mbit", "--latency", "20ms"
SVG = "{http://www.w3.org/2000/svg}"


RUNS = tempfile.TemporaryDirectory()


def train(name, model, data, algorithm, *more):
    subprocess.run(
        [LACONIC, "train", "--model", model, "--data", data, "--data-dir",
         "text" if data == "text" else "images", "--algorithm", algorithm,
         "--workers", "4", "--epochs", "3", "--out", name, *more],
        cwd=RUNS.name, check=True, timeout=HANG, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)


def setUpModule():
    unittest.addModuleCleanup(RUNS.cleanup)
    images(os.path.join(RUNS.name, "images"), 480)
    text(os.path.join(RUNS.name, "text"), 2000)
    train("gossip", "mlp", "mnist", "choco:gamma=0.2", "--compressor", "sign")
    train("sum", "mlp", "mnist", "powersgd:rank=2")
    train("overlap", "mlp", "mnist", "dpsgd", "--overlap")
    train("text", "lstm:hidden=16,layers=1", "text", "allreduce", "--batch",
          "4", "--lr", "1")


class Runs(Command):
    """Runs that were trained once; tests copy and change their files."""

    def path(self, name):
        return os.path.join(RUNS.name, name)

    def planned(self, name, *words, network=NETWORK):
        return json.loads(self.succeeds("plan", "--run", self.path(name),
                                        *network, *words, "--json"))

    def copy(self, manifest=None, lines=None, name="copy"):
        """A folder of the gossip run without its model; `lines` is the text of
        its metrics."""
        os.mkdir(os.path.join(self.folder, name))
        found = {}
        for file_name, given in (("manifest.json", manifest),
                                 ("metrics.jsonl", lines)):
            path = self.path(os.path.join("gossip", file_name))
            with open(path, "rb") as file:
                found[file_name] = file.read() if given is None else given
            self.write(os.path.join(name, file_name), found[file_name])
        return found

    def rejects(self, message):
        done = self.run_laconic("plan", "--run", "copy", *NETWORK)
        self.assertEqual((done.stdout, done.stderr),
                         ("", f"laconic: {message}\n"))
        self.assertEqual(done.returncode, FAILED)


class Clock(Runs):
    def test_epochs_are_those_of_the_run(self):
        found = self.planned("gossip")
        trained = metrics(self.path("gossip"))
        self.assertEqual(len(trained), 3)
        for key in "epoch", "step", "test_accuracy", "payload_bytes":
            self.assertEqual([e[key] for e in found["epochs"]],
                             [t[key] for t in trained])
        self.assertNotIn("test_perplexity", found["epochs"][0])
        for epoch in found["epochs"]:
            self.assertAlmostEqual(epoch["seconds"],
                                   epoch["step"] * found["step_seconds"])
        self.assertEqual(found["seconds"], found["epochs"][-1]["seconds"])

    def test_settings_are_those_of_the_run(self):
        found = self.planned("gossip")
        self.assertEqual(
            {key: found[key] for key in
             ("model", "data", "algorithm", "compressor", "topology",
              "workers", "seed")},
            {"model": "mlp", "data": "mnist", "algorithm": "choco:gamma=0.2",
             "compressor": "sign", "topology": "ring", "workers": 4,
             "seed": 1})
        self.assertEqual(found["network"], {
            "bandwidth_mbit": 100, "latency_seconds": 0.02, "kind": "star",
            "source": None})
        self.assertIsNone(self.planned("sum")["compressor"])

    def test_times_of_computation_are_those_that_were_recorded(self):
        found = self.planned("gossip")
        last = metrics(self.path("gossip"))[-1]
        for key in "compute_seconds", "compress_seconds":
            self.assertAlmostEqual(found[key] * last["step"], last[key])
        self.assertAlmostEqual(
            found["step_seconds"], found["compute_seconds"]
            + found["compress_seconds"] + found["network_seconds"])
        self.assertEqual(found["hidden_seconds"], 0)
        self.assertEqual(found["compress_source"], "recorded by the run")

    def test_a_given_time_replaces_the_recorded_ones(self):
        found = self.planned("gossip", "--step-time", "5s")
        self.assertEqual(found["compute_seconds"], 5)
        self.assertIn("memcpy", found["compress_source"])
        self.assertGreater(found["step_seconds"], 5)
        last = metrics(self.path("gossip"))[-1]
        self.assertNotAlmostEqual(found["compress_seconds"] * last["step"],
                                  last["compress_seconds"])

    def test_the_network_takes_as_long_as_in_a_plan(self):
        for name, algorithm, compressor in (
                ("gossip", "choco", "sign"), ("sum", "powersgd:rank=2", None)):
            for kind in "star", "shared":
                plan = json.loads(self.succeeds(
                    "plan", "--model", "mlp", "--workers", "4", "--step-time",
                    "1s", *NETWORK, "--network", kind, "--json"))
                expected, = [c["network_seconds"] for c in plan["candidates"]
                             if c["algorithm"] == algorithm
                             and c["compressor"] == compressor]
                found = self.planned(name, "--network", kind)
                self.assertAlmostEqual(found["network_seconds"], expected)

    def test_a_run_with_overlap_hides_its_exchanges(self):
        # 2 x 1.6 MB and 1 ms.
        network = "--bandwidth", "1Gbit", "--latency", "1ms"
        found = self.planned("overlap", "--step-time", "10s", network=network)
        self.assertGreater(found["network_seconds"], 0.025)
        self.assertAlmostEqual(found["hidden_seconds"],
                               found["network_seconds"])
        self.assertAlmostEqual(found["step_seconds"],
                               10 + found["compress_seconds"])
        found = self.planned("overlap", "--step-time", "1ms", network=network)
        self.assertAlmostEqual(found["hidden_seconds"], 0.001)

    def test_shapes_that_depend_on_the_data_are_those_of_the_run(self):
        found = self.planned("text")
        # The all-reduce of four workers sends one and a half models each.
        with open(self.path("text/manifest.json"), encoding="utf-8") as file:
            values = json.load(file)["facts"]["parameters"]
        self.assertLess(values, 10000)
        transmission = 1.5 * 4 * values / 12.5e6
        self.assertGreater(found["network_seconds"], transmission)
        self.assertLess(found["network_seconds"], 1.1 * transmission + 0.2)

    def test_a_text_has_a_perplexity(self):
        found = self.planned("text")
        self.assertEqual([e["test_perplexity"] for e in found["epochs"]],
                         [t["test_perplexity"]
                          for t in metrics(self.path("text"))])
        self.assertIn("perplexity\n", self.succeeds(
            "plan", "--run", self.path("text"), *NETWORK))

    def test_a_last_line_that_was_not_written_to_its_end_is_ignored(self):
        lines = self.copy()["metrics.jsonl"]
        self.write("copy/metrics.jsonl", lines[:-20])
        found = json.loads(self.succeeds("plan", "--run", "copy", *NETWORK,
                                         "--json"))
        self.assertEqual([e["epoch"] for e in found["epochs"]], [1, 2])
        self.assertIn("\nThe run has 2 of 3 epochs.\n", self.succeeds(
            "plan", "--run", "copy", *NETWORK))


class Several(Runs):
    NAMES = "gossip", "sum"

    def words(self, *more):
        return [word for name in self.NAMES
                for word in ("--run", self.path(name))] + [*NETWORK, *more]

    def test_runs_are_those_of_single_calls(self):
        found = json.loads(self.succeeds("plan", *self.words("--json")))
        self.assertEqual([run["dir"] for run in found["runs"]],
                         [self.path(name) for name in self.NAMES])
        for name, run in zip(self.NAMES, found["runs"], strict=True):
            single = self.planned(name)
            for key in "epochs", "step_seconds", "seconds", "algorithm":
                self.assertEqual(run[key], single[key])
            self.assertEqual(single["runs"][0]["epochs"], run["epochs"])
        self.assertNotIn("epochs", found)

    def lines(self, *more):
        lines = self.succeeds("plan", *self.words(*more)).split("\n")
        self.assertLessEqual(max(map(len, lines)), 80)
        return lines

    def test_the_table_has_the_time_to_accuracies(self):
        lines = self.lines()
        heading, = [line for line in lines if line.split()[:1] == ["run"]]
        levels = [float(level) for level in re.findall(r"(\S+) %", heading)]
        self.assertTrue(1 <= len(levels) <= 5, levels)
        self.assertEqual(levels, sorted(levels))
        for mark, name in zip("ab", self.NAMES, strict=True):
            row, = [line for line in lines
                    if re.match("%s  %s " % (mark, name), line)]
            cells = re.split("  +", row.strip())[3:-1]
            epochs = self.planned(name)["epochs"]
            for level, cell in zip(levels, cells, strict=True):
                times = [e["seconds"] for e in epochs
                         if 100 * e["test_accuracy"] >= level]
                self.assertEqual(cell == "-", not times, row)
                if times:
                    self.assertAlmostEqual(self.seconds(cell) / times[0], 1, 1)

    @staticmethod
    def seconds(text):
        number, unit = text.split()
        return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60,
                                "h": 3600}[unit]

    def test_the_plot_has_a_mark_for_each_run(self):
        lines = self.lines()
        plot = "\n".join(lines[lines.index("accuracy, %") + 1:])
        for mark in "ab":
            self.assertTrue(1 <= plot.count(mark) <= 3, plot)

    def test_a_goal(self):
        epochs = [self.planned(name)["epochs"] for name in self.NAMES]
        best = max(e["test_accuracy"] for run in epochs for e in run)
        goal = "%.9g%%" % (100 * best)
        found = json.loads(self.succeeds(
            "plan", *self.words("--goal", goal, "--json")))
        self.assertAlmostEqual(found["goal_accuracy"], best)
        for run, tests in zip(found["runs"], epochs, strict=True):
            times = [e["seconds"] for e in tests
                     if e["test_accuracy"] >= best - 1e-12]
            self.assertEqual(run["goal_seconds"], times[0] if times else None)
        self.assertIn("step  %.6g %%" % (100 * best),
                      re.sub("  +", "  ", "\n".join(self.lines(
                          "--goal", goal))))
        self.assertIn("\n1: not reached\n", self.succeeds(
            "plan", "--run", self.path("text"), *NETWORK, "--goal", "1"))

    def test_a_goal_that_is_reached_exactly(self):
        """100 times 0.57 is 56.99999999999999."""
        lines = self.copy()["metrics.jsonl"].decode().splitlines()
        tests = [{**json.loads(line), "test_accuracy": accuracy}
                 for line, accuracy in zip(lines, (0.29, 0.57, 0.58),
                                           strict=True)]
        self.write("copy/metrics.jsonl", "".join(
            json.dumps(test) + "\n" for test in tests).encode())
        for goal, epoch in (("29%", 0), ("57%", 1), ("58%", 2)):
            found = json.loads(self.succeeds(
                "plan", "--run", "copy", *NETWORK, "--goal", goal, "--json"))
            self.assertEqual(found["runs"][0]["goal_seconds"],
                             found["epochs"][epoch]["seconds"])

    def test_a_folder_counts_once(self):
        found = json.loads(self.succeeds("plan", *self.words(), *self.words(
            "--json")))
        self.assertEqual(len(found["runs"]), 2)

    def test_a_perplexity_is_a_goal(self):
        epochs = self.planned("text")["epochs"]
        found = self.planned(
            "text", "--goal", "%.9g" % (epochs[0]["test_perplexity"] + 1))
        self.assertEqual(found["runs"][0]["goal_seconds"],
                         epochs[0]["seconds"])

    def test_goals_that_are_none(self):
        for goal in "90", "0%", "101%", "-1%", "%", "x", "nan%", "90%%":
            self.fails(FAILED, f'--goal is "{goal}", expected an accuracy up '
                       "to 100%, such as 90%", "plan",
                       *self.words("--goal", goal))
        self.fails(FAILED, '--goal is "90%", expected a perplexity, such as '
                   "120: the runs are of a text", "plan", "--run",
                   self.path("text"), *NETWORK, "--goal", "90%")
        self.fails(USAGE, "plan: --goal was given without --run, expected "
                   "finished runs: accuracy is not predicted", "plan",
                   "--model", "mlp", "--step-time", "1s", *NETWORK, "--goal",
                   "90%")

    def test_runs_of_other_data_are_refused(self):
        self.fails(FAILED, "%s: was trained on text, expected mnist as %s" % (
            self.path("text"), self.path("gossip")), "plan", "--run",
            self.path("gossip"), "--run", self.path("text"), *NETWORK)

    def test_the_picture_has_a_curve_for_each(self):
        self.succeeds("plan", *self.words("--svg", "plot.svg"))
        root = xml.etree.ElementTree.fromstring(self.read("plot.svg"))
        paths = list(root.iter(SVG + "path"))
        self.assertEqual(len({path.get("stroke") for path in paths}), 2)
        texts = [text.text for text in root.iter(SVG + "text")]
        self.assertIn("2 runs on mnist, 100 Mbit/s, 20.0 ms", texts)
        self.assertLessEqual(set(self.NAMES), set(texts))

    def test_many_curves_differ_and_a_failed_run_does_not_flatten_them(self):
        names = ["run-%02d" % i for i in range(20)]
        for i, name in enumerate(names):
            last = 0.1 if i == 19 else 0.9 + i / 1000
            tests = [{**json.loads(line), "test_accuracy": accuracy}
                     for line, accuracy in zip(
                         self.copy(name=name)["metrics.jsonl"].splitlines(),
                         (0.75, 0.85, last), strict=True)]
            self.write(name + "/metrics.jsonl",
                       "".join(json.dumps(t) + "\n" for t in tests).encode())
        self.succeeds("plan", *(word for name in names
                                for word in ("--run", name)),
                      *NETWORK, "--svg", "plot.svg")
        root = xml.etree.ElementTree.fromstring(self.read("plot.svg"))
        curves = [(path.get("stroke"), path.get("stroke-dasharray"))
                  for path in root.iter(SVG + "path")]
        self.assertEqual((len(curves), len(set(curves))), (20, 20))
        texts = [text.text for text in root.iter(SVG + "text")]
        self.assertIn("75.00", texts)
        self.assertIn("run-19, beyond the axis down to 10", texts)
        self.assertIn("run-18", texts)
        self.assertEqual(len(list(root.iter(SVG + "polygon"))), 1)
        self.assertEqual(len(list(root.iter(SVG + "circle"))), 59)
        keys = [(line.get("stroke"), line.get("stroke-dasharray"))
                for line in root.iter(SVG + "line")
                if line.get("stroke-width") == "2"]
        self.assertEqual(keys, curves)

    def test_a_report_shows_each(self):
        self.write("plan.json", self.succeeds(
            "plan", *self.words("--json")).encode())
        self.succeeds("report", "plan.json", "--out", "r.html")
        page = self.read("r.html").decode()
        self.assertIn("On other networks", page)
        for name in self.NAMES:
            self.assertIn(self.path(name), page)

    def test_too_many_runs(self):
        self.fails(USAGE, "--run is given more than 26 times", "plan",
                   *["--run", "x"] * 27, *NETWORK)


class Output(Runs):
    def test_the_table_and_the_plot_fit_a_terminal(self):
        lines = self.succeeds("plan", "--run", self.path("gossip"),
                              *NETWORK).split("\n")
        self.assertLessEqual(max(map(len, lines[1:])), 80)
        table = lines.index("epoch  seconds  accuracy     sent")
        self.assertEqual([line.split()[0]
                          for line in lines[table + 1:table + 4]],
                         ["1", "2", "3"])
        plot = lines[lines.index("accuracy, %") + 1:]
        self.assertEqual(sum(line.count("*") for line in plot), 3)
        # The last epoch is at the right end.
        self.assertEqual(max(map(len, plot)), 79)
        self.assertTrue(any(line.endswith("*") and len(line) == 79
                            for line in plot))

    def test_a_picture_has_a_point_for_each_epoch(self):
        self.succeeds("plan", "--run", self.path("gossip"), *NETWORK, "--svg",
                      "plot.svg")
        root = xml.etree.ElementTree.fromstring(self.read("plot.svg"))
        points = [float(c.get("cx")) for c in root.iter(SVG + "circle")]
        self.assertEqual(len(points), 3)
        # Steps are equally far apart, and so is time.
        self.assertGreater(points[1] - points[0], 100)
        self.assertAlmostEqual(points[2] - points[1], points[1] - points[0],
                               delta=0.2)

    def test_an_epoch_that_was_not_tested_is_shown_as_such(self):
        lines = self.copy()["metrics.jsonl"].decode().split("\n")
        first = json.loads(lines[0])
        first["test_accuracy"] = None
        self.write("copy/metrics.jsonl",
                   "\n".join([json.dumps(first)] + lines[1:]).encode())
        words = "plan", "--run", "copy", *NETWORK
        self.assertRegex(self.succeeds(*words), r"(?m)^ +1 +\S+ +- ")
        found = json.loads(self.succeeds(*words, "--json"))
        self.assertIsNone(found["epochs"][0]["test_accuracy"])

    def test_a_single_epoch_needs_no_plot(self):
        lines = self.copy()["metrics.jsonl"].split(b"\n")
        self.write("copy/metrics.jsonl", lines[0] + b"\n")
        self.assertNotIn("accuracy, %", self.succeeds(
            "plan", "--run", "copy", *NETWORK))


class Rejected(Runs):
    def test_a_folder_without_a_run(self):
        self.fails(FAILED, "nowhere: is no folder, expected that of a run of "
                   "`laconic train`", "plan", "--run", "nowhere", *NETWORK)
        os.mkdir(os.path.join(self.folder, "copy"))
        self.rejects("copy/manifest.json: is missing or no file, expected the "
                     "folder of a run of `laconic train`")

    def test_a_manifest_that_is_not_one(self):
        good = json.loads(self.copy()["manifest.json"])
        message = ("copy/manifest.json: is not the manifest of a run, expected "
                   "a JSON object with the settings and facts of `laconic "
                   "train`")
        bad = [b"", b"[]", b"{", b"\0", json.dumps(good).encode()[:-300],
               b"[" * 100000]
        for group, key, value in (
                ("settings", "workers", "0"), ("settings", "workers", "-4"),
                ("settings", "workers", "99999999999999999999999"),
                ("settings", "workers", 4.5), ("settings", "workers", [4]),
                ("settings", "workers", 0), ("settings", "algorithm", None),
                ("settings", "seed", ""), ("facts", "parameters", "many")):
            changed = json.loads(json.dumps(good))
            changed[group][key] = value
            bad.append(json.dumps(changed).encode())
        for content in bad:
            self.write("copy/manifest.json", content)
            self.rejects(message)

    def test_settings_that_the_library_refuses(self):
        good = json.loads(self.copy()["manifest.json"])
        for key, value in (("algorithm", "chaco"), ("compressor", "nosuch"),
                           ("topology", "rings"), ("model", "mlp2")):
            changed = json.loads(json.dumps(good))
            changed["settings"][key] = value
            self.write("copy/manifest.json", json.dumps(changed).encode())
            done = self.run_laconic("plan", "--run", "copy", *NETWORK)
            self.assertEqual((done.stdout, done.returncode), ("", FAILED))
            self.assertIn(f'"{value}"', done.stderr)

    def test_damaged_metrics(self):
        lines = self.copy()["metrics.jsonl"].split(b"\n")
        later = lines[1].replace(b'"step":', b'"step":9')
        for damaged, line, byte in (
                ([lines[0], b"{", lines[2]], 2, 1),
                ([b"\xff\0", lines[1]], 1, 1), ([b"[]"], 1, 1),
                ([lines[0], b"", lines[1]], 2, 1),
                ([lines[0] + b"}"], 1, len(lines[0]) + 1)):
            self.write("copy/metrics.jsonl", b"\n".join(damaged) + b"\n")
            self.rejects(f"copy/metrics.jsonl: line {line} is damaged at byte "
                         f"{byte}, expected a JSON object")
        later = lines[1].replace(b'"step":', b'"step":9')
        for damaged, key in (
                ([lines[1], lines[0]], "epoch"), ([lines[0]] * 2, "epoch"),
                ([later, lines[2]], "step")):
            self.write("copy/metrics.jsonl", b"\n".join(damaged) + b"\n")
            before, found = (json.loads(line)[key] for line in damaged)
            whole = "whole " if key == "step" else ""
            self.rejects(f"copy/metrics.jsonl: line 2: {key} is {found}, "
                         f"expected a {whole}number above {before}")

    def test_a_run_without_an_epoch(self):
        lines = self.copy()["metrics.jsonl"].split(b"\n")
        for begun in b"", lines[0][:50]:
            self.write("copy/metrics.jsonl", begun)
            self.rejects("copy/metrics.jsonl: has no epoch yet, expected a "
                         "line for each")
        os.remove(os.path.join(self.folder, "copy/metrics.jsonl"))
        self.rejects("copy/metrics.jsonl: has no epoch yet, expected a line "
                     "for each")
        os.mkfifo(os.path.join(self.folder, "copy/metrics.jsonl"))
        self.rejects("copy/metrics.jsonl: is missing or no file, expected the "
                     "folder of a run of `laconic train`")

    def test_metrics_without_times(self):
        lines = self.copy()["metrics.jsonl"]
        self.write("copy/metrics.jsonl",
                   lines.replace(b"compute_seconds", b"seconds"))
        self.rejects("copy: its metrics have no time of computation, expected "
                     "compute_seconds above 0; name it with --step-time")
        done = self.run_laconic("plan", "--run", "copy", *NETWORK,
                                "--step-time", "1s")
        self.assertEqual((done.stderr, done.returncode), ("", GOOD))

    def test_first_steps_that_were_not_compressed(self):
        good = json.loads(self.copy()["manifest.json"])
        for spec in ("powersgd:start-iteration=9",
                     "powersgd:start_powerSGD_iter=1"):
            good["settings"]["algorithm"] = spec
            self.write("copy/manifest.json", json.dumps(good).encode())
            self.rejects(f"copy: its first steps were not compressed ({spec}), "
                         "expected steps that all send the same")

    def test_a_model_of_other_shapes_than_the_manifest_has(self):
        changed = json.loads(self.copy()["manifest.json"])
        changed["facts"]["parameters"] = 1234
        self.write("copy/manifest.json", json.dumps(changed).encode())
        self.rejects("copy/model.safetensors: is missing or no file, expected "
                     "the folder of a run of `laconic train`")
        with open(self.path("gossip/model.safetensors"), "rb") as file:
            model = file.read()
        self.write("copy/model.safetensors", model)
        self.rejects("copy/model.safetensors: its tensors are not the 1234 "
                     "parameters of the manifest")
        self.write("copy/model.safetensors", model[:-1])
        done = self.run_laconic("plan", "--run", "copy", *NETWORK)
        self.assertEqual((done.stdout, done.returncode), ("", FAILED))
        self.assertIn("copy/model.safetensors: ", done.stderr)

    def test_options_that_contradict_a_run(self):
        for words in (("--model", "mlp"), ("--layout", "x"),
                      ("--workers", "4"), ("--overlap",), ("--gradients",),
                      ("--measured-step", "1s"), ("--map",), ("--probe",)):
            self.fails(USAGE, f"plan: --run and {words[0]} were given, "
                       "expected one", "plan", "--run", "x", *NETWORK, *words)

    def test_a_run_needs_a_network(self):
        self.fails(USAGE, "plan: --bandwidth RATE is missing, such as 1Gbit",
                   "plan", "--run", "x", "--latency", "1ms")
        done = self.run_laconic("plan", "--run", "x", "--bandwidth", "1Gbit")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("--latency", done.stderr)

    def test_a_picture_that_cannot_be_written(self):
        done = self.run_laconic("plan", "--run", self.path("gossip"), *NETWORK,
                                "--svg", "nowhere/plot.svg")
        self.assertEqual((done.stdout, done.returncode), ("", FAILED))
        self.assertIn("nowhere/plot.svg", done.stderr)


if __name__ == "__main__":
    unittest.main()
