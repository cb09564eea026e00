"""Iterations that are really played, by players that need no model: for tests of samplers and fresh rollouts."""

from collections.abc import Sequence
from typing import Any

from agents.baselines.random import RandomPlayer
from agents.episode import Episode, EpisodeTask
from agents.loop.rollout import rollout
from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.rollouts import Rollouts
from agents.msgrpo.trajectories import Game
from agents.turn import Policy


def play(policy: Policy, tasks: Sequence[EpisodeTask]) -> list[Episode]:
    by_seed = {episode.seed: episode for episode in rollout(policy, tasks)}
    return [by_seed[task.seed] for task in tasks]


def iteration_of(game: Game, policy: Any = None, *, number: int = 0, **settings: Any) -> Rollouts:
    """An iteration of a game; the random player plays it where nobody else is given."""
    return Rollouts(MSGRPOConfig(**settings), [game], number, policy or RandomPlayer(), play)
