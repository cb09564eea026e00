"""Mastermind: answers by hand and by an independent count, what is paid, and optimal guessing."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from textgames.exploration.guessing import GuessState
from textgames.exploration.mastermind import Mastermind
from textgames.texts.actions import Unreadable

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("settings", [{"pegs": 3, "colours": 4}, {"pegs": 2, "colours": 6}, {"pegs": 4, "colours": 2}])
def test_the_table_has_the_answers(settings):
    game = Mastermind(**settings)
    table = game.table.answers
    numbers: dict[int, str] = {}
    for i, guess in enumerate(game.secrets):
        for j, code in enumerate(game.secrets):
            ours, theirs = guess.split(), code.split()
            exact = sum(a == b for a, b in zip(ours, theirs, strict=True))
            misplaced = (Counter(ours) & Counter(theirs)).total() - exact
            answer = f"{exact} exact, {misplaced} misplaced"
            assert game.answer(guess, code) == answer
            assert numbers.setdefault(int(table[i, j]), answer) == answer
    assert len(set(numbers.values())) == len(numbers)


def test_every_guess_costs_one_and_losing_one_more():
    game = Mastermind(max_guesses=3)
    start = GuessState("red green blue")
    state, rewards, over = game.transition(start, {"player_0": "red red red"}, RNG)
    assert (rewards, over) == ({"player_0": -1.0}, False)
    found, rewards, over = game.transition(state, {"player_0": "red green blue"}, RNG)
    assert (rewards, over, game.succeeded(found, "player_0")) == ({"player_0": -1.0}, True, True)
    total = 0.0
    for _ in range(3):
        start, rewards, over = game.transition(start, {"player_0": "red red red"}, RNG)
        total += rewards["player_0"]
    assert (total, over, game.succeeded(start, "player_0")) == (-4.0, True, False)
    assert game.return_range == (-4.0, -1.0)
    assert game.transition(start, {"player_0": "red red red"}, RNG) == (start, {"player_0": 0.0}, True)
    told = game.what_happened(state._replace(guesses=state.guesses * 2), {}, start, "player_0")
    assert told == "1 exact, 0 misplaced; the code was red green blue"


def test_actions_are_read_in_one_form():
    game = Mastermind()
    state = game.initial_state(RNG)
    assert game.legal_actions(state, "player_0") == ()
    assert game.interpret("<action> Red  green BLUE </action>", state, "player_0") == "red green blue"
    assert game.interpret("red green blue", state, "player_0") == "red green blue"
    for text, reason in (("red green", "unknown_name"), ("red green orange", "illegal"), (" ", "empty")):
        read = game.read(f"<action>{text}</action>", state, "player_0")
        assert isinstance(read, Unreadable)
        assert read.reason == reason
    with pytest.raises(ValueError, match="joint_action must give player_0"):
        game.transition(state, {"player_0": "red green orange"}, RNG)
    assert game.default_action(state, "player_0") == "red red red"
    assert game.default_action(state._replace(guesses=("red blue red",)), "player_0") == "red blue red"


def test_optimal_guessing_of_three_pegs_and_four_colours():
    game = Mastermind()
    solver = game.solver()
    assert solver is not None
    assert solver.value(game.table.everything, 10) * 64 == -206
    assert Mastermind(pegs=3, colours=5).solver() is None


@pytest.mark.slow
def test_entropy_on_the_classic_size_lies_between_the_optimum_and_knuth():
    """Optimal play takes 5625 guesses for the 1296 codes (Koyama and Lai, 1993), Knuth's minimax strategy 5801."""
    table = Mastermind(pegs=4, colours=6).table

    def total(candidates: np.ndarray[Any, Any]) -> int:
        guess = int(table.estimated_values(candidates).argmax())
        cost = len(candidates)
        for answer in np.unique(table.answers[guess, candidates]):
            left = table.after(candidates, guess, int(answer))
            if answer != table.answers[guess, guess]:
                cost += total(left)
        return cost

    assert 5625 < total(table.everything) < 5801


def test_metrics_tell_what_guesses_lost():
    game = Mastermind(pegs=1, colours=4)
    # each guess rules out one colour; the repeated one rules out none, where a new one would have left 2 of 3: 5/3
    state = GuessState("blue", ("red", "red", "blue"))
    metrics = game.metrics(state, "player_0")
    assert metrics == {"remaining_loss": pytest.approx((3 - 5 / 3) / 3), "possible": 1.0, "regret": pytest.approx(1.0)}
    assert game.metrics(GuessState("blue", ("red",)), "player_0")["possible"] == 3.0
    assert "regret" not in Mastermind(pegs=3, colours=5).metrics(
        GuessState("red red red", ("red red red",)), "player_0"
    )


def test_the_board_shows_code_guesses_and_answers():
    game = Mastermind(colours=8, max_guesses=3)
    rows = game.board(GuessState("red black blue", ("red blue green",)))
    assert rows == ("rkb____", "rbg_!?_", "_______", "_______")
