"""What a reproduction consists of: jobs, what each waits for, where its models lie, and how long it takes.

Times are estimated from the decisions of a job and the text that is read for each of them. What the jobs of a folder
took corrects these figures (:class:`research.jobs.timetable.Timetable`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from research.jobs.folder import Folder
from research.reproduction.settings import Experiment
from textgames import SCENARIOS

if TYPE_CHECKING:
    from agents.msgrpo import MSGRPOConfig


Kind = Literal["pretrain", "train", "play", "control"]


class Job(NamedTuple):
    """A piece of work for one process; ``game``, ``arm`` and ``seed`` are empty for bases and reference agents."""

    name: str  # unique, and the path of its result below the folder: ``"train/snake/aaw/0"``
    kind: Kind  # which function of :mod:`work` does it
    needs: tuple[str, ...] = ()  # names of the jobs that must be done before
    agent: str = ""
    game: str = ""
    arm: str = ""
    seed: int = 0


def jobs_of(experiment: Experiment) -> list[Job]:
    """Return all jobs, seed by seed: an experiment that is cut short has all arms with fewer seeds."""
    jobs = [Job(f"pretrain/{name}", "pretrain", agent=name) for name in experiment.bases]
    jobs += [Job(f"play/{name}", "play", (f"pretrain/{name}",), name) for name in experiment.bases]
    jobs += [Job(f"play/{name}", "play", (), name) for name in experiment.reference_agents]
    if experiment.control_episodes:
        jobs.append(Job("control/small", "control", ("pretrain/small",), "small"))
    first = next(iter(experiment.arms))
    for seed in range(experiment.seeds):
        runs = [
            Job(name := f"train/{game}/{arm}/{seed}", "train", ("pretrain/small",), name, game, arm, seed)
            for game in experiment.games
            for arm in experiment.arms
        ]
        jobs += runs
        jobs += [run._replace(name=f"play/{run.name}", kind="play", needs=(run.name,)) for run in runs]
        if experiment.control_episodes:
            own = [run for run in runs if run.arm == first]
            jobs += [run._replace(name=f"control/{run.name}", kind="control", needs=(run.name,)) for run in own]
    return jobs


class ReproductionFolder(Folder):
    """The folder of one reproduction."""

    def model(self, agent: str) -> Path:
        """Return the folder of an agent's model: a base, or the last checkpoint of a run."""
        return self.path / agent / "last" if "/" in agent else self.path / "pretrain" / agent / "model"


START_SECONDS = 2.0  # for every job of a small model: loading it, and libraries in the first job of a process
EMBEDDED = 0.2  # millions of parameters of the models that ship

_DECISIONS = 0.7  # of an episode, as a share of its horizon
_FORM = 0.4  # thousands of characters that the prompt adds to what the game says


class Pace(NamedTuple):
    """Seconds of a decision, per thousand characters of text that it is taken on."""

    sample: float  # playing it, in a batch
    learn: float  # in an update of MS-GRPO
    imitate: float  # learning once from it
    form: float = 0.0  # seconds of a decision, however short its text


def kilocharacters(scenario: str) -> float:
    """Return how much text a decision of this scenario is taken on: the rules, its first observation and the form."""
    game = SCENARIOS[scenario].game()
    player = game.players[0]
    state = game.initial_state(np.random.default_rng(0))
    return _FORM + (len(game.instructions(player)) + len(game.observe(state, player))) / 1000


def episode_seconds(scenario: str, cost: float, form: float = 0.0, max_steps: int = 0) -> float:
    """Return the seconds of an episode whose decisions cost so much each, by their text and by their form."""
    decisions = _DECISIONS * (max_steps or SCENARIOS[scenario].horizon)
    return decisions * (cost * kilocharacters(scenario) + form)


def training_seconds(config: "MSGRPOConfig", names: Sequence[str], pace: Pace) -> float:
    """Return the seconds of a training on some scenarios, evaluations included."""

    def seconds(scenarios: Sequence[str], cost: float) -> float:
        return sum(episode_seconds(name, cost, pace.form, config.max_steps or 0) for name in scenarios)

    learnt = config.draws * config.update_passes
    iteration = config.episodes * seconds(names, pace.sample) + learnt * seconds(names, pace.learn)
    evaluations = 0 if not config.eval_every else 1 + -(-config.iterations // config.eval_every)
    evaluation = config.eval_episodes * seconds(config.eval_scenarios or names, pace.sample)
    return config.iterations * iteration / len(names) + evaluations * evaluation


def typical_seconds(experiment: Experiment, jobs: Sequence[Job]) -> Mapping[str, float]:
    """Return ``{job: seconds}`` of a reproduction to begin with."""
    return {job.name: START_SECONDS + _seconds(job, experiment) for job in jobs}


def _seconds(job: Job, experiment: Experiment) -> float:
    from agents.msgrpo import MSGRPOConfig
    from agents.tiny import scenarios_of

    if job.agent in experiment.reference_agents:
        return 0.0
    base = job.agent if job.agent in experiment.bases else "small"
    made, recipe = not experiment.bases[base].source, experiment.recipe(base)
    attention = 2 * recipe.hidden_size**2 * (1 + recipe.kv_heads / recipe.heads)
    matrices = recipe.layers * (attention + 3 * recipe.hidden_size * recipe.intermediate_size)
    millions = matrices / 1e6 if made else EMBEDDED
    # on one core, from runs on two machines
    pace = Pace(1.2e-3 + 2.9e-3 * millions, 0.45e-3 + 0.7e-3 * millions, 1.7e-3 + 2.9e-3 * millions)
    if job.kind == "pretrain":
        text = sum(share * kilocharacters(name) for name, share in scenarios_of(recipe.games).items())
        return made * text * recipe.steps * recipe.batch_size * pace.imitate
    if job.kind == "train":
        config = MSGRPOConfig.from_mapping(experiment.training_settings(job.game, job.arm, job.seed))
        return training_seconds(config, [job.game], pace)
    if job.kind == "play":
        return experiment.final_episodes * sum(episode_seconds(name, pace.sample) for name in experiment.scenarios)
    games = (job.game,) if job.game else experiment.games
    return 4 * experiment.control_episodes * sum(episode_seconds(game, pace.sample) for game in games)
