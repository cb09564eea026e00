"""How long the jobs of a reproduction take: from a table, by the decisions of a job and the text that is read for them.

What the jobs of a folder took corrects these figures (:class:`research.jobs.timetable.Timetable`).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from research.reproduction.jobs import Job
from research.reproduction.settings import Experiment
from textgames import SCENARIOS


class Cost(NamedTuple):
    """Seconds of one core per thousand characters of text (rules and observation) that a decision is taken on."""

    fixed: float
    per_million_parameters: float


# From the committed reproduction and the recipe quick, on two machines whose paces differ by half.
DEMONSTRATE_SECONDS = 1e-3  # demonstrating a decision, per thousand characters
IMITATE = Cost(2e-3, 4e-3)  # learning once from a demonstrated decision
SAMPLE = Cost(1.7e-3, 4e-3)  # playing a decision, in a batch
LEARN = Cost(0.6e-3, 1e-3)  # a decision in an update of MS-GRPO
START_SECONDS = 2.0  # for every job: loading a model, and libraries in the first job of a process

_DECISIONS = 0.7  # of an episode, as a share of its horizon


def typical_seconds(experiment: Experiment, jobs: Sequence[Job]) -> Mapping[str, float]:
    """Return ``{job: seconds}`` to begin with."""
    return {job.name: _seconds_of(job, experiment) for job in jobs}


def _seconds_of(job: Job, experiment: Experiment) -> float:
    """Return what a job takes if the table was made."""
    if job.agent in experiment.reference_agents:
        return START_SECONDS
    base = job.agent if job.agent in experiment.bases else "small"
    sample = _seconds(SAMPLE, base, experiment)
    episode = {
        name: sample * _DECISIONS * SCENARIOS[name].horizon * game_kilocharacters(name) for name in experiment.scenarios
    }
    if job.kind == "pretrain":
        seconds = _pretraining_seconds(base, experiment)
    elif job.kind == "train":
        from agents.msgrpo import MSGRPOConfig

        config = MSGRPOConfig.from_mapping(experiment.training_settings(job.game, job.arm, job.seed))
        # how many played episodes cost as much as the update
        learnt = config.draws * config.update_passes * _seconds(LEARN, base, experiment) / sample
        evaluations = 1 + config.iterations // config.eval_every
        seconds = config.iterations * (config.episodes + learnt) * episode[job.game]
        seconds += evaluations * config.eval_episodes * sum(episode.values())
    elif job.kind == "play":
        seconds = experiment.final_episodes * sum(episode.values())
    else:
        games = (job.game,) if job.game else experiment.games
        seconds = 4 * experiment.control_episodes * sum(episode[game] for game in games)
    return START_SECONDS + seconds


def _pretraining_seconds(base: str, experiment: Experiment) -> float:
    from agents.tiny import scenarios_of

    if experiment.bases[base].source:
        return 0.0
    recipe = experiment.recipe(base)
    kilocharacters = sum(share * game_kilocharacters(name) for name, share in scenarios_of(recipe.games).items())
    learnt = recipe.steps * recipe.batch_size * _seconds(IMITATE, base, experiment)
    return float(kilocharacters * (recipe.examples * DEMONSTRATE_SECONDS + learnt))


def _seconds(cost: Cost, base: str, experiment: Experiment) -> float:
    """Return seconds per thousand characters for a model of a base's shape."""
    if experiment.bases[base].source:
        return cost.fixed + 0.2 * cost.per_million_parameters  # as many millions as the embedded models have
    recipe = experiment.recipe(base)
    attention = 2 * recipe.hidden_size**2 * (1 + recipe.kv_heads / recipe.heads)
    matrices = recipe.layers * (attention + 3 * recipe.hidden_size * recipe.intermediate_size)
    return float(cost.fixed + cost.per_million_parameters * matrices / 1e6)


def game_kilocharacters(scenario: str) -> float:
    """Return how much text a decision of this scenario is taken on: the rules and its first observation."""
    game = SCENARIOS[scenario].game()
    player = game.players[0]
    state = game.initial_state(np.random.default_rng(0))
    return (len(game.instructions(player)) + len(game.observe(state, player))) / 1000
