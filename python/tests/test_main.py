# SPDX-License-Identifier: MIT
"""What ``python3 -m laconic`` prints, and its self-test."""
import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

import laconic
from laconic import __main__ as command
from laconic import _selftest

# A process that ends before it has done anything, in place of process 1.
DYING = """
import os, sys
if sys.argv[0] == "-m" and "laconic._selftest" in sys.orig_argv:
    if sys.orig_argv[-3] == "1":
        os._exit(3)
"""


def run(*words, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "laconic", *words], text=True,
        capture_output=True, timeout=400, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def test_versions_are_printed_as_text_and_json(capsys):
    assert command.main([]) == 0
    lines = dict(line.split(None, 1) if "path" not in line else
                 (line.split("  ")[0], line.split(None, 2)[2])
                 for line in capsys.readouterr().out.splitlines())
    assert lines["library"] == laconic.__version__
    assert lines["Python"] == platform.python_version()
    assert lines["NumPy"] == np.__version__
    assert lines["platform"] == platform.platform()
    assert os.path.exists(lines["library path"])
    assert command.main(["--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: value or "not installed"
            for name, value in found.items()} == lines
    assert found["kernels"] == laconic.Compressor("sign").kernels


def test_packages_that_are_missing_or_broken(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert command.versions()["PyTorch"] is None
    assert "not installed" in command.text_of(command.versions())
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "laconic_broken.py").write_text("import no_such_module")
    assert command.version_of("laconic_broken") == (
        "fails to import: No module named 'no_such_module'")
    (tmp_path / "laconic_failing.py").write_text("raise OSError('no lib')")
    assert command.version_of("laconic_failing") == (
        "fails to import: OSError: no lib")


def test_the_self_test_passes():
    status, out, err = run("--check", "--json")
    assert status == 0, (out, err)
    results = json.loads(out)["check"]
    assert all(result["ok"] for result in results), results
    names = [result["name"] for result in results]
    assert {"tcp", "allreduce", "powersgd"} < set(names), names
    assert any(name.startswith("PyTorch") for name in names), names


def test_the_self_test_needs_no_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    results = _selftest.run()
    assert all(result.ok for result in results), results
    assert str(results[0]) == "PyTorch: ok, not installed and not tested"


def test_a_device_that_is_missing_is_named(monkeypatch, capsys):
    pytest.importorskip("torch", reason="torch is not installed")
    assert command.main(["--check", "--device", "nonsense"]) == 2
    out = capsys.readouterr().out
    assert "has no device nonsense" in out and out.endswith("\nfailed\n")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert command.main(["--check", "--device", "cuda", "--json"]) == 2
    found, = json.loads(capsys.readouterr().out)["check"]
    assert found["message"] == (
        "--device cuda needs PyTorch, which is not installed")


def test_mistakes_in_options_have_status_2(capsys):
    for words in (["--device", "cpu"], ["--chek"], ["now"]):
        with pytest.raises(SystemExit) as end:
            command.main(words)
        assert end.value.code == 2
    assert "--device needs --check" in capsys.readouterr().err


@pytest.mark.skipif(sys.version_info < (3, 10), reason="needs orig_argv")
def test_a_process_that_dies_is_a_failure(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(DYING)
    path = os.pathsep.join(
        filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    status, out, err = run("--check", PYTHONPATH=path)
    assert status == 1, (out, err)
    assert "process 1 ended with status 3" in out
    assert out.endswith("\nfailed\n")


def test_a_wrong_mean_is_a_failure(workers):
    def work(transport):
        assert "bytes sent" in _selftest.average(transport, "allreduce", 0.0)
        with pytest.raises(AssertionError, match="matrix is off by"):
            _selftest.average(transport, "powersgd:rank=1", 1e-4)
    workers(2, work)


def test_failures_come_last_and_the_first_cause_at_the_end():
    good = _selftest.Result("tcp", True, "")
    lost = _selftest.Result("allreduce", False, "process 0: PeerError: gone")
    cause = _selftest.Result("allreduce", False, "process 1: ValueError: x")
    assert _selftest._both([[good, lost], [good, cause]], "cpu") == [
        good, lost, cause]
