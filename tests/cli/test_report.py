# SPDX-License-Identifier: MIT
"""laconic report: one HTML page about runs, traces and plans.

usage: test_report.py LACONIC
"""
import base64
import collections
import hashlib
import html.parser
import json
import math
import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
from command import FAILED, GOOD, HANG, LACONIC, USAGE
from runs import HOSTILE, Runs, TRACE, epoch
from training import images, metrics

VOID = {"meta", "input"}


class Page(html.parser.HTMLParser):
    """The elements of a page; every one must be closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.attributes = collections.Counter()
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.attributes.update(name for name, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.attributes.update(name for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append((self.open[-1], data))

    def of(self, tag, **attributes):
        """The attributes of all elements of a kind that have these."""
        return [found for name, found in self.elements if name == tag
                and all(found.get(key) == value
                        for key, value in attributes.items())]

    def text_of(self, tag):
        return [text for found, text in self.texts if found == tag]


class Reports(Runs):
    def report(self, *paths):
        done = self.run_laconic("report", *paths, "--out", "r.html")
        self.assertEqual((done.stderr, done.returncode), ("", GOOD))
        return Page(self.read("r.html").decode())

    def titles(self, page):
        """The titles of points: name, x and y."""
        return [tuple(text.split("\n")) for text in page.text_of("title")
                if text.count("\n") == 2]


class Content(Reports):
    def test_every_point_of_the_metrics_is_on_the_page(self):
        self.two_runs()
        titles = self.titles(self.report("sum", "few"))
        for point in (("sum", "epoch 1", "50.00 %"),
                      ("few", "epoch 2", "79.00 %"),
                      ("few", "20 B", "79.00 %"), ("sum", "14.0 s", "80.00 %"),
                      ("few", "epoch 2", "0.6"), ("few", "epoch 1", "0.25")):
            self.assertIn(point, titles)
        # Accuracy and test loss over three axes, training loss over one,
        # consensus over two.
        self.assertEqual(len(titles), 2 * 2 * (3 + 3 + 1 + 2))

    def test_places_are_proportional_to_values(self):
        self.run_of("a", [epoch(i, 0.1 * i) for i in (1, 2, 3, 4)])
        page = self.report("a")
        points = [(float(c["cx"]), float(c["cy"]))
                  for c in page.of("circle") if "cx" in c][:4]
        for i in 1, 2:
            self.assertAlmostEqual(points[i + 1][0] - points[i][0],
                                   points[1][0] - points[0][0], delta=0.2)
            self.assertAlmostEqual(points[i + 1][1] - points[i][1],
                                   points[1][1] - points[0][1], delta=0.2)
        self.assertGreater(points[1][0], points[0][0])
        self.assertLess(points[1][1], points[0][1])

    def test_the_tables_have_the_results_and_the_differing_settings(self):
        self.two_runs()
        page = self.report("sum", "few")
        cells = page.text_of("td")
        for cell in ("80.00 %", "79.00 %", "2.00 kB", "20 B",
                     "100.0 \u00d7", "14.0 s", "choco:gamma=0.2", "sign"):
            self.assertIn(cell, cells)
        columns = page.text_of("th")
        self.assertIn("algorithm", columns)
        self.assertNotIn("lr", columns)
        self.assertIn("lr", cells)  # among those that are shared
        self.assertNotIn("seed", columns + cells)

    def test_the_best_run_and_that_of_fewest_bytes_stand_out(self):
        self.two_runs()
        self.run_of("worse", [epoch(1, 0.3, payload=1),
                              epoch(2, 0.6, payload=1)], epochs="2", lr="9")
        page = self.report("sum", "few", "worse")
        self.assertEqual(page.text_of("b")[:2], ["80.00 %", "100.0 \u00d7"])
        self.assertEqual(page.text_of("i")[:2], ["sum", "few"])

    def test_the_best_is_not_declared_within_the_noise(self):
        """The spread of seeds, or the standard error of a test."""
        about = "highest accuracy; these differ by no more than their noise"
        for name, accuracies in (("a", (0.80, 0.82)), ("b", (0.79, 0.81)),
                                 ("c", (0.60, 0.62))):
            for seed, accuracy in enumerate(accuracies, 1):
                self.run_of("%s/seed-%d" % (name, seed), [epoch(1, accuracy)],
                            epochs="1", seed=str(seed), lr=name)
        page = self.report("a", "b", "c")
        self.assertEqual((page.text_of("b")[0], page.text_of("span")[3]),
                         ("81.00 %", about))
        self.assertEqual(page.text_of("i")[0], "a/seed-* (2), b/seed-* (2)")
        page = self.report("a", "c")
        self.assertEqual(page.text_of("span")[2], "highest accuracy")
        # 10,000 examples with 81 % have a standard error of 0.39 points.
        for name, accuracy in (("d", 0.81), ("e", 0.8065), ("f", 0.805)):
            self.run_of(name, [epoch(1, accuracy)], epochs="1", lr=name)
        self.assertEqual(self.report("d", "e").text_of("i")[0], "d, e")
        self.assertEqual(self.report("d", "f").text_of("i")[0], "d")

    def test_the_baseline_is_that_of_compare(self):
        self.two_runs()
        ratios = [cell for cell in self.report("few", "sum").text_of("td")
                  if "\u00d7" in cell]
        self.assertEqual(ratios, ["1.0 \u00d7", "100.0 \u00d7"])
        self.succeeds("report", "sum", "few", "--baseline", "few", "--out",
                      "r.html")
        named = self.read("r.html").decode()
        self.assertIn("0.0 \u00d7", named)
        self.assertIn("fewer: times fewer bytes than few", named)

    def test_a_sample_is_marked(self):
        self.run_of("a", [epoch(1, 0.5, test_examples=100)], epochs="2")
        page = self.report("a")
        self.assertEqual(page.text_of("td")[2:5],
                         ["~50.00 %", "~50.00 %", "~1"])
        self.assertIn("~ a: accuracy on a sample of 100 examples, with a standard "
                      "error of 5.00 points", page.text_of("li"))

    def test_what_is_no_run_is_skipped(self):
        self.two_runs()
        self.report("sum", "few")
        self.write("notes.txt", b"hello")
        done = self.run_laconic("report", "sum", "notes.txt", "few", "--out",
                                "other.html")
        self.assertEqual((done.returncode, done.stderr), (
            0, "laconic: notes.txt is no run of `laconic train`, skipped\n"))
        self.write("compared.json", self.succeeds(
            "compare", "sum", "few", "--json").encode())
        done = self.run_laconic("report", "sum", "compared.json", "few",
                                "--out", "other.html")
        self.assertEqual((done.returncode, done.stderr), (
            0, "laconic: compared.json is no run of `laconic train`, "
            "skipped\n"))
        self.assertEqual(self.read("other.html"), self.read("r.html"))
        done = self.run_laconic("report", "notes.txt", "notes.txt", "--out",
                                "x.html")
        self.assertEqual(
            (done.returncode, done.stderr.split("\n")[-2]), (
                FAILED, "laconic: none of the 2 arguments is a run, a trace or "
                "a plan"))

    def test_models_and_data_are_groups_with_a_heading(self):
        self.two_runs()
        self.run_of("other", [epoch(1, 0.9)], epochs="1", data="cifar-10")
        page = self.report("few", "other", "sum")
        self.assertEqual(page.text_of("h1"),
                         ["2 groups of runs, of different models or data"])
        self.assertEqual(
            [text for text in page.text_of("h2") if " on " in text],
            ["mlp on mnist, 4 workers, 2 epochs",
             "mlp on cifar-10, 4 workers, allreduce, 1 epoch"])
        # The best of each group; curves with styles of their own.
        self.assertEqual(page.text_of("i")[::2], ["sum", "sum"])
        self.assertEqual(
            [row["class"] for row in page.of("tr") if "class" in row],
            ["r0", "r1", "r0", "r1", "r2"])
        ids = [element["id"] for element in page.of("h2") if "id" in element]
        self.assertEqual(len(ids), len(set(ids)))

    def test_a_text_has_no_accuracy_in_the_table(self):
        self.run_of("a", [epoch(1, 0.5)], epochs="1")
        self.run_of("b", [epoch(1, 0.25, test_perplexity=12)], epochs="1",
                    data="wikitext-2")
        cells = self.report("a", "b").text_of("td")
        self.assertIn("50.00 %", cells)
        self.assertNotIn("25.00 %", cells)
        self.assertIn("12", cells)

    def test_seeds_are_faint_curves_and_their_mean(self):
        for seed, accuracy in (1, 0.5), (2, 0.7):
            self.run_of("all/seed-%d" % seed, [epoch(1, accuracy)], epochs="1",
                        seed=str(seed))
        page = self.report("all")
        self.assertIn(("seed-* (2)", "epoch 1", "60.00 % \u00b1 14.14 %"),
                      self.titles(page))
        self.assertEqual(len(page.of("path", **{"class": "faint"})), 2 * 9)
        self.assertEqual(len(page.of("input")), 1)

    def test_the_split_of_time(self):
        self.run_of("a", [epoch(1, test_seconds=3)], epochs="1")
        page = self.report("a")
        parts = [text for text in page.text_of("title")
                 if re.match("(comp|wait|test)", text)]
        self.assertEqual(parts, ["computation 4.00 s", "compression 2.00 s",
                                 "waiting 1.00 s", "testing 3.00 s"])
        widths = [float(r["width"]) for r in page.of("rect") if "x" in r]
        self.assertEqual([round(w / widths[2], 1) for w in widths],
                         [4, 2, 1, 3])
        self.run_of("b", [])  # no bar
        before = page.of("svg", **{"aria-label": "Split of time"})
        self.assertEqual(self.report("a", "b").of(
            "svg", **{"aria-label": "Split of time"}), before)

    def test_the_network_and_its_spectrum(self):
        self.run_of("a", [epoch(1)], algorithm="dpsgd", workers="5")
        self.run_of("b", [epoch(1)], algorithm="dpsgd", workers="5", lr="1")
        self.run_of("c", [epoch(1)], algorithm="allreduce", workers="9")
        page = self.report("a", "b", "c")
        self.assertEqual(len(page.of("figure", **{"class": "graph"})), 1)
        self.assertEqual(len(page.of("path", **{"class": "edge"})), 5)
        self.assertEqual(len(page.of("g", **{"class": "node"})), 5)
        # 1/3 + 2/3 cos(2 pi k / 5)
        self.assertEqual([text for text in page.text_of("title")
                          if text.startswith("eigenvalue")],
                         ["eigenvalue -0.2060"] * 2 + ["eigenvalue 0.5393"] * 2
                         + ["eigenvalue 1.0000"])

    def test_networks_that_cannot_be_drawn_are_counted(self):
        self.run_of("a", [epoch(1)], algorithm="dpsgd", topology="nosuch")
        self.run_of("b", [epoch(1)], algorithm="dpsgd", workers="5000")
        page = self.report("a", "b")
        self.assertEqual(page.of("g", **{"class": "node"}), [])
        self.assertTrue(any(text.startswith("Not drawn: 2, ")
                            for text in page.text_of("p")))

    def test_networks_are_read_from_regular_files_only(self):
        os.mkfifo(os.path.join(self.folder, "fifo"))
        for i, spec in enumerate(("file:fifo", "file:path=fifo",
                                  "file:weights=max-degree,path=(fifo)")):
            self.run_of(f"run{i}", [epoch(1)], algorithm="dpsgd", topology=spec)
            page = self.report(f"run{i}")
            self.assertTrue(any(text.startswith("Not drawn: 1, ")
                                for text in page.text_of("p")), spec)

    def test_texts_have_perplexities(self):
        self.run_of("a", [epoch(1, test_perplexity=12.5,
                                averaged_perplexity=12)], epochs="1")
        page = self.report("a")
        self.assertIn(("a", "epoch 1", "12.5"), self.titles(page))
        self.assertIn("Perplexity", page.text_of("h2"))
        self.assertNotIn("Accuracy", page.text_of("h2"))

    def test_traces(self):
        self.write("t.csv", (TRACE + "0,100,0,0\n1,10,1e-9,50\n"
                             "2,nan,inf,100\n3,0.5,2e-9,150\n").encode())
        page = self.report("t.csv")
        titles = self.titles(page)
        self.assertIn(("t.csv", "round 1", "10"), titles)
        self.assertIn(("t.csv", "150 B", "0.5"), titles)
        self.assertFalse(any("round 2" in title for title in titles))
        self.assertIn("0.5", page.text_of("td"))

    def test_a_long_trace_is_thinned_but_keeps_its_ends(self):
        self.write("t.csv", (TRACE + "".join(
            "%d,%g,0,%d\n" % (i, 1 / (i + 1), i)
            for i in range(100000))).encode())
        rounds = [t[1] for t in self.titles(self.report("t.csv"))
                  if t[1].startswith("round")]
        self.assertIn("round 0", rounds)
        self.assertIn("round 99999", rounds)
        self.assertLess(len(self.read("r.html")), 200000)

    def test_a_run_with_many_tests_is_thinned(self):
        self.run_of("a", [epoch(i, 1 - 1 / i) for i in range(1, 5001)],
                    epochs="5000")
        titles = self.titles(self.report("a"))
        self.assertIn(("a", "epoch 1", "0.00 %"), titles)
        self.assertIn(("a", "epoch 5000", "99.98 %"), titles)
        self.assertLess(len(self.read("r.html")), 500000)

    def test_plans(self):
        plan = json.loads(self.succeeds(
            "plan", "--model", "mlp", "--workers", "4", "--step-time", "10ms",
            "--bandwidth", "100Mbit", "--latency", "1ms", "--json"))
        self.write("plan.json", json.dumps(plan).encode())
        page = self.report("plan.json")
        self.assertIn(plan["advice"], page.text_of("p"))
        names = page.text_of("td")
        for candidate in plan["candidates"]:
            name = " ".join(filter(None, (candidate["algorithm"],
                                          candidate["compressor"])))
            self.assertIn(name, names)

    def test_runs_on_other_networks(self):
        self.write("p.json", json.dumps({
            "model": "mlp", "workers": 4, "network": {
                "bandwidth_mbit": 100, "latency_seconds": 0.02},
            "epochs": [{"epoch": 1, "seconds": 30, "test_accuracy": 0.25},
                       {"epoch": 2, "seconds": 60, "test_accuracy": None},
                       {"epoch": 3, "seconds": 90, "test_accuracy": 0.5}],
        }).encode())
        page = self.report("p.json")
        self.assertEqual(self.titles(page), [("p.json", "30.0 s", "25.00 %"),
                                             ("p.json", "90.0 s", "50.00 %")])
        self.assertIn("mlp, 4 workers, 100 Mbit/s, latency 20.0 ms (p.json)",
                      page.text_of("p"))

    def test_a_plan_without_a_network(self):
        self.write("p.json", json.dumps({
            "model": "mlp", "workers": 4, "algorithm": "choco",
            "compressor": "sign", "epochs": [
                {"epoch": 1, "seconds": 30, "test_accuracy": 0.25}],
        }).encode())
        self.assertIn("mlp, choco sign, 4 workers (p.json)",
                      self.report("p.json").text_of("p"))

    def test_a_trained_run(self):
        images(os.path.join(self.folder, "images"), 240)
        subprocess.run(
            [LACONIC, "train", "--model", "logistic", "--data", "mnist",
             "--data-dir", "images", "--algorithm", "choco:gamma=0.2",
             "--compressor", "sign", "--workers", "4", "--epochs", "2",
             "--out", "run"], cwd=self.folder, check=True, timeout=HANG,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        titles = self.titles(self.report("run"))
        for line in metrics(os.path.join(self.folder, "run")):
            self.assertIn(("run", "epoch %d" % line["epoch"], "%.2f %%"
                           % (100 * line["test_accuracy"])), titles)


TOP, BOTTOM = 12.0, 246.0  # of the plot in a chart


class Chart:
    """A chart of the page, by its title."""

    def __init__(self, text, title):
        figure, = re.findall(
            r"(?s)<figure><figcaption>%s<small>.*?</figure>" % title, text)
        self.logarithmic = "<small> log scale</small>" in figure
        self.note = "".join(re.findall(r'(?s)<p class="note">(.*?)</p>',
                                       figure))
        self.root = xml.etree.ElementTree.fromstring(
            re.search(r"(?s)<svg class=.chart.*</svg>", figure).group())

    def labels(self, side):
        """Labels of the ticks: "mid" along x, "end" along y."""
        return [label.text for label in self.root.iter("text")
                if label.get("class") == side]

    def curve(self, style):
        """Paths, circles and triangles of a curve, not of single seeds."""
        curve = [g for g in self.root.iter("g")
                 if g.get("class") == "curve r%d" % style][-1]
        paths = curve.findall("path")
        return (paths[0].get("d"), curve.findall("circle"),
                [path.get("d") for path in paths[1:]])

    def heights(self, style):
        return [float(y) for y in
                re.findall(r"[ML][-\d.]+ ([-\d.]+)", self.curve(style)[0])]


class Charts(Reports):
    def chart(self, title, *paths):
        self.report(*paths)
        return Chart(self.read("r.html").decode(), title)

    def eleven_runs(self, accuracies, losses):
        """Ten that learn, and one with these values."""
        for i in range(10):
            self.run_of("r%d" % i, [
                epoch(1, 0.75 + i / 200, 0.65 - i / 100),
                epoch(2, 0.85 + i / 200, 0.4 - i / 100),
                epoch(3, 0.91 - i / 1000, 0.27 + i / 1000)], lr=str(i))
        self.run_of("failed<", [
            epoch(n, accuracy, loss) for n, accuracy, loss
            in zip((1, 2, 3), accuracies, losses)], lr="99")
        return ["r%d" % i for i in range(10)] + ["failed<"]

    def test_a_failed_run_does_not_flatten_ten(self):
        runs = self.eleven_runs((0.28, 0.53, 0.21), (1.9, 1.3, 2.4))
        chart = self.chart("Accuracy over epochs", *runs)
        self.assertEqual(chart.labels("end")[0], "75 %")
        heights = [y for i in range(10) for y in chart.heights(i)]
        self.assertGreater(max(heights) - min(heights), 0.7 * (BOTTOM - TOP))
        # The failed run has no line, and a triangle for each of its points.
        path, circles, triangles = chart.curve(10)
        self.assertEqual((path, len(triangles)), ("", 3))
        for triangle in triangles:
            self.assertRegex(triangle, r"^M[\d.]+ 246\.0l4 -7h-8z$")
        self.assertEqual(chart.curve(0)[2], [])
        self.assertEqual([c.find("title").text for c in circles], [
            "failed<\nepoch 1\n28.00 %", "failed<\nepoch 2\n53.00 %",
            "failed<\nepoch 3\n21.00 %"])
        self.assertIn("Beyond the axis:", chart.note)
        self.assertIn('<span class="beyond r10"><b>\u25bc</b> failed&lt;, '
                      "down to 21.00 %</span>", chart.note)
        chart = self.chart("Test loss over epochs", *runs)
        self.assertIn("failed&lt;, up to 2.4", chart.note)
        self.assertRegex(chart.curve(10)[2][0], r"^M[\d.]+ 12\.0l4 7h-8z$")

    def test_a_run_that_leaves_the_axis_is_drawn_to_its_end(self):
        runs = self.eleven_runs((0.8, 0.9, 0.1), (0.5, 1e7, 1e7))
        chart = self.chart("Accuracy over epochs", *runs)
        path, circles, triangles = chart.curve(10)
        self.assertEqual((len(circles), len(triangles)), (3, 1))
        self.assertEqual(re.findall("[ML]", path), ["M", "L", "L"])
        self.assertEqual(chart.heights(10)[-1], BOTTOM)
        # The losses of the others need no logarithms.
        chart = self.chart("Test loss over epochs", *runs)
        self.assertFalse(chart.logarithmic)
        self.assertEqual(chart.labels("end")[-1], "0.7")
        self.assertEqual(chart.heights(10)[-1], TOP)
        self.assertEqual(len(chart.curve(10)[2]), 2)

    def test_failed_runs_have_triangles_of_their_own(self):
        runs = self.eleven_runs((0.2, 0.2, 0.2), (1, 1, 1))
        self.run_of("worse", [epoch(n, 0.1) for n in (1, 2, 3)], lr="100")
        chart = self.chart("Accuracy over epochs", *runs, "worse")
        self.assertEqual(chart.labels("end")[0], "75 %")
        self.assertEqual(len({*chart.curve(10)[2], *chart.curve(11)[2]}), 6)

    def test_every_curve_has_a_place_if_none_is_apart(self):
        runs = self.eleven_runs((0.7, 0.8, 0.9), (0.7, 0.5, 0.3))
        for title in "Accuracy over epochs", "Test loss over bytes":
            chart = self.chart(title, *runs)
            self.assertEqual(chart.note, "")
            for i in range(11):
                self.assertEqual(chart.curve(i)[2], [])

    def test_models_that_are_always_equal_are_no_scale(self):
        for i in range(10):
            self.run_of("r%d" % i, [epoch(1, consensus=0),
                                    epoch(2, consensus=0)], lr=str(i))
        for i, distance in (10, 0.001), (11, 0.4):
            self.run_of("r%d" % i, [
                epoch(1, consensus=distance), epoch(2, consensus=distance / 9)],
                lr=str(i), algorithm="dpsgd")
            chart = self.chart("Distance over epochs",
                               *("r%d" % k for k in range(i + 1)))
            self.assertEqual((chart.note, len(chart.heights(i))), ("", 2))

    def test_a_failed_seed_is_marked(self):
        for i in range(4):
            for seed in 1, 2:
                accuracy = 0.01 if (i, seed) == (3, 2) else 0.8 + i / 100
                self.run_of("r%d/seed-%d" % (i, seed), [
                    epoch(1, accuracy), epoch(2, accuracy + 0.05)],
                    seed=str(seed), lr=str(i))
        chart = self.chart("Accuracy over epochs", "r0", "r1", "r2", "r3")
        self.assertEqual(chart.labels("end")[0], "80 %")
        self.assertIn("r3/seed-* (2), down to 1.00 %", chart.note)
        faint = [path for path in chart.root.iter("path")
                 if path.get("class") == "out"]
        self.assertEqual(len(faint), 1 + 2)  # of the seed, and of the mean

    def test_no_two_curves_look_the_same(self):
        runs = ["r%02d" % i for i in range(45)]
        for i, run in enumerate(runs):
            self.run_of(run, [epoch(1, 0.5 + i / 100)], epochs="1", lr=str(i))
        self.report(*runs)
        text = self.read("r.html").decode()
        colours = re.findall(r"\.r(\d+),\.l\d+\{--c:var\((--k\d)\)\}", text)
        dashes = dict(re.findall(r"\.r(\d+) path,\.l\d+ path"
                                 r"\{stroke-dasharray:([\d. ]+)\}", text))
        self.assertEqual(len(colours), 45)
        self.assertEqual(len({(colour, dashes.get(style))
                              for style, colour in colours}), 45)
        for _, colour in colours:
            self.assertEqual(len(re.findall(colour + ": #", text)), 2)

    def check_labels(self, chart):
        """A digit of 13 pixels is at most 8.3 wide in common fonts."""
        labels = sorted((float(label.get("x")), label.text)
                        for label in chart.root.iter("text")
                        if label.get("y") == "263")
        self.assertGreater(len(labels), 1)
        for (x, text), (other, word) in zip(labels, labels[1:]):
            self.assertGreater(other - x, 8.3 * (len(text) + len(word)) / 2,
                               labels)

    def test_labels_do_not_collide(self):
        for i, ratio in enumerate((40, 100, 199, 500, 900, 3e4, 1e7)):
            self.run_of("r%d" % i, [epoch(1, payload=1e8),
                                    epoch(2, payload=ratio * 0.5e8)],
                        epochs="2")
            self.check_labels(self.chart("Accuracy over bytes", "r%d" % i))
        for rounds in 7000, 1199999, 12000000, 120000000:
            self.write("t.csv", (TRACE + "0,1,0,0\n%d,0.5,0,9\n"
                                 % rounds).encode())
            self.check_labels(self.chart("Error over rounds", "t.csv"))

    def test_errors_have_a_logarithmic_axis(self):
        for name, factor in ("fast", 0.1), ("slow", 0.9):
            self.write(name + ".csv", (TRACE + "".join(
                "%d,%g,0,%d\n" % (i, factor ** i, 9 * i)
                for i in range(6))).encode())
            for title in "Error over rounds", "Error over bytes":
                chart = self.chart(title, name + ".csv")
                self.assertTrue(chart.logarithmic)
                self.assertGreater(len(chart.labels("end")), 2)
            # The same factor in each round is a straight line.
            heights = self.chart("Error over rounds",
                                 name + ".csv").heights(0)
            for y, following in zip(heights, heights[1:]):
                self.assertAlmostEqual(following - y, heights[1] - heights[0],
                                       delta=0.2)

    def test_an_error_that_falls_to_0_is_marked(self):
        self.write("t.csv", (TRACE + "0,100,0,0\n1,1,1e-9,50\n"
                             "2,0,1e-8,100\n3,0,1e-7,150\n").encode())
        chart = self.chart("Error over rounds", "t.csv")
        self.assertEqual(len(chart.curve(0)[2]), 2)
        self.assertIn("t.csv, down to 0<", chart.note)
        # A mean that has not drifted yet is not beyond the axis.
        chart = self.chart("Drift over rounds", "t.csv")
        self.assertEqual((chart.curve(0)[2], chart.note), ([], ""))

    def test_many_settings_are_several_tables(self):
        for i in range(3):
            self.run_of("r%d" % i, [epoch(1)], **{
                "setting-%d" % k: str(i) for k in range(20)})
        self.report("r0", "r1", "r2")
        tables = re.findall(r"(?s)<table>.*?</table>",
                            self.read("r.html").decode())
        found = [re.findall("<th>(setting-\\d+)</th>", table)
                 for table in tables]
        self.assertLessEqual(max(map(len, found)), 8)
        self.assertEqual(sorted(sum(found, [])),
                         sorted("setting-%d" % k for k in range(20)))


class Form(Reports):
    def test_the_page_needs_nothing_else(self):
        self.two_runs()
        page = self.report("sum", "few")
        text = self.read("r.html").decode()
        self.assertNotRegex(text, r"(?i)https?:|//[a-z]+\.|@import|url\(")
        for name in "src", "srcset", "action", "data":
            self.assertEqual(page.attributes[name], 0)
        self.assertEqual(page.of("link"), [])

    def test_the_policy_permits_only_the_script_of_the_page(self):
        self.two_runs()
        self.report("sum")
        text = self.read("r.html").decode()
        script, = re.findall(r"(?s)<script>(.*?)</script>", text)
        digest = base64.b64encode(
            hashlib.sha256(script.encode()).digest()).decode()
        self.assertIn("default-src 'none'; style-src 'unsafe-inline'; "
                      "script-src 'sha256-%s'" % digest, text)

    def test_the_same_inputs_give_the_same_bytes(self):
        self.two_runs()
        self.report("sum", "few")
        first = self.read("r.html")
        self.report("sum", "few")
        self.assertEqual(self.read("r.html"), first)

    def test_hostile_names_are_text(self):
        name = HOSTILE.replace("/", "_")
        self.run_of(name, [epoch(1)], model=HOSTILE, data=HOSTILE,
                    algorithm="dpsgd:" + HOSTILE, compressor=HOSTILE,
                    topology=HOSTILE, lr=HOSTILE, **{HOSTILE: HOSTILE})
        self.run_of("b", [epoch(1)], **{HOSTILE: "\x01\x1b"})
        self.write(name + ".csv", (TRACE + "0,1,0,0\n1,0.5,0,9\n").encode())
        self.write(name + ".json", json.dumps({
            "model": HOSTILE, "advice": HOSTILE, "workers": HOSTILE,
            "candidates": [{"algorithm": HOSTILE, "compressor": HOSTILE,
                            "step_seconds": 1}]}).encode())
        page = self.report(name, "b", name + ".csv", name + ".json")
        self.assertEqual(page.of("img"), [])
        self.assertEqual(len(page.of("script")), 1)
        self.assertEqual(page.attributes["onerror"], 0)
        self.assertIn(HOSTILE, page.text_of("td"))
        self.assertNotRegex(self.read("r.html").decode(), r"[\x01\x1b]")

    def test_bytes_that_are_not_utf8(self):
        name = b"a\xff\xc0\xaf\xed\xa0\x80b"
        os.mkdir(os.path.join(self.folder.encode(), name))
        self.run_of("x", [epoch(1)])
        for file in "manifest.json", "metrics.jsonl":
            os.rename(os.path.join(self.folder, "x", file).encode(),
                      os.path.join(self.folder.encode(), name, file.encode()))
        page = self.report(os.fsdecode(name))
        self.assertIn("a" + "\ufffd" * 6 + "b", page.text_of("td"))

    def test_numbers_that_are_not_finite_or_extreme(self):
        lines = [epoch(1, None, None), epoch(2, 1, 1e308),
                 epoch(3, 1e-300, 1e-320), epoch(4, 0, 0, consensus=None),
                 epoch(5, 0.5, 1e-300, 10 ** 15, compute_seconds=1e300)]
        self.run_of("a", lines)
        self.run_of("b", lines[:1])
        self.run_of("c", [])
        self.run_of("d", [epoch(1, 1, 1e16), epoch(2, 1 - 2 ** -53, 1e16 + 2)])
        self.report("a", "b", "c", "d")
        self.report("c")
        text = self.read("r.html").decode()
        self.assertNotRegex(re.sub(r"(?s)<script>.*</script>", "", text),
                            r"\b(nan|inf|NaN|Infinity)\b")
        self.report("a")
        page = self.report("d")
        for circle in page.of("circle"):
            self.assertRegex(circle["cx"], r"^\d+\.\d$")

    def test_axes_have_few_labels_that_differ(self):
        for i, scale in enumerate((1e-9, 1e-3, 1, 37, 1e7, 1e140)):
            self.run_of("r%d" % i, [
                epoch(n, n / 40 / (i + 1), scale * n ** 3,
                      payload=math.ceil(min(scale, 1e13)), seconds=scale * n)
                for n in (1, 2, 7, 40)], epochs="40")
            self.report("r%d" % i)
            for chart in re.findall(r'(?s)<svg class="chart".*?</svg>',
                                    self.read("r.html").decode()):
                for side in "mid", "end":
                    labels = re.findall(
                        r'class="%s">([^<]*)</text>' % side, chart)
                    self.assertEqual(len(labels), len(set(labels)))
                    self.assertIn(len(labels), range(3, 17))

    def test_a_written_report_is_announced(self):
        self.two_runs()
        self.assertRegex(self.succeeds("report", "sum", "--out", "r.html"),
                         r"^r\.html: [\d.]+ kB\n$")
        done = self.run_laconic("report", "sum", "--out", "/dev/stdout")
        self.assertEqual(done.stdout.encode(), self.read("r.html"))
        self.assertRegex(done.stderr, r"^/dev/stdout: [\d.]+ kB\n$")


    def test_a_page_may_be_among_the_files(self):
        self.two_runs()
        self.succeeds("report", "sum", "few", "--out", "r.html")
        page = self.read("r.html")
        self.succeeds("report", "sum", "few", "r.html", "--out", "r.html")
        self.assertEqual(self.read("r.html"), page)


class Rejected(Reports):
    def rejects(self, message, *paths):
        self.fails(FAILED, message, "report", *paths, "--out", "r.html")

    def test_usage(self):
        self.fails(USAGE, "report: --out FILE.html is missing", "report", "a")
        self.fails(USAGE, "report: 0 arguments are given, expected RUN...",
                   "report", "--out", "r.html")

    def test_inputs_that_are_none(self):
        self.rejects("nowhere: is no folder, expected that of a run of "
                     "`laconic train`", "nowhere")
        for text in b"", b"hello\n", b"\0", b"round,error\n0,1\n":
            self.write("x", text)
            self.rejects("x: is neither a trace of `laconic average` nor a "
                         "result of `laconic plan --json`", "x")

    def test_damaged_traces(self):
        for lines, line in (("0,1,0\n", 2), ("0,1,0,0\n0,1,0,0\n", 3),
                            ("0,1,0,0\nx,1,0,0\n", 3), ("\n", 2),
                            ("0,1,0,0\n1,1,0,\0\n", 3), ("nan,1,0,0\n", 2),
                            ("0,1,\n1,1\n", 2), ("0,1,0,-5\n", 2),
                            ("0,1,0,nan\n", 2), ("0.5,1,0,0\n", 2)):
            self.write("t.csv", (TRACE + lines).encode())
            self.rejects("t.csv: line %d is damaged, expected a later round "
                         "than the line before, its error, drift and bytes"
                         % line, "t.csv")
        self.write("t.csv", TRACE.encode())
        self.rejects("t.csv: has no round, expected a line for each", "t.csv")

    def test_damaged_plans(self):
        for text in (b"{", b"{}", b'{"candidates":[]}', b'{"candidates":[1]}',
                     b'{"candidates":[{"algorithm":"x"}]}', b'{"epochs":[{}]}',
                     b'{"epochs":3}', b"{" * 100000):
            self.write("p.json", text)
            self.rejects("p.json: is no result of `laconic plan --json`, "
                         "expected an object with candidates or epochs",
                         "p.json")

    def test_damaged_runs(self):
        self.two_runs()
        self.write("few/metrics.jsonl", b"nonsense\n")
        self.rejects("few/metrics.jsonl: line 1 is damaged at byte 1, expected "
                     "a JSON object", "sum", "few")

    def test_a_report_that_cannot_be_written_leaves_the_old_one(self):
        self.two_runs()
        done = self.run_laconic("report", "sum", "--out", "nowhere/r.html")
        self.assertEqual((done.stdout, done.returncode), ("", FAILED))
        self.assertTrue(done.stderr.startswith("laconic: nowhere/r.html: "))
        self.write("r.html", b"old")
        self.write("x.csv", TRACE.encode())
        self.run_laconic("report", "sum", "x.csv", "--out", "r.html")
        self.assertEqual(self.read("r.html"), b"old")


if __name__ == "__main__":
    unittest.main()
