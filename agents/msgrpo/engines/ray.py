"""``engine = "ray"``: whole episodes are played by workers on many machines, each with a sampler of its own.

A worker is an actor of Ray with a model in its own memory, live or in vLLM. It is told with every portion of tasks
which weights play it, and takes them over if it hasn't them yet. Every learning process has its share of the workers.
"""

import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from agents.cluster.cluster import Cluster, Pace
from agents.cluster.connection import ANY, ClusterError, lacking_packages
from agents.cluster.worker import PlayError
from agents.episode import Episode, EpisodeTask, Step
from agents.loop.live import Policies
from agents.models.answers import NEVER_CLOSED, LegalAnswers
from agents.models.base import Decoding
from agents.models.local.forward.llama_forward import unwrap
from agents.msgrpo.engines import ENGINES
from agents.msgrpo.engines.engine import Engine, EngineExtras, EngineParts, Weights, each_policy
from agents.msgrpo.engines.live import LiveEngine, random_model
from agents.msgrpo.errors import ConfigError, RolloutError, refused
from agents.msgrpo.plugins import configured
from agents.policy import LanguageAgentPolicy
from agents.turn import Policy, Prompt, Turn


@configured
class Ray:
    """Workers of a Ray cluster play whole episodes, each with a sampler of its own."""

    address: str = ANY
    """The cluster's address: host:port, auto (a running one), local (a new one on this machine), or any (Ray
    chooses)."""
    workers: int = Field(0, ge=0)
    """The largest number of workers; 0: as many as the cluster has room for, also when machines join."""
    cpus: float = Field(1.0, gt=0)
    """Processor cores that each worker takes."""
    gpus: float = Field(0.0, ge=0)
    """GPUs that each worker takes; with a fraction several workers share one."""
    sampler: Literal["live", "vllm"] = "live"
    """What a worker samples with: its own copy of the model, or vLLM in its process."""
    sampler_options: dict[str, Any] = Field(default_factory=dict)
    """The engine_options of that sampler."""

    def check(self, urls: Sequence[str]) -> None:
        if urls:
            raise ConfigError("engine_urls with engine = 'ray': its workers sample themselves; use engine = 'vllm'")
        if lacking := lacking_packages():
            raise ModuleNotFoundError(f"engine = 'ray': {lacking}", name="ray")

    def build(self, parts: EngineParts) -> Engine:
        self.check(parts.config.engine_urls)
        with refused("engine = 'ray'", ClusterError):
            return RayEngine(parts, self)


class LatestWeights(NamedTuple):
    """The weights to sample with, which come with every call to a worker, and the policies that play."""

    version: int
    weights: Any  # a reference to packed weights of this version
    policies: Any = None  # those of the trained model lack its engine, which a worker gives them


@dataclass
class Sampler:
    """A worker's engine, and the version of the engine's weights."""

    engine: Any
    version: int = -1


@dataclass(frozen=True)
class SamplerSetup:
    """The making of a worker's sampler; see :class:`agents.cluster.worker.AskedSetup`. Compared by ``key`` alone."""

    key: str
    config: Any = field(compare=False)
    model_config: Any = field(compare=False)
    attention: str = field(compare=False)
    tokenizer: Any = field(compare=False)
    dtype: torch.dtype = field(compare=False)
    options: Ray = field(compare=False)

    def make(self) -> Sampler:
        if self.config.threads:
            torch.set_num_threads(self.config.threads)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = random_model(self.model_config, self.attention, self.dtype, device)
        parts = EngineParts(model, self.tokenizer, self.config, self.dtype, moving=True)
        return Sampler(ENGINES.make(self.options.sampler, self.options.sampler_options).build(parts))

    def policies(self, made: Sampler, news: LatestWeights) -> Policies:
        self._renew(made, news)
        engine = made.engine
        played: Policies = each_policy(news.policies, lambda p: p(engine) if isinstance(p, partial) else p)
        return played

    def result(self, episode: Episode) -> Episode:
        return episode

    def answer(self, made: Sampler, news: LatestWeights, question: tuple[Any, ...]) -> list[Turn]:
        """Return completions; the question are the arguments of ``generate``."""
        self._renew(made, news)
        completions: list[Turn] = made.engine.generate(*question)
        return completions

    def _renew(self, made: Sampler, news: LatestWeights) -> None:
        if made.version != news.version:
            import ray

            made.engine.update_weights(unpacked(ray.get(news.weights)), news.version)
            made.version = news.version
        if isinstance(made.engine, LiveEngine):
            made.engine.forget()


class RayEngine(EngineExtras):
    """A sampler on many machines, which plays whole episodes."""

    plays_elsewhere = True

    def __init__(self, parts: EngineParts, options: Ray) -> None:
        base: Any = unwrap(parts.model)
        self._setup = SamplerSetup(
            uuid.uuid4().hex, parts.config, base.config, base.config._attn_implementation, parts.tokenizer, parts.dtype,
            options,
        )  # fmt: skip
        self._cluster = Cluster(
            options.address, most_workers=options.workers or None, cpus=options.cpus, gpus=options.gpus,
            sharers=parts.processes,
        ).__enter__()  # fmt: skip
        self.name = f"ray:{getattr(base.config, '_name_or_path', '') or 'model'}"
        self._news = LatestWeights(-1, None)

    def update_weights(self, weights: Weights, version: int) -> None:
        import ray

        self._news = LatestWeights(version, ray.put(packed(weights, self._setup.dtype)))

    def rollout(
        self,
        policies: Policies,
        tasks: Sequence[EpisodeTask],
        *,
        max_concurrency: int,
        on_step: Callable[[EpisodeTask, Step], None] | None = None,
    ) -> Iterator[Episode]:
        """Play the tasks on the workers; ``on_step`` is called when an episode arrives, for each of its steps."""

        def plan(policy: Policy) -> "partial[LanguageAgentPolicy] | Policy":
            if not isinstance(policy, LanguageAgentPolicy) or policy.model is not self:
                return policy
            return partial(
                LanguageAgentPolicy, prompt_map=policy.prompt_map, decoding=policy.decoding, name=policy.name,
                legal_only=policy.legal_only,
            )  # fmt: skip

        news = self._news._replace(policies=each_policy(policies, plan))
        pace = Pace(max_concurrency, evenly=True)
        by_place = {(task.scenario, task.seed): task for task in tasks}
        with _failures_told():
            for episode in self._cluster.rollout(self._setup, tasks, len(tasks), news=news, pace=pace):
                if on_step is not None:
                    for step in episode.steps:
                        on_step(by_place[episode.scenario, episode.seed], step)
                yield episode

    def generate(
        self,
        prompts: Sequence[Prompt],
        decoding: Decoding,
        seeds: Sequence[tuple[int, ...]],
        *answers: Sequence[LegalAnswers | None],
    ) -> list[Turn]:
        question = (prompts, decoding, seeds, *answers)
        with _failures_told():
            (completions,) = self._cluster.ask(self._setup, self._news, question, everywhere=False)
        return list(completions)

    def why_unconstrained(self, reasons: bool) -> str | None:
        return None if self._setup.options.sampler == "live" or not reasons else NEVER_CLOSED

    def answers(self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...]) -> list[Turn]:
        with _failures_told():
            answers = self._cluster.ask(self._setup, self._news, ([prompt], decoding, [seed]))
        return [completion for (completion,) in answers]

    def close(self) -> None:
        self._cluster.__exit__(None, None, None)


@contextmanager
def _failures_told() -> Iterator[None]:
    try:
        yield
    except (PlayError, ClusterError) as error:
        if isinstance(error, PlayError):
            error.add_note(error.trace)
        raise RolloutError(f"engine = 'ray': {error}") from error


PackedWeights = dict[str, tuple[str, tuple[int, ...], np.ndarray[Any, np.dtype[np.uint8]]]]
"""``{name: (type, shape, bytes)}``: arrays of numpy, which all workers of a machine read in one place."""


def packed(weights: Weights, dtype: torch.dtype) -> PackedWeights:
    """Return the weights as bytes, in the type that is sampled in: numpy has no bfloat16."""
    name = str(dtype).removeprefix("torch.")
    return {
        parameter: (name, tuple(tensor.shape), tensor.to("cpu", dtype).contiguous().flatten().view(torch.uint8).numpy())
        for parameter, tensor in weights
    }


def unpacked(weights: PackedWeights) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights that :func:`packed` gave, without a copy; they may only be read."""
    for parameter, (name, shape, content) in weights.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that torch could write to what is for reading alone
            flat = torch.from_numpy(content)
        yield parameter, flat.view(getattr(torch, name)).reshape(shape)
