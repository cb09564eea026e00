"""What a game can do follows from what its class defines: overriding a part that it has changes nothing."""

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents.turn
import textgames
from agents.baselines.search import find_search_player
from textgames import SCENARIOS, TSMG
from textgames.environments.rules import game_settings, load_game

ROOT = Path(__file__).parents[2]
METHODS = [
    name
    for name, member in vars(TSMG).items()
    if callable(member) and not name.startswith("_") and name not in ("observe", "instructions")
]
NAMES = ["frozen-lake", "sliding-puzzle", "snake-duel", "word-guess", "kuhn-poker", "tic-tac-toe", "matching-pennies",
         "werewolf-7", "bandit"]  # fmt: skip


OPTIONAL = ("outcomes", "initial_outcomes", "board", "read_observation")


def only_super(cls: type[TSMG[Any]]) -> type[TSMG[Any]]:
    def passed_on(name: str) -> Any:
        return lambda self, *args, **kwargs: getattr(super(made, self), name)(*args, **kwargs)

    has = [name for name in METHODS if name not in OPTIONAL or getattr(cls, name) is not getattr(TSMG, name)]
    made: type[TSMG[Any]] = type(f"Again{cls.__name__}", (cls,), {name: passed_on(name) for name in has})
    return made


def pair(name: str) -> tuple[TSMG[Any], TSMG[Any]]:
    scenario = SCENARIOS[name]
    game = scenario.game()
    settings = {**textgames.settings_of(scenario.env_id), **scenario.kwargs}
    own = {key: value for key, value in settings.items() if key in game_settings(load_game(settings["game"]))}
    return game, only_super(type(game))(**own)


@pytest.mark.parametrize("name", NAMES)
def test_a_subclass_that_only_calls_super_can_do_the_same(name):
    game, again = pair(name)
    for ability in ("has_outcomes", "has_initial_outcomes", "has_board", "reads_observations", "takes_turns"):
        assert getattr(again, ability) == getattr(game, ability), ability
    assert (find_search_player(again) is None) == (find_search_player(game) is None)
    state = game.initial_state(np.random.default_rng(0))
    for player in game.to_move(state):
        legal = game.legal_actions(state, player)
        told = [agents.turn.own_action_help(each, state, player, legal) for each in (game, again)]
        assert told[0] == told[1]


def test_no_other_code_compares_a_game_s_method_with_that_of_the_base_class():
    found = []
    for folder in ("textgames", "agents", "benchmark", "textbench", "research", "docs/tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path == ROOT / "textgames/tsmg.py":  # which derives its properties from it, for everybody else to ask
                continue
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "TSMG." in text else ():  # parsing all takes seconds
                if not isinstance(node, ast.Compare):
                    continue
                sides = [node.left, *node.comparators]
                if any(isinstance(side, ast.Attribute) and ast.unparse(side.value) == "TSMG" for side in sides):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not found


@pytest.mark.parametrize(
    ("name", "some_wait"),
    [("kuhn-poker", True), ("werewolf-7", True), ("matching-pennies", False), ("frozen-lake", False)],
)
def test_turns_are_taken_where_some_wait_while_others_move(name, some_wait):
    """One player alone never waits, and in a game of seven several move at night."""
    assert SCENARIOS[name].game().takes_turns is some_wait
