# SPDX-License-Identifier: MIT
"""The algorithms of the pages about new ones: all conformance tests of
algorithms include them, and the commands list and run them.

usage: add_algorithm.py ROOT ADDED, the folder with the files of the pages and
the programs that contain the algorithms
"""
import os
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).parents[1] / "cli"))
from add_compressor import lint, run
from training import images

SUITES = {"MODEL": "test_gossip*.c", "GRADIENT": "test_gradient*.c"}
OPS = re.compile(r'\.plugin\.name = "([a-z0-9-]+)".*?LAC_FAMILY_(\w+)', re.S)


def algorithms_of(added):
    """The algorithms of the pages, and their families."""
    return [found for path in sorted((added / "src/algorithm").glob("*.c"))
            for found in OPS.findall(path.read_text())]


def conform(root, added, name, family):
    os.environ["LAC_TEST_ALGORITHM"] = name
    for path in sorted((root / "tests/conformance").glob(SUITES[family])):
        suite = path.stem[len("test_"):]
        if name not in run(added / f"test_conformance_{suite}"):
            sys.exit(f"conformance.{suite} has not picked {name} up")
    run(added / "test_conformance_exchanges")
    del os.environ["LAC_TEST_ALGORITHM"]


def use(added, name, folder):
    """Run the commands that take an algorithm."""
    laconic = added / "laconic"
    chosen = ["--algorithm", name, "--compressor", "natural"]
    run(laconic, "list", name)
    run(laconic, "average", *chosen, "--rounds", "3")
    run(laconic, "size", "--model", "lenet", *chosen)
    run(laconic, "bench", name, "--compressor", "natural", "--model", "lenet",
        "--degree", "4", "--runs", "1")
    run(laconic, "train", "--model", "lenet", "--data", "mnist", "--data-dir",
        folder, *chosen, "--workers", "3", "--batch", "5", "--epochs", "1",
        "--out", f"{folder}/{name}")


def main():
    root, added = map(pathlib.Path, sys.argv[1:])
    algorithms = algorithms_of(added)
    assert {family for _, family in algorithms} == set(SUITES), algorithms
    listed = run(added / "laconic", "list")
    with tempfile.TemporaryDirectory() as folder:
        images(folder)
        for name, family in algorithms:
            if name not in listed:
                sys.exit(f"laconic list does not show {name}")
            conform(root, added, name, family)
            use(added, name, folder)
    lint(root, added)


if __name__ == "__main__":
    main()
