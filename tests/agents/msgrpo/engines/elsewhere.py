"""An engine with weights of its own that isn't the live one: a copy in this process, and what was asked of it."""

from typing import Any

import torch

from agents.msgrpo.engines.engine import Weights
from agents.msgrpo.engines.live import CopyEngine


class Elsewhere:
    """Plays with a copy of the weights, as an engine on another machine would; ``updates`` are those that arrived.

    Updates of versions later than ``deaf_after`` change the label and not the weights.
    """

    name = "elsewhere"

    def __init__(self, model: Any, tokenizer: Any, *, deaf_after: int | None = None) -> None:
        self.copy = CopyEngine(model, tokenizer, torch.float32)
        self.forget, self.generate = self.copy.forget, self.copy.generate
        self.updates: list[int] = []
        self.deaf_after = deaf_after

    def update_weights(self, weights: Weights, version: int) -> None:
        self.updates.append(version)
        if self.deaf_after is not None and version > self.deaf_after:
            self.copy.version = version
        else:
            self.copy.update_weights(weights, version)
