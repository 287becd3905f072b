# SPDX-License-Identifier: MIT
"""Fail when a document names a test that does not exist: ROOT BUILD.

A promise of the documents below is followed by the tests that show it:

    <!-- test: transport.local command.key:test_show_makes_no_key -->

A name is one of CTest, alone or with one of its cases, a function."""
import pathlib
import re
import sys

DOCUMENTS = ["SECURITY.md", "docs/internet.md", "docs/transports.md"]
COMMENT = re.compile(r"<!-- test:(.*?)-->", re.S)
# Tests that a build may lack, all of a kind at once.
OPTIONAL = [r"(^|\.)tcp([._]|$)|^command\.(hosts|key|launch|peers|ssh|"
            r"transport)$", r"\.openmpi(\.|$)", r"\.mpich(\.|$)", r"^python\.",
            r"^smpi\."]


def tests_of(build):
    """The names in the lists that CMake writes for CTest."""
    text = (build / "CTestTestfile.cmake").read_text()
    yield from re.findall(r"^add_test\((?:\[=*\[)?([^\s\]]+)", text, re.M)
    for folder in re.findall(r'^subdirs\("(.*)"\)', text, re.M):
        yield from tests_of(build / folder)


def cases_of(root):
    """The functions of the tests."""
    for folder in (root / "tests", root / "python" / "tests"):
        for path in folder.rglob("*.*"):
            if path.suffix in (".c", ".h", ".py"):
                yield from re.findall(r"\b(?:def|void) (\w+)\(",
                                      path.read_text())


def is_built(name, tests):
    """Whether this build has tests of the kind of a name."""
    return all(any(re.search(kind, test) for test in tests)
               for kind in OPTIONAL if re.search(kind, name))


root, build = map(pathlib.Path, sys.argv[1:])
tests, cases = set(tests_of(build)), set(cases_of(root))
failed = False
for document in DOCUMENTS:
    names = " ".join(COMMENT.findall((root / document).read_text())).split()
    print(f"{document}: {len(names)} names of tests")
    failed = failed or not names
    for name in names:
        test, colon, case = name.partition(":")
        if test not in tests and is_built(test, tests):
            print(f"{document}: there is no test {test}")
            failed = True
        if colon and case not in cases:
            print(f"{document}: {test} has no case {case}")
            failed = True
sys.exit(1 if failed else 0)
