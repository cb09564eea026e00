"""The server of hand-written answers as a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def heeding_url():
    process = subprocess.Popen(
        [sys.executable, "-m", "research.improve.tests.heeding_server"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@pytest.fixture
def server(workplace, heeding_url, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-needed")
    monkeypatch.setenv("OPENAI_BASE_URL", heeding_url)
    return workplace
