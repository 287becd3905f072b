# SPDX-License-Identifier: MIT
"""The self-test of ``python3 -m laconic --check``: two processes over tcp.

``run`` starts this file twice and passes the addresses and keys between the
processes. Each writes lines of JSON: first its address, then its results.

    python3 -m laconic._selftest RANK DEVICE FOLDER

FOLDER is for the rendezvous of PyTorch. DEVICE is empty if there is no PyTorch.
"""
from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from typing import IO, Any, Callable, List, NamedTuple, Optional

import numpy as np

from . import Averager, Listener, Peer, Transport, UnsupportedError

WORLD = 2
# A limit for hangs only; a call between the processes has its own.
SECONDS = 300.0
CALL_SECONDS = 60.0
LOOPBACK = "127.0.0.1"


class Result(NamedTuple):
    """What one part of the self-test found."""

    name: str
    ok: bool
    message: str

    def __str__(self) -> str:
        return f"{self.name}: {'ok' if self.ok else 'FAILED'}" + (
            f", {self.message}" if self.message else "")


# --- in each process ---------------------------------------------------------

def arrays(rank: int) -> Any:
    """A matrix of rank 1, so that the mean has rank 2, and a vector."""
    random = np.random.default_rng(rank)
    matrix = np.outer(random.standard_normal(96), random.standard_normal(64))
    return {"matrix": matrix.astype(np.float32),
            "vector": np.arange(32, dtype=np.float32) * (rank + 1)}


def average(transport: Transport, algorithm: str, tolerance: float) -> str:
    """Average arrays and return the bytes that were sent."""
    averager = Averager(algorithm, transport=transport, timeout=CALL_SECONDS)
    found = averager.mean(arrays(transport.rank))
    every = [arrays(rank) for rank in range(WORLD)]
    digest = hashlib.sha256()
    for name, mean in found.items():
        expected = np.mean([one[name] for one in every], axis=0)
        error = float(np.abs(mean - expected).max())
        if not error <= tolerance:
            raise AssertionError(
                f"the mean of {name} is off by {error:.3g}, expected at most "
                f"{tolerance:.3g}")
        digest.update(mean.tobytes())
    peer = 1 - transport.rank
    theirs, = transport.exchange(
        [(peer, 0, digest.digest())], [(peer, 0)], timeout=CALL_SECONDS)
    if theirs != digest.digest():
        raise AssertionError("the processes have different results")
    return f"{averager.traffic.payload_bytes} bytes sent"


def work(rank: int, device: str, folder: str, out: IO[str]) -> None:
    """Be one of the two processes."""
    def report(**values: Any) -> None:
        out.write(json.dumps(values) + "\n")
        out.flush()

    def part(name: str, function: Callable[[], str]) -> None:
        try:
            message = function()
        except BaseException as error:
            traceback.print_exc()
            report(name=name, ok=False, message=(
                f"process {rank}: {type(error).__name__}: {error}"))
            sys.exit(1)
        report(name=name, ok=True, message=message)

    joined: List[Transport] = []

    def join() -> str:
        listener = Listener(f"tcp:listen={LOOPBACK},timeout={CALL_SECONDS}")
        report(port=listener.port, key=listener.key)
        peers = [Peer(f"{LOOPBACK}:{port}", key)
                 for port, key in json.loads(sys.stdin.readline())]
        joined.append(listener.join(peers, rank))
        return f"{WORLD} processes"

    part("tcp", join)
    with joined[0] as transport:
        part("allreduce", lambda: average(transport, "allreduce", 0.0))
        # The vector is exact; the matrix is a product of float32 factors, of
        # values up to 10.
        part("powersgd", lambda: average(transport, "powersgd:rank=2", 1e-4))
    if device:
        check = importlib.import_module("laconic.torch._selftest")
        part(f"PyTorch on {device}", lambda: str(check.train(
            rank, WORLD, device, folder, CALL_SECONDS)))


# --- in the process that starts them -----------------------------------------

def check_device(device: Optional[str]) -> str:
    """Return the device to use, "" without PyTorch. Raises UnsupportedError if
    the one that was asked for is missing.
    """
    if importlib.util.find_spec("torch") is None:
        if device is not None:
            raise UnsupportedError(
                f"--device {device} needs PyTorch, which is not installed")
        return ""
    try:
        torch = importlib.import_module("torch")
    except Exception as error:
        raise UnsupportedError(f"PyTorch fails to import: {error}") from error
    name = device or "cpu"
    try:
        torch.zeros(1, device=name).cpu()
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        raise UnsupportedError(
            f"PyTorch {torch.__version__} has no device {name}: {reason}"
        ) from error
    return name


class _Process:
    """One of the two."""

    def __init__(self, rank: int, device: str, folder: str) -> None:
        self.errors = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "laconic._selftest", str(rank), device,
             folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, text=True)
        self.rank = rank

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()

    def offer(self) -> Any:
        """Return port and key, or None if it has failed."""
        assert self.process.stdout is not None
        self.first = self.process.stdout.readline()
        values = json.loads(self.first) if self.first else {}
        return [values["port"], values["key"]] if "port" in values else None

    def introduce(self, offers: List[Any]) -> None:
        """Pass it ports and keys."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(offers) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # It has failed; its results show it.

    def results(self) -> List[Result]:
        """Return what it found, with a failure if it ended otherwise."""
        out = self.process.communicate()[0]
        found = [Result(**json.loads(line))
                 for line in [self.first, *out.splitlines()]
                 if '"ok"' in line]
        code = self.process.returncode
        if code != 0 and (not found or found[-1].ok):
            self.errors.seek(0)
            last = self.errors.read().strip().split("\n")[-1]
            found.append(Result("self-test", False, (
                f"process {self.rank} ended with status {code}: {last}")))
        self.errors.close()
        return found


def run(device: Optional[str] = None) -> List[Result]:
    """Run the self-test; the last result is a failure if there is one."""
    name = check_device(device)
    with tempfile.TemporaryDirectory() as folder:
        processes = [_Process(rank, name, folder) for rank in range(WORLD)]

        def kill() -> None:
            for one in processes:
                one.kill()

        limit = threading.Timer(SECONDS, kill)
        limit.start()
        try:
            offers = [one.offer() for one in processes]
            if None in offers:
                kill()
            for one in processes:
                one.introduce(offers)
            found = [one.results() for one in processes]
        finally:
            limit.cancel()
            kill()
    return _both(found, name)


def _both(found: List[List[Result]], device: str) -> List[Result]:
    """Return the results of process 0, with all failures at the end."""
    failures = [r for results in found for r in results if not r.ok]
    passed = [r for r in found[0] if r.ok]
    # A failure of one process ends the other, which reports the lost peer.
    failures.sort(key=lambda result: "PeerError" not in result.message)
    if not failures and not device:
        passed.insert(0, Result(
            "PyTorch", True, "not installed and not tested"))
    return passed + failures


def main() -> None:
    rank, device, folder = sys.argv[1:]
    # Libraries print to the standard output, too.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    work(int(rank), device, folder, out)


if __name__ == "__main__":
    main()
