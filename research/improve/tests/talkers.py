"""Players of Werewolf that say this or that with equal chances, and heed what they hear or don't; a model of one."""

import re
from pathlib import Path

import numpy as np

from agents.baselines.games.social import WerewolfPlayer
from agents.prompt import as_text
from agents.tiny import Recipe, pretrain, save
from agents.tiny.data import Example
from agents.turn import Turn
from benchmark.score.results import read_columns
from benchmark.show.training_data import Source
from research.improve.tests.conftest import task_of

QUIET, DENIAL = "I have nothing to say.", "I am not a wolf."
VARIES = re.compile(r"(player_\d is a (?:wolf|villager)|player_\d|\d+|nobody|, |\n)")


class Talker:
    """Names others by the rules of the reference player that follows the seer, if it heeds, else at random."""

    name, heeds = "talker", True

    def act(self, requests):
        return [Turn(f"<action>{self.choose(request)}</action>") for request in requests]

    def choose(self, request):
        rng, rules = np.random.default_rng(request.seed), WerewolfPlayer(request.game)
        plan = rules.plan(request).action
        if not request.legal_actions:
            return str(rng.choice(list(dict.fromkeys([plan, QUIET, DENIAL]))))
        return plan if self.heeds else str(rng.choice(request.legal_actions))


class Deaf(Talker):
    name, heeds = "deaf", False


def played_by(player: str, episodes: int, out: Path) -> Path:
    """Return the run folder of a player's own play on training seeds."""
    task = task_of(out, {"spec": f"{__name__}:{player}"}, "werewolf-5")
    return task.play(task.agent, task.seeds(episodes)).folder


def make_talking_model(player: str, out: Path) -> str:
    """Train a very small model that plays as a player does, and return its spec.

    Claims, and what the seer has seen, are one token each, which spares it spelling.
    """
    run = played_by(player, 1000, out.with_name(f"{out.name}-play"))
    decisions = [*Source(read_columns([run]), "direct", lenient=True).decisions()]
    decisions += [one for one in decisions if "is a wolf" in one.request.observation] * 4  # they are rare
    texts = [as_text(one.prompt) for one in decisions]
    pieces = {piece: None for text in texts[:2000] for piece in VARIES.split(text) if len(piece) > 1}
    fixed = (*pieces, *[f"I am the seer, and player_{number} is a wolf." for number in range(5)])
    said = [one.response for one in decisions]
    examples = [Example("", text, "", own, (("",), ("",)), fixed) for own, text in zip(said, texts, strict=True)]
    recipe = Recipe.legal_play(["werewolf-5"], steps=700, hidden_size=64, intermediate_size=128, learning_rate=3e-3)
    save(pretrain(recipe, examples=examples), out)
    return f"hf:{out}"
