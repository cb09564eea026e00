"""What another engine sampled, beside what transformers makes of the same tokens."""

from collections.abc import Sequence
from typing import Any

import torch

from agents.episode import Episode, EpisodeTask
from agents.loop.rollout import rollout
from agents.models.base import Decoding
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap

LOGPROBS = 1e-5
"""Nats: the most that a sampled token's log-probability may differ from transformers', both in float32."""


def play(model: Any, scenario: str, episodes: int, temperature: float) -> list[Episode]:
    """Episodes of a scenario that a model plays with reasoning, by seed."""
    tasks = [EpisodeTask.of(scenario, 31_000 + k) for k in range(episodes)]
    policy = LanguageAgentPolicy(
        model, PromptMap.from_file("without-clock"), Decoding(temperature=temperature, max_tokens=128)
    )
    return sorted(rollout(policy, tasks), key=lambda episode: episode.seed)


def responses(episodes: Sequence[Episode]) -> list[list[str]]:
    return [[step.turn.response for step in episode.steps] for episode in episodes]


def worst_difference(episodes: Sequence[Episode], model: torch.nn.Module, temperature: float) -> float:
    """How far the episodes' log-probabilities are from those of ``model``, in nats, for the worst token."""
    worst, tokens = 0.0, 0
    for episode in episodes:
        assert episode.error is None, episode.error
        for step in episode.steps:
            turn = step.turn
            assert turn.prompt_ids
            assert turn.response_ids
            assert turn.logprobs is not None
            assert len(turn.logprobs) == len(turn.response_ids)
            ids = torch.tensor([[*turn.prompt_ids, *turn.response_ids]])
            with torch.no_grad():
                scores = torch.log_softmax(model(ids).logits[0].double() / temperature, -1)
            before = len(turn.prompt_ids) - 1
            for t, (token, told) in enumerate(zip(turn.response_ids, turn.logprobs, strict=True)):
                worst = max(worst, abs(scores[before + t, token].item() - told))
                tokens += 1
    assert tokens > 50
    return worst


def disturb(model: torch.nn.Module) -> None:
    """Move all weights by a little, each in its own direction, as a large update would."""
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=noise))
