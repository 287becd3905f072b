# SPDX-License-Identifier: MIT
"""The compressor of docs/adding-a-compressor.md: the conformance tests of
compressors and the fuzz targets include it, and the command has it.

usage: add_compressor.py ROOT ADDED, the folder with the files of the page and
the programs that contain the compressor
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from decoder import check_defaults

NAME = "ternary-mean"
DUTIES = ["checked", "laws", "memories", "payloads", "resources"]
LINTS = ["layers", "banned"]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout)
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return done.stdout


def lint(root, added):
    for name in LINTS:
        run(sys.executable, "-B", root / "tools" / f"check_{name}.py", added)


def fuzz(root, added, folder):
    seeds = pathlib.Path(folder)
    for target in ("decode", "spec", "layout", "state"):
        (seeds / target).mkdir()
    run(added / "fuzz_seeds", seeds)
    if not any(NAME in path.read_text()
               for path in (seeds / "spec").iterdir()):
        sys.exit(f"the seeds of the fuzzer do not contain {NAME}")
    for target in ("decode", "spec"):
        run(added / f"fuzz_{target}", root / "fuzz" / "regressions" / target,
            seeds / target)


def main():
    root, added = map(pathlib.Path, sys.argv[1:])
    # Other tests run the other compressors.
    os.environ["LAC_TEST_COMPRESSOR"] = NAME
    for duty in DUTIES:
        if NAME not in run(added / f"test_conformance_{duty}"):
            sys.exit(f"conformance.{duty} has not picked {NAME} up")
    with tempfile.TemporaryDirectory() as folder:
        fuzz(root, added, folder)
    listed = run(added / "laconic", "list")
    if NAME not in listed or "threshold" not in listed:
        sys.exit(f"laconic list does not show {NAME}")
    check_defaults(added / "laconic")
    run(added / "laconic", "bench", NAME, "--values", "1000", "--runs", "1")
    run(added / "laconic", "average", "--algorithm", "choco", "--compressor",
        NAME, "--rounds", "3")
    lint(root, added)
    run(sys.executable, root / "tools" / "check_wire_ids.py",
        added / "src/compress/compressors.def",
        root / "tests/golden/wire_ids.txt")


if __name__ == "__main__":
    main()
