"""An engine with weights of its own that isn't the live one: a copy in this process, and what was asked of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from agents.models.base import Decoding
from agents.msgrpo.engines.engine import Weights
from agents.msgrpo.engines.live import CopyEngine
from agents.turn import Prompt, Turn


class Elsewhere:
    """Plays with a copy of the weights, as an engine on another machine would.

    Attributes:
        updates: the versions that arrived.
        deaf_after: updates of later versions change the label and not the weights.
        silent: answers come without log-probabilities.
    """

    name = "elsewhere"

    def __init__(self, model: Any, tokenizer: Any, *, deaf_after: int | None = None, silent: bool = False) -> None:
        self.copy = CopyEngine(model, tokenizer, torch.float32)
        self.updates: list[int] = []
        self.deaf_after, self.silent = deaf_after, silent

    def generate(self, prompts: Sequence[Prompt], decoding: Decoding, seeds: Sequence[tuple[int, ...]]) -> list[Turn]:
        turns = self.copy.generate(prompts, decoding, seeds)
        return [replace(each, logprobs=None) for each in turns] if self.silent else turns

    def update_weights(self, weights: Weights, version: int) -> None:
        self.updates.append(version)
        if self.deaf_after is not None and version > self.deaf_after:
            self.copy.version = version
        else:
            self.copy.update_weights(weights, version)
