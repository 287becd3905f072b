# SPDX-License-Identifier: MIT
"""laconic manual: the pages are complete, without warnings of mandoc and groff,
fit on 80 columns, and their examples work.

usage: test_manual.py LACONIC
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from command import Command, FAILED, GOOD, HANG, LACONIC, USAGE, npy
from processes import free_port
import training

SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "ENVIRONMENT",
            "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
OPTIONAL = {"ENVIRONMENT", "FILES"}
# What makes examples short enough for a test.
SHORT = {
    "train": "--data-dir images --workers 2 --batch 5 --epochs 1",
    "evaluate": "--data-dir images",
    "bench": "--values 1000 --runs 1",
    "peers": "--timeout 1",
}
NEED_TCP = {"launch", "key", "peers"}


class Pages(Command):
    def commands(self):
        return re.findall(r"(?m)^  ([a-z]+) ", self.succeeds("--help"))

    def pages(self):
        """The source of every page, by the words that name it."""
        return {words: self.succeeds("manual", *words) for words in
                [()] + [(name,) for name in self.commands()]}

    def section(self, page, title):
        """The lines of a section as they were before they became mdoc."""
        text = page.partition(".Sh %s\n" % title)[2].partition("\n.Sh ")[0]
        return text.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


class Manual(Pages):
    def tool(self, page, *words):
        """The output of a tool that reads a page, with its warnings."""
        if shutil.which(words[0]) is None:
            self.skipTest(words[0] + " is not installed")
        done = subprocess.run(
            words, input=page, text=True, timeout=HANG, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C.UTF-8"})
        return done.stdout

    def test_pages_have_all_sections_in_order(self):
        for words, page in self.pages().items():
            with self.subTest(words):
                found = re.findall(r"(?m)^\.Sh (.*)$", page)
                self.assertEqual(found, [s for s in SECTIONS if s in found])
                self.assertLessEqual(set(SECTIONS) - set(found), OPTIONAL)
                name = "-".join(("laconic",) + words)
                self.assertIn(".Dt %s 1\n" % name.upper(), page)
                self.assertIn(".Nm %s\n" % name, page)

    def test_pages_have_every_option_of_the_help(self):
        for name in self.commands():
            text = self.succeeds(name, "--help")
            page = self.section(self.succeeds("manual", name), "OPTIONS")
            listed = re.findall(r"(?m)^\.It Fl (-[a-z-]+)", page)
            shown = re.findall(r"(?m)^  -(-[a-z-]+) ", text)
            self.assertEqual(listed, shown)

    def test_pages_have_defaults(self):
        page = self.section(self.succeeds("manual", "train"), "OPTIONS")
        for text in (".It Fl -epochs Ar N\npasses over the training set "
                     "(default: 5)\n",
                     ".It Fl -optimizer Ar NAME\nadam needs a gradient "
                     "algorithm: sgd|adam (default: sgd)\n",
                     ".It Fl -out Ar DIR\nfolder for metrics and checkpoints "
                     "(required to train)\n"):
            self.assertIn(text, page)
        self.assertRegex(page, r"\nsignum +any +images +sgd +0.0007 ")
        page = self.section(self.succeeds("manual", "report"), "OPTIONS")
        self.assertIn("file to write (required)\n", page)
        page = self.section(self.succeeds("manual", "launch"), "OPTIONS")
        self.assertIn(".It Fl -workers Ar N , Fl n Ar N\n", page)
        self.assertNotIn("agent", page)

    def test_pages_name_what_open_mpi_needs_for_more_workers_than_cores(self):
        for name in "train", "average":
            page = self.section(self.succeeds("manual", name), "DESCRIPTION")
            self.assertIn("mpirun --oversubscribe", page)
            self.assertIn("mpirun --oversubscribe",
                          self.succeeds(name, "--help"))

    def test_exit_codes_of_train(self):
        for name in self.commands():
            page = self.section(self.succeeds("manual", name), "EXIT STATUS")
            self.assertEqual(re.findall(r"(?m)^\.It (.*)$", page),
                             "0 1 2".split() + ("130 138 143".split() if
                                                name == "train" else []))

    def test_every_page_is_referred_to(self):
        page = self.section(self.succeeds("manual"), "SEE ALSO")
        self.assertEqual(re.findall(r"\.Xr laconic-([a-z]+) 1", page),
                         sorted(self.commands()))
        page = self.section(self.succeeds("manual", "report"), "SEE ALSO")
        self.assertEqual(re.findall(r"\.Xr (\S+) 1", page),
                         ["laconic", "laconic-average", "laconic-compare",
                          "laconic-plan", "laconic-train"])

    def test_mandoc_has_no_warnings(self):
        for page in self.pages().values():
            self.assertEqual(
                self.tool(page, "mandoc", "-T", "lint", "-W", "warning"), "")

    def test_groff_has_no_warnings(self):
        for page in self.pages().values():
            self.assertEqual(
                self.tool(page, "groff", "-mandoc", "-ww", "-z", "-Tutf8"), "")

    def test_pages_fit_on_80_columns(self):
        for page in self.pages().values():
            text = self.tool(page, "mandoc", "-Tascii", "-Owidth=80")
            for line in re.sub(".\b", "", text).splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_the_date(self):
        for seconds, day in (("0", "January 1, 1970"),
                             ("951782400", "February 29, 2000")):
            done = self.run_laconic("manual", env={
                **os.environ, "SOURCE_DATE_EPOCH": seconds})
            self.assertTrue(done.stdout.startswith(".Dd %s\n" % day))
        for text in "", "-1", "soon", "1e9", "9" * 30:
            self.fails(FAILED, 'SOURCE_DATE_EPOCH is "%s", expected seconds '
                       "since 1970" % text, "manual",
                       env={**os.environ, "SOURCE_DATE_EPOCH": text})

    def test_an_unknown_command_is_usage(self):
        self.fails(USAGE, 'manual: no command is named "trian"', "manual",
                   "trian")


class Examples(Pages):
    def setUp(self):
        super().setUp()
        training.images(os.path.join(self.folder, "images"))
        self.write("images.npy", npy((2, 28, 28), [0.0] * (2 * 28 * 28)))
        os.mkdir(os.path.join(self.folder, "bin"))
        os.symlink(LACONIC, os.path.join(self.folder, "bin", "laconic"))
        self.environment = {
            **os.environ, "HOME": self.folder,
            "PATH": self.folder + "/bin:" + os.environ["PATH"]}
        for name in "XDG_CONFIG_HOME", "XDG_CACHE_HOME":
            self.environment.pop(name, None)

    def lines(self, words):
        """The command lines of the examples of a page."""
        page = self.section(self.succeeds("manual", *words), "EXAMPLES")
        blocks = re.findall(r"(?ms)^\.Bd.*?\n(.*?)^\.Ed$", page)
        self.assertTrue(blocks, words)
        return "".join(blocks).replace("\\\n", " ").splitlines()

    def run_line(self, line):
        name = line.split()[1]
        if "| man " in line and shutil.which("man") is None:
            return
        done = subprocess.run(
            line + " " + SHORT.get(name, ""), shell=True, cwd=self.folder,
            env=self.environment, text=True, timeout=HANG, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        # A comparison of two measurements has either result.
        good = (GOOD, FAILED) if "--compare" in line else (GOOD,)
        self.assertIn(done.returncode, good, line + "\n" + done.stderr)
        self.assertTrue(done.stdout or " > " in line, line)
        if name == "key":
            key = done.stdout.split()[-1]
            self.write("peers.txt", ("here 127.0.0.1:%d %s\n" % (
                free_port(), key)).encode())

    def test_examples_work(self):
        has_tcp = os.path.exists(os.path.join(os.path.dirname(LACONIC),
                                              "laconic_tcp.so"))
        names = [name for name in self.commands()
                 if has_tcp or name not in NEED_TCP]
        for words in [()] + [(name,) for name in names]:
            for line in self.lines(words):
                self.run_line(line)


if __name__ == "__main__":
    unittest.main()
