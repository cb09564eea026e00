"""What an engine is: a language model that samples rollouts and can be given new weights.

``weights of version v -> engine -> completions whose tokens say that version v made them``. A version counts the
updates that the weights have had, from 0, so that the trainer can tell how far behind the learner a token's weights
were. :class:`agents.msgrpo.rollouts.EpisodeSource` decides when an engine gets which weights.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from agents.models.answers import LegalAnswers
from agents.models.base import AsyncLanguageModel, Decoding, LanguageModel
from agents.turn import Prompt, Turn, WeightsSpan

Weights = Iterator[tuple[str, Tensor]]
"""Every parameter once, under the names of the Hugging Face model without adapter (adapters arrive merged), whole
tensors, to be consumed one at a time."""


@runtime_checkable
class RolloutEngine(LanguageModel, Protocol):
    """A sampler with weights of its own, which completes a batch of prompts at once.

    It has to sample from the plain temperature-scaled distribution (no top-k, no top-p, no penalties) and to return
    ``prompt_ids`` and ``response_ids`` as they were, ``weights`` (which version made which token) and ``logprobs``
    under the distribution that it sampled from. Importance weights need the last, as another engine's arithmetic is not
    exactly the learner's; an engine that doesn't tell them can be used with ``importance_cap = 0`` alone.

    Parts of it are optional, and are used where they are:

    * ``answers(prompt, decoding, seed) -> list[Turn]``: one answer of every place that holds weights of its own,
      such as each of several servers, so that all of them can be checked after an update;
    * ``shared``: true where the engines of all learning processes stand for the same places: all are told of an update,
      and the one of the first process brings the weights;
    * ``rollout(policies, tasks, *, max_concurrency, on_step)``: plays whole episodes in place of
      :func:`agents.loop.rollout.rollout`, with its own weights wherever the policies' model is this engine;
    * ``close()``: ends what the engine started.
    """

    def update_weights(self, weights: Weights, version: int) -> None:
        """Take over new weights; every token that is sampled after this call returns is made by them, and says so.

        Nothing is being generated during the call.

        Raises:
            RolloutError: the weights didn't arrive everywhere.
        """


@runtime_checkable
class AsyncRolloutEngine(AsyncLanguageModel, Protocol):
    """An engine behind servers: completes one prompt at a time, many at once, each episode at its own pace."""

    def update_weights(self, weights: Weights, version: int) -> None:
        """Take over new weights; see :meth:`RolloutEngine.update_weights`."""


Engine = RolloutEngine | AsyncRolloutEngine


@dataclass(frozen=True)
class EngineParts:
    """What an engine is made from.

    Attributes:
        model: the learner's, with its adapter if it has one; for its configuration, its device and its folder.
        tokenizer: its tokenizer.
        config: the run's :class:`agents.msgrpo.configuration.config.MSGRPOConfig`, which imports this package for its
            names.
        dtype: that of the learner's matrix products, and so of sampling.
        moving: whether the live weights can't be sampled from: they are sharded, in another type than ``dtype``, or
            change while rollouts go on.
        rank: the number of this learning process.
        processes: how many learn together; each plays its share of the episodes with an engine of its own.
    """

    model: nn.Module
    tokenizer: Any
    config: Any
    dtype: torch.dtype
    moving: bool = False
    rank: int = 0
    processes: int = 1


class InThisProcess:
    """What engines share whose model is in this process: a batch of prompts at once, all by the weights of now.

    Attributes:
        version: of the weights.
    """

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
    """The completions, saying that the weights of ``version`` made all of their tokens."""
    return [
        replace(each, weights=(WeightsSpan(version, 0, len(each.response_ids)),)) if each.response_ids else each
        for each in completions
    ]


def answers_of(engine: Engine, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...]) -> list[Turn]:
    """The answers to a prompt of all places where the engine holds weights."""
    everywhere: Callable[..., list[Turn]] | None = getattr(engine, "answers", None)
    if everywhere is not None:
        return everywhere(prompt, decoding, seed)
    if isinstance(engine, RolloutEngine):
        return engine.generate([prompt], decoding, [seed])
    return [asyncio.run(engine.generate_async(prompt, decoding, seed))]
