"""How long a reproduction takes on this machine: measured on a few seconds of the real work, then multiplied out.

What is measured: pretraining steps of each base, sampling of responses and a learning step, on demonstrated decisions
(so that prompts and responses have their real lengths); how many decisions an episode has comes from the greedy player.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmark.reproduce.jobs import Job
from benchmark.reproduce.settings import Experiment, recipe_of
from textgames.scenarios import SCENARIOS

_EXAMPLES = 64
_LENGTH_EPISODES = 50
_REPETITIONS = 3


class Pace(NamedTuple):
    """What was measured, in seconds of one process.

    Attributes:
        pretrain_step: ``{base: one optimiser step}``.
        demonstration: one demonstrated decision.
        sample: ``{(base, scenario): one response}``.
        learn: ``{scenario: one decision in an update of the small base}``.
        length: ``{scenario: decisions per episode}``.
        start: loading what a process needs, once per process.
    """

    pretrain_step: Mapping[str, float]
    demonstration: float
    sample: Mapping[tuple[str, str], float]
    learn: Mapping[str, float]
    length: Mapping[str, float]
    start: float


def expected_seconds(jobs: Sequence[Job], experiment: Experiment, pace: Pace) -> dict[str, float]:
    """``{job: seconds}`` at this pace."""
    return {job.name: _SECONDS[job.kind](job, experiment, pace) for job in jobs}


def wall_seconds(jobs: Sequence[Job], seconds: Mapping[str, float], processes: int, start: float = 0.0) -> float:
    """Seconds from start to end when a free process takes the next job that can start; ``start`` until it is ready."""
    free, done, waiting = [start] * processes, dict[str, float](), list(jobs)
    names = {job.name for job in jobs}
    while waiting:
        ready = {job: max((done.get(n, np.inf) for n in job.needs if n in names), default=0.0) for job in waiting}
        now = min(free)
        job = next((one for one in waiting if ready[one] <= now), None) or min(waiting, key=lambda one: ready[one])
        worker = free.index(now)
        free[worker] = done[job.name] = max(now, ready[job]) + seconds[job.name]
        waiting.remove(job)
    return max(free)


def _pretrain_seconds(job: Job, experiment: Experiment, pace: Pace) -> float:
    if experiment.bases[job.agent].source:
        return 0.1
    recipe = recipe_of(experiment.pretraining_settings(job.agent))
    return float(recipe.examples * pace.demonstration + recipe.steps * pace.pretrain_step[job.agent])


def _train_seconds(job: Job, experiment: Experiment, pace: Pace) -> float:
    from agents.msgrpo import MSGRPOConfig

    config = MSGRPOConfig.from_mapping(experiment.training_settings(job.game, job.arm, job.seed))
    trained = config.episodes if config.episode_sampling == "off" else config.draws
    decision = config.episodes * pace.sample["small", job.game] + trained * config.update_passes * pace.learn[job.game]
    training = config.iterations * pace.length[job.game] * decision
    evaluations = 1 + config.iterations // config.eval_every
    return training + evaluations * config.eval_episodes * _episode_seconds("small", experiment.scenarios, pace)


def _play_seconds(job: Job, experiment: Experiment, pace: Pace) -> float:
    base = job.agent if job.agent in experiment.bases else "small"
    if job.agent in experiment.reference_agents:
        return 1e-3 * experiment.final_episodes * sum(pace.length[name] for name in experiment.scenarios)
    return experiment.final_episodes * _episode_seconds(base, experiment.scenarios, pace)


def _control_seconds(job: Job, experiment: Experiment, pace: Pace) -> float:
    games = (job.game,) if job.game else experiment.games
    return 4 * experiment.control_episodes * _episode_seconds("small", games, pace)


_SECONDS: Mapping[str, Callable[[Job, Experiment, Pace], float]] = {
    "pretrain": _pretrain_seconds,
    "train": _train_seconds,
    "play": _play_seconds,
    "control": _control_seconds,
}


def _episode_seconds(base: str, scenarios: Sequence[str], pace: Pace) -> float:
    """One episode of each of these scenarios."""
    return sum(pace.length[name] * pace.sample[base, name] for name in scenarios)


# ---------------------------------------------------------------- measuring


def measure(experiment: Experiment) -> Pace:
    """Measure this machine; a few seconds. Other work on the machine counts, as it will later.

    Models that are to be made are measured untrained, at the lengths of demonstrated responses.
    """
    started = time.perf_counter()
    import torch

    from agents.msgrpo import MSGRPOTrainer  # noqa: F401 - what a process loads, with all that hangs on it
    from agents.tiny import pretrain  # noqa: F401

    start = time.perf_counter() - started
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _measure(experiment, start)
    finally:
        torch.set_num_threads(threads)


def _measure(experiment: Experiment, start: float) -> Pace:
    from agents.tiny.demonstrator import StyleShares
    from agents.tiny.imitation import make_tokenizer, tokenize

    demonstrated = _demonstrate(experiment, StyleShares())
    tokenizer = make_tokenizer([example for _, examples in demonstrated.values() for example in examples])
    data = {name: tokenize(examples, tokenizer) for name, (_, examples) in demonstrated.items()}
    models = {name: _model(experiment, name, tokenizer) for name in experiment.bases}
    steps, learn = {}, {}
    mixture = [example for examples in data.values() for example in examples]
    for name, model in models.items():
        if not experiment.bases[name].source:
            recipe = recipe_of(experiment.pretraining_settings(name))
            chosen = [mixture[index % len(mixture)] for index in range(0, 7 * recipe.batch_size, 7)]
            steps[name] = _step_seconds(model, chosen)
    for name in experiment.games:
        learn[name] = _step_seconds(models["small"], data[name]) / len(data[name])
    return Pace(
        pretrain_step=steps,
        demonstration=float(np.mean([seconds for seconds, _ in demonstrated.values()])) / _EXAMPLES,
        sample={
            (base, name): _sample_seconds(model, tokenizer, data[name])
            for base, model in models.items()
            for name in experiment.scenarios
        },
        learn=learn,
        length={name: _episode_length(name) for name in experiment.scenarios},
        start=start,
    )


def _demonstrate(experiment: Experiment, style: Any) -> dict[str, tuple[float, list[Any]]]:
    from agents.tiny.data import demonstrations

    mode = str(experiment.msgrpo.get("response_mode", "think"))
    found = {}
    for name in experiment.scenarios:
        started = time.process_time()
        examples = demonstrations(SCENARIOS[name], _EXAMPLES, style, np.random.default_rng(0), modes=(mode,))
        found[name] = (time.process_time() - started, examples)
    return found


def _model(experiment: Experiment, base: str, tokenizer: Any) -> Any:
    """A model of the base's shape."""
    if not experiment.bases[base].source:
        from agents.tiny.imitation import make_model

        return make_model(recipe_of(experiment.pretraining_settings(base)), tokenizer)
    from transformers import AutoConfig, LlamaForCausalLM

    from benchmark.reproduce.work import source_folder

    config = AutoConfig.from_pretrained(source_folder(experiment.bases[base].source))
    config.vocab_size = max(config.vocab_size, len(tokenizer))
    return LlamaForCausalLM(config)


def _step_seconds(model: Any, batch: Sequence[Any]) -> float:
    """One forward and backward pass over these decisions."""
    from agents.tiny.imitation import imitation_loss

    def step() -> None:
        imitation_loss(model, batch).backward()  # type: ignore[no-untyped-call]
        model.zero_grad()

    return _typical(step)


def _sample_seconds(model: Any, tokenizer: Any, data: Sequence[Any]) -> float:
    """One response of the length that is usual here, in a batch."""
    from agents.models.base import Decoding
    from agents.models.local.transformers import TransformersModel

    wrapped = TransformersModel(model, tokenizer)
    length = round(float(np.mean([len(example.ids) - example.prompt_length for example in data])))
    prompts = [tuple(example.ids[: example.prompt_length]) for example in data]
    seeds = [(index,) for index in range(len(prompts))]
    # an untrained model hardly ever writes the stop string, so nearly every response has this length
    return _typical(lambda: wrapped.generate_ids(prompts, Decoding(1.0, max_tokens=length), seeds)) / len(prompts)


def _typical(work: Callable[[], Any]) -> float:
    """Wall-clock seconds of the middle one of a few repetitions, after one to warm up: the machine may be shared."""
    work()
    times = []
    for _ in range(_REPETITIONS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 2]


def _episode_length(scenario: str) -> float:
    from agents.episode import EpisodeTask
    from agents.load import load_agent
    from agents.loop.rollout import rollout

    tasks = [EpisodeTask.of(scenario, seed) for seed in range(_LENGTH_EPISODES)]  # training seeds: nobody's score
    return float(np.mean([len(episode.steps) for episode in rollout(load_agent("greedy"), tasks)]))


def default_processes() -> int:
    """As many as there are cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
