# SPDX-License-Identifier: MIT
"""Follow the documents about new algorithms: add their files and lines to a
copy of the tree, build the copy and run the tests that must pick the algorithms
up: all conformance tests of algorithms, of these alone, and the tests of the
commands that list or run every algorithm.

usage: add_algorithm.py ROOT WORK CC
"""
import pathlib
import re
import shutil
import sys

from add_compressor import apply_document, copy_tree, run

DOCUMENTS = ["adding-an-algorithm.md", "adding-a-gradient-algorithm.md"]
COMMANDS = ["average", "bench", "size", "train", "words"]
LINTS = ["layers", "banned"]
SUITES = {"MODEL": "test_gossip*.c", "GRADIENT": "test_gradient*.c"}
OPS = re.compile(r'\.plugin\.name = "([a-z0-9-]+)".*?LAC_FAMILY_(\w+)', re.S)


def algorithms_of(root):
    """The algorithms that the documents add, and their families."""
    return [found for document in DOCUMENTS for found
            in OPS.findall((root / "docs" / document).read_text())]


def conformance_of(tree, family):
    folder = tree / "tests" / "conformance"
    return sorted(path.stem[len("test_"):]
                  for path in folder.glob(SUITES[family]))


def main():
    root, work = map(pathlib.Path, sys.argv[1:3])
    shutil.rmtree(work, ignore_errors=True)
    tree, build = work / "tree", work / "build"
    copy_tree(root, tree)
    for document in DOCUMENTS:
        apply_document(root, tree, document)
    algorithms = algorithms_of(root)
    assert {family for _, family in algorithms} == set(SUITES), algorithms
    run("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DLAC_WERROR=ON",
        f"-DCMAKE_C_COMPILER={sys.argv[3]}", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_C_FLAGS=-O1", "-DLAC_MPI=OFF")
    suites = [(suite, family) for family in SUITES
              for suite in conformance_of(tree, family)]
    run("ninja", "-C", build, "laconic_cli", "test_conformance_exchanges",
        *(f"test_conformance_{suite}" for suite, _ in suites))
    run(build / "tests" / "test_conformance_exchanges")
    for suite, family in suites:
        for name in (name for name, of in algorithms if of == family):
            tested = run("env", f"LAC_TEST_ALGORITHM={name}",
                         build / "tests" / f"test_conformance_{suite}")
            if name not in tested:
                sys.exit(f"conformance.{suite} has not picked {name} up")
    listed = run(build / "laconic", "list")
    for name, _ in algorithms:
        if name not in listed:
            sys.exit(f"laconic list does not show {name}")
    print(run("ctest", "--test-dir", build, "-R",
              rf"^command\.({'|'.join(COMMANDS)})$", "--output-on-failure"))
    for lint in LINTS:
        run(sys.executable, tree / "tools" / f"check_{lint}.py", tree)
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
