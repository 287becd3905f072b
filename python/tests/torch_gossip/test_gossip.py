# SPDX-License-Identifier: MIT
"""Gossip between processes; gossip_worker.py has the checks."""
import doctest
import json
import pathlib
import sys
from typing import Dict, Iterator, List, Optional

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed")

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "torch_hook"))

from launch import launch  # noqa: E402

CHECKS = [
    "algorithms_give_the_bits_of_the_library",
    "runs_resume_bit_for_bit",
    "a_state_before_the_first_round_loads",
    "rounds_come_every_few_steps",
    "outer_is_diloco",
    "the_anchor_of_outer_is_the_model_before_the_first_step",
    "outer_resumes_before_its_first_round",
    "the_mean_of_models_has_parameters_and_buffers",
    "an_average_restarts_algorithms_with_replicas",
    "parameters_may_be_of_any_kind",
    "memory_formats_do_not_matter",
    "a_scaler_makes_the_local_step",
    "a_search_of_gamma_runs_in_the_first_round",
    "mistakes_are_named",
    "a_round_that_fails_can_be_left",
    "a_round_ends_after_its_error",
    "averages_do_not_grow_the_memory",
]
# With one worker alone, and with two in a short pass.
SOME = ["algorithms_give_the_bits_of_the_library", "runs_resume_bit_for_bit",
        "the_mean_of_models_has_parameters_and_buffers"]

Results = List[Dict[str, Optional[str]]]


def run(world: int, *checks: str) -> Results:
    """What each rank found; a rank that was killed found nothing."""
    results = []
    for rank, (code, out, err) in enumerate(
            launch(str(HERE / "gossip_worker.py"), world, *checks)):
        assert code == 0 or "killed" in checks[0], (rank, code, out, err)
        results.append(json.loads(out.splitlines()[-1]) if out else {})
    return results


def expect(results: Results, check: str) -> None:
    for rank, found in enumerate(results):
        if check not in found:
            pytest.fail(f"rank {rank} stopped before: {found}")
        if found[check] is not None:
            pytest.fail(f"rank {rank}: {found[check]}")


@pytest.fixture(scope="module")
def three() -> Iterator[Results]:
    yield run(3, *CHECKS)


@pytest.fixture(scope="module")
def two() -> Iterator[Results]:
    yield run(2, *SOME)


@pytest.fixture(scope="module")
def alone() -> Iterator[Results]:
    yield run(1, *SOME)


@pytest.mark.parametrize("check", CHECKS)
def test_three_workers(three: Results, check: str) -> None:
    expect(three, check)


@pytest.mark.parametrize("check", SOME)
def test_two_workers(two: Results, check: str) -> None:
    expect(two, check)


@pytest.mark.parametrize("check", SOME)
def test_one_worker(alone: Results, check: str) -> None:
    expect(alone, check)


def test_the_example_of_the_class_runs() -> None:
    import laconic.torch._gossip
    result = doctest.testmod(laconic.torch._gossip)
    assert result.attempted > 5 and result.failed == 0


def test_nonfinite_parameters_stop_all() -> None:
    expect(run(3, "nonfinite_parameters_stop_all"),
           "nonfinite_parameters_stop_all")


def test_a_killed_rank_is_named_on_the_others() -> None:
    results = run(3, "a_killed_rank_is_named")
    assert results[1] == {}
    expect([results[0], results[2]], "a_killed_rank_is_named")
