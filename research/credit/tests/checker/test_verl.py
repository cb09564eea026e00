"""verl's own estimators make the rows that are kept as examples."""

from importlib.util import find_spec

import pytest

from research.credit.checker.examples import verl_batches
from research.credit.tests.checker.test_skyrl import made_again

pytestmark = [
    pytest.mark.adapters,
    pytest.mark.filterwarnings("ignore"),  # verl's own
    pytest.mark.skipif(find_spec("verl") is None, reason="needs verl 0.9: .ci/adapters verl"),
]


def test_the_examples_are_made_again(tmp_path, monkeypatch):
    made_again(verl_batches, "verl-*.jsonl", tmp_path, monkeypatch)
