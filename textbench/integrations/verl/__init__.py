"""The games in verl (0.9): an agent loop, in :mod:`textbench.integrations.verl.agent_loop`, and its data set's rows.

verl's own pins clash with those of the other packages here, so there is no extra: install textbench beside verl.
"""

from typing import Any

from textbench.integrations.starts import list_starts, rows_of

AGENT_NAME = "textbench"


def start_rows(scenario: str, starts: int = 64, **options: Any) -> list[dict[str, Any]]:
    """Return rows of a data set: the starts of :func:`textbench.integrations.starts.list_starts`, with its options.

    ``reward_model`` is a column that verl wants; the reward is the game's.
    """
    columns = {"agent_name": AGENT_NAME, "data_source": scenario, "reward_model": {"style": "rule", "ground_truth": ""}}
    return rows_of(list_starts(scenario, starts, **options), **columns)
