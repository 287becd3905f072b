#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail unless docs/training-reference.md has every option of `laconic train`
with its default, and names every algorithm, model and data set.

usage: check_training.py ROOT LACONIC
"""
import json
import pathlib
import re
import subprocess
import sys


def printed(*words):
    return subprocess.run([sys.argv[2], *words], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def options_of_help():
    """Option and value to default, "" where there is none, and None where the
    help refers to another part of itself."""
    found = {}
    for text in re.findall(r"^  --(.*(?:\n {10,}.*)*)", printed(
            "train", "--help"), re.M):
        option, words = re.split(r"\s{2,}", text.replace("\n", " "),
                                 maxsplit=1)
        default = re.search(r"\(([^()]*)\)$", words)
        default = default[1] if default else ""
        found["--" + option] = (None if default.startswith("see ")
                                else default)
    del found["--help"]
    return found


def options_of_page(section):
    rows = re.findall(r"^\| `(--[^`]*)` \| ([^|]*?) ?\| ", section, re.M)
    return dict(rows)


def section_of(page, heading):
    """The text below a heading, up to the next one of any level."""
    below = page.split("\n%s\n" % heading)[1]
    return re.split(r"^#+ ", below, maxsplit=1, flags=re.M)[0]


def problems(page):
    shown = options_of_page(section_of(page, "## Options"))
    known = options_of_help()
    for option in sorted(known.keys() ^ shown.keys()):
        yield "%s is only in %s" % (
            option, "the help" if option in known else "the table")
    for option in sorted(known.keys() & shown.keys()):
        if known[option] is not None and known[option] != shown[option]:
            yield "%s has the default \"%s\", expected \"%s\"" % (
                option, shown[option], known[option])
    listed = json.loads(printed("list", "--json"))
    for kind, heading in (("algorithms", "### A step"), ("models", "## Models"),
                          ("datasets", "### Data sets")):
        text = section_of(page, heading)
        for item in listed[kind]:
            if not re.search("`%s[`:]" % re.escape(item["name"]), text):
                yield "\"%s\" does not name %s" % (heading, item["name"])


def main():
    page = pathlib.Path(sys.argv[1]) / "docs" / "training-reference.md"
    found = list(problems(page.read_text()))
    for problem in found:
        print("%s: %s" % (page, problem))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
