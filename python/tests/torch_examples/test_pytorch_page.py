# SPDX-License-Identifier: MIT
"""Runs the Python code of docs/pytorch.md, in order, as one program."""
import pathlib
import re
import sys

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed")

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "pytorch.md"
sys.path.insert(0, str(HERE.parent / "torch_hook"))

import launch  # noqa: E402


@pytest.mark.parametrize("world", [1, 2])
def test_code_of_the_page_runs(tmp_path: pathlib.Path, world: int) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) > 5
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    for result in launch.launch(str(program), world):
        assert result.code == 0, result.err
        assert re.fullmatch(r"\d+ bytes sent\n", result.out), result.out
