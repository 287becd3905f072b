# SPDX-License-Identifier: MIT
"""Follow docs/adding-an-algorithm.md: add its file and its line to a copy of
the tree, then build that and run what must have picked the algorithm up.

usage: add_algorithm.py ROOT WORK CC
"""
import pathlib
import shutil
import sys

from add_compressor import apply_document, copy_tree, run

TARGETS = ["gossip", "gossip_failures", "gossip_nonfinite", "gossip_state"]


def main():
    root, work = map(pathlib.Path, sys.argv[1:3])
    shutil.rmtree(work, ignore_errors=True)
    tree, build = work / "tree", work / "build"
    copy_tree(root, tree)
    apply_document(root, tree, "adding-an-algorithm.md")
    run("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DLAC_WERROR=ON",
        f"-DCMAKE_C_COMPILER={sys.argv[3]}", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_C_FLAGS=-O1", "-DLAC_MPI=OFF")
    for name in TARGETS:
        run("ninja", "-C", build, f"test_conformance_{name}")
        said = run(build / "tests" / f"test_conformance_{name}")
        if "level-gossip" not in said:
            sys.exit(f"conformance.{name} has not picked the algorithm up")
    for lint in ("layers", "banned", "sizes"):
        run(sys.executable, tree / "tools" / f"check_{lint}.py", tree)
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
