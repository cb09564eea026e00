"""The games in verl (0.9): an agent loop, in :mod:`textbench.integrations.verl.agent_loop`, and its data set's rows.

verl's own pins clash with those of the other packages here, so there is no extra: install textbench beside verl.
"""

from collections.abc import Sequence
from typing import Any

from textbench.integrations.starts import list_starts, rows_of

AGENT_NAME = "textbench"


def start_rows(
    scenario: str, starts: int = 64, *, first_seed: int = 0, seats: Sequence[str] | None = None, **settings: Any
) -> list[dict[str, Any]]:
    """Return rows of a data set: the starts of :func:`textbench.integrations.starts.list_starts`.

    ``reward_model`` is a column that verl wants; the reward is the game's.
    """
    columns = {"agent_name": AGENT_NAME, "data_source": scenario}
    reward = {"style": "rule", "ground_truth": ""}
    found = list_starts(scenario, starts, first_seed=first_seed, seats=seats, **settings)
    return rows_of(found, **columns, reward_model=reward)
