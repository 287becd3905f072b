# SPDX-License-Identifier: MIT
"""Fail unless every code block of docs/using-the-library.md is part of one of
the examples. Indentation is ignored. Blocks that are whole files are compiled
by the tests of the examples instead."""
import pathlib
import re
import sys
import textwrap

SOURCES = {"c": ["logistic.c", "roundtrip.c"], "fortran": ["average.f90"]}
FENCE = re.compile(r"^(<!-- file: \S+ -->\n)?```(\w*)\n(.*?)^```",
                   re.M | re.S)


def is_part_of(block, lines):
    wanted = block.splitlines()
    return any(
        textwrap.dedent("\n".join(lines[i:i + len(wanted)])).splitlines()
        == wanted for i in range(len(lines) - len(wanted) + 1))


root = pathlib.Path(sys.argv[1])
document = root / "docs" / "using-the-library.md"
blocks = [(language, block) for file, language, block
          in FENCE.findall(document.read_text()) if file == ""]
failed = len(blocks) == 0
for language, block in blocks:
    sources = [root / "examples" / name for name in SOURCES[language]]
    if not any(is_part_of(block, source.read_text().splitlines())
               for source in sources):
        print(f"{document.name}: not in {SOURCES[language]}:\n{block}")
        failed = True
sys.exit(1 if failed else 0)
