"""A game of which a test writes only what the test is about."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from textgames import TSMG


class OwnGame(TSMG[Any]):
    """Begins at 0, shows its states as they are, and plays by its outcomes, if it has any."""

    def initial_state(self, rng: np.random.Generator) -> Any:
        return 0

    def transition(self, state: Any, joint_action: Mapping[str, str], rng: np.random.Generator) -> Any:
        listed = self.outcomes(state, joint_action)
        return listed[int(rng.choice(len(listed), p=[chance for chance, *_ in listed]))][1:]

    def observe(self, state: Any, player: str) -> str:
        return str(state)

    def instructions(self, player: str) -> str:
        return f"Choose one of {', '.join(self.actions)}."
