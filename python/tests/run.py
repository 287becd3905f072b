# SPDX-License-Identifier: MIT
"""Runs one group of the tests of the Python package, for ctest.

usage: run.py numpy|types|wheel|torch|torch_... BUILD

BUILD is the folder of the build. The group torch is a short pass, torch_hook
and torch_gossip are the rest of those folders. The exit status is 77 if a
Python package that the tests need is missing.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

SKIPPED = 77
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent
TESTS = PACKAGE / "tests"
# Models of all kinds, states, and two workers that gossip: what a user of
# PyTorch meets first.
SHORT_PASS = "checks_models or checks_state or test_two_workers"
NEEDS = {
    "numpy": ["numpy", "pytest"],
    "types": ["numpy", "mypy", "pyflakes"],
    "wheel": ["numpy", "pytest", "pip", "setuptools", "wheel", "venv"],
    "torch": ["numpy", "pytest", "torch"],
}


def pytest(python, *words, **options):
    """Return the exit status of pytest, which writes nothing to the tree."""
    return subprocess.run(
        [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p",
         "no:hypothesispytest", *map(str, words)], **options).returncode


def run_numpy(python, **options):
    """Run the tests without torch, and the examples in texts."""
    return pytest(
        python, *sorted(TESTS.glob("test_*.py")), ROOT / "docs" / "python.md",
        "--doctest-glob=*.md", "--doctest-modules", "--pyargs", "laconic",
        "--ignore-glob=*/laconic/torch/*", **options)


def run_types(build):
    """Check types and unused names of everything. Types of torch's part need
    torch.
    """
    left_out = ([] if importlib.util.find_spec("torch") else
                ["--exclude", "^laconic/torch/"])
    mypy = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *left_out, "--cache-dir",
         str(build / "python" / "mypy"), "laconic"], cwd=PACKAGE)
    flakes = subprocess.run(
        [sys.executable, "-m", "pyflakes", "laconic", "tests", "examples",
         "setup.py"], cwd=PACKAGE)
    return mypy.returncode or flakes.returncode


def make_wheel(build):
    """Make the wheel and return its path."""
    folder = build / "python"
    for old in folder.glob("*.whl"):
        old.unlink()
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-build-isolation",
         "--no-deps", "--no-index", "--quiet", "--wheel-dir", str(folder),
         str(PACKAGE)], check=True)
    wheel, = folder.glob("*.whl")
    return wheel


def run_wheel(build):
    """Install the wheel in an environment of its own and test that."""
    wheel = make_wheel(build)
    size = wheel.stat().st_size
    names = set(zipfile.ZipFile(wheel).namelist())
    print(f"{wheel.name}: {size} bytes")
    if "-py3-none-linux_" not in wheel.name or not {
            "laconic/lib/liblaconic.so.0", "laconic/py.typed"} <= names:
        print("wheel: the tag or the files are wrong:", *sorted(names))
        return 1
    metadata, = (name for name in names if name.endswith("/METADATA"))
    if b"\nLicense: MIT\n" not in zipfile.ZipFile(wheel).read(metadata):
        print("wheel: METADATA has no licence")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip",
                        "--system-site-packages", folder], check=True)
        python = f"{folder}/bin/python"
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("LACONIC_LIBRARY", "PYTHONPATH")}
        options = {"cwd": folder, "env": environment}
        subprocess.run(
            [python, "-m", "pip", "install", "--no-index", "--no-deps",
             "--quiet", str(wheel)], check=True, **options)
        place = subprocess.run(
            [python, "-c", "import laconic._library as found;"
             "print(found.find())"], check=True, text=True,
            stdout=subprocess.PIPE, **options).stdout
        if not place.startswith(folder):
            print(f"wheel: the library in use is {place}")
            return 1
        # The group numpy has tested the code; here it is the packaging: the
        # library with its modules, and processes that find it.
        check = subprocess.run([python, "-m", "laconic", "--check"], **options)
        return check.returncode or pytest(
            python, *(TESTS / f"test_{name}.py"
                      for name in ("ffi", "compressor", "transport")),
            **options)


def main(group, build):
    needs = NEEDS["torch" if group.startswith("torch") else group]
    missing = [name for name in needs if not importlib.util.find_spec(name)]
    if missing:
        print(f"skipped: {sys.executable} has no {', '.join(missing)}")
        return SKIPPED
    build = pathlib.Path(build).resolve()
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    os.environ["LACONIC_COMMAND"] = str(build / "laconic")
    if group == "numpy":
        return run_numpy(sys.executable)
    if group == "types":
        return run_types(build)
    if group == "wheel":
        return run_wheel(build)
    if group == "torch":
        return pytest(sys.executable, TESTS / "torch_hook" / "test_hook.py",
                      TESTS / "torch_gossip" / "test_gossip.py", "-k",
                      SHORT_PASS)
    return pytest(sys.executable, TESTS / group, "-k", f"not ({SHORT_PASS})")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
