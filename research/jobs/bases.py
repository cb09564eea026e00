"""Small models that experiments begin with: made by a recipe, or read from a folder."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.jobs.work import Report
from textgames import did_you_mean

if TYPE_CHECKING:
    from agents.tiny import Recipe

PROMPTS = "without-clock"
"""What the models of a study read: the prompts with which the published figures were measured, without the moves that
are left, so that equal positions are equal prompts."""


def load(place: Path | str) -> tuple[Any, Any]:
    """Return a model, of a folder or by an agent's name, and its tokenizer."""
    from agents.models import load_model

    return load_model(str(place), dtype="float32", device="cpu")


def changed(recipe: "Recipe", settings: Mapping[str, Any]) -> "Recipe":
    """Return a recipe with other settings, as TOML has them: lists for tuples, a text for one of one, tables."""
    from agents.tiny import StyleShares

    values = dict(settings)
    for name in values:
        if name not in recipe.as_data:
            wrong = f"a tiny model's recipe has no {name!r}{did_you_mean(name, recipe.as_data)}"
            raise ValueError(f"{wrong}; it has {', '.join(recipe.as_data)}")
    for name in ("games", "modes"):
        if name in values:
            values[name] = (values[name],) if isinstance(values[name], str) else tuple(map(str, values[name]))
    if isinstance(values.get("style"), Mapping):
        values["style"] = StyleShares(**values["style"])
    return replace(recipe, **values)


def make(recipe: Any, place: Path, report: Report, command: str, examples: Sequence[Any] | None = None) -> Any:
    """Train a small model by :func:`agents.tiny.pretrain`, save it and return it; resume it if it was stopped.

    ``place``, the model's folder, is made anew. ``command`` is for the model's card. ``examples`` are imitated in place
    of the recipe's own demonstrations.
    """
    from agents.tiny import pretrain
    from research.jobs.cards import save_with_card

    shutil.rmtree(place, ignore_errors=True)  # of a process that was killed before it wrote its result
    place.parent.mkdir(parents=True, exist_ok=True)
    made = pretrain(
        recipe,
        examples=examples,
        on_progress=lambda progress: report(progress.step / progress.steps),
        checkpoint=place.parent / "state.pt",
    )
    save_with_card(made, place, command=command)
    return made
