# SPDX-License-Identifier: MIT
"""laconic average with matrices, and with a sweep over values of a setting.

usage: test_average_sweep.py LACONIC
"""
import itertools
import json
import math
import unittest

from command import Command, GOOD, USAGE, values_of

CHOCO = ("--algorithm", "choco", "--compressor", "top-k:0.1", "--rounds", "40")


def contraction(workers, delta, rate):
    """The factor by which a round of power gossip with random projections
    reduces the mean squared error on a ring with weights 1/3, after many
    rounds: the largest root of 1 = sum_m c_m / (R - (1 - rate delta mu_m)^2),
    with c_m = rate^2 delta (1 - delta) mu_m^2 / workers, by bisection."""
    mu = [(2 - 2 * math.cos(2 * math.pi * m / workers)) / 3
          for m in range(1, workers)]

    def excess(root):
        return sum(rate**2 * delta * (1 - delta) * m * m / workers
                   / (root - (1 - rate * delta * m)**2) for m in mu) - 1

    low, high = max((1 - rate * delta * m)**2 for m in mu), 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return low


def rank_of(rows, tolerance):
    """The rank of a matrix, by elimination with the largest pivot."""
    rows, rank = [list(row) for row in rows], 0
    while rows:
        r, c = max(itertools.product(range(len(rows)), range(len(rows[0]))),
                   key=lambda at: abs(rows[at[0]][at[1]]))
        pivot = rows.pop(r)
        if abs(pivot[c]) < tolerance:
            break
        rank += 1
        for row in rows:
            factor = row[c] / pivot[c]
            row[:] = [x - factor * p for x, p in zip(row, pivot)]
    return rank


class Average(Command):
    def printed(self, *words):
        """The output. On a busy machine, stderr has the progress."""
        done = self.run_laconic("average", *words)
        self.assertEqual(done.returncode, GOOD, done.stderr)
        return done.stdout

    def average(self, *words):
        return json.loads(self.printed("--json", *words))

    def errors(self, name):
        lines = self.read(name).decode().splitlines()[1:]
        return [float(line.split(",")[1]) for line in lines]


class Matrices(Average):
    def test_a_dimension_may_be_a_matrix(self):
        words = ("--algorithm", "dpsgd", "--rounds", "2", "--workers", "4",
                 "--trace", "t.csv")
        found = self.average(*words, "--dimension", "6x5", "--output", "y.npy")
        self.assertEqual((found["dimension"], found["rows"],
                          found["columns"]), (30, 6, 5))
        shape, values = values_of(self.read("y.npy"))
        self.assertEqual(shape, (4, 6, 5))
        errors = self.errors("t.csv")
        self.assertEqual(len(errors), 3)
        vector = self.average(*words, "--dimension", "30", "--output",
                              "z.npy")
        self.assertNotIn("rows", vector)
        # The same draws, and dpsgd does not depend on the shape.
        self.assertEqual(values_of(self.read("z.npy")), ((4, 30), values))
        text = self.printed(*words, "--dimension", "6x5")
        self.assertIn("ring of 6 x 5 values each", text)

    def test_low_rank_methods_compress_matrices(self):
        for name in ("powergossip", "powersgd"):
            found = self.average("--algorithm", name, "--dimension",
                                 "40x30", "--rounds", "2", "--workers", "3")
            # Every worker has two neighbours, or contributes once: 40 and 30
            # floats in two uses of an edge, or in each round.
            times = {"powergossip": 2, "powersgd": 2}[name]
            self.assertEqual(found["payload_bytes"], 3 * times * 70 * 4)

    def test_power_gossip_converges_linearly(self):
        """At the rate of the theory, with random projections."""
        self.average("--algorithm", "powergossip:warm-start=no,rate=1.308",
                     "--dimension", "100x100", "--rounds", "1200", "--trace",
                     "t.csv")
        errors = self.errors("t.csv")
        expected = contraction(8, 0.01, 1.308)
        self.assertAlmostEqual(expected, 0.995220, delta=1e-6)
        # The projection of an edge keeps 1/100 of its difference in the mean,
        # with a relative standard deviation of sqrt(2/100), the 8 edges of a
        # round one of 5 %, and 500 rounds one of 0.22 %: five of them are
        # 1.1 %. Modes that have not vanished after 700 rounds add less.
        measured = (errors[1200] / errors[700])**(1 / 500)
        self.assertAlmostEqual((1 - measured) / (1 - expected), 1, delta=0.02)


class LowRank(Average):
    WORDS = ("--algorithm", "dpsgd", "--rounds", "0")

    def matrices(self, rank, *words):
        found = self.average(*self.WORDS, "--workers", "3", "--dimension",
                             "7x9", "--low-rank", rank, "--output", "y.npy",
                             *words)
        self.assertEqual(found["low_rank"], int(rank))
        values = values_of(self.read("y.npy"))[1]
        return [[values[63 * w + 9 * i:63 * w + 9 * i + 9] for i in range(7)]
                for w in range(3)]

    def test_matrices_have_the_rank(self):
        for rank in ("1", "3", "7"):
            for matrix in self.matrices(rank):
                # Values below 20, rounded to 24 bits: a value is off by at
                # most 1e-6, and 7 steps with the largest pivot as the divisor
                # at most double that each.
                self.assertEqual(rank_of(matrix, 2e-4), int(rank))

    def test_workers_and_seeds_have_their_own(self):
        first = self.matrices("2")
        self.assertEqual(self.matrices("2"), first)
        for a, b in itertools.combinations(first, 2):
            self.assertNotEqual(a, b)
        self.assertNotEqual(self.matrices("2", "--seed", "2"), first)
        # Equal factors would make the first columns symmetric.
        self.assertNotEqual(first[0][0][1], first[0][1][0])

    def test_values_have_variance_one(self):
        for rank in (1, 10):
            found = self.average(*self.WORDS, "--dimension", "100x200",
                                 "--low-rank", str(rank))
            # The squares of a factor with 100 rows and `rank` columns sum to
            # its size with a relative standard deviation of
            # sqrt(2 / (100 rank)), of one with 200 rows to sqrt(2 / (200
            # rank)); both, over 8 workers, five of them.
            delta = 5 * math.sqrt(0.03 / rank / 8)
            self.assertAlmostEqual(found["initial_error"] / 20000 / (7 / 8),
                                   1, delta=delta)

    def test_a_warm_start_pays(self):
        """When the differences of neighbours have a low rank."""
        words = ("--dimension", "60x60", "--rounds", "150", "--algorithm")
        warm, cold = ("powergossip", "powergossip:warm-start=no")
        low = ("--low-rank", "2")
        self.assertLess(self.average(*words, warm, *low)["final_error"],
                        self.average(*words, cold, *low)["final_error"] / 10)

    def test_the_table_names_the_rank(self):
        text = self.printed(*self.WORDS, "--dimension", "9x4",
                            "--low-rank", "2")
        self.assertIn("ring of 9 x 4 values of rank 2 each", text)


class Warnings(Average):
    def warnings(self, *words):
        done = self.run_laconic("average", "--rounds", "1", "--algorithm",
                                *words)
        self.assertEqual(done.returncode, GOOD, done.stderr)
        return done.stderr.splitlines()

    def test_a_vector_that_is_not_compressed_is_warned_of_once(self):
        for words in (["powergossip"], ["powersgd"],
                      ["choco:0.1", "--compressor", "low-rank"],
                      ["powergossip", "--sweep", "rate=0.5,1"]):
            warning, hint = self.warnings(*words)
            self.assertIn("nothing is compressed", warning)
            self.assertEqual(hint, "try --dimension 32x32, or fold=yes")

    def test_what_is_compressed_is_not_warned_of(self):
        for words in (["powergossip", "--dimension", "32x32"],
                      ["powergossip:fold=yes"], ["dpsgd"],
                      ["choco:0.1", "--compressor", "top-k:0.1"]):
            self.assertEqual(self.warnings(*words), [])

    def test_matrices_are_advised_only_where_they_help(self):
        for words in (["choco:0.1", "--compressor", "random-k:1"],
                      ["dcd", "--compressor", "sign"]):
            lines = self.warnings(*words)
            self.assertEqual(len(lines), 1)
            self.assertNotIn("--dimension", lines[0])
        lines = self.warnings("powergossip", "--dimension", "1")
        self.assertEqual(len(lines), 1)


class Sweeps(Average):
    def test_results_are_those_of_single_runs(self):
        found = self.average(*CHOCO, "--sweep", "gamma=0.1,0.4")
        self.assertEqual(found["setting"], "gamma")
        for value, one in zip((0.1, 0.4), found["results"], strict=True):
            self.assertEqual(one.pop("value"), value)
            single = self.average(
                "--compressor", "top-k:0.1", "--rounds", "40", "--algorithm",
                f"choco:gamma={value}")
            for result in (one, single):
                result.pop("seconds")
            self.assertEqual(one, single)

    def test_a_setting_of_the_compressor(self):
        found = self.average("--algorithm", "choco:0.1", "--compressor",
                             "top-k:0.5+natural", "--sweep",
                             "ratio=0.01..0.1")["results"]
        self.assertEqual(len(found), 10)
        self.assertEqual(found[1]["compressor"],
                         "top-k:ratio=0.01292+natural")
        sent = [one["payload_bytes"] for one in found]
        self.assertEqual(sent, sorted(set(sent)))

    def test_divergence_is_a_row(self):
        words = ("--algorithm", "choco", "--compressor", "top-k:0.01",
                 "--rounds", "100", "--sweep", "gamma=0.01,2,0.02")
        found = self.average(*words)["results"]
        self.assertEqual([one["diverged"] for one in found],
                         [False, True, False])
        self.assertIsNone(found[1]["final_error"])
        self.assertLess(found[1]["rounds"], 100)
        self.assertLess(found[2]["final_error"], found[2]["initial_error"])
        lines = self.printed(*words).splitlines()
        row, = (line for line in lines if line.strip().startswith("2 "))
        self.assertIn("diverged", row)
        self.assertEqual(sum(line.count("x") for line in lines
                             if "|" in line), 1)

    def test_the_table_and_the_plot_fit_a_terminal(self):
        text = self.printed(
            "--algorithm", "powersgd:rank=1,warm-start=yes,"
            "min-compression-rate=1", "--dimension", "50x40", "--rounds", "5",
            "--sweep", "start-iteration=1..1000000000")
        lines = text.splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertTrue(all(line == line.rstrip() for line in lines))
        heads, = (line for line in lines if "final error  of" in line)
        rows = lines[lines.index(heads) + 1:][:10]
        self.assertEqual(rows[0].split()[0], "1")
        self.assertEqual(rows[-1].split()[0], "1000000000")
        self.assertIn("smallest final error: ", lines[-1])

    def test_the_plot_has_a_mark_for_each_value(self):
        text = self.printed(*CHOCO, "--sweep", "gamma=0.01..0.1")
        plot = [line for line in text.splitlines() if "|" in line]
        marks = [(line.index("*"), row) for row, line in enumerate(plot)
                 for _ in range(line.count("*"))]
        self.assertEqual(sum(line.count("*") for line in plot), 10)
        # Errors fall with gamma here, from the top left.
        self.assertEqual(sorted(marks), sorted(marks, key=lambda m: m[1]))
        self.assertTrue(text.splitlines()[-1].endswith("with gamma=0.1"))

    def test_every_value_has_a_trace(self):
        self.average(*CHOCO, "--sweep", "gamma=0.1,0.20", "--trace", "t.csv")
        self.assertEqual(set(self.files()),
                         {"x.npy", "t-0.1.csv", "t-0.20.csv"})
        self.assertEqual(len(self.errors("t-0.20.csv")), 41)
        self.average("--algorithm", "choco:0.20", *CHOCO[2:], "--trace",
                     "./one.d.csv")
        self.assertEqual(self.read("one.d.csv"), self.read("t-0.20.csv"))
        self.average(*CHOCO, "--sweep", "gamma=1", "--trace", "./u")
        self.assertIn("u-1", self.files())
        self.succeeds("report", "t-0.1.csv", "t-0.20.csv", "--out", "r.html")

    def test_rounds_can_be_timed_only(self):
        found = self.average(*CHOCO, "--sweep", "gamma=0.1,0.2",
                             "--time-only")["results"]
        for one in found:
            self.assertIsNone(one["final_error"])
            self.assertGreater(one["round_seconds"], 0)
        text = self.printed(*CHOCO, "--sweep", "gamma=0.1,0.2",
                            "--time-only")
        self.assertNotIn("|", text)

    def test_a_single_worker_sends_nothing(self):
        text = self.printed(*CHOCO, "--sweep", "gamma=0.1",
                            "--workers", "1")
        self.assertNotIn("|", text)
        self.assertIn("gamma=0.1", text)


class Refusals(Average):
    def rejected(self, message, *words):
        self.fails(USAGE, message, "average", *words)

    def test_dimensions(self):
        for text in ("0", "x", "3x", "3x0", "x3", "3x3x3", "-3", "3.5", "1e3",
                     "1000000001", "40000x40000", "9" * 30, "3 x 3", "3X3"):
            self.rejected(
                f'--dimension is "{text}", expected values or rows x columns, '
                "such as 1000 or 100x100, from 1 to 1000000000 values",
                "--algorithm", "dpsgd", "--dimension", text)

    def test_low_ranks(self):
        words = ("--algorithm", "dpsgd", "--low-rank")
        vector = ("--low-rank is 2, but the values of a worker are a vector, "
                  "expected a matrix: --dimension RxC")
        for dimension in (["--dimension", "100"], [],
                          ["--dimension", "1x100"], ["--dimension", "100x1"]):
            self.rejected(vector, *words, "2", *dimension)
        self.rejected("--low-rank is 5, expected at most 4, the smaller side "
                      "of the matrix", *words, "5", "--dimension", "9x4")
        self.rejected("average: --low-rank and --input were given, expected "
                      "--dimension RxC with it", *words, "2", "--input",
                      "x.npy")

    def test_sweeps(self):
        self.rejected('--sweep is "gamma", expected SETTING=FROM..TO or '
                      "SETTING=A,B,C", *CHOCO, "--sweep", "gamma")
        self.rejected('choco: gamma is "2.5", expected auto or a number above '
                      "0 to 2", *CHOCO, "--sweep", "gamma=1,2.5")
        self.rejected('--sweep: no setting with a number is named "rank", '
                      "expected gamma, trigger, ratio, chunk", *CHOCO,
                      "--sweep", "rank=1")
        self.rejected('no algorithm is named "chocco"; did you mean choco?',
                      "--algorithm", "chocco", "--sweep", "gamma=1")
        self.rejected("average: --sweep has final values of several runs, "
                      "expected no --output", *CHOCO, "--sweep", "gamma=1",
                      "--output", "y.npy")
        self.rejected("average: --sweep has a trace for each value, expected "
                      "files instead of the standard output", *CHOCO,
                      "--sweep", "gamma=1", "--trace", "/dev/stdout")

    def test_a_report_needs_the_traces(self):
        for more in ([], ["--sweep", "gamma=1"]):
            found = self.average("--algorithm", "choco:0.1", *CHOCO[2:], *more)
            self.write("a.json", json.dumps(found).encode())
            self.fails(1, "a.json: is a result of `laconic average --json`, "
                       "expected a file of its --trace", "report", "a.json",
                       "--out", "r.html")


if __name__ == "__main__":
    unittest.main()
