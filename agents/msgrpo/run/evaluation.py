"""Scoring the model during training: the fixed episodes of scenarios, played as the benchmark plays them."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from agents.episode import Episode, EpisodeTask
from agents.msgrpo.trajectories import Game
from textgames import SCENARIOS, TRAINING_SEEDS, Scenario


class EvaluationResult(NamedTuple):
    """One scenario's scores; ``low`` and ``high`` are the 95% interval of the mean return (normal, over episodes)."""

    scenario: str
    episodes: int
    mean_return: float
    low: float
    high: float
    success: float
    invalid_rate: float
    length: float
    layouts_seen_in_training: int


def evaluation_tasks(game: Game, episodes: int) -> list[EpisodeTask]:
    """Episode ``k`` has seed ``first_seed + k``; no format penalty. A bare environment starts where training ends."""
    scenario = SCENARIOS.get(game) if isinstance(game, str) else game
    first = TRAINING_SEEDS.stop if scenario is None else scenario.first_seed
    return [EpisodeTask.of(scenario or game, first + k, format_penalty=0.0) for k in range(episodes)]


def evaluate(name: str, episodes: Sequence[Episode], seen: frozenset[str] | set[str] = frozenset()) -> EvaluationResult:
    """Scores of complete episodes, over all their players; those whose :func:`layout_of` was ``seen`` are counted."""
    returns = np.array([value for episode in episodes for value in episode.returns.values()])
    steps = [step for episode in episodes for step in episode.steps]
    half = 1.96 * returns.std(ddof=1) / np.sqrt(len(returns)) if len(returns) > 1 else float("nan")
    return EvaluationResult(
        scenario=name,
        episodes=len(episodes),
        mean_return=float(returns.mean()),
        low=float(returns.mean() - half),
        high=float(returns.mean() + half),
        success=float(np.mean([won for episode in episodes for won in episode.successes.values()])),
        invalid_rate=float(np.mean([not step.valid for step in steps])),
        length=len(steps) / len(returns),
        layouts_seen_in_training=sum(layout_of(episode) in seen for episode in episodes),
    )


def layout_of(episode: Episode) -> str:
    """A short digest of what the players of an episode saw first: equal layouts have equal ones."""
    first = "\n".join(step.observation for step in episode.steps if step.index == episode.steps[0].index)
    return blake2b(first.encode(), digest_size=8).hexdigest()


def game_name(game: Game) -> str:
    """The name under which metrics and evaluations speak of a game."""
    return game.name if isinstance(game, Scenario) else game
