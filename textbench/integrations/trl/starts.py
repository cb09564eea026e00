"""What is trained on, as a dataset: one row a start, from which a whole group of episodes begins."""

from collections.abc import Mapping, Sequence
from typing import Any

from textbench.integrations.starts import Start, list_starts, rows_of
from textgames.extras import install_command


def start_dataset(
    scenario: str, starts: int = 64, *, first_seed: int = 0, seats: Sequence[str] | None = None, **settings: Any
) -> Any:
    """Return a ``datasets.Dataset`` of a scenario's starts, as :func:`textbench.integrations.starts.list_starts` has
    them.

    TRL repeats every row ``num_generations`` times, so a group's members share their start. The columns ``scenario``,
    ``layout_seed`` and ``seat`` are what TRL gives to an environment's ``reset``. A ``rollout_func`` is given the
    prompts alone, so the prompt's message has them too, under ``start``; its content is empty, as the game writes it.

    Raises:
        ValueError: no such scenario, setting or player, or seeds that aren't training seeds.
        ModuleNotFoundError: datasets isn't installed; the message has the command.
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
    """Return the start that a dataset's prompt stands for.

    Raises:
        ValueError: it is none of :func:`start_dataset`.
    """
    if not isinstance(prompt, str) and isinstance(start := prompt[-1].get("start"), Mapping):
        return Start(**start)
    raise ValueError(f"{prompt!r} doesn't say which start it stands for: make train_dataset by start_dataset")
