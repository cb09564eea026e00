"""The network of a learned step value ``Q(prompt, action)``, which needs no model beside it.

``TurnRequest -> words, action -> value``. Words of the observation with their places, and pairs of words that stand
beside or below each other, each alone and together with the action, are added up as embeddings, before two layers.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise
from typing import Literal
from zlib import crc32

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from agents import SearchPlayer, TurnRequest

Targets = Literal["mc", "td"]

MOST_WORDS = 512  # of an observation, the last ones


class About(BaseModel):
    """The document of a folder: what was learnt from what, and the network's size."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    kind: Literal["textbench step value"] = "textbench step value"
    scenarios: tuple[str, ...] = Field(max_length=1000)
    targets: Targets
    decisions: int = Field(ge=1)
    width: int = Field(default=64, ge=1, le=512)
    buckets: int = Field(default=4096, ge=2, le=2**16)


class StepValue(nn.Module):
    """A network of values; ``scale`` is the unit of what it computes."""

    scale: Tensor

    def __init__(self, about: About) -> None:
        super().__init__()
        self.about = about
        self.bag = nn.EmbeddingBag(about.buckets, about.width, mode="sum", padding_idx=0)
        nn.init.normal_(self.bag.weight, std=0.05)
        hidden = nn.Linear(about.width, about.width)
        self.layers = nn.Sequential(nn.ReLU(), hidden, nn.ReLU(), nn.Linear(about.width, 1))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, words: Tensor, actions: Tensor) -> Tensor:
        """Return the values (n,) of actions (n,) at the words (n, L) of their requests, which are padded with 0."""
        both = torch.cat([words, words * 1_000_003 + actions[:, None]], 1)
        places = (both % (self.about.buckets - 1) + 1).masked_fill((words == 0).repeat(1, 2), 0)
        values: Tensor = self.layers(self.bag(places)).squeeze(-1)
        return values * self.scale

    @torch.no_grad()
    def of(self, request: TurnRequest, actions: Collection[str]) -> dict[str, float]:
        """Return ``{action: value}`` of these actions."""
        words = torch.tensor([words_of(request)] * len(actions))
        found = self(words, torch.tensor([*map(number_of, actions)]))
        return dict(zip(actions, found.tolist(), strict=True))


def words_of(request: TurnRequest) -> list[int]:
    """Return the numbers of all that a request says: its words by line from the end, and place; neighbours; the clock.

    The rules are the same in all episodes of a game, so they are left out, and so is the history.
    """
    lines = [re.findall(r"\w+|[^\w\s]", line) for line in request.observation.splitlines()]
    placed = [f"{row} {at} {word}" for row, line in enumerate(reversed(lines)) for at, word in enumerate(line)]
    beside = [f"{first} > {then}" for line in lines for first, then in pairwise(line)]
    below = [
        f"{over} / {under}" for line, following in pairwise(lines) for over, under in zip(line, following, strict=False)
    ]
    told = [f"left {request.steps_left}", f"player {request.player}", *dict.fromkeys(beside + below)]
    return [*map(number_of, told + placed[-MOST_WORDS:])]


@lru_cache(2**16)
def number_of(word: str) -> int:
    """Return a number above 0 that stands for a word; 0 stands for none."""
    return crc32(word.encode()) + 1


class ValuePlayer(SearchPlayer):
    """Plays, and ranks actions, by a learned value."""

    method = "a learned value"

    def __init__(self, value: StepValue) -> None:
        super().__init__(None)
        self._value = value

    def values(self, request: TurnRequest) -> dict[str, float]:
        return self._value.of(request, request.legal_actions)

    def values_with(self, request: TurnRequest, actions: Collection[str]) -> dict[str, float]:
        return self._value.of(request, actions)
