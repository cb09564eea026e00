"""Play that doesn't read: exact values against plain sums, the search, and the table that ships."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from textgames import SCENARIOS, TSMG, Scenario
from textgames.frozen_lake import FrozenLake
from textgames.solving import blind, fixed_policies
from textgames.solving.blind import blind_play, blind_value, chances_of, draw, found_by, search, shipped_rows
from textgames.solving.fixed_policies import BlindPlay

ME = "player_0"
ALONE = {
    one.name: one
    for scenario in SCENARIOS.values()
    for one in (scenario, *scenario.levels)
    if len(scenario.game().players) == 1
}
CHEAP = ("frozen-lake", "bandit", "online-iid", "cliff-walking", "rock-paper-scissors-tft")
BY_DAY = ("snake", "taxi", "blackjack", "guess-number")
"""Other rows are searched anew at night: a change of their games' rules is seen by their transcripts."""


class Corridor(TSMG[int]):
    """Five cells; going right from the last one pays 1 and is the end, falling off the left one costs 1."""

    actions = ("left", "right")

    def initial_state(self, rng: np.random.Generator) -> int:
        return 2

    def legal_actions(self, state: int, player: str) -> tuple[str, ...]:
        return ("right",) if state == 4 else self.actions

    def outcomes(self, state: int, joint_action: Mapping[str, str]) -> list[tuple[float, int, dict[str, float], bool]]:
        after = state + (1 if joint_action[ME] == "right" else -1)
        paid = float((after == 5) - (after == -1))
        return [(0.75, after, {ME: paid}, paid != 0), (0.25, state, {ME: 0.0}, False)]

    def transition(
        self, state: int, joint_action: Mapping[str, str], rng: np.random.Generator
    ) -> tuple[int, dict[str, float], bool]:
        moved, stayed = self.outcomes(state, joint_action)
        return (moved if rng.random() < 0.75 else stayed)[1:]

    def observe(self, state: int, player: str) -> str:
        return str(state)

    def instructions(self, player: str) -> str:
        return "left or right"


def plain_value(game: TSMG[Any], state: Any, left: int, policy: Mapping[str, float]) -> float:
    """The same by looking at everything that may happen, without a table."""
    if left == 0:
        return 0.0
    legal = game.legal_actions(state, ME)
    return sum(
        share * chance * (rewards[ME] + (0.0 if over else plain_value(game, after, left - 1, policy)))
        for action, share in zip(legal, chances_of(policy, legal), strict=True)
        if share
        for chance, after, rewards, over in game.outcomes(state, {ME: action})
    )


@pytest.mark.parametrize("policy", [{}, {"right": 1.0}, {"left": 0.3, "right": 0.7}, {"up": 1.0}])
@pytest.mark.parametrize("steps", [0, 1, 5, 9])
def test_the_value_of_a_fixed_policy_is_that_of_looking_at_everything(policy, steps):
    game = Corridor()
    assert blind_value(game, 2, steps, ME, policy) == pytest.approx(plain_value(game, 2, steps, policy), abs=1e-12)


def test_shares_are_those_of_the_legal_actions():
    """Made to sum to 1 over the legal ones; equal where the policy names none of them."""
    assert chances_of({"a": 0.5, "b": 0.5}, ("a", "b", "c")) == [0.5, 0.5, 0.0]
    assert chances_of({"a": 0.2, "b": 0.8}, ("a", "c")) == [1.0, 0.0]
    assert chances_of({"a": 1.0}, ("b", "c")) == [0.5, 0.5]
    # so "left 1" goes right in the last cell of the corridor, where left isn't legal
    assert blind_value(Corridor(), 4, 1, ME, {"left": 1.0}) == 0.75


@pytest.mark.parametrize("name", ["bandit", "bandit-context", "online-trend", "prisoners-dilemma-tft"])
def test_the_short_ways_agree_with_looking_at_everything(name):
    """The games that know a shorter way to the value of a fixed policy, three rounds before their end."""
    game, policy = (
        SCENARIOS[name].game(),
        {SCENARIOS[name].game().actions[1]: 0.75, SCENARIOS[name].game().actions[0]: 0.25},
    )
    state = game.initial_state(np.random.default_rng(2))
    if name == "bandit-context":  # its contexts are many: one round, then two
        assert blind_value(game, state, 1, ME, policy) == pytest.approx(plain_value(game, state, 1, policy))
        assert blind_value(game, state, 2, ME, policy) == pytest.approx(plain_value(game, state, 2, policy))
    else:
        assert blind_value(game, state, 3, ME, policy) == pytest.approx(plain_value(game, state, 3, policy))


def test_what_is_too_large_has_no_exact_value(monkeypatch):
    snake, lake = SCENARIOS["snake"].game(), FrozenLake()
    assert blind_value(snake, snake.initial_state(np.random.default_rng(0)), 8, ME, {}) is None
    duel = SCENARIOS["tic-tac-toe"].game()
    assert blind_value(duel, duel.initial_state(np.random.default_rng(0)), 9, ME, {}) is None
    guess = SCENARIOS["guess-number"].game()
    assert blind_value(guess, guess.initial_state(np.random.default_rng(0)), 10, ME, {}) is None
    monkeypatch.setattr(fixed_policies, "MAX_STATES", 3)
    assert blind_value(lake, lake.initial_state(np.random.default_rng(0)), 8, ME, {}) is None


@cache
def found_in(name: str) -> BlindPlay:
    return search(ALONE[name].game(), ALONE[name].horizon)


@pytest.mark.slow
def test_the_search_finds_the_best_and_a_mixture():
    found, lake = search(Corridor(), 30), found_in("frozen-lake")
    assert (found.text, found.exact, found.standard_error) == ("always right", True, 0.0)
    assert found.value == pytest.approx(binom.sf(2, 30, 0.75))  # three steps to the right out of 30 tries
    assert set(lake.policy) == {"down", "right"}  # no constant action can reach a corner that lies across
    assert 0.24 < lake.value < 0.31


@pytest.mark.slow
def test_played_and_computed_values_agree(monkeypatch):
    """The same game where its values can't be computed: chosen and reported by playing."""
    lake = found_in("frozen-lake")
    monkeypatch.setattr(fixed_policies, "MAX_STATES", 3)
    monkeypatch.setattr(blind, "SEARCH_EPISODES", 60)
    monkeypatch.setattr(blind, "REPORT_EPISODES", 300)
    played = search(FrozenLake(), 8)
    assert not played.exact
    assert played.value == pytest.approx(lake.value, abs=4 * np.hypot(played.standard_error, lake.standard_error))


def test_actions_that_cannot_be_listed_are_drawn():
    game, rng = SCENARIOS["guess-number"].game(), np.random.default_rng(0)
    state = game.initial_state(rng)
    assert draw(game, state, {"50": 1.0}, rng) == "50"
    assert draw(game, state, {"five": 1.0}, rng) in game.secrets  # type: ignore[attr-defined]
    assert len({draw(game, state, {}, rng) for _ in range(50)}) > 20


# ---------------------------------------------------------------- the table that ships


def test_every_scenario_has_its_row():
    """And for its settings: a scenario that was changed has to be searched anew (docs/tools/measure_blind.py)."""
    assert list(shipped_rows()) == list(ALONE)
    for name, row in shipped_rows().items():
        about = found_by(ALONE[name].game(), ALONE[name].horizon)
        assert about
        assert row.items() >= about.items(), f"run python docs/tools/measure_blind.py {name}"


@pytest.mark.parametrize("name", CHEAP)
def test_rows_are_what_the_search_finds(name):
    found = found_in(name)
    told = blind_play(ALONE[name])
    assert told is not None
    assert (dict(found.policy), found.text, found.exact) == (dict(told.policy), told.text, told.exact)
    assert found.value == pytest.approx(told.value)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in BY_DAY else pytest.mark.nightly)
        for name in ALONE
        if name not in CHEAP
    ],
)
def test_the_other_rows_too(name):
    test_rows_are_what_the_search_finds(name)


def test_a_large_board_takes_fewer_starts(monkeypatch):
    lake = FrozenLake(size=6)
    work = fixed_policies.BlindGraph(lake, lake.initial_state(np.random.default_rng(0)), 18, ME).work
    monkeypatch.setattr(blind, "MOST_WORK", 40 * work)
    found = search(lake, 18)
    assert 100 < found.episodes < 400
    assert found.exact
    assert set(found.policy.values()) <= {0.5, 1.0}  # a candidate, from which nothing was moved
    monkeypatch.setattr(fixed_policies, "MAX_STATES", 1)
    monkeypatch.setattr(blind, "MOST_ROUNDS", 1)
    monkeypatch.setattr(blind, "REPORT_EPISODES", 2000)
    played = search(lake, 18)
    assert (played.exact, played.episodes) == (False, 2000 // 18)


def test_several_players_have_no_blind_play():
    assert blind_play(SCENARIOS["tic-tac-toe"]) is None
    with pytest.raises(ValueError, match="for games of one player, TicTacToe has 2"):
        search(SCENARIOS["tic-tac-toe"].game(), 9)


def test_other_settings_are_searched_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(tmp_path))
    other = SCENARIOS["frozen-lake"]._replace(kwargs={"size": 3}, horizon=5)
    found = blind_play(other)
    assert found is not None
    (kept,) = tmp_path.glob("blind-*.json")
    assert json.loads(kept.read_text()) == {**found._asdict(), "policy": dict(found.policy)}
    kept.write_text(json.dumps({**found._asdict(), "text": "kept"}))
    again = blind_play(other)
    assert again is not None
    assert again.text == "kept"
    # the same settings under another name are the same game: the table has it
    renamed = Scenario("mine", "TextFrozenLake-v0", {"size": 4, "frozen_probability": 0.8}, 8, 5)
    told = blind_play(renamed._replace(kwargs={**renamed.kwargs, "is_slippery": False}))
    assert told == blind_play(SCENARIOS["frozen-lake"])
