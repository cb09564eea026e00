"""A very small model that plays Werewolf as a player of the tests does, to be improved; and its play."""

import re
from pathlib import Path

from agents.prompt import as_text
from agents.tiny import Recipe, pretrain, save
from agents.tiny.data import Example
from benchmark.score.results import read_columns
from benchmark.show.training_data import Source
from research.improve.budget import Budget, SpendingMeter
from research.improve.task import ImprovementTask

TALKERS = Path(__file__).with_name("talkers.py")
VARIES = re.compile(r"(player_\d is a (?:wolf|villager)|player_\d|\d+|nobody|, |\n)")


def played_by(agent: dict, episodes: int, out: Path, seed: int = 0) -> Path:
    """The run folder of an agent's own play on training seeds."""
    out.mkdir(exist_ok=True)
    task = ImprovementTask(
        agent, ("werewolf-5",), SpendingMeter(Budget(), out / "seconds"), seed, out, lambda _: None, quiet=True
    )
    return task.play(agent, task.seeds(episodes)).folder


def make_talking_model(player: str, out: Path, episodes: int = 1000, steps: int = 700) -> dict:
    """Imitate a player of :mod:`talkers`, and say how the model plays: ``out`` has the weights.

    Claims, and what the seer has seen, are one token each, which spares it spelling.
    """
    run = played_by({"spec": f"{TALKERS}:{player}"}, episodes, out.with_name(f"{out.name}-play"))
    decisions = [*Source(read_columns([run]), "direct", lenient=True).decisions()]
    decisions += [one for one in decisions if "is a wolf" in one.request.observation] * 4  # they are rare
    texts = [as_text(one.prompt) for one in decisions]
    pieces = {piece: None for text in texts[:2000] for piece in VARIES.split(text) if len(piece) > 1}
    names = [f"player_{number}" for number in range(5)]
    fixed = (*pieces, *[f"I am the seer, and {name} is a wolf." for name in names])
    examples = [
        Example("", text, "", one.response, (("",), ("",)), fixed) for one, text in zip(decisions, texts, strict=True)
    ]
    recipe = Recipe.legal_play(["werewolf-5"], steps=steps, hidden_size=64, intermediate_size=128, learning_rate=3e-3)
    save(pretrain(recipe, examples=examples), out)
    return {"spec": f"hf:{out}", "mode": "direct", "temperature": 1.0}
