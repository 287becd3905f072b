# SPDX-License-Identifier: MIT
"""Runs the Python code of docs/loading-a-model.md on models that `laconic
train` has trained, and compares the results with those of `laconic predict`
and `laconic evaluate`.

usage: load_model.py ROOT LACONIC

The exit status is 77 if PyTorch is missing.
"""
import importlib.util
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

if not importlib.util.find_spec("torch"):
    print("PyTorch is not installed for", sys.executable)
    sys.exit(77)
import numpy  # noqa: E402
import torch  # noqa: E402

LACONIC = os.path.abspath(sys.argv.pop(2))
ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tools")]
import training  # noqa: E402

BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
PACKAGE, READER, NETWORK, IMAGES, TEXT = BLOCK.findall(
    (ROOT / "docs" / "loading-a-model.md").read_text())

# Both programs compute in float32, with sums in different orders. A sum of n
# products of random signs has a relative error near sqrt(n) 2^-24; n is at most
# 1024 here, which gives 2^-19. Nine layers add up to less than 2^-15 of a
# logit, and logits are below 8: 2^-12 is the most by which one differs. Then
# the loss differs by at most twice that, and a probability by half of it.
LOGIT = 2.0 ** -12


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def laconic(self, *words):
        done = subprocess.run([LACONIC, *words, "--json"], text=True,
                              stdout=subprocess.PIPE, timeout=300, check=True)
        return json.loads(done.stdout)

    def train(self, *words):
        self.laconic("train", "--workers", "2", "--algorithm", "allreduce",
                     "--quiet", "--out", "run", *words)

    def run_page(self, *blocks):
        """The names that the code leaves."""
        found = {}
        with open(os.devnull, "w", encoding="ascii") as quiet:
            found["print"] = lambda *words: print(*words, file=quiet)
            exec("\n".join(blocks), found)  # pylint: disable=exec-used
        return found

    def compare(self, found, labels, probabilities):
        for guess, label, probability in zip(
                found, labels, probabilities, strict=True):
            self.assertAlmostEqual(guess["probability"], float(probability),
                                   delta=LOGIT / 2)
            if probability > 0.5 + LOGIT:  # not a tie
                self.assertEqual(guess["label"], int(label))

    def compare_images(self, model):
        data = "--data", "mnist", "--data-dir", "images"
        self.train(*data, "--model", model, "--batch", "10", "--epochs", "3")
        found = self.run_page(READER, NETWORK, IMAGES)
        self.assertTrue(all("num_batches_tracked" in name
                            for name in found["missing"]), found["missing"])
        self.compare(self.laconic("predict", "run", "images.npy")
                     ["predictions"], found["labels"], found["probabilities"])
        with open("images/t10k-labels-idx1-ubyte", "rb") as file:
            labels = torch.tensor(list(file.read()[8:]))
        loss = torch.nn.functional.cross_entropy(found["logits"], labels)
        self.assertLess(float(loss), 0.9 * math.log(10))  # it has learned
        score = self.laconic("evaluate", "run", *data)
        self.assertAlmostEqual(score["test_loss"], float(loss),
                               delta=2 * LOGIT)

    def images(self):
        training.images("images", train=600, test=60)
        with open("images/t10k-images-idx3-ubyte", "rb") as file:
            pixels = numpy.frombuffer(file.read()[16:], numpy.uint8)
        numpy.save("images.npy", pixels.reshape(-1, 28, 28))

    def test_lenet(self):
        self.images()
        self.compare_images("lenet")

    def test_resnet8(self):
        self.images()
        self.compare_images("resnet8")

    def test_mlp(self):
        self.images()
        self.compare_images("mlp")

    def test_lstm(self):
        training.text("text")
        data = "--data", "wikitext-2", "--data-dir", "text"
        self.train(*data, "--model", "lstm:hidden=24,layers=2,dropout=0.1",
                   "--batch", "5", "--bptt", "10", "--lr", "4", "--momentum",
                   "0", "--epochs", "6")
        for text in "w1 w4", "w7", "w1 nosuch w4 w13\nw0":
            pathlib.Path("words.txt").write_text(text, encoding="ascii")
            found = self.run_page(READER, NETWORK, TEXT)
            self.assertEqual(found["missing"], ["decoder.weight"])
            guess = self.laconic("predict", "run", "words.txt")["predictions"]
            self.compare(guess, [found["next_word"]], [found["probability"]])
            self.assertEqual(guess[0]["word"],
                             found["words"][found["next_word"]])
        self.assertGreater(guess[0]["probability"], 0.2)  # of 42 words
        # The whole test set in rows of its own, as `evaluate` reads it.
        tokens = [found["number_of"][word] for word in
                  pathlib.Path("text/test.txt").read_text().split()]
        tokens.append(found["number_of"]["<eos>"])
        tokens = torch.tensor(tokens)
        with torch.no_grad():
            logits, _ = found["model"](tokens[:-1].reshape(-1, 1))
        loss = torch.nn.functional.cross_entropy(logits[:, 0], tokens[1:])
        score = self.laconic("evaluate", "run", *data, "--batch", "1",
                             "--bptt", "10")
        self.assertEqual(score["test_examples"], len(tokens) - 1)
        self.assertAlmostEqual(score["test_loss"], float(loss),
                               delta=2 * LOGIT)

    def test_the_package_reads_the_same(self):
        if not importlib.util.find_spec("safetensors"):
            compile(PACKAGE, "page", "exec")
            self.skipTest("safetensors is not installed")
        self.images()
        self.train("--data", "mnist", "--data-dir", "images", "--epochs", "1")
        pairs = [self.run_page(reader, NETWORK)
                 for reader in (PACKAGE, "import torch\n" + READER)]
        self.assertEqual(*(found["metadata"] for found in pairs))
        for name, tensor in pairs[0]["tensors"].items():
            self.assertTrue(torch.equal(tensor, pairs[1]["tensors"][name]))


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
