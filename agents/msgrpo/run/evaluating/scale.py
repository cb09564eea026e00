"""What an evaluation's figures lie between: the best play that doesn't read, and the best play that is known.

A success of 27% on the lake looks like a beginning, and is what half right, half down gets without reading a word.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.baselines.search import find_search_player
from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.loop.live import EnvironmentPool, LiveEpisode
from agents.loop.rollout import rollout
from agents.turn import TurnRequest
from textgames import parallel_env
from textgames.solving.blind import blind_play_of

PLAYED = 20
"""Episodes of the planner, where nobody knows the optimum: seconds, once a run."""

NAMES = {"optimal": "optimum", "clairvoyant": "clairvoyant bound", "reference": "reference (planner)"}
"""What the upper end is called, by its kind."""


class EvaluationScale(NamedTuple):
    """Mean returns of two players who are no models; ``None`` where one isn't known, as in games of several players.

    Attributes:
        blind: of the best fixed distribution over actions.
        blind_policy: that distribution, for people.
        reference: of the best play that is known of.
        reference_kind: a key of :data:`NAMES`.
    """

    blind: float | None = None
    blind_policy: str = ""
    reference: float | None = None
    reference_kind: str = ""


def scale_of(tasks: Sequence[EpisodeTask]) -> EvaluationScale:
    """The scale of the episodes of one game."""
    env = parallel_env(tasks[0].env_id, **tasks[0].kwargs)
    if len(env.possible_agents) > 1:
        return EvaluationScale()
    try:
        blind = blind_play_of(env.game, env.rules.max_steps)
    except (ValueError, NotImplementedError):  # actions that can't be listed
        blind = None
    ends = EvaluationScale() if blind is None else EvaluationScale(blind.value, blind.text)
    player = find_search_player(env.game)
    if player is None:
        return ends
    if player.kind == "reference":
        played = rollout(load_agent("planner"), tasks[:PLAYED])
        value = np.mean([sum(episode.returns.values()) for episode in played])
    else:
        value = np.mean([max(player.values(request).values()) for request in _first_requests(tasks)])
    return ends._replace(reference=float(value), reference_kind=player.kind)


def _first_requests(tasks: Sequence[EpisodeTask]) -> list[TurnRequest]:
    """What the player is asked at the start of each episode."""
    pool, nobody = EnvironmentPool(), load_agent("random")
    requests: list[TurnRequest] = []
    for task in tasks:
        episode = LiveEpisode(task, nobody, pool)
        requests += episode.requests().values()
        episode.finish()
    return requests
