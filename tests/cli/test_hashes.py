# SPDX-License-Identifier: MIT
"""The recorded hashes of payloads and of results of `laconic average`."""
import contextlib
import io
import os
import sys
import unittest

from command import LACONIC

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
import record_hashes  # noqa: E402


def compare(hashes, text):
    """Whether the hashes are as recorded, and the lines that are printed."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        good = record_hashes.compare(hashes, text)
    return good, out.getvalue().splitlines()


class Hashes(unittest.TestCase):
    maxDiff = None

    def test_this_build_has_the_recorded_hashes(self):
        path = os.path.join(HERE, "..", "golden", "hashes.txt")
        with open(path, encoding="ascii") as file:
            good, lines = compare(record_hashes.all_hashes(LACONIC),
                                  file.read())
        self.assertTrue(good, "\n".join(lines))

    def test_a_hash_that_differs_or_is_missing_is_found(self):
        record = "01  encode a\n02  average b\n"
        found = {"encode a": "01", "average b": "02"}
        self.assertTrue(compare(found, record)[0])
        good, lines = compare({**found, "average b": "03"}, record)
        self.assertFalse(good)
        self.assertEqual(lines[0], "average b: 03, expected 02")
        self.assertFalse(compare({"encode a": "01"}, record)[0])
        self.assertFalse(compare(found, "")[0])

    def test_a_new_plug_in_is_listed_only(self):
        self.assertEqual(
            compare({"encode a": "01", "encode c": "04"}, "01  encode a\n"),
            (True, ["not recorded: encode c",
                    "1 recorded hashes, all as recorded"]))


if __name__ == "__main__":
    unittest.main()
