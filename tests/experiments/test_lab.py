# SPDX-License-Identifier: MIT
"""Tests of experiments/run.py and experiments/lab: run as `test_lab.py`, with
programs that stand in for the command.
"""
import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import xml.etree.ElementTree

EXPERIMENTS = pathlib.Path(__file__).resolve().parents[2] / "experiments"
sys.path.insert(0, str(EXPERIMENTS))
sys.dont_write_bytecode = True
import choco_agreement
import run
from lab import page, plots
from lab.cells import (DIVERGED, DONE, FAILED, REFUSED, STOPPED, Book, Runner,
                       averaged_on_all, cell, thin)
from lab.estimate import Estimate
from lab.tuning import Outcome, Trial
from lab.verdicts import DIFFERS, HOLDS, NOT_MEASURED, Claim, behind

HANG = 60  # seconds after which a program hangs

# Stands in for `laconic`: prints its words, or runs until it is interrupted.
PROGRAM = """#!%s
import json, pathlib, signal, sys, time
words = sys.argv[1:]
if "endless" in words:
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    pathlib.Path(sys.argv[0]).with_name("begun").write_text("")
    # A signal just before a long sleep would be noticed after it.
    for _ in range(%d * 100):
        time.sleep(0.01)
print(json.dumps({"test_accuracy": 0.5, "words": words}))
""" % (sys.executable, HANG)
RATES = ({"lr": 0.01}, {"lr": 0.1}, {"lr": 0.9})


class Imagined(Runner):
    """Invents what the command prints. The accuracy is 0.9 minus the distance
    of the rate from 0.1; a large rate diverges, and some algorithms fail."""

    def run(self, asked):
        folder = self.runs / asked.name
        folder.mkdir(parents=True)
        return self.outcome(asked, folder, *self.answer(asked, folder), 1.0)

    def answer(self, asked, folder):
        """Exit code, stdout and stderr."""
        rate, name = float(asked.get("lr", 0.1)), asked.get("algorithm")
        if name == "unknown":
            return 2, "", "laconic: no algorithm is named \"unknown\""
        if name == "broken":
            return 1, "", "laconic: no memory"
        if rate > 0.5 or (name == "fragile" and rate > 0.05
                          and asked.get("seed") == "2"):
            return 1, "", "laconic: the run diverges: in step 3"
        accuracy = 0.9 - abs(rate - 0.1) + 0.001 * int(asked.get("seed"))
        figures = {"epoch": 1, "payload_bytes": 10,
                   "test_accuracy": accuracy}
        (folder / "metrics.jsonl").write_text(json.dumps(figures) + "\n")
        return 0, json.dumps(figures), ""


def trial(label="a", algorithm="good", **more):
    given = {"variants": RATES, "tuning": {"epochs": 1},
             "final": {"epochs": 2}, **more}
    return Trial(label, {"algorithm": algorithm, "model": "lenet",
                         "data": "fashion-mnist"}, **given)


def experiment(*trials, name="one", claims=()):
    return page.Experiment(name, "A title", "A paper.", ["Settings."],
                           list(trials), list(claims), lambda view: [],
                           lambda view: [plots.Panel("", "x", "y", [])], ())


class Lab(unittest.TestCase):
    """A folder for results, and sessions that print nothing."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.book = Book(self.folder / "results")
        self.runner = Imagined("laconic", self.folder / "runs")
        # run() replaces the handlers of signals.
        for number in (signal.SIGINT, signal.SIGTERM):
            self.addCleanup(signal.signal, number, signal.getsignal(number))

    def session(self, *experiments, jobs=1, budget=None):
        made = run.Session(experiments, self.book, self.runner,
                           types.SimpleNamespace(jobs=jobs, budget=budget))
        with contextlib.redirect_stdout(io.StringIO()):
            made.run()
        return made.counts


class Sessions(Lab):
    def test_the_best_rate_is_chosen_and_finished_with_every_seed(self):
        tuned = trial(seeds=(1, 2))
        counts = self.session(experiment(tuned))
        outcome = Outcome(tuned, self.book)
        self.assertEqual(counts[DONE], 2 + 2)
        self.assertEqual(counts[DIVERGED], 1)
        self.assertEqual(outcome.variant, {"lr": 0.1})
        self.assertEqual(len(outcome.results), 2)
        self.assertEqual({r["settings"]["epochs"] for r in outcome.results},
                         {"2"})
        self.assertAlmostEqual(outcome.mean(), 0.9015)
        self.assertAlmostEqual(outcome.spread(), 0.001 / 2 ** 0.5)

    def test_runs_of_equal_length_are_not_repeated(self):
        tuned = trial(tuning={"epochs": 2})
        counts = self.session(experiment(tuned))
        self.assertEqual(counts[DONE] + counts[DIVERGED], 3)
        self.assertAlmostEqual(Outcome(tuned, self.book).mean(), 0.901)

    def test_a_second_session_runs_nothing(self):
        self.session(experiment(trial()))
        self.book = Book(self.folder / "results")
        self.assertEqual(sum(self.session(experiment(trial())).values()), 0)

    def test_experiments_share_results(self):
        self.session(experiment(trial()))
        counts = self.session(experiment(trial("b"), name="two"))
        self.assertEqual(sum(counts.values()), 0)

    def test_a_rate_is_taken_from_another_trial(self):
        first = trial()
        second = trial("b", variants=({"clip": 1}, {"clip": 2}), like=first)
        self.assertFalse(any(p.known for p in second.planned(self.book)))
        self.session(experiment(first, second))
        outcome = Outcome(second, self.book)
        self.assertEqual(outcome.variant["lr"], 0.1)
        self.assertEqual(len(outcome.results), 1)

    def test_a_trial_is_measured_when_all_seeds_are_there(self):
        self.session(experiment(trial(seeds=(1, 2))))
        outcome = Outcome(trial(seeds=(1, 2, 3)), self.book)
        self.assertEqual(len(outcome.results), 2)
        self.assertFalse(outcome.measured)
        self.assertEqual(outcome.values(), [])

    def test_a_longer_trial_has_the_choice_of_the_short_one(self):
        short = trial(seeds=(1, 2))
        self.session(experiment(short, short.longer(9)))
        results = Outcome(short.longer(9), self.book).results
        self.assertEqual([(r["settings"]["lr"], r["settings"]["epochs"])
                          for r in results], [("0.1", "9")])

    def test_a_trial_whose_rates_all_diverge_has_no_final_run(self):
        lost = trial(variants=({"lr": 0.8}, {"lr": 0.9}))
        self.assertEqual(self.session(experiment(lost))[DIVERGED], 2)
        outcome = Outcome(lost, self.book)
        self.assertTrue(outcome.diverged and outcome.measured)

    def test_a_rate_that_diverges_with_a_seed_is_passed_over(self):
        fragile = trial(algorithm="fragile", seeds=(1, 2))
        counts = self.session(experiment(fragile))
        # Short runs, two final ones of 0.1 and two of the next best rate.
        self.assertEqual((counts[DONE], counts[DIVERGED]), (2 + 1 + 2, 1 + 1))
        outcome = Outcome(fragile, self.book)
        self.assertEqual(outcome.variant, {"lr": 0.01})
        self.assertEqual(len(outcome.values()), 2)
        self.assertEqual(len(fragile.planned(self.book)), 3 + 2 + 2)
        made = experiment(fragile, fragile.longer(9))
        self.session(made)
        results = Outcome(made.trials[1], self.book).results
        self.assertEqual([r["settings"]["lr"] for r in results], ["0.01"])
        page.write(made, self.book, self.folder)
        self.assertIn("diverged: a: lr 0.1.",
                      (self.folder / "one.md").read_text())

    def test_a_trial_whose_rates_all_diverge_with_a_seed_is_lost(self):
        lost = trial(algorithm="fragile", seeds=(1, 2),
                     variants=({"lr": 0.1}, {"lr": 0.2}))
        counts = self.session(experiment(lost))
        self.assertEqual((counts[DONE], counts[DIVERGED]), (2 + 2, 2))
        outcome = Outcome(lost, self.book)
        self.assertTrue(outcome.diverged and outcome.measured)
        self.assertEqual(run.missing([experiment(lost)], self.book), [])

    def test_a_refused_cell_is_not_available_and_leaves_no_result(self):
        refused = trial(algorithm="unknown", variants=({},))
        counts = self.session(experiment(refused))
        self.assertEqual(counts[REFUSED], 1)
        self.assertTrue(Outcome(refused, self.book).refused)
        self.assertFalse(Outcome(refused, self.book).measured)
        self.assertEqual(list(self.folder.glob("results/*")), [])

    def test_a_failure_is_counted_and_leaves_no_result(self):
        counts = self.session(experiment(trial(algorithm="broken")))
        self.assertEqual(counts[FAILED], 3)
        self.assertEqual(list(self.folder.glob("results/*")), [])

    def test_a_result_has_its_origin(self):
        self.session(experiment(trial()))
        names = []
        for line in (self.folder / "results/one.jsonl").open():
            result = json.loads(line)
            names.append(cell(result["command"], **result["settings"]).name)
            self.assertLessEqual({"command", "settings", "outcome", "machine",
                                  "commit", "date", "seconds", "result",
                                  "curve"}, set(result))
        self.assertGreater(len(names), 1)
        self.assertEqual(names, sorted(names))
        self.assertEqual(list(self.folder.glob("runs/*")), [])

    def test_the_averaged_model_is_that_of_the_whole_test_set(self):
        printed = {"averaged_accuracy": 0.5, "final_averaged_accuracy": 0.6,
                   "test_accuracy": 0.4, "final_accuracy": 0.45}
        for limit, expected in ((None, 0.6), ("auto", 0.6), (1000, 0.5)):
            found = averaged_on_all(cell("train", test_limit=limit), printed)
            self.assertEqual((found["averaged_accuracy"],
                              found["test_accuracy"]), (expected, 0.4))

    def test_no_cell_begins_after_the_budget(self):
        self.assertEqual(
            sum(self.session(experiment(trial()), budget=0).values()), 0)

    def test_two_jobs_run_the_same_cells(self):
        self.assertEqual(sum(self.session(
            experiment(trial(seeds=(1, 2, 3))), jobs=2).values()), 3 + 3)


class Processes(Lab):
    """With a program that stands in for the command."""

    def setUp(self):
        super().setUp()
        program = self.folder / "laconic"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.runner = Runner(program, self.folder / "runs")

    def interrupt(self):
        """Interrupt this process once the program writes to the FIFO."""
        (self.folder / "begun").read_text()
        os.kill(os.getpid(), signal.SIGINT)

    def test_an_interrupt_stops_the_session_and_keeps_the_folder(self):
        asked = trial(algorithm="endless", variants=({},))
        os.mkfifo(self.folder / "begun")
        thread = threading.Thread(target=self.interrupt)
        thread.start()
        counts = self.session(experiment(asked, trial("b")))
        thread.join()
        self.assertEqual(counts[STOPPED], 1)
        self.assertEqual(sum(counts.values()), 1)
        self.assertFalse(Outcome(asked, self.book).refused)
        self.assertEqual(len(list(self.folder.glob("runs/*"))), 1)

    def test_data_folders_are_passed_but_no_setting(self):
        (self.folder / "data" / "fashion-mnist").mkdir(parents=True)
        self.runner.data = self.folder / "data"
        asked = trial(variants=({},))
        self.session(experiment(asked))
        result = Outcome(asked, self.book).results[0]
        self.assertIn("--data-dir", result["result"]["words"])
        self.assertIn("--resume", result["result"]["words"])
        self.assertNotIn("data-dir", result["settings"])


class Pages(Lab):
    def test_what_was_read_into_a_page_is_kept(self):
        one = experiment(trial())
        page.write(one, self.book, self.folder)
        path = self.folder / "one.md"
        path.write_text(path.read_text().replace(page.UNREAD, "Two\n\nparts."))
        self.session(one)
        page.write(one, self.book, self.folder)
        text = path.read_text()
        self.assertIn("\nTwo\n\nparts.\n" + page.END, text)
        self.assertIn("4 runs", text)

    def test_verdicts_are_computed(self):
        def judge(view):
            below = behind(view["b"], view["a"])
            return "%.0f" % below, below > 5
        far = trial("b", variants=({"lr": 0.3},))
        one = experiment(trial(), far, claims=[
            Claim("is", "x", judge),
            Claim("is not", "x", lambda view: ("", not judge(view)[1]))])

        def verdicts():
            return [row[3] for row in page.verdict_rows(
                one, page.View(one, self.book))]
        self.assertEqual(verdicts(), [NOT_MEASURED, NOT_MEASURED])
        self.session(one)
        self.assertEqual(verdicts(), [HOLDS, DIFFERS])


class Parts(unittest.TestCase):
    def test_settings_decide_about_the_key(self):
        one = cell("train", lr=0.1, weight_decay=1e-4, augment=True)
        self.assertEqual(one.key, cell("train", augment=True, lr="0.1",
                                       weight_decay=0.0001, limit=None).key)
        self.assertNotEqual(one.key, cell("train", lr=0.2, augment=True,
                                          weight_decay=1e-4).key)
        self.assertEqual(one.words(), ["train", "--augment", "--lr", "0.1",
                                       "--weight-decay", "0.0001"])

    def test_a_long_curve_is_thinned_and_keeps_its_ends(self):
        kept = thin(list(range(5000)))
        self.assertLess(len(kept), 100)
        self.assertEqual((kept[0], kept[1], kept[-1]), (0, 1, 4999))
        self.assertEqual(thin([1, 2]), [1, 2])
        self.assertEqual(thin([]), [])

    def test_a_plot_is_an_svg_whatever_its_points(self):
        for points in ([], [(1, 1)], [(1, 0.0), (2, float("inf"))],
                       [(0.001, 1e-8), (1e6, 1e8)]):
            for log in (False, True):
                text = plots.svg([plots.Panel("a < b", "x", "y", [
                    plots.Series("s & t", points)], log, log)])
                xml.etree.ElementTree.fromstring(text)


class Definitions(unittest.TestCase):
    """All experiments, with invented results for all cells."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.experiments = [run.experiment_of(name) for name in run.NAMES]

    def invent(self, asked):
        """A result that has whatever a page may read."""
        part = int(asked.key, 16) / 16 ** 10
        figures = {"test_accuracy": 0.8 + 0.1 * part,
                   "worst_accuracy": 0.7, "averaged_accuracy": 0.85,
                   "test_perplexity": 90 + part, "test_loss": 4.5,
                   "consensus": 0.1, "train_objective": 0.3,
                   "times_fewer": 1 + 50 * part, "ratio": 3.5,
                   "final_error": 10 * part + 1, "initial_error": 100.0,
                   "payload_bytes": 1e6}
        steps = [1, 10, 100, 300, 1000]
        return {"command": asked.command, "settings": dict(asked.settings),
                "outcome": DIVERGED if part < 0.05 else DONE,
                "machine": {"processor": "any", "processors": 2},
                "commit": "0", "date": "2026-01-01", "seconds": 10.0,
                "result": figures, "curve": {
                    "round": steps, "error": [90, 50, 20, 10, 1],
                    "epoch": steps, "payload_bytes": [1e5 * s for s in steps],
                    "test_accuracy": [0.5] * 5, "averaged_accuracy": [0.6] * 5,
                    "train_objective": [0.5] * 5},
                "differences": [{"epoch": 1, "tensors": {"fc1.weight": {
                    "count": 120, "energy": 2.0, "largest": [1.0, 0.5]}}}]}

    def test_every_verdict_and_page_is_computed(self):
        book = Book(self.folder)
        while run.missing(self.experiments, book):
            for asked, owner in run.missing(self.experiments, book):
                book.results[asked.key] = self.invent(asked)
        run.write_pages(self.experiments, book, self.folder)
        for made in self.experiments:
            rows = list(page.verdict_rows(made, page.View(made, book)))
            self.assertNotIn(NOT_MEASURED, [row[3] for row in rows], made.name)
            xml.etree.ElementTree.parse(self.folder / (made.name + ".svg"))
        index = (self.folder / "README.md").read_text()
        self.assertNotIn(NOT_MEASURED + " |", index)

    def test_pages_without_results_are_written(self):
        run.write_pages(self.experiments, Book(self.folder), self.folder)
        index = (self.folder / "README.md").read_text()
        self.assertNotIn(HOLDS + " |", index)
        self.assertNotIn(DIFFERS + " |", index)

    def test_labels_are_unique_and_fast_names_two(self):
        for made in self.experiments:
            labels = [trial.label for trial in made.trials]
            self.assertEqual(len(labels), len(set(labels)), made.name)
            self.assertEqual(len(set(made.fast) & set(labels)), 2, made.name)

    def test_the_whole_takes_less_than_twelve_hours(self):
        book = Book(self.folder)
        estimate = Estimate(book, [])
        hours = {made.name: sum(map(estimate.seconds,
                                    run.planned([made], book))) / 3600
                 for made in self.experiments}
        self.assertLess(max(hours.values()), 2, hours)
        self.assertLess(sum(hours.values()), 12)


class Recorded(unittest.TestCase):
    """The results and pages of this repository."""

    def test_pages_are_those_of_the_results(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for path in EXPERIMENTS.glob("*.md"):  # they keep their readings
                (folder / path.name).write_text(path.read_text())
            run.write_pages([run.experiment_of(name) for name in run.NAMES],
                            Book(EXPERIMENTS / "results"), folder)
            stale = [path.name for path in sorted(folder.iterdir())
                     if path.read_text()
                     != (EXPERIMENTS / path.name).read_text()]
            self.assertEqual(stale, [], "run.py all --pages writes them")

    def test_the_losses_of_plans_are_those_of_the_results(self):
        subprocess.run(
            [sys.executable, "-B",
             str(EXPERIMENTS.parent / "tools" / "measured_losses.py"),
             "--check"], check=True, timeout=HANG)

    def test_every_claim_has_a_verdict_and_every_page_a_reading(self):
        index = (EXPERIMENTS / "README.md").read_text().splitlines()
        self.assertTrue([line for line in index
                         if line.endswith(HOLDS + " |")])
        self.assertEqual([line for line in index
                          if line.endswith(NOT_MEASURED + " |")], [])
        for name in run.NAMES:
            self.assertNotEqual(page.reading(EXPERIMENTS / (name + ".md")),
                                page.UNREAD, name)

    def test_exact_gossip_has_the_gamma_of_choco(self):
        made = run.experiment_of("choco_agreement")
        view = page.View(made, Book(EXPERIMENTS / "results"))
        for column, gamma in choco_agreement.GAMMAS.items():
            chosen = view[choco_agreement.choco(column)].mean("gamma")
            self.assertAlmostEqual(gamma / chosen, 1, 5, column)


class Command(unittest.TestCase):
    def test_list_prints_cells(self):
        done = subprocess.run(
            [sys.executable, "-B", str(EXPERIMENTS / "run.py"), "convex",
             "--list"], stdout=subprocess.PIPE, text=True, check=True,
            timeout=HANG)
        self.assertIn("  random, D-PSGD\n", done.stdout)
        self.assertRegex(done.stdout, r"\n    \w+ .*train-a9a-logistic")


if __name__ == "__main__":
    unittest.main()
