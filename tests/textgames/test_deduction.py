"""Exact counts and optimal guessing, against brute force on small games."""

import numpy as np
import pytest

from textgames.exploration.deduction import FEW, AnswerTable, GuessSolver
from textgames.exploration.mastermind import Mastermind


def small_table(seed: int, secrets: int = 7) -> AnswerTable:
    """Any game: the answers to wrong guesses are random, of three kinds; that to the right one is its own."""
    answers = np.random.default_rng(seed).integers(0, 3, (secrets, secrets))
    np.fill_diagonal(answers, 3)
    return AnswerTable(answers)


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
@pytest.mark.parametrize("lost", [0, 1, 3])
@pytest.mark.parametrize("guesses_left", [1, 2, 3, 4])
def test_optimal_guessing_is_that_of_brute_force(seed, lost, guesses_left):
    table = small_table(seed)
    solver = GuessSolver(table, lost)
    assert solver.value(table.everything, guesses_left) == pytest.approx(
        -by_force(table, frozenset(range(7)), guesses_left, lost) / 7
    )
    values = [solver.guess_value(table.everything, guess, guesses_left) for guess in range(7)]
    assert max(values) == pytest.approx(solver.value(table.everything, guesses_left))


def test_counts_entropy_and_remaining():
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


def test_few_and_many_candidates_are_counted_alike():
    table = Mastermind().table
    some = np.arange(0, 60, 5)
    assert len(some) <= FEW
    counted = (table.counts(some) ** 2).sum(axis=1) / len(some)
    assert table.expected_remaining(some) == pytest.approx(counted)
    assert table.expected_remaining(table.everything) == pytest.approx(
        (table.counts(table.everything) ** 2).sum(1) / 64
    )


def test_estimates_are_exact_for_one_and_two_candidates():
    table = Mastermind().table
    for candidates in ([17], [3, 60]):
        best = table.estimated_values(np.array(candidates)).max()
        assert best == pytest.approx(GuessSolver(table, 1).value(np.array(candidates), 10))


def test_regret_is_what_a_guess_lost():
    table = AnswerTable(np.array([[2, 1, 1], [0, 2, 1], [0, 0, 2]]))  # three numbers, higher or lower
    solver = GuessSolver(table, 1)
    # best: the middle one, 5/3 guesses on average; 0 first takes 1, 2, 3: 2 on average
    assert solver.regret(table.everything, 1, 5) == 0.0
    assert solver.regret(table.everything, 0, 5) == pytest.approx(1 / 3)
    assert solver.regret(np.array([1, 2]), 0, 4) == pytest.approx(1)
