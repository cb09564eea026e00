"""Small models that experiments begin with: made by a recipe, or read from a folder."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from research.jobs.work import Report

PROMPTS = "without-clock"
"""What the models of a study read: the prompts with which the published figures were measured, without the moves that
are left, so that equal positions are equal prompts."""


def load(place: Path | str) -> tuple[Any, Any]:
    """Return a model, of a folder or by an agent's name, and its tokenizer."""
    from agents.models import load_model

    return load_model(str(place), dtype="float32", device="cpu")


def make(recipe: Any, place: Path, report: Report, command: str, examples: Sequence[Any] | None = None) -> Any:
    """Train a small model and save it; a second call resumes the first if it was stopped.

    Args:
        recipe: of :mod:`agents.tiny`.
        place: the model's folder, which is made anew.
        report: is told which share is done.
        command: what makes the model, for its card.
        examples: what is imitated in place of the recipe's own demonstrations.

    Returns:
        What :func:`agents.tiny.pretrain` does.
    """
    from agents.tiny import pretrain, save

    shutil.rmtree(place, ignore_errors=True)  # of a process that was killed before it wrote its result
    place.parent.mkdir(parents=True, exist_ok=True)
    made = pretrain(
        recipe,
        examples=examples,
        on_progress=lambda progress: report(progress.step / progress.steps),
        checkpoint=place.parent / "state.pt",
    )
    save(made, place, command=command)
    return made
