# SPDX-License-Identifier: MIT
"""Fail when a document links to a file that does not exist."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
failed = False
for document in [*root.glob("*.md"), *root.glob("docs/**/*.md")]:
    for target in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
        if "://" in target or target.startswith("mailto:"):
            continue
        if not (document.parent / target).exists():
            print(f"{document.relative_to(root)}: {target} does not exist")
            failed = True
sys.exit(1 if failed else 0)
