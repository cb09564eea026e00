"""Players of the puzzles and guessing games: they play what their values promise, from the text alone."""

from typing import Any

import numpy as np
import pytest

from agents.baselines.search import search_player_of
from agents.turn import TurnRequest
from textgames.exploration.guess_number import GuessNumber
from textgames.exploration.guessing import GuessingGame, GuessState
from textgames.exploration.mastermind import Mastermind
from textgames.exploration.word_guess import WordGuess
from textgames.planning.sliding_puzzle import SlidingPuzzle, SlidingState
from textgames.planning.sokoban import Sokoban
from textgames.planning.sokoban_levels import Level, SokobanState

RNG = np.random.default_rng(0)


def ask(game: Any, state: Any, steps_left: int | None = None) -> TurnRequest:
    return TurnRequest(game.observe(state, "player_0"), steps_left=steps_left, game=game)


def guesses_of_all(game: GuessingGame, way: str = "plan") -> list[int]:
    """How many guesses a player takes for each secret; it gets the observation and nothing else."""
    player, known, counts = search_player_of(game), {}, []
    for secret in game.secrets:
        state, over = GuessState(secret), False
        while not over:
            request = ask(game, state)
            if request.observation not in known:  # the player has no memory, so equal texts have equal answers
                known[request.observation] = getattr(player, way)(request).action
            state, _, over = game.transition(state, {"player_0": known[request.observation]}, RNG)
        assert game.succeeded(state, "player_0")
        counts.append(len(state.guesses))
    return counts


@pytest.mark.parametrize(
    ("game", "guesses"),
    [
        (GuessNumber(), 580),
        (Mastermind(), 206),
        pytest.param(WordGuess(), 881, marks=pytest.mark.slow),  # the optimum: tests/textgames/test_guessing.py
    ],
)
def test_the_planner_guesses_as_well_as_can_be(game, guesses):
    player = search_player_of(game)
    assert player.exact
    assert player.value(ask(game, GuessState(game.secrets[0]))) == pytest.approx(-guesses / len(game.secrets))
    assert sum(guesses_of_all(game)) == guesses


def test_what_a_player_knows_that_a_model_is_not_told_is_no_optimum():
    assert search_player_of(WordGuess(show_words=False)).kind == "reference"
    many = search_player_of(Mastermind(pegs=4, colours=6))
    assert (many.kind, many.method) == ("reference", "entropy-greedy")
    with pytest.raises(ValueError, match="not an observation of Mastermind"):
        many.plan(TurnRequest("Guesses so far: none"))


def test_greedy_guesses_only_what_is_possible():
    assert max(guesses_of_all(GuessNumber(), "greedy")) == 7
    game = Mastermind()
    assert sum(guesses_of_all(game, "greedy")) >= 206
    state = GuessState("red red blue", ("red green blue",))
    choice = search_player_of(game).greedy(ask(game, state)).action
    assert game.answer("red green blue", choice) == game.answer("red green blue", "red red blue")


@pytest.mark.parametrize("game", [GuessNumber(numbers=12, max_guesses=4), Mastermind(pegs=2, colours=3, max_guesses=3)])
@pytest.mark.parametrize("steps_left", [None, 2])
def test_random_guessing_is_worth_what_playing_it_gives(game, steps_left):
    """Exactly, by the rules: it doesn't matter what was guessed, only how often, and whether it was right."""

    def value(state: GuessState) -> float:
        if not game.is_playing(state, "player_0"):
            return 0.0
        left = min(game.max_guesses - len(state.guesses), steps_left - len(state.guesses) if steps_left else 99)
        if left == 0:
            return 0.0
        wrong = next(secret for secret in game.secrets if secret != state.secret)
        chance = 1 / len(game.secrets)
        after, rewards, _ = game.transition(state, {"player_0": wrong}, RNG)
        return -chance + (1 - chance) * (rewards["player_0"] + value(after))

    expected = np.mean([value(GuessState(secret)) for secret in game.secrets])
    request = ask(game, GuessState(game.secrets[0]), steps_left)
    assert search_player_of(game).uniform_value(request) == pytest.approx(expected)


def test_an_episode_that_is_cut_off_does_not_pay_for_having_lost():
    for game in (GuessNumber(numbers=3), Mastermind(pegs=1, colours=3), Mastermind(pegs=4, colours=4)):
        player, state = search_player_of(game), GuessState(game.secrets[0])
        assert max(player.values(ask(game, state, steps_left=1)).values()) == -1.0
        last = GuessState(game.secrets[0], (game.secrets[1],) * 9)
        values = player.values(ask(game, last, steps_left=1))
        possible = [s for s in game.secrets if game.answer(game.secrets[1], s) == game.answer(game.secrets[1], last[0])]
        assert max(values.values()) == pytest.approx(-1.0 - (1 - 1 / len(possible)))
        assert {guess for guess, value in values.items() if value == max(values.values())} == set(possible)


def test_greedy_pushes_go_by_the_nearest_target_and_slides_towards_the_places():
    game = Sokoban()
    # the player is right of the box, which has to be pushed right: around it, from above or below
    level = Level(6, "#######____##____##____##___T#######")
    state, over = SokobanState(level, 21, (20,), 0, 0), False
    while not over:
        action = search_player_of(game).greedy(ask(game, state)).action
        state, _, over = game.transition(state, {"player_0": action}, RNG)
    assert game.succeeded(state, "player_0")
    stuck = SokobanState(level, 13, (7,), 0, 0)  # in the corner: no push is left
    assert "No push" in search_player_of(game).greedy(ask(game, stuck)).reason
    puzzle = SlidingPuzzle()
    assert search_player_of(puzzle).greedy(ask(puzzle, SlidingState("123450786"))).action == "6"
