# SPDX-License-Identifier: MIT
"""CHANGELOG.md becomes a changelog of the packages that dpkg can read.

usage: test_changelog.py ROOT
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
TOOL = ROOT / "tools" / "debian_changelog.py"
TIME = 1794000000  # 2026-11-06 21:20 UTC
SECTIONS = """# Changelog

## Unreleased

### Added

- `one`, which is described in so many words that its line
  and the next one must be filled again.

### Fixed

- two

## 0.1.0 (2026-10-31)

- first
"""
EXPECTED = """laconic (0.2.0~20261106.2120) unstable; urgency=medium

  [ Added ]
  * `one`, which is described in so many words that its line and the next one
    must be filled again.
  [ Fixed ]
  * two

 -- A Name <name@example.org>  Fri, 06 Nov 2026 21:20:00 +0000

laconic (0.1.0) unstable; urgency=medium

  * first

 -- A Name <name@example.org>  Sat, 31 Oct 2026 00:00:00 +0000

"""


def print_changelog(root):
    return subprocess.run([sys.executable, TOOL, root, str(TIME)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, check=False)


class Changelog(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "packaging" / "debian").mkdir(parents=True)
        (self.root / "packaging" / "debian" / "control").write_text(
            "Source: laconic\nMaintainer: A Name <name@example.org>\n")
        (self.root / "CMakeLists.txt").write_text(
            "project(laconic VERSION 0.2.0 LANGUAGES C)\n")
        (self.root / "CHANGELOG.md").write_text(SECTIONS)

    def test_sections_are_entries(self):
        done = print_changelog(self.root)
        self.assertEqual((done.stdout, done.stderr), (EXPECTED, ""))

    def test_a_section_needs_a_version_and_a_date(self):
        (self.root / "CHANGELOG.md").write_text("## 0.1.0\n\n- first\n")
        done = print_changelog(self.root)
        self.assertEqual(done.returncode, 1)
        self.assertIn('is "0.1.0", expected', done.stderr)

    @unittest.skipUnless(shutil.which("dpkg-parsechangelog"),
                         "dpkg-dev is not installed")
    def test_dpkg_reads_ours(self):
        done = print_changelog(ROOT)
        self.assertEqual(done.returncode, 0, done.stderr)
        read = subprocess.run(
            ["dpkg-parsechangelog", "--all", "--file=-"], input=done.stdout,
            text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual((read.returncode, read.stderr), (0, ""))
        self.assertRegex(read.stdout, r"(?m)^Source: laconic$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
