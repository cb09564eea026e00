"""How long the jobs take: from figures measured on two cores with AVX512-BF16, for a model of 135 million parameters.

A training iteration on Frozen Lake takes 17 s: 32 episodes (about 210 decisions) are played in 12 s, and 16 of them
learnt from in 5 s. Imitating a decision there takes at most 0.3 s.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from agents.msgrpo import MSGRPOConfig
from research.reproduction.pace import Pace, episode_seconds, kilocharacters, training_seconds
from research.reproduction.pretrained.jobs import PretrainedJob
from research.reproduction.pretrained.settings import Pretrained

PACE = Pace(sample=0.05, learn=0.045, imitate=0.25)
TOKEN = 0.004  # seconds a token of a response beyond the twelve that the figures above have in them
TRL = 10.0  # how many times longer TRL's trainer takes for an episode: the goal that the measurement is held against
LOAD = 10.0  # seconds until a job begins
ONE_THREAD = 1.45  # times as long as both cores: the draws of credit-pretrained took 156 s a batch of 128 episodes


def typical_seconds(experiment: Pretrained, jobs: Sequence[PretrainedJob]) -> Mapping[str, float]:
    """Return ``{job: seconds}`` of wall time to begin with, on a machine of the recipe's speed."""
    seconds: dict[str, float] = {}
    for job in jobs:  # those that are needed come before
        seconds[job.name] = LOAD + _seconds(experiment, job, seconds) / experiment.speed
    return seconds


def _seconds(experiment: Pretrained, job: PretrainedJob, known: Mapping[str, float]) -> float:
    """Return the seconds of a job on two cores, once its model is loaded."""
    if job.kind == "start":
        start, config = experiment.starts[job.about], experiment.imitation_config(job.about, job.seed)
        text = float(np.mean([kilocharacters(name) for name in start.scenarios]))
        return start.examples * config.update_passes * (PACE.imitate * text + _more_tokens(config))
    if job.kind == "train":
        arm = experiment.arms[job.about]
        if arm.trainer == "trl":
            like = known[next(need for need in job.needs if need.startswith(f"train/{arm.like}/"))]
            return like * experiment.speed * (TRL if arm.equal == "episodes" else 1.0)
        config = MSGRPOConfig.from_mapping(experiment.training_settings(job.about, job.seed))
        return training_seconds(config, experiment.scenarios_of(job.about), PACE._replace(form=_more_tokens(config)))
    player = experiment.everyone[job.about]
    if not job.needs and player.agent in ("random", "blind", "greedy", "planner"):
        return 0.0
    longer = 1 + 0.3 * player.shown  # of the texts of a prompt that tells so many examples
    thinks = player.options.get("mode", experiment.mode) == "think"
    seconds = episode_seconds(job.scenario, PACE.sample * longer, 100 * TOKEN if thinks else 0.0)
    return (player.episodes or experiment.episodes) * seconds


def batch_seconds(scenario: str, episodes: int) -> float:
    """Return seconds of one thread for some episodes, and for two passes over all that was played in them."""
    return ONE_THREAD * episodes * episode_seconds(scenario, PACE.sample + 2 * PACE.learn)


def _more_tokens(config: MSGRPOConfig) -> float:
    """Return seconds a decision for a response that isn't short; half of what may be written is."""
    return TOKEN * max(0.0, config.max_response_tokens / 2 - 12)
