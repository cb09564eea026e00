"""Scenarios as parameters: in a quick run one of each game, as further ones are other numbers for the same rules."""

from collections.abc import Sequence
from typing import Any

import pytest

from textgames import SCENARIOS


def once_a_game(names: Sequence[str]) -> list[Any]:
    """Every name; all but the first one of each game are slow."""
    first = {SCENARIOS[name].env_id: name for name in reversed(names)}.values()
    return [pytest.param(name, marks=() if name in first else pytest.mark.slow) for name in names]
