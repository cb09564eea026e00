"""Word guessing: marks by hand and by an independent count, the list, and what is not in it."""

from collections import Counter

import numpy as np
import pytest

from textgames.exploration.deduction import GuessSolver
from textgames.exploration.guessing import GuessState
from textgames.exploration.word_guess import WORDS, WordGuess, marks
from textgames.texts.actions import Unreadable


def test_marks_of_all_pairs_by_counting():
    """Of each letter, green and yellow together are as many as the fewer of guess and word, greens in their places."""
    rng = np.random.default_rng(0)
    for guess, word in rng.choice(WORDS, (3000, 2)).tolist():
        found = marks(guess, word)
        assert [mark == "green" for mark in found] == [a == b for a, b in zip(guess, word, strict=True)]
        counted = Counter(letter for letter, mark in zip(guess, found, strict=True) if mark != "grey")
        assert counted == Counter(guess) & Counter(word)
        for letter in set(guess):  # no yellow after a grey one
            kinds = [mark for other, mark in zip(guess, found, strict=True) if other == letter and mark != "green"]
            assert kinds == sorted(kinds, reverse=True)


def test_the_list_is_clean():
    assert len(WORDS) == len(set(WORDS)) > 300
    assert list(WORDS) == sorted(WORDS)
    assert all(len(word) == 5 and word.isascii() and word.isalpha() and word.islower() for word in WORDS)


def test_a_word_outside_of_the_list_is_illegal():
    game = WordGuess()
    state = GuessState("crane", ("about",))
    assert game.interpret("<action>Crane</action>", state, "player_0") == "crane"
    for word, reason in (("zzzzz", "illegal"), ("cranes", "illegal"), ("crane about", "unknown_name")):
        read = game.read(f"<action>{word}</action>", state, "player_0")
        assert isinstance(read, Unreadable)
        assert read.reason == reason
    with pytest.raises(ValueError, match=f"one of the {len(WORDS)} words"):
        game.transition(state, {"player_0": "zzzzz"}, np.random.default_rng(0))


def test_the_list_is_shown_by_setting():
    assert all(f" {word} " in WordGuess().instructions("player_0").replace("\n", " ") for word in WORDS)
    hidden = WordGuess(show_words=False)
    assert "crane" not in hidden.instructions("player_0")
    state = hidden.initial_state(np.random.default_rng(0))
    assert hidden.action_help(state, "player_0") == "a common English word of five letters"


def test_the_table_tells_words_apart_as_the_answers_do():
    game = WordGuess()
    answers = game.table.answers
    rng = np.random.default_rng(1)
    for g, a, b in rng.integers(len(WORDS), size=(500, 3)).tolist():
        same = game.answer(WORDS[g], WORDS[a]) == game.answer(WORDS[g], WORDS[b])
        assert same == (answers[g, a] == answers[g, b])


@pytest.mark.slow
def test_the_optimum_over_the_list():
    """What the reference player is compared with in the docs: 881 guesses for the 313 words."""
    table = WordGuess().table
    assert GuessSolver(table, 1).value(table.everything, 10) * len(WORDS) == pytest.approx(-881)
