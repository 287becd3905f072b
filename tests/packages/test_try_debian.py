# SPDX-License-Identifier: MIT
"""What tools/try_debian.sh refuses, where it is skipped, and what makes `make
check-train` fail. `make check-debian` runs the rest.

usage: test_try_debian.py ROOT
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
TOOLS = ROOT / "tools"
SKIPPED, USAGE = 77, 2
# All that the script needs until it is skipped.
PROGRAMS = ["sh", "dirname"]


def run(*words, **more):
    return subprocess.run([str(word) for word in words], text=True,
                          capture_output=True, check=False, **more)


class TryDebian(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, **scripts):
        """A PATH with few programs, and others that are given as text."""
        scripts = {"id": "echo 0", **scripts}
        for name in PROGRAMS:
            (self.folder / name).symlink_to(shutil.which(name))
        for name, text in scripts.items():
            (self.folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (self.folder / name).chmod(0o755)
        return {"PATH": str(self.folder), "HOME": str(self.folder)}

    def test_scripts_have_the_syntax_of_sh(self):
        for name in "try_debian", "try_packages", "debian_chroot":
            done = run("sh", "-n", TOOLS / f"{name}.sh")
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_other_suites_are_refused(self):
        for words in (), ("woody",), ("",), ("-h",), ("train",):
            done = run(TOOLS / "try_debian.sh", *words)
            self.assertEqual(done.returncode, USAGE, words)
            self.assertIn("usage: try_debian.sh trixie|sid|bookworm",
                          done.stderr)

    def test_words_that_a_shell_would_expand_are_refused(self):
        for word in "a;b", "$(a)", "a'b", "*":
            done = run(TOOLS / "try_debian.sh", "trixie", word)
            self.assertEqual(done.returncode, USAGE, word)
            self.assertIn("expected targets of make", done.stderr)

    def skipped_line(self, environment):
        done = run(TOOLS / "try_debian.sh", "trixie", env=environment)
        self.assertEqual(done.returncode, SKIPPED, done.stderr)
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
        self.assertTrue(done.stdout.startswith("debian: skipped, "))
        return done.stdout

    def test_it_is_skipped_without_mmdebstrap(self):
        self.assertIn("mmdebstrap is not installed",
                      self.skipped_line(self.path()))

    def test_it_is_skipped_where_namespaces_are_not_allowed(self):
        environment = self.path(mmdebstrap="exit 1", setpriv="exit 1")
        self.assertIn("root may not make namespaces here",
                      self.skipped_line(environment))
        (self.folder / "id").write_text("#!/bin/sh\necho 1000\n")
        self.assertIn("/etc/subuid", self.skipped_line(environment))

    def test_a_chroot_is_of_the_packages_of_the_targets(self):
        # Not with the settings of a make that runs the tests.
        done = run("make", "--dry-run", "--no-print-directory", "check-train",
                   "check-short", cwd=ROOT, env={"PATH": os.environ["PATH"]})
        groups = {group for line in done.stdout.splitlines()
                  if line.startswith("tools/install_packages.sh ")
                  for group in line.split()[1:]}
        self.assertEqual(groups, {"build", "train", "short"})


class Accuracy(unittest.TestCase):
    def check(self, text):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "metrics.jsonl").write_text(text)
            return run(TOOLS / "check_accuracy.sh", folder, "0.89").returncode

    def test_the_last_line_counts(self):
        good, bad = ('{"epoch":1,"final_accuracy":%s,"test_accuracy":0.5}\n' %
                     value for value in ("0.9075", "0.89"))
        self.assertEqual(self.check(bad + good), 0)
        self.assertEqual(self.check(good + bad), 1)

    def test_a_run_without_accuracy_fails(self):
        for text in "", '{"epoch":1,"final_accuracy":null}\n':
            self.assertEqual(self.check(text), 1)


if __name__ == "__main__":
    unittest.main()
