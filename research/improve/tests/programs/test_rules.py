"""True rules are found true and worth the optimum, wrong ones are counted and told."""

import json
from pathlib import Path

import pytest

import textgames
from benchmark.cli import main
from research.improve.programs.rules import Fidelity, RulesPlayer, fidelity

EXAMPLES = Path(__file__).parents[2] / "examples"
LAKE = (EXAMPLES / "frozen_lake_rules.py").read_text()
CLIFF = (EXAMPLES / "cliff_walking_rules.py").read_text()


def measured(folder: Path, source: str, scenario: str) -> Fidelity:
    file = folder / "rules.py"
    file.write_text(source)
    found = textgames.known_scenario(scenario)
    assert found is not None
    return fidelity(RulesPlayer(str(file)), found, starts=8)


@pytest.mark.slow
@pytest.mark.parametrize(("source", "scenario"), [(LAKE, "frozen-lake"), (CLIFF, "cliff-walking-slippery")])
def test_true_rules_are_worth_the_optimum(source, scenario, tmp_path):
    found = measured(tmp_path, source, scenario)
    assert (found.share, found.faults) == (1.0, ())
    assert found.value == pytest.approx(found.optimum, abs=1e-9)


WRONG = {
    "holes are one to the left": ('place in state["holes"]', '[place[0] + 1, place[1]] in state["holes"]'),
    "the goal pays nothing": ('float(place == state["goal"])', "0.0"),
    "walls are passed": ("min(max(x + dx, 0), width - 1)", "(x + dx) % width"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_rules_are_counted_and_told(wrong, tmp_path):
    source = LAKE.replace(*WRONG[wrong])
    assert source != LAKE
    found = measured(tmp_path, source, "frozen-lake")
    assert 0 < found.share < 1
    assert "it says" in found.faults[0]
    if wrong in ("holes are one to the left", "the goal pays nothing"):
        assert found.value < found.optimum - 0.2


@pytest.mark.slow
def test_the_count_is_that_of_the_wrong_pairs(tmp_path):
    """Cliff walking has 37 cells to stand on; a rule that is wrong in one of them is wrong in its four pairs."""
    source = CLIFF.replace(
        "found = []\n", "found = []\n    if state == [5, 3]:\n        return [(1.0, state, 0.0, True)]\n"
    )
    found = measured(tmp_path, source, "cliff-walking-slippery")
    assert (found.states, found.pairs, found.right) == (37, 148, 144)


def test_actions_that_are_missing_or_not_legal_are_wrong(tmp_path):
    source = LAKE.replace("return list(MOVES)", 'return ["left", "down", "right", "jump"]')
    source = source.replace("MOVES[action]", "MOVES.get(action, (0, 0))")
    found = measured(tmp_path, source, "frozen-lake")
    assert (found.right * 5, found.states) == (found.pairs * 3, found.states)
    assert any("isn't legal" in fault for fault in found.faults)


def test_rules_that_fail_are_wrong_everywhere(tmp_path):
    found = measured(tmp_path, LAKE.replace('lines["Player"]', 'lines["Hero"]'), "frozen-lake")
    assert found.share == 0
    assert "KeyError: 'Hero'" in found.faults[0]


@pytest.mark.parametrize(
    ("scenario", "message"),
    [("tic-tac-toe", "for one player"), ("guess-number", "hides something"), ("snake", "too many to compare")],
)
def test_games_that_cant_be_compared_are_refused(scenario, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        measured(tmp_path, LAKE, scenario)


@pytest.mark.slow
def test_rules_are_compared_with_the_game(capsys):
    agent = f"rules:{EXAMPLES / 'frozen_lake_rules.py'}"
    assert main(["inspect", agent, "--samples", "1"]) == 0
    assert "in 920 of 920 pairs" in capsys.readouterr().out
    assert main(["inspect", agent, "--samples", "1", "--scenario", "frozen-lake-slippery", "--json"]) == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert rules["share"] == 0  # they know of no slipping
    assert rules["value"] < rules["optimum"] - 0.05
