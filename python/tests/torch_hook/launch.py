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
SECONDS = 150


class Result(NamedTuple):
    code: int
    out: str
    err: str


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(extra: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1", **(extra or {})}


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
