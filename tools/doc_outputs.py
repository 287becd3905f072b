#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make the outputs of commands that the documents show.

usage: doc_outputs.py [--write] BUILD_DIR

A block of output stands in docs/*.md between

    <!-- begin output
    COMMANDS
    -->
    <!-- end output -->

The commands are those of a shell, in an empty folder, with `laconic` of
BUILD_DIR. What they print on stdout is the block, indented by four spaces.
Without --write the script fails if a block differs from what is printed now;
numbers, which depend on the machine, and the width of columns do not count.
"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"(<!-- begin output\n(.*?)-->\n)(.*?)(<!-- end output -->)",
                   re.S)
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?( \w?B\b)?")


def output_of(commands, build):
    with tempfile.TemporaryDirectory(prefix="laconic-docs-") as folder:
        path = f"{pathlib.Path(build).resolve()}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-euc", commands], cwd=folder, text=True,
            stdout=subprocess.PIPE, env={**os.environ, "PATH": path})
        if done.returncode != 0:
            sys.exit(f"exit code {done.returncode} of\n{commands}")
    return "\n" + textwrap.indent(done.stdout.strip("\n"), "    ") + "\n\n"


def words_of(text):
    """The lines without numbers and without repeated blanks."""
    return [" ".join(NUMBER.sub("N", line).split())
            for line in text.splitlines()]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--write", action="store_true",
                        help="replace the blocks in the documents")
    parser.add_argument("build", metavar="BUILD_DIR")
    options = parser.parse_args()
    count, stale = 0, False
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text()

        def made(match):
            nonlocal count, stale
            new = output_of(match.group(2), options.build)
            count += 1
            if words_of(match.group(3)) != words_of(new):
                stale = True
                print(f"{page.name}: the output of\n{match.group(2)}differs:")
                print("\n".join(difflib.unified_diff(
                    words_of(match.group(3)), words_of(new), "page", "now",
                    lineterm="")))
            return match.group(1) + new + match.group(4)

        made_text = BLOCK.sub(made, text)
        if options.write:
            page.write_text(made_text)
    if count == 0:
        sys.exit(f"{DOCS}: no outputs, expected some")
    return 1 if stale and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
