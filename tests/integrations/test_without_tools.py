"""Commands of adapters where their tool isn't installed: one sentence that installs it, and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "arguments", "package"),
    [("inspect", ("x.eval", "--out", "r"), "inspect_ai"), ("trl", ("steps", "--out", "r"), "trl")],
)
def test_the_command_that_installs_it_is_said(tmp_path, folder, arguments, package):
    program = (
        f"import runpy, sys; sys.modules[{package!r}] = None; sys.argv = ['x', *{arguments!r}]; "
        f"runpy.run_module('textbench.integrations.{folder}', run_name='__main__', alter_sys=True)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"{package}: pip install" in line
    assert f"[{folder}]" in line
    assert not list(tmp_path.iterdir())
