# SPDX-License-Identifier: MIT
"""Runs a function as every worker of a group, in threads."""
from __future__ import annotations

import concurrent.futures
from typing import Any, Callable, List

import pytest

import laconic


def run_workers(world: int, work: Callable[[laconic.Transport], Any]
                ) -> List[Any]:
    """Return what each worker returned. The first exception is raised once
    all workers have ended; the others then fail at once, as one has left.
    """
    hub = laconic.Hub(world)

    def worker(rank: int) -> Any:
        with hub.join(rank) as transport:
            return work(transport)

    with concurrent.futures.ThreadPoolExecutor(world) as pool:
        futures = [pool.submit(worker, rank) for rank in range(world)]
    hub.close()
    return [future.result() for future in futures]


@pytest.fixture
def workers() -> Callable[..., List[Any]]:
    return run_workers
