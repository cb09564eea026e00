"""The settings of a tiny language model, in one frozen record."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any

from agents.prompt_texts import PromptTexts
from agents.tiny.demonstrator import FORESIGHTS, StyleShares
from textgames.settings import check_number, check_whole


@dataclass(frozen=True, slots=True)
class Recipe:
    """The settings of a tiny model; by default one of 0.4 million parameters that reads both games."""

    #: what it learns to read: games with all variants, or single scenarios
    games: tuple[str, ...] = ("frozen-lake", "snake")
    modes: tuple[str, ...] = ("think", "direct")  #: response modes to learn: ``"think"``, ``"direct"``
    prompts: str = "default"  #: the wording that it learns to read: a file, or the name of one that ships
    examples: int = 120_000  #: decisions that are demonstrated, over all scenarios
    style: StyleShares = field(default_factory=StyleShares)  #: how noisy the demonstrator is
    steps: int = 1_250  #: optimiser steps
    batch_size: int = 96  #: examples per step
    learning_rate: float = 3e-3  #: the highest; it rises over the first 5% of the steps and falls to 0 by a cosine
    weight_decay: float = 0.05  #: of AdamW, on matrices
    hidden_size: int = 96  #: the model's width
    intermediate_size: int = 256
    layers: int = 4
    heads: int = 3
    kv_heads: int = 1
    context_length: int = 2048  #: positions that it has
    foresight: int = 1  #: how many moves ahead the demonstrator's reasoning reports, 1 to 6
    seed: int = 0  #: of data, weights and batches
    threads: int = 1  #: of PyTorch. Sums are rounded differently with another number, so it is part of the recipe.

    def __post_init__(self) -> None:
        counts = ("hidden_size", "intermediate_size", "layers", "heads", "kv_heads", "context_length")
        for name in ("examples", "steps", "batch_size", "threads", *counts):
            check_whole(name, getattr(self, name), 1, None)
        check_whole("foresight", self.foresight, FORESIGHTS[0], FORESIGHTS[-1])
        check_whole("seed", self.seed, 0, None)
        check_number("learning_rate", self.learning_rate, 0, inf, open_ends=True)
        check_number("weight_decay", self.weight_decay, 0, inf)
        if self.hidden_size % (2 * self.heads):
            raise ValueError(
                f"hidden_size must be a multiple of twice the heads, got hidden_size={self.hidden_size} "
                f"and heads={self.heads}"
            )
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads divides heads, got heads={self.heads} and kv_heads={self.kv_heads}")
        if not self.modes or set(self.modes) - {"think", "direct"}:
            raise ValueError(f"modes are think and direct, got {self.modes!r}")
        if not self.games:
            raise ValueError("games is empty; name frozen-lake, snake or both")
        PromptTexts.from_file(self.prompts)  # a file that can't be read is said now
        self.style.checked()

    @classmethod
    def quick(cls, **changes: Any) -> "Recipe":
        """Return 0.2 million parameters for the Frozen Lake training scenario: about a minute on one core."""
        settings: dict[str, Any] = {
            "games": ("frozen-lake-training",),
            "modes": ("think",),
            "examples": 40_000,
            "steps": 800,
            "batch_size": 64,
            "learning_rate": 5e-3,
            "hidden_size": 64,
            "intermediate_size": 160,
            "layers": 4,
            "heads": 2,
        }
        return cls(**(settings | changes))

    @classmethod
    def legal_play(cls, games: Sequence[str], **changes: Any) -> "Recipe":
        """Return 0.07 million parameters that answer with random legal moves of any games: a start for self-play."""
        settings: dict[str, Any] = {
            "games": tuple(games),
            "modes": ("direct",),
            "examples": 12_000,
            "steps": 300,
            "batch_size": 32,
            "hidden_size": 48,
            "intermediate_size": 128,
            "layers": 2,
        }
        return cls.quick(**(settings | changes))

    @property
    def texts(self) -> PromptTexts:
        """The texts of :attr:`prompts`."""
        return PromptTexts.from_file(self.prompts)

    @property
    def as_data(self) -> dict[str, Any]:
        return asdict(self) | {"style": self.style._asdict()}
