"""The rows that SkyRL's own generator and trainer make for ``textbench check-credit`` are those in the repository."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.adapters,
    pytest.mark.filterwarnings("ignore"),  # SkyRL's own
    pytest.mark.skipif(find_spec("skyrl") is None, reason="needs SkyRL 0.3: .ci/adapters skyrl"),
]
ROOT = Path(__file__).parents[3]


def test_the_examples_are_made_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)  # research isn't installed beside SkyRL, and its writers need no packages
    from research.credit.checker.examples import skyrl_batches

    monkeypatch.setattr(sys, "argv", ["skyrl_batches", str(tmp_path)])
    skyrl_batches.main()
    kept = ROOT / "research" / "credit" / "checker" / "examples"
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == sorted(path.name for path in kept.glob("skyrl-*.jsonl"))
    for name in made:
        assert (tmp_path / name).read_text() == (kept / name).read_text()
