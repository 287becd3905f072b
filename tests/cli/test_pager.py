# SPDX-License-Identifier: MIT
"""Help and lists in a pager: on a terminal only, chosen as git chooses it.

usage: test_pager.py LACONIC
"""
import os
import unittest

from command import Command, GOOD, USAGE

LOUD = "tr a-z A-Z"  # a pager whose output can be told apart


class Pager(Command):
    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.folder, "bin"))

    def shown(self, *words, **variables):
        """What a terminal shows, without pagers of who runs the test."""
        code, text = self.on_terminal(*words, **{
            "LACONIC_PAGER": None, "PAGER": None, "LESS": None, **variables})
        self.assertEqual(code, GOOD, text)
        return text

    def program(self, name, text):
        path = os.path.join(self.folder, "bin", name)
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)

    def only_own_programs(self):
        return {"PATH": os.path.join(self.folder, "bin")}

    def test_help_and_lists_are_paged(self):
        for words in (("--help",), ("help",), ("train", "--help"),
                      ("help", "train"), ("list",), ("list", "choco")):
            text = self.succeeds(*words)
            self.assertNotEqual(text, text.upper())
            self.assertEqual(self.shown(*words, LACONIC_PAGER=LOUD),
                             text.upper(), words)

    def test_the_variable_of_the_program_comes_first(self):
        text = self.succeeds("list", "choco")
        self.assertEqual(self.shown("list", "choco", PAGER=LOUD), text.upper())
        self.assertEqual(self.shown("list", "choco", PAGER="false",
                                    LACONIC_PAGER=LOUD), text.upper())

    def test_nothing_and_cat_are_no_pager(self):
        text = self.succeeds("list", "choco")
        for none in "", "cat":
            self.assertEqual(self.shown("list", "choco", PAGER=LOUD,
                                        LACONIC_PAGER=none), text)
            self.assertEqual(self.shown("list", "choco", PAGER=none), text)

    def test_an_option_turns_it_off(self):
        for words in (("--no-pager", "list"), ("list", "--no-pager"),
                      ("--no-pager", "--help"), ("--help", "--no-pager"),
                      ("help", "--no-pager"), ("--no-pager", "help", "train"),
                      ("help", "train", "--no-pager"),
                      ("--no-pager", "train", "--help"),
                      ("train", "--help", "--no-pager"),
                      ("train", "--no-pager", "--help")):
            plain = [word for word in words if word != "--no-pager"]
            self.assertEqual(self.shown(*words, LACONIC_PAGER=LOUD),
                             self.succeeds(*plain), words)
            self.assertEqual(self.succeeds(*words), self.succeeds(*plain))

    def test_less_is_the_default_and_ends_if_the_text_fits(self):
        self.program("less", 'echo "$# words, LESS=$LESS"\n')
        shown = self.shown("list", **self.only_own_programs())
        self.assertEqual(shown, "0 words, LESS=FRX\n")
        shown = self.shown("list", LESS="M", **self.only_own_programs())
        self.assertEqual(shown, "0 words, LESS=M\n")

    def test_files_pipes_and_json_are_not_paged(self):
        environment = {**os.environ, "LACONIC_PAGER": "false"}
        done = self.run_laconic("train", "--help", env=environment)
        self.assertEqual((done.returncode, done.stderr), (GOOD, ""))
        self.assertEqual(done.stdout, self.succeeds("train", "--help"))
        self.assertEqual(self.shown("list", "choco", "--json",
                                    LACONIC_PAGER=LOUD),
                         self.succeeds("list", "choco", "--json"))

    def test_a_pager_that_ends_early_or_fails_is_no_failure(self):
        for pager in "true", "exit 3", "head -n 1 >/dev/null", "kill $$":
            self.assertEqual(self.shown("list", LACONIC_PAGER=pager), "")

    def test_the_text_is_printed_if_the_pager_cannot_be_started(self):
        text = self.succeeds("list", "choco")
        self.assertEqual(self.shown("list", "choco",
                                    **self.only_own_programs()), text)
        shown = self.shown("list", "choco", LACONIC_PAGER="no-such-pager -x")
        self.assertIn("not found", shown.split("\n")[0])
        self.assertTrue(shown.endswith(text), shown)

    def test_a_wrong_word_is_not_paged(self):
        code, text = self.on_terminal("list", "nothing", LACONIC_PAGER=LOUD)
        self.assertEqual(code, USAGE)
        self.assertIn('laconic: list: nothing is named "nothing"', text)

    def test_the_pages_describe_it(self):
        for words in ((), ("list",)):
            page = self.succeeds("manual", *words)
            self.assertIn("\n.It Ev \\&LACONIC_PAGER, \\&PAGER\n", page)
            self.assertIn("\\-no\\-pager", page)


if __name__ == "__main__":
    unittest.main()
