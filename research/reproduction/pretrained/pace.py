"""How long the jobs take: from figures measured on two cores with AVX512-BF16, for a model of 135 million parameters.

A decision is counted by the text that it is taken on, in thousands of characters. What the jobs of a folder took
corrects these figures (:class:`research.jobs.timetable.Timetable`).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from agents.msgrpo import MSGRPOConfig
from research.reproduction.pace import game_kilocharacters
from research.reproduction.pretrained.jobs import PretrainedJob
from research.reproduction.pretrained.settings import Pretrained
from textgames import SCENARIOS

# A training iteration on Frozen Lake takes 17 s: 32 episodes (about 210 decisions) are played in 12 s, and 16 of them
# learnt from in 5 s. Imitating a decision there takes at most 0.3 s.
SAMPLE = 0.05  # seconds a decision, per thousand characters of rules, observation and form
LEARN = 0.045
IMITATE = 0.25
TOKEN = 0.004  # seconds a token of a response beyond the first ones
DIRECT_TOKENS = 12  # that the figures above have in them
TRL = 10.0  # how many times longer TRL's trainer takes for an episode: the goal that the measurement is held against
LOAD = 10.0  # seconds until a job begins
ONE_THREAD = 1.45  # times as long as both cores: the draws of credit-pretrained took 156 s a batch of 128 episodes

_DECISIONS = 0.7  # of an episode, as a share of its horizon
_FORM = 0.4  # thousands of characters that the prompt adds to what the game says


def typical_seconds(experiment: Pretrained, jobs: Sequence[PretrainedJob]) -> Mapping[str, float]:
    """Return ``{job: seconds}`` of wall time to begin with, on a machine of the recipe's speed."""
    work = {"start": _start, "train": _train, "play": _play}
    seconds: dict[str, float] = {}  # on two cores
    for job in jobs:  # those that are needed come before
        seconds[job.name] = LOAD + work[job.kind](experiment, job, seconds)
    return {name: LOAD + (each - LOAD) / experiment.speed for name, each in seconds.items()}


def _start(experiment: Pretrained, job: PretrainedJob, known: Mapping[str, float]) -> float:
    start = experiment.starts[job.about]
    config = experiment.imitation_config(job.about, job.seed)
    text = float(np.mean([kilocharacters(name) for name in start.scenarios]))
    return start.examples * config.update_passes * (IMITATE * text + _more_tokens(config))


def _train(experiment: Pretrained, job: PretrainedJob, known: Mapping[str, float]) -> float:
    arm = experiment.arms[job.about]
    if arm.trainer == "trl":
        like = known[next(need for need in job.needs if need.startswith(f"train/{arm.like}/"))]
        return like * (TRL if arm.equal == "episodes" else 1.0)
    config = MSGRPOConfig.from_mapping(experiment.training_settings(job.about, job.seed))
    names = experiment.scenarios_of(job.about)
    decisions = [_DECISIONS * (config.max_steps or SCENARIOS[name].horizon) for name in names]
    text = float(np.mean([count * kilocharacters(name) for count, name in zip(decisions, names, strict=True)]))
    more = float(np.mean(decisions)) * _more_tokens(config)
    iteration = config.episodes * (SAMPLE * text + more) + config.draws * config.update_passes * (LEARN * text + more)
    evaluations = 0 if not config.eval_every else 1 + -(-config.iterations // config.eval_every)
    played = evaluations * config.eval_episodes * len(config.eval_scenarios or names)
    return config.iterations * iteration + played * (SAMPLE * text + more)


def _play(experiment: Pretrained, job: PretrainedJob, known: Mapping[str, float]) -> float:
    player = experiment.everyone[job.about]
    if not job.needs and player.agent in ("random", "blind", "greedy", "planner"):
        return 0.0
    decisions = _DECISIONS * SCENARIOS[job.scenario].horizon * (player.episodes or experiment.episodes)
    examples = player.shown * 0.3  # of the texts of a prompt that tells examples, as many times longer it is
    thinks = player.options.get("mode", experiment.mode) == "think"
    return decisions * (SAMPLE * kilocharacters(job.scenario) * (1 + examples) + (100 * TOKEN if thinks else 0.0))


def batch_seconds(scenario: str, episodes: int) -> float:
    """Return seconds of one thread for some episodes, and for two passes over all that was played in them."""
    decisions = _DECISIONS * SCENARIOS[scenario].horizon * episodes
    return ONE_THREAD * decisions * kilocharacters(scenario) * (SAMPLE + 2 * LEARN)


def _more_tokens(config: MSGRPOConfig) -> float:
    """Return seconds a decision for a response that isn't short; half of what may be written is."""
    return TOKEN * max(0.0, config.max_response_tokens / 2 - DIRECT_TOKENS)


def kilocharacters(scenario: str) -> float:
    """Return how much text a decision of this scenario is taken on: the rules, its first observation and the form."""
    return _FORM + game_kilocharacters(scenario)
