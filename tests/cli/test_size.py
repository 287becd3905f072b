# SPDX-License-Identifier: MIT
"""laconic size, and the byte tables of the papers.

usage: test_size.py LACONIC
"""
import json
import sys
import unittest

sys.dont_write_bytecode = True
from command import Command, FAILED, GOOD, USAGE

RESNET18 = 11173962
# PowerSGD's table: floats a step for ResNet-18 by rank.
POWERSGD = {1: 45935, 2: 82260, 4: 154910, 7: 263885}
STEPS, NEIGHBOURS, MIB = 49, 2, 2 ** 20


class Size(Command):
    def found(self, *words):
        done = self.run_laconic("size", *words, "--json")
        self.assertEqual((done.stderr, done.returncode), ("", GOOD))
        return json.loads(done.stdout)

    def bytes_of(self, model, algorithm, *words):
        return self.found("--model", model, "--algorithm", algorithm,
                          *words)["payload_bytes_per_step"]

    def needs(self, name):
        if name not in self.listed("algorithms"):
            self.skipTest(f"this build has no {name}")


class Counts(Size):
    def test_a_plan_counts_alike(self):
        """What a worker contributes to a sum counts once, what it sends to two
        neighbours twice."""
        plan = json.loads(self.succeeds(
            "plan", "--model", "mlp", "--workers", "8", "--step-time", "1s",
            "--bandwidth", "1Gbit", "--latency", "1ms", "--json"))
        counted = {(c["algorithm"], c["compressor"]): c["payload_bytes"]
                   for c in plan["candidates"]}
        for choice, times in (
                (("allreduce", None), 1), (("powersgd:rank=2", None), 1),
                (("error-feedback", "sign"), 1), (("dpsgd", None), 2),
                (("choco", "sign"), 2), (("powergossip", None), 2)):
            algorithm, compressor = choice
            more = ["--compressor", compressor] if compressor else []
            self.assertEqual(counted[choice], times * self.bytes_of(
                "mlp", algorithm, "--workers", "8", *more), choice)

    def test_the_count_is_named(self):
        def table(algorithm):
            return self.succeeds("size", "--model", "mlp", "--algorithm",
                                 algorithm, "--workers", "8")
        for algorithm, once in ("allreduce", True), ("dpsgd", False):
            self.assertEqual("time to send once over" in table(algorithm), once)
            self.assertEqual("A worker's contribution counts once" in
                             table(algorithm), once)


class Papers(Size):
    def test_allreduce_sends_every_parameter(self):
        self.assertEqual(self.bytes_of("resnet18", "allreduce"), 4 * RESNET18)

    def test_powersgd_sends_the_bytes_of_its_paper(self):
        self.needs("powersgd")
        for rank, floats in POWERSGD.items():
            self.assertEqual(self.bytes_of("resnet18", f"powersgd:{rank}"),
                             4 * floats)

    def test_random_sparsifiers_of_a_rank_send_as_much_as_powersgd(self):
        for name in "random-k", "random-block":
            for rank in 2, 7:
                self.assertEqual(
                    self.bytes_of("resnet18", "error-feedback",
                                  "--compressor", f"{name}:rank={rank}"),
                    4 * POWERSGD[rank])

    def test_sign_sends_a_bit_a_value_and_four_bytes_a_tensor(self):
        self.write("two.txt", b"a 10 10\nb 7\n")
        found = self.found("--layout", "two.txt", "--algorithm",
                           "error-feedback", "--compressor", "sign")
        self.assertEqual(found["payload_bytes_per_step"], 13 + 4 + 1 + 4)
        found = self.found("--model", "resnet18", "--algorithm",
                           "error-feedback", "--compressor", "sign")
        bits = found["payload_bytes_per_step"] - 4 * found["tensors"]
        # The last byte of a tensor may be partly used.
        self.assertGreaterEqual(bits, RESNET18 / 8)
        self.assertLess(bits, RESNET18 / 8 + found["tensors"])

    def test_top_k_keeps_a_64th_of_every_tensor(self):
        found = self.found("--model", "resnet18", "--algorithm",
                           "error-feedback", "--compressor", "top-k:0.015625")
        self.assertEqual(found["values_kept"], 174594)
        self.assertGreater(found["payload_bytes_per_step"], 4 * 174594)
        # An index costs less than a byte and a half.
        self.assertLess(found["payload_bytes_per_step"], 5.5 * 174594)

    def test_gossip_sends_the_bytes_of_the_powergossip_paper(self):
        rows = [("dpsgd", (), 101.86), ("powergossip", (), 1.81),
                ("powergossip:iterations=2", (), 3.04),
                ("powergossip:iterations=4", (), 5.49),
                ("choco", ("--compressor", "sign"), 3.21)]
        for algorithm, words, mebibytes in rows:
            an_epoch = STEPS * NEIGHBOURS * self.bytes_of(
                "resnet20", algorithm, *words) / MIB
            self.assertAlmostEqual(an_epoch, mebibytes, delta=0.006)

    def test_signum_sends_a_bit_a_value(self):
        sent = self.bytes_of("resnet18", "signum")
        self.assertGreaterEqual(sent, RESNET18 / 8)
        self.assertLess(sent, RESNET18 / 8 + 62)

    def test_rounds_that_differ_are_averaged(self):
        # Vectors are sent whole; of matrices, rows and columns alternate.
        self.assertEqual(self.bytes_of("resnet20", "powergossip"),
                         4 * (1578 + (794 + 5755) / 2))

    def test_an_lstm_is_as_large_as_published(self):
        words = ("--workers", "16", "--algorithm")
        for algorithm, mebibytes in ("dpsgd", 110.43), \
                ("powergossip:iterations=8", 0.918), \
                ("powergossip:iterations=32", 3.162):
            found = self.found("--model", "lstm:vocabulary=28869", *words,
                               algorithm)
            self.assertEqual(found["parameters"], 28949319)
            self.assertAlmostEqual(found["payload_bytes_per_step"] / MIB,
                                   mebibytes, delta=0.006)


class Reports(Size):
    def test_json_has_the_promised_keys(self):
        found = self.found("--model", "lenet", "--algorithm", "dpsgd")
        self.assertEqual(found, {
            "model": "lenet", "layout": None, "algorithm": "dpsgd",
            "compressor": None, "topology": "ring", "workers": 8,
            "local_steps": 1, "tensors": 10, "parameters": 61706,
            "payload_bytes_per_step": 4 * 61706,
            "uncompressed_bytes_per_step": 4 * 61706, "ratio": 1,
            "messages_per_step": 2, "phases_per_step": 1,
            "memory_bytes": found["memory_bytes"]})
        self.assertGreater(found["memory_bytes"], 0)

    def test_the_topology_decides_the_messages(self):
        words = ("--model", "mlp", "--algorithm", "dpsgd", "--topology")
        self.assertEqual(self.found(*words, "complete", "--workers",
                                    "5")["messages_per_step"], 4)
        self.assertEqual(self.found(*words, "one-peer-exponential",
                                    "--workers", "8")["messages_per_step"], 1)
        self.assertEqual(self.found(*words, "ring", "--workers",
                                    "1")["messages_per_step"], 0)

    def test_local_steps_share_a_round(self):
        words = ("--model", "resnet20", "--local-steps", "50", "--algorithm")
        for spec, topology, messages in (
                ("outer", None, 1 / 50), ("dpsgd", "ring", 2 / 50)):
            found = self.found(*words, spec)
            self.assertAlmostEqual(found["payload_bytes_per_step"],
                                   4 * 272474 / 50)
            self.assertAlmostEqual(found["messages_per_step"], messages)
            self.assertEqual(found["topology"], topology)
            self.assertEqual(found["local_steps"], 50)
        done = self.run_laconic("size", *words, "allreduce")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("--local-steps 50: allreduce averages gradients in "
                      "every step, expected a model algorithm, such as "
                      "outer:inner=(allreduce)", done.stderr)

    def test_a_layout_file_is_read(self):
        self.write("shapes.txt", b"# mine\nw 20, 30\nb 20\n")
        found = self.found("--layout", "shapes.txt", "--algorithm", "dpsgd")
        self.assertEqual((found["layout"], found["tensors"],
                          found["parameters"]), ("shapes.txt", 2, 620))

    def test_the_table_has_sizes_times_and_the_largest_tensors(self):
        done = self.run_laconic("size", "--model", "resnet20", "--algorithm",
                                "choco", "--compressor", "top-k:0.01")
        self.assertEqual((done.stderr, done.returncode), ("", GOOD))
        self.assertRegex(done.stdout, r"\nparameters +272,474  in 65 tensors")
        self.assertRegex(done.stdout, r"\ncompressor +top-k:0.01  keeps 2,")
        self.assertRegex(done.stdout, r"\nuncompressed +1,089,896  1\.1 MB\n")
        self.assertRegex(done.stdout, r"\nfewer bytes +\d+\.\d x  than")
        # Two neighbours: 16 * 272,474 * 4 bits.
        self.assertRegex(done.stdout, r"\n100 Mbit/s +\S+ ms +174\.38 ms\n")
        self.assertRegex(done.stdout, r"\nlayer3\.0\.conv2\.weight  64 x 576 ")
        self.assertNotIn(" \n", done.stdout)

    def test_models_are_listed_with_their_settings(self):
        listed = json.loads(self.run_laconic("list", "--json").stdout)
        models = {m["name"]: m for m in listed["models"]}
        self.assertLessEqual({"logistic", "mlp", "lenet", "resnet8",
                              "resnet18", "resnet20", "resnet50", "lstm"},
                             set(models))
        self.assertEqual([p["name"] for p in models["lstm"]["params"]],
                         ["vocabulary", "hidden", "layers", "dropout"])


class Refusals(Size):
    def test_one_of_model_and_layout_is_needed(self):
        self.fails(USAGE, "size: neither of --model and --layout given, "
                   "expected one", "size", "--algorithm", "dpsgd")
        self.fails(USAGE, "size: both of --model and --layout given, "
                   "expected one", "size", "--algorithm", "dpsgd", "--model",
                   "mlp", "--layout", "x")
        self.fails(USAGE, "size: --algorithm SPEC is missing", "size",
                   "--model", "mlp")

    def test_a_wrong_layout_file_is_named_with_its_line(self):
        words = ("size", "--algorithm", "dpsgd", "--layout", "shapes.txt")
        self.write("shapes.txt", b"a 2 3\nb two 3\n")
        self.fails(FAILED, 'shapes.txt: line 2 is "b two 3", expected a '
                   "name, rows and columns", *words)
        self.write("shapes.txt", b"# nothing\n")
        self.fails(FAILED, "shapes.txt: has no tensor, expected lines of "
                   "name, rows and columns", *words)
        self.fails(FAILED, "none.txt: cannot open: No such file or directory",
                   *words[:-1], "none.txt")

    def test_unknown_names_are_usage(self):
        done = self.run_laconic("size", "--model", "resnet21", "--algorithm",
                                "dpsgd")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn('no model is named "resnet21"', done.stderr)
        self.assertIn("did you mean resnet20?", done.stderr)
        done = self.run_laconic("size", "--model", "mlp", "--algorithm",
                                "chocco", "--compressor", "sign")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("did you mean choco?", done.stderr)
        self.fails(USAGE, "hypercube: 6 workers, expected a power of two",
                   "size", "--model", "mlp", "--algorithm", "dpsgd",
                   "--topology", "hypercube", "--workers", "6")

    def test_a_compressor_must_fit_the_algorithm(self):
        self.fails(USAGE, "dpsgd: compressor sign was given, but it takes "
                   "none", "size", "--model", "mlp", "--algorithm", "dpsgd",
                   "--compressor", "sign")
        self.fails(USAGE, "choco: a compressor is needed, such as sign",
                   "size", "--model", "mlp", "--algorithm", "choco")


if __name__ == "__main__":
    unittest.main()
