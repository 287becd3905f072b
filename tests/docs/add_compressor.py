# SPDX-License-Identifier: MIT
"""Follow docs/adding-a-compressor.md: add its file and its line to a copy of
the tree, build it, and run the tests that must now include the compressor.

The tree may already contain the compressor, when somebody is following the
document: its line is then removed first. The new line gets the next free wire
id.

usage: add_compressor.py ROOT WORK CC
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

COPIED = ["CMakeLists.txt", "cmake", "include", "src", "tests", "fuzz",
          "python", "examples", "bench", "tools", "docs", "Makefile"]
BLOCK = re.compile(r"^<!-- (file|line): (\S+) -->\n```c\n(.*?)^```",
                   re.M | re.S)
LINE = re.compile(r"^LAC_COMPRESSOR\((\d+), (\w+)\)\n", re.M)
DUTIES = ["laws", "memories", "payloads", "resources"]
TESTS = (rf"^(conformance\.({'|'.join(DUTIES)})|fuzz\.(seeds|decode|spec)"
         r"|docs\.format)$")


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
    kinds = [kind for kind, _, _ in blocks]
    if kinds == [] or kinds != ["file", "line"] * (len(kinds) // 2):
        sys.exit("expected files in the document, a line after each")
    for kind, name, block in blocks:
        path = tree / name
        if kind == "file":
            path.write_text(block)
        else:
            add_line(path, block)


def add_line(path, line):
    given = LINE.fullmatch(line)
    if not given:  # not a compressor: no wire id
        path.write_text(path.read_text().replace(line, "") + line)
        return
    name = given[2]
    text = re.sub(rf"^LAC_COMPRESSOR\(\d+, {name}\)\n", "", path.read_text(),
                  flags=re.M)
    free = 1 + max(int(number) for number, _ in LINE.findall(text))
    path.write_text(text + f"LAC_COMPRESSOR({free}, {name})\n")


def main():
    root, work = map(pathlib.Path, sys.argv[1:3])
    shutil.rmtree(work, ignore_errors=True)
    tree, build = work / "tree", work / "build"
    copy_tree(root, tree)
    apply_document(root, tree, "adding-a-compressor.md")
    run("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DLAC_WERROR=ON",
        f"-DCMAKE_C_COMPILER={sys.argv[3]}", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_C_FLAGS=-O1", "-DLAC_MPI=OFF")
    run("ninja", "-C", build, "laconic_cli", "fuzz_seeds", "fuzz_decode",
        "fuzz_spec", *(f"test_conformance_{duty}" for duty in DUTIES))
    # Other runs of the suite test the other compressors.
    os.environ["LAC_TEST_COMPRESSOR"] = "ternary-mean"
    print(run("ctest", "--test-dir", build, "-R", TESTS,
              "--output-on-failure"))
    seeds = [path.read_text() for path in
             (build / "fuzz" / "seeds" / "spec").iterdir()]
    if not any("ternary-mean" in seed for seed in seeds):
        sys.exit("the seeds of the fuzzer do not contain the compressor")
    listed = run(build / "laconic", "list")
    if "ternary-mean" not in listed or "threshold" not in listed:
        sys.exit("laconic list does not show the compressor")
    for lint in ("layers", "banned"):
        run(sys.executable, tree / "tools" / f"check_{lint}.py", tree)
    run(sys.executable, tree / "tools" / "check_wire_ids.py",
        tree / "src/compress/compressors.def",
        tree / "tests/golden/wire_ids.txt")
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
