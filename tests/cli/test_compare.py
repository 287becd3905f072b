# SPDX-License-Identifier: MIT
"""laconic compare: a table of runs against a baseline.

usage: test_compare.py LACONIC
"""
import json
import os
import statistics
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from command import FAILED, HANG, LACONIC, USAGE
from runs import Runs, epoch, finished
from training import images, metrics

PROMISED = ("dir", "model", "data", "algorithm", "compressor", "workers",
            "seed", "test_accuracy", "averaged_accuracy", "test_perplexity",
            "payload_bytes",
            "times_fewer", "seconds")


class Comparison(Runs):
    def compared(self, *words):
        return json.loads(self.succeeds("compare", *words, "--json"))

    def table(self, *words):
        """The cells of the lines up to the first empty one after the title."""
        return self.tables(*words)[0]

    def tables(self, *words):
        """The tables of numbers, one for each group."""
        lines = self.succeeds("compare", *words).split("\n")
        self.assertLessEqual(max(map(len, lines)), 80)
        starts = [i for i, line in enumerate(lines)
                  if line.startswith("run ") and line.endswith(" time")]
        return [[line.split() for line in lines[i:lines.index("", i)]]
                for i in starts]

    def three_runs(self):
        """A baseline, one that sends 10 times less, and one 4 times less."""
        self.run_of("sum", [epoch(1, 0.5), epoch(2, 0.8, 0.5)], epochs="2")
        self.run_of("few", [epoch(1, 0.4, payload=100),
                            epoch(2, 0.75, 0.75, payload=100)], epochs="2",
                    algorithm="choco:gamma=0.2", compressor="sign")
        self.run_of("less", [epoch(1, 0.4, payload=250),
                             epoch(2, 0.7, payload=250)], epochs="2",
                    algorithm="powersgd:rank=2", lr="0.05")


class Values(Comparison):
    def test_json_has_the_promised_keys(self):
        self.three_runs()
        runs = self.compared("sum", "few", "less")["runs"]
        for run in runs:
            self.assertLessEqual(set(PROMISED), set(run))
        self.assertEqual([run["dir"] for run in runs], ["sum", "few", "less"])
        self.assertEqual([run["compressor"] for run in runs],
                         [None, "sign", None])
        self.assertEqual([run["test_perplexity"] for run in runs], [None] * 3)

    def test_numbers_are_those_of_the_last_epoch(self):
        self.three_runs()
        few = self.compared("sum", "few")["runs"][1]
        self.assertEqual(
            (few["test_accuracy"], few["test_loss"], few["payload_bytes"],
             few["times_fewer"], few["seconds"]), (0.75, 0.75, 200, 10, 14))

    def test_the_baseline_is_the_first_run_without_compression(self):
        self.three_runs()
        self.run_of("gossip", [epoch(1)], algorithm="dpsgd:momentum=auto")
        self.run_of("naive", [epoch(1)], algorithm="dpsgd", compressor="sign")
        for words, baseline in (
                (("few", "less", "sum"), "sum"),
                (("few", "gossip", "sum"), "gossip"),
                (("less", "few"), "less"), (("naive", "few"), "naive")):
            runs = self.compared(*words)["runs"]
            self.assertEqual({run["baseline"] for run in runs}, {baseline})
            self.assertEqual(runs[0]["dir"], baseline)
            others = [word for word in words if word != baseline]
            self.assertEqual([run["dir"] for run in runs[1:]], others)
            self.assertIn("\nfewer: times fewer bytes than %s\n" % baseline,
                          self.succeeds("compare", *words))

    def test_a_run_without_an_epoch_is_no_baseline(self):
        self.three_runs()
        self.run_of("begun", [])
        runs = self.compared("begun", "few", "sum")["runs"]
        self.assertEqual({run["baseline"] for run in runs}, {"sum"})

    def test_a_folder_of_several_groups_is_the_baseline_of_each(self):
        for name, model in (("a", "mlp"), ("b", "lenet"), ("c", "mlp")):
            self.run_of("named/" + name, [epoch(1)], model=model, lr=name,
                        algorithm="choco", compressor="sign")
        for model in "mlp", "lenet":
            self.run_of(model, [epoch(1)], model=model)
        runs = self.compared("mlp", "lenet", "--baseline", "named")["runs"]
        self.assertEqual({(run["model"], run["baseline"]) for run in runs},
                         {("mlp", "named/a"), ("lenet", "named/b")})

    def test_models_and_data_have_groups_with_a_baseline_each(self):
        self.three_runs()
        for name, payload, words in (
                ("small", 10, {"algorithm": "powersgd:rank=2"}),
                ("exact", 80, {}), ("other", 7, {"data": "cifar-10"})):
            self.run_of(name, [epoch(1, payload=payload)], epochs="1",
                        **{"model": "lenet", **words})
        words = "few", "small", "sum", "other", "exact"
        found = self.compared(*words)
        self.assertEqual(
            [(run["dir"], run["baseline"], run["times_fewer"])
             for run in found["runs"]],
            [("sum", "sum", 1), ("few", "sum", 10), ("exact", "exact", 1),
             ("small", "exact", 8), ("other", "other", 1)])
        self.assertEqual(found["differing"],
                         ["model", "data", "algorithm", "compressor"])
        self.assertEqual([[row[0] for row in table]
                          for table in self.tables(*words)],
                         [["run", "sum", "few"], ["run", "exact", "small"],
                          ["run", "other"]])
        text = self.succeeds("compare", *words)
        self.assertTrue(text.startswith(
            "3 groups of runs, of different models or data\n\n"
            "mlp on mnist, 4 workers, 2 epochs\n"), text)
        self.assertIn("\nlenet on cifar-10, 4 workers, allreduce, 1 epoch\n",
                      text)
        # A baseline that is named counts in its own group.
        found = self.compared(*words, "--baseline", "small")
        self.assertEqual(
            [(run["dir"], run["baseline"]) for run in found["runs"]],
            [("small", "small"), ("exact", "small"), ("sum", "sum"),
             ("few", "sum"), ("other", "other")])

    def test_what_is_no_run_is_skipped(self):
        self.three_runs()
        self.write("page.html", b"<html>")
        os.mkdir(os.path.join(self.folder, "folder"))
        done = self.run_laconic("compare", "few", "folder", "page.html", "sum",
                                "--json")
        self.assertEqual(done.returncode, 0)
        self.assertEqual([run["dir"] for run in json.loads(done.stdout)["runs"]],
                         ["sum", "few"])
        self.assertEqual(
            done.stderr,
            "laconic: folder is no run of `laconic train`, skipped\n"
            "laconic: page.html is no run of `laconic train`, skipped\n")
        done = self.run_laconic("compare", "folder", "page.html")
        self.assertEqual(
            (done.returncode, done.stderr.split("\n")[-2]), (
                FAILED, "laconic: none of the 2 arguments is a run of `laconic "
                "train`"))

    def test_the_baseline_is_the_run_that_is_named(self):
        self.three_runs()
        runs = self.compared("sum", "few", "less", "--baseline", "less")["runs"]
        self.assertEqual([run["dir"] for run in runs], ["less", "sum", "few"])
        self.assertEqual([run["times_fewer"] for run in runs], [1, 0.25, 2.5])
        runs = self.compared("few", "--baseline", "./sum/")["runs"]
        self.assertEqual([run["times_fewer"] for run in runs], [1, 10])

    def test_a_folder_counts_once(self):
        self.three_runs()
        runs = self.compared("sum", "few", "sum/", "./few")["runs"]
        self.assertEqual([run["dir"] for run in runs], ["sum", "few"])

    def test_models_of_other_sizes_have_no_times_fewer(self):
        self.run_of("a", [epoch(1)])
        self.run_of("b", [epoch(1, payload=10)])
        other = self.read("b/manifest.json").replace(b"1000", b"2000")
        self.write("b/manifest.json", other)
        found = self.compared("a", "b")
        for kind in "runs", "rows":
            self.assertEqual([one["times_fewer"] for one in found[kind]],
                             [1, None])
        self.assertEqual(self.table("a", "b")[2][-3:], ["-", "7.00", "s"])

    def test_numbers_are_those_of_the_whole_test_set(self):
        sample = epoch(1, 0.5, 1.0, test_examples=1000, worst_accuracy=0.4)
        self.run_of("a", [finished(
            sample, final_accuracy=0.6, final_averaged_accuracy=0.7,
            final_worst_accuracy=0.45, final_loss=0.9)], epochs="1")
        run, = self.compared("a")["runs"]
        self.assertEqual(
            (run["test_accuracy"], run["averaged_accuracy"],
             run["worst_accuracy"], run["test_loss"], run["test_examples"],
             run["sampled"]), (0.6, 0.7, 0.45, 0.9, 10000, False))
        self.assertAlmostEqual(run["standard_error"], (0.6 * 0.4 / 1e4) ** 0.5)
        self.assertEqual(self.table("a")[1][:4],
                         ["a", "60.00", "70.00", "0.9000"])

    def test_a_sample_is_marked(self):
        """Of a run that has stopped, or of an older version."""
        self.run_of("whole", [epoch(i) for i in (1, 2, 3)])
        self.run_of("stopped", [epoch(1, 0.9, test_examples=100)], lr="1")
        self.run_of("old", [epoch(1, 0.5)], lr="2")
        run = self.compared("whole", "stopped")["runs"][1]
        self.assertEqual((run["test_accuracy"], run["averaged_accuracy"],
                          run["test_examples"], run["sampled"]),
                         (0.9, 0.9, 100, True))
        self.assertAlmostEqual(run["standard_error"], 0.03)
        words = "whole", "stopped", "old"
        self.assertEqual([row[2:5] for row in self.table(*words)[1:]],
                         [["50.00", "50.00", "1.0000"],
                          ["~90.00", "~90.00", "~1.0000"],
                          ["~50.00", "~50.00", "~1.0000"]])
        text = self.succeeds("compare", *words)
        self.assertIn("\n~ stopped: accuracy on a sample of 100 examples, with a "
                      "standard error of 3.00\npoints\n~ old: accuracy on a "
                      "sample of unknown size\n",
                      text)
        self.assertNotIn("~ whole", text)

    def test_the_averaged_model_is_that_of_evaluate(self):
        images(os.path.join(self.folder, "images"), 240)
        for name, words in (("exact", ["dpsgd"]),
                            ("choco", ["choco:gamma=0.2", "--compressor",
                                       "sign"]),
                            ("gossip", ["powergossip"]),
                            ("power", ["powersgd:rank=1"])):
            subprocess.run(
                [LACONIC, "train", "--model", "logistic", "--data", "mnist",
                 "--data-dir", "images", "--workers", "4", "--epochs", "1",
                 "--batch", "5", "--test-limit", "7", "--out", name,
                 "--algorithm", *words], cwd=self.folder, check=True,
                timeout=HANG, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
        for run in self.compared("exact", "choco", "gossip", "power")["runs"]:
            model = json.loads(self.succeeds(
                "evaluate", run["dir"] + "/model.safetensors", "--data-dir",
                "images", "--json"))
            self.assertEqual(run["averaged_accuracy"], model["test_accuracy"])
            self.assertEqual(run["test_examples"], model["test_examples"])
            last = metrics(os.path.join(self.folder, run["dir"]))[-1]
            self.assertEqual(last["test_examples"], 7)

    def test_the_time_includes_tests_or_is_the_recorded_one(self):
        self.run_of("a", [epoch(1, test_seconds=0.5)], epochs="1")
        self.run_of("b", [epoch(1, test_seconds=0.5, seconds=3)], epochs="1")
        runs = self.compared("a", "b")["runs"]
        self.assertEqual([run["seconds"] for run in runs], [7.5, 3])

    def test_trained_runs(self):
        images(os.path.join(self.folder, "images"), 240)
        subprocess.run(
            [LACONIC, "train", "--model", "logistic", "--data", "mnist",
             "--data-dir", "images", "--algorithm", "choco:gamma=0.2",
             "--compressor", "sign", "--workers", "2", "--epochs", "2",
             "--seeds", "3,4", "--out", "run"],
            cwd=self.folder, check=True, timeout=HANG,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = self.compared("run")
        self.assertEqual(len(found["rows"]), 1)
        for run, seed in zip(found["runs"], (3, 4), strict=True):
            self.assertEqual((run["dir"], run["workers"], run["seed"],
                              run["epoch"]), ("run/seed-%d" % seed, 2, seed, 2))
            last = metrics(os.path.join(self.folder, run["dir"]))[-1]
            for key, recorded in (
                    ("test_accuracy", "final_accuracy"),
                    ("averaged_accuracy", "final_averaged_accuracy"),
                    ("test_loss", "final_loss"),
                    ("payload_bytes", "payload_bytes")):
                self.assertEqual(run[key], last[recorded])
        self.assertEqual(len(self.table("run")), 2)


class Seeds(Comparison):
    ACCURACIES = 0.5, 0.625, 0.9

    def seeds(self, parent=""):
        for seed, accuracy in enumerate(self.ACCURACIES, 8):
            self.run_of("%sseed-%d" % (parent, seed), [epoch(1, accuracy)],
                        epochs="1", seed=str(seed), out="seed-%d" % seed)

    def test_runs_that_differ_only_by_seed_are_one_row(self):
        self.seeds()
        found = self.compared("seed-8", "seed-9", "seed-10")
        self.assertEqual([run["seed"] for run in found["runs"]], [8, 9, 10])
        row, = found["rows"]
        self.assertEqual(row["seeds"], [8, 9, 10])
        self.assertAlmostEqual(row["test_accuracy"]["mean"],
                               statistics.mean(self.ACCURACIES))
        self.assertAlmostEqual(row["test_accuracy"]["spread"],
                               statistics.stdev(self.ACCURACIES))
        table = self.table("seed-8", "seed-9", "seed-10")
        self.assertEqual(table[1][:3], ["seed-*", "(3)", "67.5+-20.5"])

    def test_seeds_of_a_folder_stay_together(self):
        self.run_of("one", [epoch(1)], seed="8", epochs="1")
        self.run_of("two", [epoch(1)], seed="9", epochs="1")
        self.seeds("all/")
        self.seeds("other/")
        rows = self.compared("one", "all", "other", "two")["rows"]
        self.assertEqual([(row["name"], row["seeds"]) for row in rows], [
            ("allreduce (2)", [8, 9]), ("all/seed-* (3)", [8, 9, 10]),
            ("other/seed-* (3)", [8, 9, 10])])

    def test_a_folder_of_runs_is_its_runs_in_the_order_of_names(self):
        self.seeds("all/b/")
        self.run_of("all/a", [epoch(1)], epochs="1", lr="2")
        self.write("all/page.html", b"")
        os.mkdir(os.path.join(self.folder, "all", "empty"))
        found = self.compared("all")
        self.assertEqual([run["dir"] for run in found["runs"]],
                         ["all/a"] + ["all/b/seed-%d" % n for n in (8, 9, 10)])

    def test_a_folder_of_seeds_is_its_runs_in_the_order_of_seeds(self):
        self.seeds("all/")
        self.run_of("sum", [epoch(1, payload=4000)], epochs="1", lr="0.5")
        found = self.compared("sum", "all/")
        self.assertEqual([run["dir"] for run in found["runs"]],
                         ["sum", "all/seed-8", "all/seed-9", "all/seed-10"])
        self.assertEqual([row["times_fewer"] for row in found["rows"]], [1, 4])
        self.assertEqual([row["name"] for row in found["rows"]],
                         ["sum", "all/seed-* (3)"])

    def test_other_differences_make_other_rows(self):
        self.run_of("a", [epoch(1)], seed="1")
        self.run_of("b", [epoch(1)], seed="2", batch="64")
        self.run_of("c", [epoch(1)], seed="1")          # the same seed
        self.run_of("d", [epoch(1), epoch(2)], seed="3")  # another epoch
        self.run_of("e", [epoch(1)], seed="4")
        rows = self.compared("a", "b", "c", "d", "e")["rows"]
        self.assertEqual([row["dirs"] for row in rows],
                         [["a", "e"], ["b"], ["c"], ["d"]])
        self.assertIsNone(rows[1]["test_accuracy"]["spread"])

    def test_where_a_run_is_stored_is_no_difference(self):
        self.run_of("a", [epoch(1)], out="a", data_dir="x", timeout="60")
        self.run_of("b", [epoch(1)], out="b", data_dir="y", timeout="9",
                    seed="2", resume="yes")
        found = self.compared("a", "b")
        self.assertEqual((len(found["rows"]), found["differing"]), (1, []))


class Settings(Comparison):
    def test_what_differs_is_named(self):
        self.three_runs()
        self.assertEqual(self.compared("sum", "few", "less")["differing"],
                         ["algorithm", "compressor", "lr"])
        text = self.succeeds("compare", "sum", "few", "less")
        self.assertIn("mlp on mnist, 4 workers, 2 epochs\n", text)
        self.assertIn("\nsum   allreduce lr=0.1\n"
                      "few   choco:gamma=0.2 sign\n"
                      "less  powersgd:rank=2 lr=0.05\n", text)

    def test_rows_have_what_differs_from_the_first(self):
        self.run_of("a", [epoch(1)], algorithm="dpsgd", overlap="yes")
        self.run_of("b", [epoch(1)], algorithm="dpsgd", topology="star")
        self.run_of("c", [epoch(1)], algorithm="dpsgd", overlap="yes",
                    batch="64")
        self.run_of("d", [epoch(1)], algorithm="choco", compressor="sign",
                    overlap=..., batch="64")
        text = self.succeeds("compare", "a", "b", "c", "d")
        self.assertIn("\na    dpsgd topology=ring batch=32 overlap\n"
                      "b    dpsgd topology=star overlap=no\n"
                      "c    dpsgd batch=64\n"
                      "d    choco sign batch=64\n", text)
        # The first has no topology.
        self.run_of("e", [epoch(1)], overlap="yes")
        text = self.succeeds("compare", "e", "a", "b")
        self.assertIn("\ne    allreduce overlap\n"
                      "a    dpsgd topology=ring\n"
                      "b    dpsgd topology=star overlap=no\n", text)

    def test_the_settings_fill_the_line(self):
        for name in "a", "b":
            self.run_of(name, [epoch(1)], **{
                key: name * 9 for key in ("lr", "split", "clip", "batch")})
        lines = self.succeeds("compare", "a", "b").split("\n")
        self.assertIn("a    batch=aaaaaaaaa lr=aaaaaaaaa split=aaaaaaaaa "
                      "clip=aaaaaaaaa", lines)

    def test_numbers_of_newer_manifests_are_those_of_older_ones(self):
        self.run_of("old", [epoch(1)])
        self.run_of("new", [epoch(1, test_examples=10, learned=True)], seed=2,
                    lr=0.1, workers=4, epochs=3, batch=32, overlap=False,
                    compressor=None, test_limit=1000)
        found = self.compared("old", "new")
        self.assertEqual((len(found["rows"]), found["differing"]), (1, []))

    def test_an_allreduce_has_no_topology(self):
        self.run_of("a", [epoch(1)], topology="ring")
        self.run_of("b", [epoch(1)], topology="star", seed="2")
        self.assertEqual(len(self.compared("a", "b")["rows"]), 1)
        self.run_of("c", [epoch(1)], algorithm="dpsgd", topology="ring")
        self.run_of("d", [epoch(1)], algorithm="dpsgd", topology="star")
        self.assertEqual(self.compared("c", "d")["differing"], ["topology"])


class Output(Comparison):
    def test_the_table(self):
        self.three_runs()
        self.assertEqual(self.table("sum", "few", "less"), [
            "run accuracy % averaged loss bytes fewer time".split(),
            "sum 80.00 80.00 0.5000 2.0 kB 1.0 x 14.0 s".split(),
            "few 75.00 75.00 0.7500 200 bytes 10.0 x 14.0 s".split(),
            "less 70.00 70.00 1.0000 500 bytes 4.0 x 14.0 s".split()])
        self.assertIn("\nfewer: times fewer bytes than sum\n",
                      self.succeeds("compare", "sum", "few"))

    def test_a_text_has_a_perplexity(self):
        self.run_of("text", [epoch(1, test_perplexity=12.5,
                                   averaged_perplexity=12)], epochs="1")
        self.assertEqual(self.compared("text")["runs"][0]["test_perplexity"],
                         12.5)
        self.assertEqual(self.table("text")[0][1], "perplexity")
        self.assertEqual(self.table("text")[1][1:3], ["12.50", "12.00"])
        self.run_of("image", [epoch(1, 0.5)], epochs="1", model="lenet")
        text, image = self.tables("text", "image")
        self.assertEqual(text[1][1:3], ["12.50", "12.00"])
        self.assertEqual(image[1][1:3], ["50.00", "50.00"])

    def test_eleven_runs_with_long_names_fit_80_columns(self):
        names = ["a-name-that-is-much-too-long-for-a-terminal-%d-é" % i
                 for i in range(11)]
        for i, name in enumerate(names):
            self.run_of(name, [epoch(1, payload=10 ** i)], lr=str(i),
                        algorithm="choco:gamma=" + "0" * 80 + str(i))
        text = self.succeeds("compare", *names)
        self.assertLessEqual(max(map(len, text.split("\n"))), 80)
        first = [line.split("  ")[0] for line in text.split("\n")[3:14]]
        self.assertEqual(len(set(first)), 11)
        for line in first:
            self.assertRegex(line, r"^a-name.*\.\..*-\d+-é$")

    def test_what_is_not_a_number_is_a_dash(self):
        self.run_of("a", [epoch(1)], epochs="1")
        self.run_of("b", [epoch(1, None, None, 0)], epochs="1")
        self.assertEqual(self.table("a", "b")[2],
                         "b - - - 0 bytes - 7.00 s".split())
        run = self.compared("a", "b")["runs"][1]
        self.assertEqual((run["test_accuracy"], run["times_fewer"]),
                         (None, None))

    def test_extreme_numbers_fit(self):
        for i, loss in enumerate((1e-300, 1e300, 123456.789, 1e-5, 0)):
            self.run_of("run-%d" % i, [epoch(1, min(1, loss), loss, 10 ** 15)],
                        lr=str(i), epochs="1")
        self.run_of("tiny", [epoch(1, 1, 1, 1)], epochs="1", lr="9")
        self.table("tiny", *("run-%d" % i for i in range(5)))

    def test_names_cannot_control_the_terminal(self):
        self.run_of("a\x1b[31mb\n", [epoch(1)], model="m\x1b[0m", lr="\a")
        self.run_of("b", [epoch(1)], model="m\x1b[0m")
        text = self.succeeds("compare", "a\x1b[31mb\n", "b")
        self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f]")
        self.assertIn("\na?[31mb? ", text)

    def test_runs_of_other_lengths_are_noted(self):
        self.run_of("long", [epoch(1), epoch(2), epoch(3)])
        self.run_of("short", [epoch(1)], epochs="1")
        self.assertEqual(self.table("long", "short"), [
            "run epochs accuracy % averaged loss bytes fewer time".split(),
            "long 3 50.00 50.00 1.0000 3.0 kB 1.0 x 21.0 s".split(),
            "short 1 50.00 50.00 1.0000 1.0 kB 3.0 x 7.00 s".split()])
        self.assertIn("\nthe runs have 1 to 3 epochs, 10 to 30 steps; bytes, "
                      "fewer and time are of whole\nruns\n",
                      self.succeeds("compare", "long", "short"))
        self.run_of("batch", [{**epoch(1), "step": 5}], epochs="1", batch="64")
        self.assertIn("\nthe runs have 5 to 10 steps; bytes, fewer and time "
                      "are of whole runs\n",
                      self.succeeds("compare", "short", "batch"))
        self.assertEqual(self.table("short", "batch")[0][1], "accuracy")
        self.run_of("like", [epoch(1)], epochs="1", lr="1")
        self.assertNotIn("the runs have",
                         self.succeeds("compare", "short", "like"))
        self.assertEqual([run["step"] for run in self.compared(
            "long", "batch")["runs"]], [30, 5])

    def test_long_names_have_room_before_epochs(self):
        names = "a-name-of-26-columns-is-0-é", "another-name-0-éééééééééé-1"
        for i, name in enumerate(names, 1):
            for seed in range(1, 3):
                self.run_of(name + "/seed-%d" % seed, [
                    epoch(n, 0.12345, 0.12345 * seed, 10 ** 7)
                    for n in range(1, i + 1)], epochs=str(i), seed=str(seed))
        self.assertEqual(self.table(*names)[0][1], "accuracy")
        self.assertIn("the runs have 1 to 2 epochs",
                      self.succeeds("compare", *names))

    def test_runs_that_go_on_are_noted(self):
        self.run_of("a", [epoch(1), epoch(2)])
        self.run_of("b", [])
        os.remove(os.path.join(self.folder, "b/metrics.jsonl"))
        self.run_of("c", [epoch(i) for i in (1, 2, 3)])
        text = self.succeeds("compare", "a", "b", "c")
        self.assertIn("\na has 2 of 3 epochs\nb has 0 of 3 epochs\n", text)
        self.assertNotIn("c has", text)
        self.assertIsNone(self.compared("b")["runs"][0]["test_accuracy"])

    def test_tests_within_an_epoch(self):
        self.run_of("a", [epoch(1), {**epoch(2), "epoch": 1.5}], seed="7")
        self.run_of("b", [epoch(1), {**epoch(2), "epoch": 1.75}], seed="8")
        found = self.compared("a", "b")
        self.assertEqual([run["epoch"] for run in found["runs"]], [1.5, 1.75])
        self.assertEqual(len(found["rows"]), 2)
        self.assertIn("\na has 1.5 of 3 epochs\n",
                      self.succeeds("compare", "a", "b"))

    def test_large_seeds_are_exact(self):
        self.run_of("a", [epoch(1)], seed=str(2**64 - 1))
        self.run_of("b", [epoch(1)], seed=str(2**64 - 2))
        found = self.compared("a", "b")
        self.assertEqual(found["rows"][0]["seeds"],
                         [str(2**64 - 1), str(2**64 - 2)])

    def test_different_tests_are_noted(self):
        self.run_of("a", [finished(epoch(1), 1000)], epochs="1")
        self.run_of("b", [finished(epoch(1), 500)], epochs="1", lr="1")
        note = "the models were tested with 500 to 1000 examples\n"
        self.assertIn(note, self.succeeds("compare", "a", "b"))
        self.run_of("c", [finished(epoch(1), 1000)], epochs="1", lr="2")
        self.assertNotIn(note, self.succeeds("compare", "a", "c"))


class Rejected(Comparison):
    def test_a_run_is_needed(self):
        self.fails(USAGE, "compare: 0 arguments are given, expected RUN...",
                   "compare")

    def test_a_folder_without_a_run(self):
        self.run_of("a", [epoch(1)])
        self.fails(FAILED, "nowhere: is no folder, expected that of a run of "
                   "`laconic train`", "compare", "a", "nowhere")
        os.mkdir(os.path.join(self.folder, "b"))
        self.fails(FAILED, "b/manifest.json: is missing or no file, expected "
                   "the folder of a run of `laconic train`", "compare", "b")
        self.fails(FAILED, "nowhere: is no folder, expected that of a run of "
                   "`laconic train`", "compare", "a", "--baseline", "nowhere")
        self.assertEqual(self.run_laconic("compare", "x" * 5000).returncode,
                         FAILED)

    def test_damaged_runs(self):
        self.run_of("a", [epoch(1), epoch(2)])
        for text in b"", b"[]", b"\xff", b'{"settings": []}', b"[" * 100000:
            self.write("a/manifest.json", text)
            self.fails(FAILED, "a/manifest.json: is not the manifest of a run, "
                       "expected a JSON object with the settings and facts of "
                       "`laconic train`", "compare", "a")

    def test_numbers_that_no_run_has(self):
        self.run_of("a", [])
        whole, number = "a whole number", "a number"
        for key, value, found, expected in (
                ("step", 10.5, "10.5", whole + " above 10"),
                ("step", 10, "10", whole + " above 10"),
                ("step", "20", "no number", whole + " above 10"),
                ("step", None, "no number", whole + " above 10"),
                ("step", 1e300, "1e+300", whole + " above 10"),
                ("epoch", 1, "1", number + " above 1"),
                ("epoch", -2, "-2", number + " above 1"),
                ("payload_bytes", -1, "-1", whole + " of at least 0"),
                ("payload_bytes", 2000.5, "2000.5", whole + " of at least 0"),
                ("payload_bytes", 999, "999", whole + " of at least 1000"),
                ("payload_bytes", None, "no number", whole +
                 " of at least 1000"),
                ("test_accuracy", 7.3, "7.3", number +
                 " of at least 0 and at most 1"),
                ("averaged_accuracy", -0.1, "-0.1", number +
                 " of at least 0 and at most 1"),
                ("worst_accuracy", "?", "no number", number +
                 " of at least 0 and at most 1"),
                ("train_loss", -0.5, "-0.5", number + " of at least 0"),
                ("test_loss", [], "no number", number + " of at least 0"),
                ("test_examples", 0.5, "0.5", whole + " of at least 0"),
                ("consensus", -1, "-1", number + " of at least 0"),
                ("wait_seconds", -9, "-9", number + " of at least 0")):
            line = json.dumps({**epoch(2), key: value}) + "\n"
            self.damaged("a", json.dumps(epoch(1)) + "\n" + line,
                         "line 2: %s is %s, expected %s"
                         % (key, found, expected))
        for key, expected in (("epoch", number + " above 0"),
                              ("step", whole + " above 0"),
                              ("payload_bytes", whole + " of at least 0")):
            line = epoch(1)
            del line[key]
            self.damaged("a", json.dumps(line) + "\n", "line 1: %s is missing,"
                         " expected %s" % (key, expected))
        # Not JSON, though some programs write it.
        for text in "NaN", "Infinity":
            line = json.dumps(epoch(1)).replace("0.5", text)
            self.damaged("a", line + "\n", "line 1 is damaged at byte %d, "
                         "expected a JSON object" % (line.index(text) + 1))
        self.damaged("a", json.dumps(epoch(1)).replace("0.5", "1e999") + "\n",
                     "line 1: test_accuracy is inf, expected a number of at "
                     "least 0 and at most 1")

    def damaged(self, name, lines, message):
        """All commands that read a run reject these metrics."""
        self.write(name + "/metrics.jsonl", lines.encode())
        message = name + "/metrics.jsonl: " + message
        self.fails(FAILED, message, "compare", name)
        self.fails(FAILED, message, "report", name, "--out", "r.html")
        self.fails(FAILED, message, "plan", "--run", name, "--bandwidth",
                   "1Gbit", "--latency", "1ms")


if __name__ == "__main__":
    unittest.main()
