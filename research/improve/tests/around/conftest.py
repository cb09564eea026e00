"""A model of two layers inside a player around it, on games of one step that scripted players read better than it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import textgames
from agents import Episode, EpisodeTask, Policy, Turn, TurnRequest, Usage, as_requests, rollout
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer
from tests.agents.msgrpo.conftest import Button, Buttons, make_llama, prompt_file
from tests.agents.msgrpo.test_trainer import BANDIT, SHORT
from tests.tiny_models import word_tokenizer

__all__ = ["make_llama", "prompt_file"]  # fixtures

COLOURS = Buttons.actions
WORDS = ("red", "green", "blue", "The light is ", "\n", "first", "second")


DEEPER = replace(BANDIT, groups=24, group_size=4, credit="rloo", entropy_coefficient=0.05, iterations=70)
"""For several answers to a decision: many groups, since what is hidden from the model differs from group to group."""


@dataclass(frozen=True)
class DimButton(Button):
    dim: bool = True


class Dim(Buttons):
    """The lights are shown by capital letters, which the model's tokenizer doesn't know: R, G and B are one token."""

    def initial_state(self, rng: np.random.Generator) -> DimButton:
        return DimButton(super().initial_state(rng).light)

    def observe(self, state: Button, player: str) -> str:
        return f"The light is {state.light[0].upper() if getattr(state, 'dim', False) else state.light}."


class HalfDim(Dim):
    """Half of the lights are shown by name."""

    def initial_state(self, rng: np.random.Generator) -> DimButton:
        return replace(super().initial_state(rng), dim=bool(rng.integers(2)))


textgames.register("TestDim-v0", Dim, max_steps=1)
textgames.register("TestHalfDim-v0", HalfDim, max_steps=1)


def light(request: TurnRequest) -> str:
    """The colour that an observation shows."""
    shown = request.observation.removeprefix("The light is ").partition(".")[0]
    return {"R": "red", "G": "green", "B": "blue"}.get(shown, shown)


class Scripted:
    """Answers by a function of the request, or in order; keeps the requests, and how many came at once."""

    def __init__(self, answers: Callable[[TurnRequest], str] | Iterable[str | Turn], name: str = "scripted") -> None:
        left = iter(()) if callable(answers) else iter(answers)
        self.answer: Callable[[TurnRequest], str | Turn] = answers if callable(answers) else lambda _: next(left)
        self.name, self.requests, self.batches = name, list[TurnRequest](), list[int]()

    @property
    def asked(self) -> int:
        return len(self.requests)

    @property
    def read(self) -> list[str]:
        return [one.observation for one in self.requests]

    def act(self, requests: Iterable[TurnRequest | str]) -> list[Turn]:
        found = as_requests(list(requests))
        self.requests += found
        self.batches.append(len(found))
        said = map(self.answer, found)
        return [Turn(one, usage=Usage(10, 1), seconds=1.0) if isinstance(one, str) else one for one in said]


class Lit(Scripted):
    """Says the light."""

    def __init__(self) -> None:
        super().__init__(light, "lit")


class Unlit(Scripted):
    """Says any colour."""

    def __init__(self) -> None:
        super().__init__(lambda request: str(np.random.default_rng([*request.seed, 9]).choice(COLOURS)), "unlit")


def episodes_of(policy: Policy, count: int = 120, scenario: str = "frozen-lake") -> list[Episode]:
    return list(rollout(policy, [EpisodeTask.of(scenario, seed) for seed in range(count)]))


def mean_return(played: Policy | Iterable[Episode], count: int = 120, scenario: str = "frozen-lake") -> float:
    episodes = played if isinstance(played, list) else episodes_of(played, count, scenario)
    return float(np.mean([episode.returns["player_0"] for episode in episodes]))


@pytest.fixture
def make(make_llama, prompt_file):
    def make_trainer(
        around: str,
        config: MSGRPOConfig = SHORT,
        game: str = "TestButtons-v0",
        words: Sequence[str] = WORDS,
        **settings: Any,
    ) -> MSGRPOTrainer:
        tokenizer = word_tokenizer(words, gaps=words is not WORDS)
        config = replace(config, prompt_file=prompt_file, around=around, **settings)
        model = make_llama(len(tokenizer), initializer_range=0.15)
        return MSGRPOTrainer(model, tokenizer, game, config, quiet=True)

    return make_trainer


def late(trainer: MSGRPOTrainer, metric: str = "return") -> float:
    return float(np.mean([each[metric] for each in trainer.train()[-5:]]))
