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


USELESS = ("useless-0", "useless-1", "useless-2")


@pytest.fixture(scope="session")
def values(tmp_path_factory):
    """Folders of a value that is learnt from random play of small lakes, and of three that have learnt nothing."""
    torch = pytest.importorskip("torch")
    from research.improve.values.folder import write_value
    from research.improve.values.learning import learn
    from research.improve.values.measure import SCENARIO, random_play
    from research.improve.values.network import About, StepValue

    place, about = tmp_path_factory.mktemp("values"), {"scenarios": (SCENARIO,), "targets": "td"}
    write_value(learn([one.decisions for one in random_play(SCENARIO, 300, 0)], about), place / "learned")
    with torch.random.fork_rng(devices=[]):
        for seed, name in enumerate(USELESS):
            torch.manual_seed(seed)
            write_value(StepValue(About(decisions=1, **about)), place / name)
    return place
