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


def made_again(module, pattern, tmp_path, monkeypatch):
    """Hold that a module's command writes the files that are kept beside it."""
    monkeypatch.setattr(sys, "argv", ["made again", str(tmp_path)])
    module.main()
    kept = {path.name: path.read_text() for path in Path(module.__file__).parent.glob(pattern)}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == kept


def test_the_examples_are_made_again(tmp_path, monkeypatch):
    made_again(skyrl_batches, "skyrl-*.jsonl", tmp_path, monkeypatch)
