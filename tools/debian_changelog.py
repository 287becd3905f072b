#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Print the changelog of the Debian packages, made from CHANGELOG.md.

A section `## 1.2.0 (2027-01-31)` is the entry of version 1.2.0. The section
`## Unreleased` is the entry of a version like 1.3.0~20270131.1159, with the
time of the sources: later builds and the release itself replace it.
usage: debian_changelog.py ROOT SECONDS
SECONDS is the time of the sources since 1970.
"""
import datetime
import email.utils
import pathlib
import re
import sys
import textwrap

RELEASED = re.compile(r"([0-9.]+) \((\d{4}-\d\d-\d\d)\)")


def first_match(pattern, path):
    found = re.search(pattern, path.read_text(), re.MULTILINE)
    if found is None:
        sys.exit(f"debian_changelog: {path}: no line matches {pattern}")
    return found.group(1)


def version_and_time(title, next_version, now):
    if title == "Unreleased":
        return f"{next_version}~{now:%Y%m%d.%H%M}", now
    released = RELEASED.fullmatch(title)
    if released is None:
        sys.exit(f'debian_changelog: the title of a section is "{title}", '
                 'expected "Unreleased" or "VERSION (YYYY-MM-DD)"')
    day = datetime.datetime.fromisoformat(released.group(2))
    return released.group(1), day.replace(tzinfo=datetime.timezone.utc)


def entry(text):
    """Return a section in the form of a Debian changelog."""
    lines = []
    for line in text.splitlines():
        if line.startswith(("### ", "- ")):
            lines.append(line)
        elif line.strip():
            lines[-1] += " " + line.strip()
    return "\n".join(
        f"  [ {line[4:]} ]" if line.startswith("#") else
        textwrap.fill(line[2:], 79, initial_indent="  * ",
                      subsequent_indent="    ", break_on_hyphens=False)
        for line in lines)


def main(root, seconds):
    next_version = first_match(r"^project\(laconic VERSION (\S+)",
                               root / "CMakeLists.txt")
    maintainer = first_match(r"^Maintainer: (.*)$",
                             root / "packaging" / "debian" / "control")
    now = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    text = (root / "CHANGELOG.md").read_text()
    for section in re.split(r"(?m)^## ", text)[1:]:
        title, _, body = section.partition("\n")
        version, time = version_and_time(title, next_version, now)
        print(f"laconic ({version}) unstable; urgency=medium\n")
        print(entry(body))
        print(f"\n -- {maintainer}  {email.utils.format_datetime(time)}\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
