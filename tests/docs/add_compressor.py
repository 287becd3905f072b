# SPDX-License-Identifier: MIT
"""Follow docs/adding-a-compressor.md: add its file and its line to a copy of
the tree, then build that and run what must have picked the compressor up.

usage: add_compressor.py ROOT WORK CC
"""
import pathlib
import re
import shutil
import subprocess
import sys

COPIED = ["CMakeLists.txt", "cmake", "include", "src", "tests", "fuzz",
          "examples", "tools", "docs", "Makefile"]
BLOCK = re.compile(r"^<!-- (file|line): (\S+) -->\n```c\n(.*?)^```",
                   re.M | re.S)
TESTS = r"^(conformance|fuzz\.(seeds|decode|spec))"


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout)
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return done.stdout


def copy_tree(root, tree):
    for name in COPIED:
        source, target = root / name, tree / name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def apply_document(root, tree, document):
    text = (root / "docs" / document).read_text()
    blocks = BLOCK.findall(text)
    if [kind for kind, _, _ in blocks] != ["file", "line"]:
        sys.exit("expected one file and one line in the document")
    for kind, name, block in blocks:
        path = tree / name
        if kind == "file":
            if path.exists():
                sys.exit(f"{name} is there already")
            path.write_text(block)
        else:
            if block.count("\n") != 1:
                sys.exit("the line is not one line")
            path.write_text(path.read_text() + block)


def main():
    root, work = map(pathlib.Path, sys.argv[1:3])
    shutil.rmtree(work, ignore_errors=True)
    tree, build = work / "tree", work / "build"
    copy_tree(root, tree)
    apply_document(root, tree, "adding-a-compressor.md")
    run("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DLAC_WERROR=ON",
        f"-DCMAKE_C_COMPILER={sys.argv[3]}", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_C_FLAGS=-O1")
    targets = re.findall(r"^(test_conformance\w*|laconic_cli): phony$",
                         run("ninja", "-C", build, "-t", "targets", "all"),
                         re.M)
    run("ninja", "-C", build, "laconic", "fuzz_seeds", "fuzz_decode",
        "fuzz_spec", *targets)
    print(run("ctest", "--test-dir", build, "-R", TESTS,
              "--output-on-failure"))
    seeds = [path.read_text() for path in
             (build / "fuzz" / "seeds" / "spec").iterdir()]
    if not any("ternary-mean" in seed for seed in seeds):
        sys.exit("the fuzzer has not picked the compressor up")
    if "laconic_cli" in targets:
        listed = run(build / "laconic", "list")
        if "ternary-mean" not in listed or "threshold" not in listed:
            sys.exit("laconic list does not show the compressor")
    for lint in ("layers", "banned", "sizes"):
        run(sys.executable, tree / "tools" / f"check_{lint}.py", tree)
    run(sys.executable, tree / "tools" / "check_wire_ids.py",
        tree / "src/compress/compressors.def",
        tree / "tests/golden/wire_ids.txt")
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
