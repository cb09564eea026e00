"""What is trained on, as a dataset: one row a start, from which a whole group of episodes begins."""

from collections.abc import Mapping, Sequence
from typing import Any

from textbench.integrations.starts import Start, list_starts, rows_of
from textgames.extras import install_command


def start_dataset(
    scenario: str, starts: int = 64, *, first_seed: int = 0, seats: Sequence[str] | None = None, **settings: Any
) -> Any:
    """Make a ``datasets.Dataset`` of a scenario's starts, by :func:`textbench.integrations.starts.list_starts`.

    TRL repeats every row ``num_generations`` times, so a group's members share their start, and gives the columns
    ``scenario``, ``layout_seed`` and ``seat`` to an environment's ``reset``. A ``rollout_func`` is given the prompts
    alone, so their messages, which are empty as the game writes them, have the columns too, under ``start``.
    """
    try:
        from datasets import Dataset
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.name} is not installed: {install_command('trl')}") from error
    found = list_starts(scenario, starts, first_seed=first_seed, seats=seats, **settings)
    rows = rows_of(found)
    for start, row in zip(found, rows, strict=True):
        row["prompt"][0]["start"] = start._asdict()
    return Dataset.from_list(rows)


def start_of(prompt: Sequence[Mapping[str, Any]] | str) -> Start:
    """Return the start that a prompt of :func:`start_dataset` stands for."""
    if not isinstance(prompt, str) and isinstance(start := prompt[-1].get("start"), Mapping):
        return Start(**start)
    raise ValueError(f"{prompt!r} doesn't say which start it stands for: make train_dataset by start_dataset")
