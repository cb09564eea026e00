"""The players of the guessing games, over everything that may be hidden: the 1 of their scores is the optimum."""

import numpy as np
import pytest

from agents.baselines.games.guessing import PROMISING, SolvedGuessingPlayer
from agents.baselines.search import search_player_of
from agents.turn import request_in
from textgames import SCENARIOS
from textgames.exploration.guessing import GuessingGame, GuessState
from textgames.exploration.mastermind import Mastermind
from textgames.exploration.word_guess import WordGuess

ME = "player_0"


def mean_return(game: GuessingGame, rule: str) -> float:
    """Exactly: every secret is hidden once. A rule chooses by what it reads, so that each text is asked about once."""
    choose, chosen, total = getattr(search_player_of(game), rule), dict[str, str](), 0.0
    for secret in game.secrets:
        state = GuessState(secret)
        while game.is_playing(state, ME):
            request = request_in(game, state, ME, game.max_guesses - len(state.guesses))
            if request.observation not in chosen:
                chosen[request.observation] = choose(request).action
            state, rewards, _ = game.transition(state, {ME: chosen[request.observation]}, np.random.default_rng(0))
            total += rewards[ME]
    return total / len(game.secrets)


@pytest.mark.parametrize("name", ["mastermind", "guess-number", pytest.param("word-guess", marks=pytest.mark.slow)])
def test_planner_is_optimal_and_greedy_is_not_better(name: str) -> None:
    game = SCENARIOS[name].game()
    assert isinstance(game, GuessingGame)
    player = search_player_of(game)
    assert player.kind == "optimal"
    best = player.value(request_in(game, GuessState(game.secrets[0]), ME, 10))
    assert mean_return(game, "plan") == pytest.approx(best)
    assert mean_return(game, "greedy") <= best + 1e-9


@pytest.mark.slow
def test_the_best_first_word_is_among_the_promising_ones() -> None:
    """So that what the player calls the value is that of all guesses: 881 guesses for 313 words."""
    game = WordGuess()
    player = search_player_of(game)
    request = request_in(game, GuessState("about"), ME, 10)
    values = player.values(request)
    assert len(values) == len(game.secrets) > PROMISING
    assert max(values.values()) == player.value(request) == pytest.approx(-881 / 313)
    assert player.plan(request).action == max(values, key=lambda word: values[word])


def test_what_a_player_knows_that_a_model_is_not_told_is_no_optimum() -> None:
    assert search_player_of(WordGuess(show_words=False)).kind == "reference"
    many = search_player_of(Mastermind(pegs=4, colours=6))
    assert isinstance(many, SolvedGuessingPlayer)
    assert (many.kind, many.method) == ("reference", "entropy-greedy")
