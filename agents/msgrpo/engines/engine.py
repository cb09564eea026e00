"""Engines: language models that sample rollouts and can be given new weights.

``weights of version v -> engine -> completions whose tokens say that version v made them``. A version counts the
updates that the weights have had, from 0. :class:`agents.msgrpo.rollouts.EpisodeSource` sends them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from agents.episode import Episode, EpisodeTask, Step
from agents.loop.live import Policies, Teams
from agents.loop.rollout import rollout
from agents.models.answers import LegalAnswers
from agents.models.base import AsyncLanguageModel, Decoding, LanguageModel
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.plugins import completed_class
from agents.policy import run_coroutine
from agents.turn import Prompt, Turn, WeightsSpan

Weights = Iterator[tuple[str, Tensor]]
"""Every parameter once, under the names of the Hugging Face model without adapter (adapters arrive merged), whole
tensors, to be consumed one at a time."""


class EngineExtras(Protocol):
    """The parts that an engine may leave out, with their defaults; :func:`completed_engine` adds them.

    ``shared``: the engines of all learning processes stand for the same places, to which that of the first process
    brings the weights. ``plays_elsewhere``: :meth:`rollout` plays in other processes.
    """

    shared: bool = False
    plays_elsewhere: bool = False

    def answers(self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...]) -> list[Turn]:
        """Return one answer of every place that holds weights of its own, such as each of several servers."""
        if isinstance(self, LanguageModel):
            return self.generate([prompt], decoding, [seed])
        assert isinstance(self, AsyncLanguageModel)
        return [run_coroutine(self.generate_async(prompt, decoding, seed))]

    def rollout(
        self,
        policies: Policies,
        tasks: Sequence[EpisodeTask],
        *,
        max_concurrency: int,
        on_step: Callable[[EpisodeTask, Step], None] | None = None,
    ) -> Iterator[Episode]:
        """Play whole episodes, with the engine's own weights if the policies' model is this engine."""
        return rollout(policies, tasks, max_concurrency=max_concurrency, on_step=on_step)

    def forget(self) -> None:
        """Drop what was kept from earlier calls, on which a resumed run would otherwise depend."""
        return None  # noqa: RET501 - a part with an empty body would count as abstract

    def close(self) -> None:
        """End what the engine started."""
        return None  # noqa: RET501 - a part with an empty body would count as abstract


@runtime_checkable
class TakesWeights(Protocol):
    """The part of an engine that a language model lacks."""

    def update_weights(self, weights: Weights, version: int) -> None:
        """Take over new weights for every later token, while nothing is being generated.

        Raise a RolloutError if they didn't arrive everywhere.
        """


class RolloutEngine(LanguageModel, TakesWeights, EngineExtras, Protocol):
    """A sampler with weights of its own, which completes a batch of prompts at once.

    It has to sample from the plain temperature-scaled distribution (no top-k, no top-p, no penalties) and to return
    ``prompt_ids`` and ``response_ids`` as they were, ``weights`` (which version made which token) and ``logprobs``
    under the distribution that it sampled from; one without these takes ``importance_cap = 0``.
    """


class AsyncRolloutEngine(AsyncLanguageModel, TakesWeights, EngineExtras, Protocol):
    """An engine behind servers: completes one prompt at a time, many at once, each episode at its own pace."""


Engine = RolloutEngine | AsyncRolloutEngine


def completed_engine(engine: Any) -> Engine:
    """Give an engine's class the parts of :class:`EngineExtras` that it lacks, and return the engine."""
    if not (isinstance(engine, TakesWeights) and isinstance(engine, LanguageModel | AsyncLanguageModel)):
        raise ConfigError(
            f"an engine has a name, update_weights(weights, version) and generate or generate_async, got "
            f"{type(engine).__name__}; see agents.msgrpo.engines.engine"
        )
    completed_class(type(engine), EngineExtras)
    complete: Any = engine
    return complete  # type: ignore[no-any-return]


@dataclass(frozen=True)
class EngineParts:
    """The parts that an engine is made from: the learner's model and tokenizer, and the run's config.

    ``dtype`` is that of the learner's matrix products, and so of sampling. ``moving``: the live weights can't be
    sampled from, as they are sharded, in another type, or change while rollouts are played. ``rank`` is the number of
    this learning process.
    """

    model: nn.Module
    tokenizer: Any
    config: Any
    dtype: torch.dtype
    moving: bool = False
    rank: int = 0
    processes: int = 1


class InThisProcess(EngineExtras):
    """The common part of engines whose model is in this process, with weights of one ``version``."""

    version: int
    _model: Any

    def generate(
        self,
        prompts: Sequence[Prompt],
        decoding: Decoding,
        seeds: Sequence[tuple[int, ...]],
        answers: Sequence[LegalAnswers | None] | None = None,
    ) -> list[Turn]:
        return made_by(self.version, self._model.generate(prompts, decoding, seeds, answers))


def made_by(version: int, completions: Iterable[Turn]) -> list[Turn]:
    """Return the completions with the note that the weights of ``version`` made all of their tokens."""
    return [
        replace(each, weights=(WeightsSpan(version, 0, len(each.response_ids)),)) if each.response_ids else each
        for each in completions
    ]


def each_policy(policies: Any, change: Callable[[Any], Any]) -> Any:
    """Return the changed policies in the form that they are given in: one, one for each player, or teams."""
    if isinstance(policies, Mapping):
        return {player: change(policy) for player, policy in policies.items()}
    if isinstance(policies, Teams):
        return Teams({team: [*map(change, own)] for team, own in policies.policies.items()})
    return change(policies)
