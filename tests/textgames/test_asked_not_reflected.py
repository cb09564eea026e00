"""What a game can do follows from what its class defines: overriding a part that it has changes nothing."""

import ast
from pathlib import Path

import pytest

from textgames import SCENARIOS

ROOT = Path(__file__).parents[2]


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
