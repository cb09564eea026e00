"""Boards in replays name their cells as the prompts do: the page's own script, run by node on the games' own boards."""

import json
import shutil
import subprocess
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from benchmark.show.document_of import _scenario_view
from textgames import SCENARIOS

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node, which runs the page's script")

STUBS = """
const labels = [];
const visible = (text) => text;
const svg = (name, attributes, ...children) => {
  if (attributes.class === "axis") labels.push(children[0]);
  return { firstChild: { setAttribute() {} }, append() {}, attributes };
};
"""


def drawn(name: str, state: Any) -> tuple[list[str], str]:
    """The labels along a board as the page draws it, and the board in words."""
    scenario = SCENARIOS[name]
    board = "\n".join(scenario.game().board(state))
    script = (files("benchmark") / "show/page/assets/replay/board.js").read_text(encoding="utf-8")
    call = f"const made = drawBoard({json.dumps(board)}, null, {json.dumps(_scenario_view(scenario))}, 'Board:');"
    told = "console.log(JSON.stringify([labels, made.attributes['aria-label']]));"
    done = subprocess.run(["node"], input=STUBS + script + call + told, capture_output=True, text=True, check=True)
    labels, words = json.loads(done.stdout)
    return labels, words


def test_boards_name_their_cells_as_the_prompts_do():
    """Letters and rows from below; cells and no walls; other boards from the bottom left."""
    game, rng = SCENARIOS["tic-tac-toe"].game(), np.random.default_rng(0)
    state, _, _ = game.transition(game.initial_state(rng), {"player_0": "a3"}, rng)
    assert drawn("tic-tac-toe", state) == (["3", "2", "1", "a", "b", "c"], "Board: player_0 at a3")
    game = SCENARIOS["taxi"].game()
    state = game.initial_state(np.random.default_rng(1))
    labels, words = drawn("taxi", state)
    assert labels == ["4", "3", "2", "1", "0", "0", "", "1", "", "2", "", "3", "", "4"]
    assert all(said in words for said in ("taxi at (1, 2)", "passenger at (3, 0)", "wall at right of (1, 4)"))
    assert all(said in game.observe(state, "player_0") for said in ("Taxi: (1, 2)", "waiting at blue (3, 0)"))
    labels, words = drawn("frozen-lake", SCENARIOS["frozen-lake"].game().initial_state(np.random.default_rng(1)))
    assert labels == ["3", "2", "1", "0", "0", "1", "2", "3"]
    assert all(said in words for said in ("player at (0, 3)", "goal at (3, 0)"))
