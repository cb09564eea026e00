"""Small models that experiments begin with: made by a recipe, with a card that says what it is and isn't, or read."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.jobs.work import Report, facts_of
from textgames import did_you_mean

if TYPE_CHECKING:  # settings are read without torch
    from agents.tiny import Pretrained, Recipe

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


_LIMITS = """\
- It knows only the wording of the prompts that it was trained with (in the response modes above, no system message, no
  history) for the scenarios named above: whole blocks of it are single tokens. `textbench.json` has that wording, and
  this package asks it so. Other wordings, axes on the grid, or observations without coordinates or grid are encoded
  without loss but mean nothing to it.
- It was trained on the moves of a player that errs on purpose. It is a starting point for reinforcement learning, not
  a strong player.
- Its reasoning is a report on the position in a fixed form; see the share of true statements above.
- It speaks no other language and knows nothing else.
"""


_NO_CLOCK = """\
- Its prompts don't say how many moves are left, as the package's default prompts do. Where the best move depends on
  that, no player that reads them can play as well as the yardstick, which knows it.
"""


def save_with_card(made: "Pretrained", folder: Path, *, command: str) -> None:
    """Save a model with a card: data, training and the ``command`` that made it; the results are filled in later."""
    from agents.tiny import save, scenarios_of

    save(made, folder)
    recipe, facts = made.recipe, facts_of()
    parameters = sum(p.numel() for p in made.model.parameters())
    shares = ", ".join(f"{name} {share:.1%}" for name, share in scenarios_of(recipe.games).items())
    settings = "\n".join(f"- {name}: {value}" for name, value in recipe.as_data.items())
    card = f"""---
license: mit
library_name: transformers
pipeline_tag: text-generation
---

# A tiny language model that plays text games

{parameters:,} parameters (Llama, {recipe.layers} layers of width {recipe.hidden_size}, tied embeddings), a vocabulary
of {len(made.tokenizer)} tokens, trained from scratch with textbench. It reads the same prompts as any other model and
answers in the same form.

## Data

{recipe.examples:,} decisions ({shares}), on layouts of the training seeds 0 to 9,999.
{_demonstrated(recipe)}Response modes: {" and ".join(recipe.modes)}.

## Training

Next-token cross entropy on the response tokens, AdamW, learning rate {recipe.learning_rate:g} with a cosine to 0.
Loss (nats per response token) of the last 1% of the steps: {made.losses[-1]:.4f}. {made.seconds:.0f} seconds on
{recipe.threads} thread(s). Deterministic given the settings on one machine.

{settings}

Made with textbench {facts["textbench"]}; {facts["versions"]}, Python {facts["Python"]}, by `{command}`.

## Results

Not evaluated.

## Limits

{_LIMITS}{"" if recipe.texts.clock else _NO_CLOCK}"""
    (folder / "README.md").write_text(card)


def _demonstrated(recipe: "Recipe") -> str:
    """Say which player took the decisions that are imitated."""
    from agents.tiny import has_demonstrator, scenario_of, scenarios_of

    known = {name: has_demonstrator(scenario_of(name).game()) for name in scenarios_of(recipe.games)}
    style, told = recipe.style, ""
    if any(known.values()):
        told += (
            "A noisy demonstrator takes them in Frozen Lake and Snake: each is sensible "
            f"({style.sensible:.0%}: exact solver on Frozen Lake, shortest safe way to food in Snake),\n"
            f"hasty ({style.hasty:.0%}: straight towards the target, whatever lies there) or random (the rest); the "
            "reasoning that it\nwrites is always true. "
        )
    if not all(known.values()):
        others = ", ".join(name for name, demonstrated in known.items() if not demonstrated)
        told += (
            f"In {others} they are random legal moves: half of them drawn with equal chances, half a favourite that "
            "every observation has by\nits checksum. They have no skill. "
        )
    return told
