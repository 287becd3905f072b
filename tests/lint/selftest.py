# SPDX-License-Identifier: MIT
"""Each lint must pass a good tree and fail on one violation of its rule."""
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(sys.argv[1]) / "tools"
GOOD = {
    "src/base/alloc.c": "void *a(void) { return calloc(1, 1); }\n",
    "src/compress/a.c": '#include <laconic/compress.h>\n'
                        '#include "base/alloc.h"\n'
                        '// printf(\n'
                        'void f(void) { g("exit(1)"); x->free(y); }\n',
    "src/cli/a.c": '#include <laconic/laconic.h>\n#include "train/b.h"\n',
    "src/data/a.c": '#include "nn/b.h"\n',
    "include/laconic/compress.h": "#include <laconic/layout.h>\n",
}
BAD = {
    "check_layers.py": {
        "src/base/x.c": '#include "compress/a.h"\n',
        "src/base/y.c": "#include <laconic/compress.h>\n",
        "src/compress/x.c": "#include <laconic/laconic.h>\n",
        "src/compress/y.c": '#include "a.h"\n',
        "src/compress/z.c": '#include "cli/a.h"\n',
        "src/cli/x.c": '#include "base/alloc.h"\n',
        "src/nn/x.c": '#include "data/a.h"\n',
        "src/data/x.c": '#include "train/a.h"\n',
        "src/other/x.c": "\n",
        "include/laconic/status.h": "#include <laconic/layout_.h>\n",
        "include/laconic/layout.h": '#include "base/alloc.h"\n',
        "include/laconic/random.h": "#include <laconic/compress.h>\n",
    },
    "check_banned.py": {
        "src/base/x.c": "void f(void) { printf(x); }\n",
        "src/base/y.c": "void f(void)\n{\n    exit (1);\n}\n",
        "src/kernels/x.c": "int f(void) { return rand() + 1; }\n",
        "src/compress/x.c": "void f(void) { free(x); }\n",
        "src/compress/y.h": "#define F malloc(1)\n",
    },
}


def run(tool, *args):
    return subprocess.run([sys.executable, TOOLS / tool, *args],
                          capture_output=True, text=True, check=False)


def tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def try_trees():
    for tool, files in BAD.items():
        with tempfile.TemporaryDirectory() as folder:
            done = run(tool, tree(pathlib.Path(folder), GOOD))
            if done.returncode != 0:
                yield f"{tool} rejects a good tree: {done.stdout}"
        for name, text in files.items():
            with tempfile.TemporaryDirectory() as folder:
                root = tree(pathlib.Path(folder), {**GOOD, name: text})
                done = run(tool, root)
                if done.returncode != 1 or name not in done.stdout:
                    yield f"{tool} does not report {name}: {done.stderr}"


def try_wire_ids():
    cases = [
        ("LAC_COMPRESSOR(1, a)\nLAC_COMPRESSOR(2, b)\n", 0),
        ("LAC_COMPRESSOR(1, a)\nLAC_COMPRESSOR(2, b)\nLAC_COMPRESSOR(3, c)\n",
         0),
        ("LAC_COMPRESSOR(1, a)\n", 1),
        ("LAC_COMPRESSOR(2, a)\nLAC_COMPRESSOR(1, b)\n", 1),
        ("LAC_COMPRESSOR(1, a)\nLAC_COMPRESSOR(2, c)\n", 1),
        ("LAC_COMPRESSOR(1, a)\nLAC_COMPRESSOR(2, b)\nLAC_COMPRESSOR(2, c)\n",
         1),
        ("LAC_COMPRESSOR(1, a)\nLAC_COMPRESSOR(2, b)\n"
         "LAC_COMPRESSOR(300, c)\n", 1),
    ]
    for text, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = tree(pathlib.Path(folder),
                        {"x.def": text, "golden": "# ids\n1 a\n2 b\n"})
            done = run("check_wire_ids.py", root / "x.def", root / "golden")
            if done.returncode != expected:
                yield f"check_wire_ids.py: {text!r} gives {done.returncode}"


if __name__ == "__main__":
    found = [*try_trees(), *try_wire_ids()]
    print("\n".join(found))
    sys.exit(1 if found else 0)
