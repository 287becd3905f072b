# SPDX-License-Identifier: MIT
"""Starts all ranks of a program and collects what they print."""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
from typing import Dict, List, NamedTuple, Optional

HERE = pathlib.Path(__file__).resolve().parent
# A limit for hangs only.
SECONDS = 300
# Debian's PyTorch 2 is built without libuv, which its stores use by default.
# Without the second variable the workers use the launcher's store, which takes
# no such setting.
LAUNCHERS = {"USE_LIBUV": "0", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
# The launcher meets through a file, as its tcp store needs libuv. Without the
# redirects, that of PyTorch 1.13 fails on Python 3.11; rank 9 does not exist.
TORCHRUN = ["--rdzv_backend", "c10d", "--rdzv_conf", "store_type=file",
            "-r", "9:1", "-t", "9:1"]


class Result(NamedTuple):
    code: int
    out: str
    err: str


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(extra: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    """The environment of a process that joins a group of torch."""
    return {**os.environ, "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1", **LAUNCHERS, **(extra or {})}


def guarded(program: str, *arguments: str) -> List[str]:
    """The command of a process that another launcher starts."""
    return [sys.executable, str(HERE / "guarded.py"), str(SECONDS - 60),
            program, *arguments]


def run(command: List[str], env: Dict[str, str]) -> Result:
    """Run a launcher. mpirun reads its standard input, and is stopped if that
    is a terminal of another job.
    """
    done = subprocess.run(
        command, env=env, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=SECONDS)
    return Result(done.returncode, done.stdout, done.stderr)


def torchrun(world: int, program: str, *arguments: str) -> List[str]:
    """The command of torch's launcher that docs/pytorch.md has."""
    return [sys.executable, "-m", "torch.distributed.run", *TORCHRUN,
            "--nproc_per_node", str(world), program, *arguments]


def start(program: str, world: int, *arguments: str,
          env: Optional[Dict[str, str]] = None) -> List["subprocess.Popen"]:
    """Start a program of this folder once for every rank."""
    port = str(free_port())
    return [subprocess.Popen(
        [sys.executable, str(HERE / program), *arguments],
        env=environment({
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
            "RANK": str(rank), "WORLD_SIZE": str(world), **(env or {})}),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True) for rank in range(world)]


def finish(processes: List["subprocess.Popen"]) -> List[Result]:
    """Wait for all; what hangs is killed, with its children."""
    results: List[Result] = [Result(-1, "", "")] * len(processes)

    def collect(rank: int) -> None:
        process = processes[rank]
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += f"\nrank {rank} did not end in {SECONDS} s"
        results[rank] = Result(process.returncode, out, err)

    threads = [threading.Thread(target=collect, args=(rank,))
               for rank in range(len(processes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def launch(program: str, world: int, *arguments: str,
           env: Optional[Dict[str, str]] = None) -> List[Result]:
    """Run a program of this folder on all ranks."""
    return finish(start(program, world, *arguments, env=env))
