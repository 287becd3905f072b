# SPDX-License-Identifier: MIT
"""Runs the checks of all ranks; every check is a test."""
import importlib
import json
import shutil

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed")

import launch  # noqa: E402
from run_checks import checks  # noqa: E402

WORLDS = {"checks_models": 2, "checks_loops": 2, "checks_state": 2,
          "checks_figures": 2, "checks_groups": 3, "checks_ddp": 3,
          "checks_alone": 1}
MPIRUN = shutil.which("mpirun.openmpi") or shutil.which("mpirun")


@pytest.fixture(scope="session")
def found():
    """The results of modules that have run: name of a check -> ranks."""
    results = {}

    def of(module):
        if module not in results:
            results[module] = launch.launch(
                "run_checks.py", WORLDS[module], module)
        return results[module]

    return of


def errors_of(out):
    """The error of every check and rank that was run."""
    lines = [json.loads(line) for line in out.splitlines()
             if line.startswith('{"name"')]
    return {(line["name"], line["rank"]): line["error"] for line in lines}


@pytest.mark.parametrize("module,name", [
    (module, name) for module in WORLDS
    for name, _ in checks(importlib.import_module(module))])
def test_check(found, module, name):
    for rank, result in enumerate(found(module)):
        errors = errors_of(result.out)
        assert (name, rank) in errors, (
            f"rank {rank} ended before, with {result.code}: {result.err}")
        assert not errors[name, rank], f"rank {rank}: {errors[name, rank]}"


@pytest.mark.skipif(MPIRUN is None, reason="mpirun is not installed")
def test_checks_over_mpi():
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    done = launch.run(
        [MPIRUN, "--oversubscribe", "-n", "2", *launch.guarded(
            str(launch.HERE / "run_checks.py"), "checks_mpi")],
        launch.environment({
            "MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": "2",
            "MASTER_PORT": str(launch.free_port()),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}))
    errors = errors_of(done.out)
    assert not any(errors.values()), errors
    assert done.code == 0 and len(errors) == 4, done


def test_checks_by_torchrun():
    done = launch.run(
        launch.torchrun(2, str(launch.HERE / "run_checks.py"),
                        "checks_torchrun"), launch.environment())
    errors = errors_of(done.out)
    assert not any(errors.values()), errors
    assert done.code == 0 and len(errors) == 2, done
