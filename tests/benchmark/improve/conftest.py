"""The server of hand-written answers as a process of its own, and agents' folders that name its models."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def heeding_url():
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmark.improve.heeding_server"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@pytest.fixture
def server(workplace, heeding_url, monkeypatch):
    """A working folder with an agent's folder for each model of the server."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-needed")
    for name in ("heeding", "wise", "useless", "broken"):
        folder = workplace / name
        folder.mkdir()
        (folder / "agent.toml").write_text(
            f'spec = "openai:{name}"\nbase_url = "{heeding_url}"\nmode = "direct"\ntemperature = 0.0\n'
        )
    return workplace
