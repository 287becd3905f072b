# SPDX-License-Identifier: MIT
"""How setup.py calls CMake, and the settings of the package."""
import pathlib
import runpy
import shutil
import subprocess
import warnings

import pytest

SETUP = pathlib.Path(__file__).resolve().parents[1] / "setup.py"


@pytest.fixture
def build_library(monkeypatch):
    setuptools = pytest.importorskip("setuptools")
    pytest.importorskip("wheel")
    with monkeypatch.context() as patch:
        patch.setattr(setuptools, "setup", lambda **options: None)
        patch.setattr(pathlib.Path, "mkdir", lambda *_, **options: None)
        return runpy.run_path(str(SETUP))["build_library"]


@pytest.mark.parametrize("ninja", [None, "/usr/bin/ninja"])
@pytest.mark.parametrize("kept", [None, "Ninja", "Unix Makefiles"])
def test_a_kept_folder_of_another_generator_is_configured_anew(
        build_library, monkeypatch, tmp_path, ninja, kept):
    if kept is not None:
        (tmp_path / "CMakeCache.txt").write_text(
            f"//Name of generator.\nCMAKE_GENERATOR:INTERNAL={kept}\n")
    commands = []

    def run(command, **options):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: ninja)
    build_library(tmp_path)
    configure = next(c for c in commands if "-S" in c)
    wanted = "Unix Makefiles" if ninja is None else "Ninja"
    assert configure[configure.index("-G") + 1] == wanted
    assert ("--fresh" in configure) == (kept not in (None, wanted))


def test_setuptools_deprecates_no_setting():
    pytest.importorskip("setuptools")
    from setuptools import Distribution, SetuptoolsDeprecationWarning
    from setuptools.config.pyprojecttoml import apply_configuration
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = apply_configuration(
            Distribution({"license": "MIT", "version": "0"}),
            str(SETUP.with_name("pyproject.toml")))
    assert found.metadata.license == "MIT"
    assert not [str(w.message) for w in caught
                if issubclass(w.category, SetuptoolsDeprecationWarning)]
