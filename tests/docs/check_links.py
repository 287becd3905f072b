# SPDX-License-Identifier: MIT
"""Fail when a document links to a file, or to a heading of a document, that
does not exist."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])


def anchors(document):
    """The anchors that GitHub gives the headings of a document."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.+)$", text, re.M)}


failed = False
for document in [*root.glob("*.md"), *root.glob("docs/**/*.md")]:
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", document.read_text())
    for target, anchor in links:
        if "://" in target or target.startswith("mailto:"):
            continue
        path = document.parent / target if target else document
        problem = None
        if not path.exists():
            problem = f"{target} does not exist"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            problem = f"{target}#{anchor}: there is no such heading"
        if problem:
            print(f"{document.relative_to(root)}: {problem}")
            failed = True
sys.exit(1 if failed else 0)
