"""Mastermind, the number and the word: answers by independent counts, pay by hand, and optimal guessing by force."""

from collections import Counter

import numpy as np
import pytest

from textgames.exploration.deduction import FEW, AnswerTable, GuessSolver
from textgames.exploration.guess_number import GuessNumber, guess_value, interval_value
from textgames.exploration.guessing import GuessState
from textgames.exploration.mastermind import Mastermind
from textgames.exploration.word_guess import WORDS, WordGuess, marks
from textgames.texts.actions import Unreadable

RNG = np.random.default_rng(0)
ME = "player_0"

# ---------------------------------------------------------------- counts and optimal guessing


def by_force(table: AnswerTable, candidates: frozenset[int], guesses_left: int, lost: int) -> int:
    """The least cost over all guesses, useless ones included, without any bound."""
    if not candidates or guesses_left == 0:
        return lost * len(candidates)
    costs = []
    for guess, row in enumerate(table.answers.tolist()):
        left: dict[int, set[int]] = {}
        for secret in candidates - {guess}:
            left.setdefault(row[secret], set()).add(secret)
        after = sum(by_force(table, frozenset(some), guesses_left - 1, lost) for some in left.values())
        costs.append(len(candidates) + after)
    return min(costs)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lost", [0, 3])
@pytest.mark.parametrize("guesses_left", [1, 2, 3, 4])
def test_optimal_guessing_is_that_of_brute_force(seed, lost, guesses_left):
    """In any game: the answers to wrong guesses are random, of three kinds; that to the right one is its own."""
    answers = np.random.default_rng(seed).integers(0, 3, (7, 7))
    np.fill_diagonal(answers, 3)
    table = AnswerTable(answers)
    solver = GuessSolver(table, lost)
    expected = -by_force(table, frozenset(range(7)), guesses_left, lost) / 7
    assert solver.value(table.everything, guesses_left) == pytest.approx(expected)
    values = [solver.guess_value(table.everything, guess, guesses_left) for guess in range(7)]
    assert max(values) == pytest.approx(expected)


def test_counts_entropy_remaining_and_regret_by_hand():
    # secret 0 to 3; the answer tells whether the secret is lower (0), right (2) or higher (1)
    table = AnswerTable(np.array([[2, 1, 1, 1], [0, 2, 1, 1], [0, 0, 2, 1], [0, 0, 0, 2]]))
    everything = table.everything
    assert table.counts(everything).tolist() == [[0, 3, 1], [1, 2, 1], [2, 1, 1], [3, 0, 1]]
    assert table.expected_remaining(everything).tolist() == [2.5, 1.5, 1.5, 2.5]
    assert table.information(everything)[1] == pytest.approx(1.5)
    assert table.information(everything)[0] == pytest.approx(0.25 * 2 + 0.75 * np.log2(4 / 3))
    assert table.after(everything, 1, 1).tolist() == [2, 3]
    # 0 leaves one more than the best; with 1 2 3 left, 0 leaves all three and 2 leaves one
    sets = table.narrowing([0, 0, 2], secret=3)
    assert [some.tolist() for some in sets] == [[0, 1, 2, 3], [1, 2, 3], [1, 2, 3], [3]]
    losses = [table.remaining_loss(*before) for before in zip(sets, [0, 0, 2], strict=False)]
    assert losses == pytest.approx([1.0, 2.0, 0.0])
    # of three numbers the middle one is best, 5/3 guesses on average; 0 first takes 1, 2, 3: 2 on average
    table = AnswerTable(np.array([[2, 1, 1], [0, 2, 1], [0, 0, 2]]))
    solver = GuessSolver(table, 1)
    assert solver.regret(table.everything, 1, 5) == 0.0
    assert solver.regret(table.everything, 0, 5) == pytest.approx(1 / 3)
    assert solver.regret(np.array([1, 2]), 0, 4) == pytest.approx(1)


def test_estimates_of_few_and_of_many_candidates():
    table = Mastermind().table
    some = np.arange(0, 60, 5)
    assert len(some) <= FEW
    for candidates in (some, table.everything):
        counted = (table.counts(candidates) ** 2).sum(axis=1) / len(candidates)
        assert table.expected_remaining(candidates) == pytest.approx(counted)
    for few in ([17], [3, 60]):
        best = table.estimated_values(np.array(few)).max()
        assert best == pytest.approx(GuessSolver(table, 1).value(np.array(few), 10))


# ---------------------------------------------------------------- Mastermind


@pytest.mark.parametrize("settings", [{"pegs": 3, "colours": 4}, {"pegs": 4, "colours": 2}])
def test_the_table_has_the_answers(settings):
    game = Mastermind(**settings)
    numbers: dict[int, str] = {}
    for i, guess in enumerate(game.secrets):
        for j, code in enumerate(game.secrets):
            ours, theirs = guess.split(), code.split()
            exact = sum(a == b for a, b in zip(ours, theirs, strict=True))
            misplaced = (Counter(ours) & Counter(theirs)).total() - exact
            answer = f"{exact} exact, {misplaced} misplaced"
            assert game.answer(guess, code) == answer
            assert numbers.setdefault(int(game.table.answers[i, j]), answer) == answer
    assert len(set(numbers.values())) == len(numbers)


def test_every_guess_costs_one_and_losing_one_more():
    game = Mastermind(max_guesses=3)
    start = GuessState("red green blue")
    state, rewards, over = game.transition(start, {ME: "red red red"}, RNG)
    assert (rewards, over) == ({ME: -1.0}, False)
    found, rewards, over = game.transition(state, {ME: "red green blue"}, RNG)
    assert (rewards, over, game.succeeded(found, ME)) == ({ME: -1.0}, True, True)
    total = 0.0
    for _ in range(3):
        start, rewards, over = game.transition(start, {ME: "red red red"}, RNG)
        total += rewards[ME]
    assert (total, over, game.succeeded(start, ME)) == (-4.0, True, False)
    assert game.return_range == (-4.0, -1.0)
    assert game.transition(start, {ME: "red red red"}, RNG) == (start, {ME: 0.0}, True)


@pytest.mark.parametrize(
    ("game", "read", "unread"),
    [
        (Mastermind(), " Red  green BLUE ", {"red green": "unknown_name", "red green orange": "illegal", " ": "empty"}),
        (WordGuess(), "Crane", {"zzzzz": "illegal", "cranes": "illegal", "crane about": "unknown_name"}),
    ],
)
def test_guesses_are_read_in_one_form(game, read, unread):
    state = game.initial_state(RNG)
    assert game.legal_actions(state, ME) == ()
    assert game.interpret(f"<action>{read}</action>", state, ME) == " ".join(read.casefold().split())
    for text, reason in unread.items():
        found = game.read(f"<action>{text}</action>", state, ME)
        assert isinstance(found, Unreadable)
        assert found.reason == reason
        with pytest.raises(ValueError, match="joint_action must give player_0"):
            game.transition(state, {ME: text}, RNG)
    first = game.default_action(state, ME)
    assert game.default_action(state._replace(guesses=(game.secrets[3],)), ME) == game.secrets[3] != first


def test_optimal_guessing_of_three_pegs_and_four_colours():
    game, large = Mastermind(), Mastermind(pegs=3, colours=5)
    solver = game.solver()
    assert solver is not None
    assert solver.value(game.table.everything, 10) * 64 == -206
    assert large.solver() is None
    assert "regret" not in large.metrics(GuessState("red red red", ("red red red",)), ME)


def test_metrics_tell_what_guesses_lost_and_the_board_shows_code_guesses_and_answers():
    game = Mastermind(pegs=1, colours=4)
    # each guess rules out one colour; the repeated one rules out none, where a new one would have left 2 of 3: 5/3
    metrics = game.metrics(GuessState("blue", ("red", "red", "blue")), ME)
    assert metrics == {"remaining_loss": pytest.approx((3 - 5 / 3) / 3), "possible": 1.0, "regret": pytest.approx(1.0)}
    assert game.metrics(GuessState("blue", ("red",)), ME)["possible"] == 3.0
    drawn = Mastermind(colours=8, max_guesses=3).board(GuessState("red black blue", ("red blue green",)))
    assert drawn == ("rkb____", "rbg_!?_", "_______", "_______")


# ---------------------------------------------------------------- the number


@pytest.mark.parametrize("numbers", [2, 3, 7])
@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.parametrize("guesses_left", [1, 2, 4])
def test_optimal_guessing_of_numbers_is_that_of_brute_force(numbers, lost, guesses_left):
    higher = np.sign(np.subtract.outer(np.arange(numbers), np.arange(numbers))) + 1
    expected = -by_force(AnswerTable(higher), frozenset(range(numbers)), guesses_left, lost) / numbers
    assert interval_value(numbers, guesses_left, lost) == pytest.approx(expected)
    values = [guess_value(1, numbers, guess, guesses_left, lost) for guess in range(numbers + 2)]
    assert max(values) == pytest.approx(expected)
    assert values[0] == pytest.approx(-1 + interval_value(numbers, guesses_left - 1, lost))


def test_answers_and_metrics_of_numbers():
    game = GuessNumber()
    state = GuessState("26", ("50", "25", "60", "26"))
    # 60 tells nothing, and costs a whole guess; 26 of the 24 numbers from 26 to 49 leaves 23
    after_26 = -1 + 23 / 24 * interval_value(23, 6, 1)
    metrics = game.metrics(state, ME)
    assert metrics["possible"] == 1.0
    assert metrics["regret"] == pytest.approx(1 + interval_value(24, 7, 1) - after_26)
    halved = game.metrics(state._replace(guesses=("50", "25")), ME)
    assert (halved["regret"], halved["possible"]) == (0.0, 24.0)


# ---------------------------------------------------------------- the word


def test_marks_of_words_by_counting():
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


def test_the_list_of_words_is_clean_and_shown_by_setting():
    assert list(WORDS) == sorted(set(WORDS))
    assert all(len(word) == 5 and word.isascii() and word.isalpha() and word.islower() for word in WORDS)
    assert all(f" {word} " in WordGuess().instructions(ME).replace("\n", " ") for word in WORDS)
    hidden = WordGuess(show_words=False)
    assert "crane" not in hidden.instructions(ME)
    assert hidden.action_help(hidden.initial_state(RNG), ME) == "a common English word of five letters"


@pytest.mark.slow
def test_the_optimum_over_the_list_of_words():
    """What the reference player is compared with in the docs: 881 guesses for the 313 words."""
    table = WordGuess().table
    assert GuessSolver(table, 1).value(table.everything, 10) * len(WORDS) == pytest.approx(-881)
