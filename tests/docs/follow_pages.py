# SPDX-License-Identifier: MIT
"""Follow pages that add plug-ins: write their files, and the lists with their
lines, to the folder OUT, in the places that they have in the tree.

The tree may already contain the plug-in, when somebody is following the page:
its line is then removed first. A new line of a compressor gets the next free
wire id.

usage: follow_pages.py ROOT OUT PAGE...
"""
import pathlib
import re
import sys

BLOCK = re.compile(r"^<!-- (file|line): (\S+) -->\n```c\n(.*?)^```",
                   re.M | re.S)
COMPRESSOR = re.compile(r"^LAC_COMPRESSOR\((\d+), (\w+)\)\n", re.M)


def with_line(text, line):
    given = COMPRESSOR.fullmatch(line)
    if not given:  # not a compressor: no wire id
        return text.replace(line, "") + line
    name = given[2]
    text = re.sub(rf"^LAC_COMPRESSOR\(\d+, {name}\)\n", "", text, flags=re.M)
    free = 1 + max(int(number) for number, _ in COMPRESSOR.findall(text))
    return text + f"LAC_COMPRESSOR({free}, {name})\n"


def follow(root, pages):
    """The files that the pages add or change: path to text."""
    files = {}
    for page in pages:
        blocks = BLOCK.findall(pathlib.Path(page).read_text())
        kinds = [kind for kind, _, _ in blocks]
        if kinds == [] or kinds != ["file", "line"] * (len(kinds) // 2):
            sys.exit(f"{page}: expected files, and a line after each")
        for kind, name, block in blocks:
            if kind == "line":
                block = with_line(
                    files.get(name) or (root / name).read_text(), block)
            files[name] = block
    return files


def write(out, files):
    """Write the files and the list `followed` of their names. Files that have
    not changed stay, so that they are not compiled again. What an earlier run
    has written and this one has not is removed."""
    followed = out / "followed"
    if followed.exists():
        for name in set(followed.read_text().split()) - files.keys():
            (out / name).unlink(missing_ok=True)
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    followed.write_text("\n".join(files) + "\n")


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[2]),
          follow(pathlib.Path(sys.argv[1]), sys.argv[3:]))
