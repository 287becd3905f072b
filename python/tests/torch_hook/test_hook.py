# SPDX-License-Identifier: MIT
"""Runs the checks of all ranks; every check is a test."""
import importlib
import json

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed")

import launch  # noqa: E402
from run_checks import checks  # noqa: E402

WORLDS = {"checks_models": 2}


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


@pytest.mark.parametrize("module,name", [
    (module, name) for module in WORLDS
    for name, _ in checks(importlib.import_module(module))])
def test_check(found, module, name):
    for rank, result in enumerate(found(module)):
        lines = [json.loads(line) for line in result.out.splitlines()
                 if line.startswith('{"name"')]
        errors = {line["name"]: line["error"] for line in lines}
        assert name in errors, (
            f"rank {rank} ended before, with {result.code}: {result.err}")
        assert not errors[name], f"rank {rank}: {errors[name]}"
