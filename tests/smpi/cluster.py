# SPDX-License-Identifier: MIT
"""Shared by the tests on simulated clusters."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIMULATE = ROOT / "tools" / "simulate.py"
SKIPPED = 77
HANG = 300  # seconds after which a program hangs
GBIT, MS = 1e9, 1e-3

sys.path.insert(0, str(SIMULATE.parent))
import simulate  # noqa: E402

if shutil.which("smpirun") is None:
    print("skipped: smpirun is not installed")
    sys.exit(SKIPPED)


def finish(words, **more):
    return subprocess.run(
        [str(word) for word in words], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=HANG, check=False, **more)


def run_program(program, workers, *words):
    """Run any program for smpirun, on a star."""
    options = types.SimpleNamespace(
        workers=workers, bandwidth=GBIT, latency=MS, network="star",
        command=words)
    with tempfile.TemporaryDirectory() as folder:
        return finish(simulate.smpirun(
            os.path.abspath(program), options, pathlib.Path(folder)))


def run_command(build, *words, workers=4, bandwidth="1Gbit", latency="1ms",
                network="star"):
    """Run the command as users do."""
    return finish([sys.executable, "-B", SIMULATE, "--build", build,
                   "--workers", workers, "--bandwidth", bandwidth,
                   "--latency", latency, "--network", network, "--", *words])
