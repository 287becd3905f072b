# SPDX-License-Identifier: MIT
"""laconic evaluate and laconic predict, and the metadata that they use.

usage: test_models.py LACONIC
"""
import json
import math
import os
import shutil
import struct
import unittest

from command import Command, FAILED, GOOD, USAGE, npy
import training


def metadata(path):
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length))["__metadata__"]


class Models(Command):
    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def train(self, *more):
        done = self.run_laconic(
            "train", "--workers", "3", "--batch", "5", "--epochs", "2",
            "--out", "out", "--json", "--test-limit", "0", *more)
        self.assertEqual(done.returncode, GOOD, done.stderr)
        return json.loads(done.stdout)

    def evaluate(self, *words):
        return json.loads(self.succeeds("evaluate", *words, "--json"))

    def predict(self, *words):
        return json.loads(self.succeeds("predict", *words,
                                        "--json"))["predictions"]

    def rejected(self, code, part, *words):
        done = self.run_laconic(*words)
        self.assertEqual((done.returncode, done.stdout), (code, ""),
                         done.stderr)
        self.assertIn(part, done.stderr)


class Images(Models):
    DATA = ("--data", "mnist", "--data-dir", "images")

    def setUp(self):
        super().setUp()
        training.images(self.path("images"))

    def test_images(self):
        for model in ("lenet", "resnet8"):
            run = self.train(*self.DATA, "--model", model, "--lr", "0.05",
                             "--algorithm", "allreduce")
            for where in ("out", "out/model.safetensors"):
                found = self.evaluate(where, *self.DATA)
                self.assertEqual((found["model"], found["data"],
                                  found["test_examples"]), (model, "mnist", 60))
                self.assertEqual(found["test_accuracy"],
                                 run["averaged_accuracy"])
                self.assertAlmostEqual(found["test_loss"],
                                       run["averaged_loss"], 5)
            self.assertEqual(self.evaluate(
                "out", *self.DATA, "--test-limit", "7")["test_examples"], 7)
            own = self.evaluate("out", "--data-dir", "images")
            self.assertEqual(own, self.evaluate("out", *self.DATA))
            # The same by predictions of the raw pixels.
            pixels = self.read("images/t10k-images-idx3-ubyte")[16:]
            labels = self.read("images/t10k-labels-idx1-ubyte")[8:]
            self.write("x.npy", npy((60, 28, 28), list(map(float, pixels))))
            guesses = self.predict("out", "x.npy")
            correct = sum(g["label"] == label
                          for g, label in zip(guesses, labels, strict=True))
            self.assertEqual(correct, round(60 * found["test_accuracy"]))
            self.assertGreater(correct, 15)  # by chance 6
            for guess in guesses:
                self.assertGreaterEqual(guess["probability"], 0.1)
                self.assertLessEqual(guess["probability"], 1)
            # One example needs no first dimension.
            self.write("x.npy", npy((28, 28), list(map(float, pixels[:784]))))
            self.assertEqual(self.predict("out", "x.npy"), guesses[:1])
            shutil.rmtree(self.path("out"))

    def test_classes_have_names_where_the_data_set_has(self):
        names = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                 "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
        pixels = self.read("images/t10k-images-idx3-ubyte")[16:]
        self.write("x.npy", npy((60, 28, 28), pixels, descr="|u1"))
        self.train("--data", "fashion-mnist", "--data-dir", "images")
        found = self.predict("out", "x.npy")
        self.assertGreater(len({guess["label"] for guess in found}), 1)
        for guess in found:
            self.assertEqual(guess["class"], names[guess["label"]])
        lines = self.succeeds("predict", "out", "x.npy").splitlines()
        self.assertEqual(lines[0].split(), ["label", "class", "probability"])
        for line, guess in zip(lines[1:], found, strict=True):
            self.assertRegex(line, r"^ *%d  %s +[01]\.\d{4}$" % (
                guess["label"], guess["class"]))
        # Digits are their own names.
        shutil.rmtree(self.path("out"))
        self.train(*self.DATA)
        self.assertNotIn("class", self.predict("out", "x.npy")[0])
        lines = self.succeeds("predict", "out", "x.npy").splitlines()
        self.assertEqual(lines[0].split(), ["label", "probability"])

    def test_bytes_are_pixels_too(self):
        self.train(*self.DATA)
        pixels = self.read("images/t10k-images-idx3-ubyte")[16:]
        self.write("x.npy", npy((60, 28, 28), list(map(float, pixels))))
        expected = self.predict("out", "x.npy")
        for shape in (60, 28, 28), (60, 1, 28, 28), (60, 784):
            self.write("x.npy", npy(shape, pixels, descr="|u1"))
            self.assertEqual(self.predict("out", "x.npy"), expected)
        for shape in (28, 28), (1, 28, 28), (784,):
            self.write("x.npy", npy(shape, pixels[:784], descr="|u1"))
            self.assertEqual(self.predict("out", "x.npy"), expected[:1])
        # With the first image as test set and the prediction as its label, the
        # loss of `evaluate` is -log of the probability. A sum of n <= 1024
        # products in float32 has a relative error near sqrt(n) 2^-24 = 2^-19;
        # five layers give less than 2^-16 of a logit below 8, so 2^-13, and a
        # probability changes by half of that at most.
        label = expected[0]["label"]
        files = self.path("images", "t10k-%s-ubyte")
        with open(files % "images-idx3", "r+b") as file:
            file.write(struct.pack(">4I", 2051, 1, 28, 28))
            file.truncate(16 + 784)
        with open(files % "labels-idx1", "wb") as file:
            file.write(struct.pack(">2I", 2049, 1) + bytes([label]))
        self.assertAlmostEqual(
            math.exp(-self.evaluate("out", *self.DATA)["test_loss"]),
            expected[0]["probability"], delta=2.0 ** -14)

    def test_the_metadata_describe_the_input(self):
        self.train(*self.DATA)
        found = metadata(self.path("out", "model.safetensors"))
        for key, value in (("model", "lenet"), ("data", "mnist"),
                           ("kind", "images"), ("sample", "1 28 28"),
                           ("classes", "10"), ("mean", "0.1307"),
                           ("deviation", "0.3081"), ("format", "pt")):
            self.assertEqual(found[key], value)
        self.assertNotIn("vocabulary", found)
        self.assertIn("accuracy", self.succeeds("evaluate", "out", *self.DATA))

    def test_what_does_not_fit_is_rejected(self):
        self.train(*self.DATA)
        training.cifar(self.path("cifar"))
        self.rejected(FAILED, "is for examples of 1 x 28 x 28 and 10 classes, "
                      "but those of cifar-10 are 3 x 32 x 32", "evaluate",
                      "out", "--data", "cifar-10", "--data-dir", "cifar")
        self.rejected(USAGE, "nosuch", "evaluate", "out", "--data", "nosuch")
        self.rejected(FAILED, "nowhere: cannot open: No such file", "evaluate",
                      "nowhere", *self.DATA)
        os.mkdir(self.path("empty"))
        self.rejected(FAILED, "empty/model.safetensors: is missing or no file, "
                      "expected the folder of a finished run of `laconic "
                      "train`", "evaluate", "empty", *self.DATA)
        training.text(self.path("words"))
        self.rejected(FAILED, "out: is a model of images, but wikitext-2 is "
                      "text", "evaluate", "out", *Texts.DATA)
        # A checkpoint has other tensors and no description.
        self.rejected(FAILED, "expected a model.safetensors", "predict",
                      "out/step-32/worker-0.safetensors", "x.npy")
        whole = self.read("out/model.safetensors")
        damaged = bytearray(whole)
        damaged[-1] ^= 1
        for content in bytes(damaged), whole[:-1], whole[:9999]:
            self.write("out/model.safetensors", content)
            self.rejected(FAILED, "out/model.safetensors: the checksum of its "
                          "%d bytes is " % len(content), "predict", "out",
                          "x.npy")
        for content, message in (
                (b"", "has 0 bytes, expected at least 8"),
                (whole[:100], "the header has "),
                (npy((9, 9), [0.0] * 81), "the header has ")):
            self.write("out/model.safetensors", content)
            self.rejected(FAILED, "out/model.safetensors: " + message,
                          "predict", "out", "x.npy")

    def test_files_that_are_no_safetensors(self):
        self.train(*self.DATA)
        self.write("x.json", b'{"a":[{{{{{{{{{{{{{{{{}]}')
        self.write("short", b"8 bytes.")
        self.write("empty", b"")
        for name in ("x.npy", "x.json", "short", "empty",
                     "images/t10k-images-idx3-ubyte"):
            message = name + ": is not a safetensors file, expected " \
                "model.safetensors of `laconic train` or its folder\n"
            self.rejected(FAILED, message, "evaluate", name, *self.DATA)
            self.rejected(FAILED, message, "predict", name, "x.npy")
        for name in "manifest.json", "metrics.jsonl":
            self.rejected(
                FAILED, "out/%s: is not a safetensors file, expected the "
                "folder of its run, out\n" % name, "predict", "out/" + name,
                "x.npy")
        done = self.run_laconic("predict", "manifest.json", "x.npy",
                                cwd=self.path("out"))
        self.assertIn("expected the folder of its run, .\n", done.stderr)
        # A pipe can be read only once.
        done = self.run_laconic("predict", "/dev/stdin", "../x.npy", input="x",
                                cwd=self.path("out"))
        self.assertIn("/dev/stdin: has 1 bytes, expected at least 8\n",
                      done.stderr)

    def test_arrays_that_are_no_examples(self):
        self.train(*self.DATA)
        for shape in (10,), (28, 28, 2), (2, 28, 27), (1, 1, 1, 28, 28), \
                (2 * 784,), (28, 28, 1):
            count = math.prod(shape)
            self.write("x.npy", npy(shape, [9.0] * count))
            self.rejected(
                FAILED, "x.npy: has the shape %s, expected an example of 28 x "
                "28, or N x 28 x 28\n" % " x ".join(map(str, shape)),
                "predict", "out", "x.npy")
        self.write("x.npy", npy((0, 28, 28), []))
        self.rejected(FAILED, "x.npy: has no values, expected an example or "
                      "more", "predict", "out", "x.npy")
        for value, found in ((math.nan, "nan"), (math.inf, "inf"),
                             (-7.0, "-7"), (255.5, "255.5")):
            self.write("x.npy", npy((2, 28, 28), [9.0] * 900 + [value]
                                    + [9.0] * 667))
            self.rejected(FAILED, "x.npy: value 900 is %s, expected a pixel "
                          "from 0 to 255\n" % found, "predict", "out", "x.npy")
        self.write("x.npy", npy((28, 27), [9] * 756, descr="|u1"))
        self.rejected(FAILED, "x.npy: has the shape 28 x 27, expected an "
                      "example of 28 x 28, or N x 28 x 28\n", "predict", "out",
                      "x.npy")
        for descr, found in (("<f8", "float64"), ("<i8", "int64"),
                             ("|i1", "int8"), ("|b1", "bool"),
                             ("<u2", "uint16")):
            self.write("x.npy", npy((28, 28), [9.0] * 784, descr=descr))
            self.rejected(FAILED, "x.npy: holds %s, expected uint8 (|u1) or "
                          "float32 (<f4)\n" % found, "predict", "out", "x.npy")
        self.rejected(FAILED, "nowhere.npy: cannot open: No such file",
                      "predict", "out", "nowhere.npy")
        self.write("x.txt", b"w1 w4")
        self.rejected(FAILED, "x.txt: is not a .npy file", "predict", "out",
                      "x.txt")

    def test_examples_may_have_their_channel_or_be_flat(self):
        self.train(*self.DATA)
        pixels = list(map(float, self.read(
            "images/t10k-images-idx3-ubyte")[16:16 + 2 * 784]))
        found = []
        for shape in (2, 28, 28), (2, 1, 28, 28), (2, 784):
            self.write("x.npy", npy(shape, pixels))
            found.append(self.predict("out", "x.npy"))
        self.assertEqual(found[1:], found[:1] * 2)
        self.assertEqual(len(found[0]), 2)

    def test_pixels_up_to_1_are_noted(self):
        self.train(*self.DATA)
        self.write("x.npy", npy((28, 28), [0.5] * 784))
        done = self.run_laconic("predict", "out", "x.npy")
        self.assertEqual((done.returncode, done.stderr), (
            GOOD, "laconic: x.npy: no pixel is above 1, expected pixels from 0 "
            "to 255\n"))


class Tables(Models):
    def test_rows_of_a_table(self):
        rows = b"1 1:0.5 3:2\n-1 2:1\n1 1:1\n-1 2:3 3:1\n" * 10
        self.write("rows", rows)
        self.write("rows.t", rows)
        data = "--data", "libsvm", "--data-dir", "rows"
        self.train(*data, "--model", "logistic", "--lr", "1")
        self.assertEqual(self.evaluate("out", *data)["test_accuracy"], 1)
        self.write("x.npy", npy((2, 3), [1.0, 0, 0, 0, 1, 0]))
        first, second = self.predict("out", "x.npy")
        self.assertNotEqual(first["label"], second["label"])
        self.write("x.npy", npy((3,), [1.0, 0, 0]))
        self.assertEqual(self.predict("out", "x.npy"), [first])
        self.write("x.npy", npy((3,), [1, 0, 0], descr="|u1"))
        self.assertEqual(self.predict("out", "x.npy"), [first])
        self.write("x.npy", npy((2, 4), [1.0] * 8))
        self.rejected(FAILED, "x.npy: has the shape 2 x 4, expected an example "
                      "of 3, or N x 3\n", "predict", "out", "x.npy")
        for value in math.nan, -math.inf:
            self.write("x.npy", npy((3,), [1.0, value, 0]))
            self.rejected(FAILED, "x.npy: value 1 is %s, expected a finite "
                          "number\n" % value, "predict", "out", "x.npy")


class Texts(Models):
    DATA = ("--data", "wikitext-2", "--data-dir", "words")
    MODEL = ("--model", "lstm:hidden=24,layers=1,dropout=0", "--lr", "4",
             "--momentum", "0", "--bptt", "10", "--epochs", "8",
             "--algorithm", "allreduce")

    def test_a_language_model_names_the_next_word(self):
        training.text(self.path("words"))
        run = self.train(*self.DATA, *self.MODEL)
        found = self.evaluate("out", *self.DATA, "--batch", "5", "--bptt",
                              "10")
        self.assertEqual(found["test_examples"], run["test_examples"])
        self.assertAlmostEqual(found["test_perplexity"],
                               run["averaged_perplexity"], 3)
        words = metadata(self.path("out", "model.safetensors"))["vocabulary"]
        self.assertEqual(words.count("\n"), len(words.split("\n")) - 1)
        self.assertIn("w13\n", words)
        # After w4 comes w13 in nine of ten cases.
        self.write("x.txt", b"w1 w4")
        guess, = self.predict("out", "x.txt")
        self.assertEqual(guess["word"], "w13")
        self.assertGreater(guess["probability"], 0.5)
        self.assertIn("w13", self.succeeds("predict", "out", "x.txt"))
        self.write("x.txt", b" \n")
        self.rejected(FAILED, "x.txt: has no words", "predict", "out", "x.txt")
        self.write("x.txt", b"w1 nosuch w4\nneither")
        done = self.run_laconic("predict", "out", "x.txt")
        self.assertEqual((done.returncode, done.stderr), (
            GOOD, "laconic: x.txt: 2 of 4 words are not in the vocabulary and "
            "were read as <unk>\n"))
        self.write("x.txt", b"w1 w4\0w13")
        self.rejected(FAILED, "x.txt: byte 5 is 0, expected a text", "predict",
                      "out", "x.txt")
        training.images(self.path("images"))
        self.rejected(FAILED, "out: is a model of text, but mnist is images",
                      "evaluate", "out", *Images.DATA)
        # Another vocabulary, and the same words in another order of frequency.
        training.text(self.path("more"))
        for name in ("train.txt", "valid.txt", "test.txt"):
            self.write("more/" + name, self.read("words/" + name)
                       + b" q" * 9)
        self.rejected(FAILED, "out: has a vocabulary of 42 words, but that of "
                      "wikitext-2 has 43", "evaluate", "out", "--data",
                      "wikitext-2", "--data-dir", "more")
        os.makedirs(self.path("other"))
        for name in ("train.txt", "valid.txt", "test.txt"):
            text = self.read("words/" + name).replace(b"w13 ", b"q13 ")
            self.write("other/" + name, text.replace(b" w4 ", b" w13 "))
        self.rejected(FAILED, "out: ", "evaluate", "out", "--data",
                      "wikitext-2", "--data-dir", "other")


if __name__ == "__main__":
    unittest.main(verbosity=1)
