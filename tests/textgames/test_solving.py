"""Value iteration and minimax against looking at everything; play that doesn't read: its values, search and table."""

import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from benchmark.score.differences import holm
from tests.textgames.own_game import OwnGame
from tests.textgames.test_every_scenario import searched
from textgames import SCENARIOS, TSMG, Scenario
from textgames.frozen_lake import FrozenLake
from textgames.snake import Snake
from textgames.solving import blind, fixed_policies
from textgames.solving.blind import blind_play, blind_value, chances_of, draw, found_by, search, shipped_rows
from textgames.solving.fixed_policies import BlindPlay
from textgames.solving.minimax import Minimax
from textgames.solving.value_iteration import ValueIteration

ONE, TWO = ("player_0",), ("player_0", "player_1")


class RandomGame(OwnGame):
    """Twelve states with random chances, rewards, ends, turns and numbers of actions; zero-sum for two players."""

    actions = ("a", "b", "c")

    def __init__(self, *, players: tuple[str, ...], seed: int, acyclic: bool = False) -> None:
        self.players = players
        rng = np.random.default_rng(seed)
        self.table = {
            (state, action): [
                (float(chance), int(rng.integers(state + 1 if acyclic else 0, 13)), float(rng.normal()))
                for chance in rng.dirichlet([1.0, 1.0, 1.0])
            ]
            for state in range(12)
            for action in self.actions
        }
        self.turns = [players[int(rng.integers(len(players)))] for _ in range(12)]
        self.options = [self.actions[: int(rng.integers(1, 4))] for _ in range(12)]

    def to_move(self, state: int) -> tuple[str, ...]:
        return (self.turns[state],)

    def legal_actions(self, state: int, player: str) -> tuple[str, ...]:
        return self.options[state]

    def outcomes(self, state: int, joint_action: Mapping[str, str]) -> list[tuple[float, int, dict[str, float], bool]]:
        return [
            (chance, after, dict(zip(self.players, (reward, -reward), strict=False)), after == 12)
            for chance, after, reward in self.table[state, joint_action[self.turns[state]]]
        ]


@pytest.mark.parametrize("players", [ONE, TWO])
@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_looking_at_everything(players, seed):
    game = RandomGame(players=players, seed=seed)
    solver = ValueIteration(game) if players == ONE else Minimax(game)
    for state in range(0, 12, 4):
        (mover,) = game.to_move(state)
        for steps in (3, 1, 4):
            plain = searched(game, state, steps, mover)
            values = solver.values(state, steps, mover)
            assert values == pytest.approx({action: best for action, (best, _) in plain.items()}, abs=1e-12)
            for player in players:
                sign = 1 if player == mover else -1
                assert solver.value(state, steps, player) == pytest.approx(sign * max(values.values()), abs=1e-12)
            if players == ONE:
                uniform = np.mean([each for _, each in plain.values()])
                assert blind_value(game, state, steps, mover, {}) == pytest.approx(uniform, abs=1e-12)
        assert solver.value(state, 0, mover) == 0.0


@pytest.mark.parametrize("players", [ONE, TWO])
def test_a_game_that_ends_by_itself_needs_no_limit(players):
    game = RandomGame(players=players, seed=3, acyclic=True)
    solver = ValueIteration(game) if players == ONE else Minimax(game)
    (mover,) = game.to_move(4)
    plain = searched(game, 4, 12, mover)
    for steps in (None, 1000):
        assert solver.value(4, steps, mover) == pytest.approx(max(best for best, _ in plain.values()), abs=1e-12)
    if players == ONE:
        uniform = np.mean([each for _, each in plain.values()])
        assert blind_value(game, 4, None, mover, {}) == pytest.approx(uniform, abs=1e-12)


class Mint(RandomGame):
    """Every round pays everybody 1, and it goes on."""

    def outcomes(self, state: int, joint_action: Mapping[str, str]) -> list[Any]:
        return [(1.0, state, dict.fromkeys(self.players, 1.0), False)]


def test_delay_that_never_pays_settles_and_delay_that_pays_is_refused(monkeypatch):
    lake = FrozenLake(desc=("SFFG",), is_slippery=True)
    start = lake.initial_state(np.random.default_rng(0))
    assert ValueIteration(lake).value(start, None, "player_0") == pytest.approx(1.0, abs=1e-9)
    monkeypatch.setattr("textgames.solving.state_space._MOST_ROUNDS", 1000)
    assert ValueIteration(Mint(players=ONE, seed=0)).value(0, 50, "player_0") == 50
    with pytest.raises(ValueError, match="give it a limit"):
        ValueIteration(Mint(players=ONE, seed=0)).value(0, None, "player_0")


class Countdown(OwnGame):
    """Take one or two of some matches in turns; who takes the last one wins. It has no outcomes."""

    players = TWO
    actions = ("one", "two")
    chancy = False

    def to_move(self, state: int) -> tuple[str, ...]:
        return (TWO[state % 2],)  # the lowest bit says whose turn it is

    def legal_actions(self, state: int, player: str) -> tuple[str, ...]:
        return self.actions if state // 2 > 1 else ("one",)

    def transition(self, state: int, joint_action: Mapping[str, str], rng: np.random.Generator) -> Any:
        (mover,) = self.to_move(state)
        left = state // 2 - 1 - self.actions.index(joint_action[mover])
        if self.chancy:
            rng.random()
        won = 1.0 if left == 0 else 0.0
        return 2 * left + 1 - state % 2, {player: won if player == mover else -won for player in TWO}, left == 0


class Chancy(Countdown):
    chancy = True


def test_minimax_of_a_long_game_without_chance_asks_its_transitions():
    solver = Minimax(Countdown())
    for matches, mover in ((300, 0), (301, 1), (302, 0), (7, 1), (6, 1)):
        won = -1.0 if matches % 3 == 0 else 1.0  # a multiple of three is lost, whoever is to move
        state = 2 * matches + mover
        assert solver.value(state, None, TWO[mover]) == won == -solver.value(state, None, TWO[1 - mover])
    assert solver.values(2 * 8, None, "player_0") == {"one": -1.0, "two": 1.0}
    assert solver.values(2 * 8, 2, "player_0") == {"one": 0.0, "two": 0.0}  # nobody wins in two rounds


def test_the_states_that_are_kept_are_bounded():
    game = FrozenLake()
    solver = ValueIteration(game, max_states=40)
    for seed in range(20):
        solver.value(game.initial_state(np.random.default_rng(seed)), 8, "player_0")
        assert len(solver._solved) <= 40
    with pytest.raises(ValueError, match="more than 5 states can be reached within 8 rounds"):
        ValueIteration(game, max_states=5).value(game.initial_state(np.random.default_rng(0)), 8, "player_0")


def test_games_and_questions_that_cannot_be_solved_are_refused():
    duel, two = Snake(num_players=2, num_opponents=0), RandomGame(players=TWO, seed=0)
    solver, board = Minimax(two), duel.initial_state(np.random.default_rng(0))
    (mover,) = two.to_move(0)
    (other,) = set(TWO) - {mover}
    for ask, message in (
        (lambda: ValueIteration(two), "value iteration is for one player, RandomGame has 2"),
        (lambda: ValueIteration(Snake(num_opponents=4)), "needs Snake.outcomes"),  # too many to list
        (lambda: Minimax(FrozenLake()), "minimax is for two players, FrozenLake has 1"),
        (lambda: Minimax(duel).value(board, 3, "player_0"), "player_0 and player_1 moves"),
        (lambda: Minimax(Chancy()).value(20, None, "player_0"), "Chancy draws from its generator"),
        (lambda: Minimax(Mint(players=TWO, seed=0)).value(0, 2, "player_0"), "rewards sum to 0"),
        (lambda: solver.values(0, 3, other), f"{mover} is to move"),
        (lambda: solver.values(0, 0, mover), "steps_left must be at least 1, or None for no limit, got 0"),
        (lambda: solver.value(0, -1, mover), "got -1"),
        (lambda: solver.value(0, 1, "me"), "the game's players are player_0, player_1, got 'me'"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


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


class Corridor(OwnGame):
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


@pytest.mark.parametrize("policy", [{}, {"left": 0.3, "right": 0.7}, {"up": 1.0}])
@pytest.mark.parametrize("steps", [0, 1, 7])
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


@pytest.mark.parametrize(
    ("name", "rounds"), [("bandit", 3), ("bandit-context", 1), ("online-trend", 3), ("prisoners-dilemma-tft", 3)]
)
def test_the_short_ways_agree_with_looking_at_everything(name, rounds):
    """The games that know a shorter way to the value of a fixed policy."""
    game = SCENARIOS[name].game()
    policy, state = {game.actions[1]: 0.75, game.actions[0]: 0.25}, game.initial_state(np.random.default_rng(2))
    assert blind_value(game, state, rounds, ME, policy) == pytest.approx(plain_value(game, state, rounds, policy))


def test_what_is_too_large_has_no_exact_value(monkeypatch):
    for name, rounds in (("snake", 8), ("tic-tac-toe", 9), ("guess-number", 10)):
        game = SCENARIOS[name].game()
        assert blind_value(game, game.initial_state(np.random.default_rng(0)), rounds, ME, {}) is None
    assert blind_play(SCENARIOS["tic-tac-toe"]) is None
    with pytest.raises(ValueError, match="for games of one player, TicTacToe has 2"):
        search(SCENARIOS["tic-tac-toe"].game(), 9)
    monkeypatch.setattr(fixed_policies, "MAX_STATES", 3)
    lake = FrozenLake()
    assert blind_value(lake, lake.initial_state(np.random.default_rng(0)), 8, ME, {}) is None


@cache
def found_in(name: str) -> BlindPlay:
    return search(ALONE[name].game(), ALONE[name].horizon)


@pytest.mark.slow
def test_the_search_finds_the_best_and_a_mixture_also_by_playing(monkeypatch):
    found, lake = search(Corridor(), 30), found_in("frozen-lake")
    assert (found.text, found.exact, found.standard_error) == ("always right", True, 0.0)
    assert found.value == pytest.approx(binom.sf(2, 30, 0.75))  # three steps to the right out of 30 tries
    assert set(lake.policy) == {"down", "right"}  # no constant action can reach a corner that lies across
    assert 0.24 < lake.value < 0.31
    monkeypatch.setattr(fixed_policies, "MAX_STATES", 3)  # so that values can't be computed
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


def test_every_scenario_has_its_row():
    """And for its settings: a scenario that was changed has to be searched anew (docs/tools/measure_blind.py)."""
    assert list(shipped_rows()) == list(ALONE)
    for name, row in shipped_rows().items():
        about = found_by(ALONE[name].game(), ALONE[name].horizon)
        assert row.items() >= about.items() > set(), f"run python docs/tools/measure_blind.py {name}"


@pytest.mark.parametrize(
    "name",
    [
        *CHEAP,
        *(
            pytest.param(name, marks=pytest.mark.slow if name in BY_DAY else pytest.mark.nightly)
            for name in ALONE
            if name not in CHEAP
        ),
    ],
)
def test_rows_are_what_the_search_finds(name):
    found, told = found_in(name), blind_play(ALONE[name])
    assert told is not None
    assert (dict(found.policy), found.text, found.exact) == (dict(told.policy), told.text, told.exact)
    assert found.value == pytest.approx(told.value)


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
    settings = {"size": 4, "frozen_probability": 0.8, "is_slippery": False}
    assert blind_play(Scenario("mine", "TextFrozenLake-v0", settings, 8, 5)) == blind_play(SCENARIOS["frozen-lake"])


FRESH = 50_000
"""The first of the starts that are drawn here: neither the search nor the table has seen them."""


def above_zero(name: str) -> dict[str, float]:
    """``{player: p-value}`` of its mean return being above the value that a score of 0 is, one-sided.

    Players are the best blind one, one that is mute, whose responses execute random actions, and every constant one,
    with the same draws. The zero is the table's where it was estimated, with its own standard error; where it is
    computed for every start, it is what the best blind policy is worth there.
    """
    scenario, play = SCENARIOS[name], blind_play(SCENARIOS[name])
    assert play is not None
    game = scenario.game()
    constants = [policy for policy in blind.candidates(game) if len(policy) == 1]
    assert len(constants) == len(game.actions) or not game.actions
    players = {"blind": play.policy, "mute": {}, **{f"always {next(iter(one))}": one for one in constants}}
    sample, episodes = (blind.computed, 200) if play.exact else (blind.played, 150)
    returns = sample(game, scenario.horizon, FRESH, episodes)(list(players.values()))
    found = {}
    for column, player in enumerate(players):
        zero, error = (returns[:, 0], 0.0) if play.exact else (play.value, play.standard_error)
        gains = returns[:, column] - zero
        spread, mean = math.hypot(blind.standard_error(gains), error), float(np.mean(gains))
        found[f"{name}: {player}"] = 0.5 * math.erfc(mean / spread / 2**0.5) if spread > 1e-12 else float(mean <= 1e-9)
    return found


def require_none_above_zero(names: list[str]) -> None:
    """So many are tested that chance alone would put some above 0: their p-values are corrected for it."""
    p_values = {player: p for name in names for player, p in above_zero(name).items()}
    assert not {player: p for player, p in holm(p_values).items() if p < 0.01}


@pytest.mark.slow
def test_nobody_that_does_not_read_scores_above_zero_in_any_scenario():
    require_none_above_zero([name for name in SCENARIOS if name in ALONE])
