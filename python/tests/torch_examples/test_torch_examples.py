# SPDX-License-Identifier: MIT
"""Runs the examples for PyTorch with little data, as users start them."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Callable, List

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed")

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
CACHE = pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
sys.path.insert(0, str(HERE.parent / "torch_hook"))

import launch  # noqa: E402

needs_fashion_mnist = pytest.mark.skipif(
    not FASHION.exists(), reason="dataset-fashion-mnist is not installed")


def by_environment(world: int, program: str, *arguments: str) -> str:
    """Start one process for each rank, with RANK and so on set."""
    results = launch.launch(str(EXAMPLES / program), world, *arguments)
    for rank, result in enumerate(results):
        assert result.code == 0, (rank, result.err)
    return results[0].out


def run(command: List[str]) -> str:
    done = subprocess.run(
        command, env=launch.environment(), capture_output=True, text=True,
        timeout=launch.SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_torchrun(world: int, program: str, *arguments: str) -> str:
    # Without the redirections, the launcher of PyTorch 1.13 fails on Python
    # 3.11; rank 9 does not exist.
    return run([sys.executable, "-m", "torch.distributed.run", "-r", "9:1",
                "-t", "9:1", "--nproc_per_node", str(world), "--master_port",
                str(launch.free_port()), str(EXAMPLES / program), *arguments])


def by_mpirun(world: int, program: str, *arguments: str) -> str:
    if not shutil.which("mpirun"):
        pytest.skip("no mpirun")
    launcher = ["mpirun", "-np", str(world)]
    if "Open MPI" in run(["mpirun", "--version"]):
        launcher += ["--oversubscribe", "--bind-to", "none",
                     "-x", f"MASTER_PORT={launch.free_port()}"]
        launcher += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    else:
        launcher += ["-env", "MASTER_PORT", str(launch.free_port())]
    return run([*launcher, sys.executable, str(EXAMPLES / program),
                *arguments])


def figures(name: str, text: str) -> List[float]:
    found = [float(x) for x in re.findall(rf"{name} ([0-9.]+)", text)]
    assert found, (name, text)
    return found


# --- the small ResNet --------------------------------------------------------

CNN = ["--fast", "--width", "8", "--batch", "32", "--epochs"]


@needs_fashion_mnist
def test_cnn_learns_with_few_bytes() -> None:
    out = by_environment(2, "cnn_ddp.py", *CNN, "3")
    assert figures("accuracy", out)[-1] > 0.7
    # 19,000 parameters, 62 steps an epoch: 14 MB as float32.
    assert figures("sent", out)[0] < 3


@needs_fashion_mnist
def test_cnn_resumes_bit_for_bit(tmp_path: pathlib.Path) -> None:
    whole = by_mpirun(2, "cnn_ddp.py", *CNN, "2")
    for epochs in ("1", "2"):
        part = by_environment(2, "cnn_ddp.py", *CNN, epochs, "--checkpoint",
                              str(tmp_path))
    assert len(figures("accuracy", part)) == 1
    assert figures("accuracy", part)[-1] == figures("accuracy", whole)[-1]


# --- the transformer ---------------------------------------------------------

TRANSFORMER = ["--width", "32", "--layers", "1", "--steps", "400"]
TOP_K = ["--algorithm", "error-feedback", "--compressor", "top-k:0.01",
         "--adam", "local", "--lr", "6e-3"]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> List[str]:
    """The option for the text: the real one if it is here."""
    if list((CACHE / "laconic" / "sotu").glob("*.txt")):
        print("text: State of the Union")
        return []
    print("text: made up; `laconic data fetch sotu` gets the real one")
    path = tmp_path_factory.mktemp("text") / "text"
    words = ["the", "state", "of", "union", "is", "strong", "and", "people",
             "who", "work", "for", "peace", "have", "our", "thanks"]
    # A walk over the words that a model can learn in part.
    walk, at = [], 0
    for i in range(30000):
        at = (3 * at + i % 7) % len(words)
        walk.append(words[at])
    path.write_text(" ".join(walk))
    return ["--text", str(path)]


@pytest.fixture(scope="module")
def exact(text: List[str]) -> float:
    out = by_environment(2, "transformer.py", "--algorithm", "none",
                         *TRANSFORMER, *text)
    loss = figures("test loss", out)[0]
    assert loss < figures("unigram entropy", out)[0]
    return loss


@pytest.mark.parametrize("start,options,fewer", [
    (by_torchrun, ["--algorithm", "powersgd:rank=4"], 3),
    (by_environment, TOP_K, 50),
])
def test_transformer_learns_with_few_bytes(
        text: List[str], exact: float, start: Callable[..., str],
        options: List[str], fewer: float) -> None:
    out = start(2, "transformer.py", *TRANSFORMER, *options, *text)
    # Few steps: docs/pytorch.md has a whole run.
    assert figures("test loss", out)[0] < 1.1 * exact
    assert figures("gradients,", out)[0] > fewer


# --- gossip ------------------------------------------------------------------

@needs_fashion_mnist
def test_models_on_a_ring_learn_together() -> None:
    out = by_environment(4, "gossip_ring.py", "--fast", "--width", "8",
                         "--batch", "16", "--epochs", "3")
    assert figures("accuracy of the mean model", out)[-1] > 0.7
    assert figures("consensus distance", out)[-1] < 10
