"""What is trained on, as a dataset: one row a start, from which a whole group of episodes begins."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agents.episode import EpisodeTask
from agents.loop.session import process_pool
from textgames.extras import install_command
from textgames.names import did_you_mean
from textgames.scenarios import TRAINING_SEEDS


class Start(NamedTuple):
    """Where the episodes of a group begin, and whose they are.

    Attributes:
        scenario: a scenario, or the id of an environment.
        layout_seed: fixes the initial state; the transitions have a seed of their own.
        seat: the player that is trained.
    """

    scenario: str
    layout_seed: int
    seat: str


def start_dataset(
    scenario: str, starts: int = 64, *, first_seed: int = 0, seats: Sequence[str] | None = None, **settings: Any
) -> Any:
    """A ``datasets.Dataset`` whose rows are starts of a scenario.

    TRL repeats every row ``num_generations`` times, so a group's members share their start. The columns ``scenario``,
    ``layout_seed`` and ``seat`` are what TRL gives to an environment's ``reset``. A ``rollout_func`` is given the
    prompts alone, so the prompt's message has them too, under ``start``; its content is empty, as the game writes it.

    Args:
        scenario: a scenario, or the id of an environment.
        starts: how many layouts there are.
        first_seed: of the layouts; they are those of consecutive training seeds.
        seats: the players that are trained, each in a row of its own for every layout; all of them when not given.
        **settings: of the environment, where they decide who its players are.

    Raises:
        ValueError: no such scenario, setting or player, or seeds that aren't training seeds.
        ModuleNotFoundError: datasets isn't installed; the message has the command.
    """
    try:
        from datasets import Dataset
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.name} is not installed: {install_command('trl')}") from error
    if starts < 1 or first_seed < 0 or first_seed + starts > len(TRAINING_SEEDS):
        raise ValueError(
            f"training seeds are 0 to {TRAINING_SEEDS[-1]}, so that evaluation meets no layout that was trained on; "
            f"got first_seed={first_seed!r} and starts={starts!r}"
        )
    players = process_pool().game_of(EpisodeTask.of(scenario, first_seed, **settings)).players
    for seat in seats or ():
        if seat not in players:
            raise ValueError(
                f"unknown seat {seat!r}{did_you_mean(seat, players)}; the players are {', '.join(players)}"
            )
    rows = [
        Start(scenario, seed, seat)._asdict()
        for seed in range(first_seed, first_seed + starts)
        for seat in seats or players
    ]
    return Dataset.from_list([{"prompt": [{"role": "user", "content": "", "start": row}], **row} for row in rows])


def start_of(prompt: Sequence[Mapping[str, Any]] | str) -> Start:
    """The start that a dataset's prompt stands for.

    Raises:
        ValueError: it is none of :func:`start_dataset`.
    """
    if not isinstance(prompt, str) and isinstance(start := prompt[-1].get("start"), Mapping):
        return Start(**start)
    raise ValueError(
        f"the prompt {prompt!r} doesn't say which start it stands for; make train_dataset by start_dataset"
    )
