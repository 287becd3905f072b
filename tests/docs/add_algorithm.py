# SPDX-License-Identifier: MIT
"""Follow docs/adding-an-algorithm.md: add its file and its line to a copy of
the tree, build the copy and run the tests that must pick the algorithm up: all
conformance tests of algorithms, and the tests of the commands that list or run
every algorithm.

usage: add_algorithm.py ROOT WORK CC
"""
import pathlib
import re
import shutil
import sys

from add_compressor import apply_document, copy_tree, run

DOCUMENT = "adding-an-algorithm.md"
COMMANDS = ["average", "bench", "size", "train", "words"]
LINTS = ["layers", "banned", "sizes", "words", "static_names"]


def algorithm_of(root):
    """The name of the algorithm that the document adds, and its family."""
    text = (root / "docs" / DOCUMENT).read_text()
    name = re.search(r'\.plugin\.name = "([a-z0-9-]+)"', text)[1]
    return name, re.search(r"\.family = LAC_FAMILY_(\w+)", text)[1]


def conformance_of(tree, pattern):
    folder = tree / "tests" / "conformance"
    return sorted(path.stem[len("test_"):] for path in folder.glob(pattern))


def main():
    root, work = map(pathlib.Path, sys.argv[1:3])
    shutil.rmtree(work, ignore_errors=True)
    tree, build = work / "tree", work / "build"
    copy_tree(root, tree)
    apply_document(root, tree, DOCUMENT)
    name, family = algorithm_of(root)
    run("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DLAC_WERROR=ON",
        f"-DCMAKE_C_COMPILER={sys.argv[3]}", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_C_FLAGS=-O1", "-DLAC_MPI=OFF")
    own, other = "test_gossip*.c", "test_gradient*.c"
    if family != "MODEL":
        own, other = other, own
    suites = conformance_of(tree, own)
    run("ninja", "-C", build, "laconic_cli",
        *(f"test_conformance_{suite}"
          for suite in suites + conformance_of(tree, other)))
    for suite in suites:
        if name not in run(build / "tests" / f"test_conformance_{suite}"):
            sys.exit(f"conformance.{suite} has not picked the algorithm up")
    for suite in conformance_of(tree, other):
        run(build / "tests" / f"test_conformance_{suite}")
    if name not in run(build / "laconic", "list"):
        sys.exit("laconic list does not show the algorithm")
    print(run("ctest", "--test-dir", build, "-R",
              rf"^command\.({'|'.join(COMMANDS)})$", "--output-on-failure"))
    for lint in LINTS:
        run(sys.executable, tree / "tools" / f"check_{lint}.py", tree)
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
