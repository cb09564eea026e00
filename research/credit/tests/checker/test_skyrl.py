"""SkyRL's own generator and trainer make the rows that are kept as examples."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from research.credit.checker.examples import skyrl_batches

pytestmark = [
    pytest.mark.adapters,
    pytest.mark.filterwarnings("ignore"),  # SkyRL's own
    pytest.mark.skipif(find_spec("skyrl") is None, reason="needs SkyRL 0.3: .ci/adapters skyrl"),
]


def test_the_examples_are_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["skyrl_batches", str(tmp_path)])
    skyrl_batches.main()
    kept = Path(skyrl_batches.__file__).parent
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == sorted(path.name for path in kept.glob("skyrl-*.jsonl"))
    for name in made:
        assert (tmp_path / name).read_text() == (kept / name).read_text()
