"""The distribution's types, checked where verifiers is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("textbench_verifiers", reason="needs textbench-verifiers: .ci/adapters verifiers")
pytest.importorskip("mypy", reason="checks types with mypy")

pytestmark = pytest.mark.adapters
FOLDER = Path(__file__).parents[3] / "textbench/integrations/verifiers"


def test_types():
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
