"""What a guess can tell about something hidden: exact counts, and optimal guessing if it is small enough.

Everything here works on numbers: guess ``g`` and secret ``s`` are indices of one list, and ``answers[g, s]`` is the
number of the answer to ``g`` if ``s`` is hidden. What is hidden was drawn uniformly, so all secrets that agree with the
answers so far (the candidates) are equally likely.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]

FEW = 12  # up to this many candidates, comparing every pair is faster than counting answers

REMEMBERED = 1_000_000  # so many counts are kept; each set of candidates has as many as there are guesses


class AnswerTable:
    """The answer to every guess for every secret, and what follows from it.

    Args:
        answers: shape (n, n), whole numbers from 0; ``answers[g, s]`` for guess ``g`` and secret ``s``. The answer to a
            right guess, ``answers[s, s]``, is the same for all ``s`` and no other guess gets it.
    """

    def __init__(self, answers: NDArray[np.integer]) -> None:
        self.answers = answers.astype(np.intp)
        self.num_answers = int(answers.max()) + 1
        self.everything: Indices = np.arange(len(answers))
        self._known_remaining: dict[bytes, NDArray[np.float64]] = {}
        self._row_starts = (self.everything * self.num_answers)[:, np.newaxis]
        # the most that a first guess can tell, in bits; 1 if there is nothing to tell, as a divisor
        self._bits_per_guess = float(self.information(self.everything).max()) or 1.0

    def counts(self, candidates: Indices) -> NDArray[np.intp]:
        """Return how many candidates get each answer; shape (guesses, answers)."""
        cells = self.answers[:, candidates] + self._row_starts
        counted = np.bincount(cells.ravel(), minlength=len(self.answers) * self.num_answers)
        return counted.reshape(len(self.answers), self.num_answers)

    def expected_remaining(self, candidates: Indices) -> NDArray[np.float64]:
        """Return how many candidates are left on average after each guess: ``sum_a n_a^2 / n``; shape (n,)."""
        key = candidates.tobytes()
        known = self._known_remaining.get(key)
        if known is not None:
            return known
        if len(candidates) <= FEW:  # pairs with equal answers, which is the same sum and much faster for few
            found = self.answers[:, candidates]
            squares = (found[:, :, np.newaxis] == found[:, np.newaxis, :]).sum(axis=(1, 2))
        else:
            squares = (self.counts(candidates) ** 2).sum(axis=1)
        if len(self._known_remaining) * len(self.answers) >= REMEMBERED:
            self._known_remaining.clear()
        expected = np.asarray(squares / len(candidates), dtype=np.float64)
        self._known_remaining[key] = expected
        return expected

    def information(self, candidates: Indices) -> NDArray[np.float64]:
        """Return the entropy of the answer to each guess, in bits; shape (n,)."""
        shares = self.counts(candidates) / len(candidates)
        return np.asarray(-(shares * np.log2(np.where(shares > 0, shares, 1.0))).sum(axis=1), dtype=np.float64)

    def estimated_values(self, candidates: Indices) -> NDArray[np.float64]:
        """Return an estimate of ``-guesses`` of each guess and good play after it; its maximum is the entropy-greedy
        guess.

        ``-1 - P(wrong) - (bits that are missing after the answer) / (bits of the best first guess)``: this guess, the
        last one, and those between them, which each tell as much as the first could. Exact for up to two candidates.
        """
        missing = np.log2(len(candidates)) - self.information(candidates)
        right = np.zeros(len(self.answers))
        right[candidates] = 1.0 / len(candidates)
        return np.asarray(-1.0 - (1.0 - right) - missing / self._bits_per_guess, dtype=np.float64)

    def after(self, candidates: Indices, guess: int, answer: int) -> Indices:
        left: Indices = candidates[self.answers[guess].take(candidates) == answer]
        return left

    def narrowing(self, guesses: Sequence[int], secret: int) -> list[Indices]:
        """Return the candidates before each guess of a game, and those that are left after the last one."""
        sets = [self.everything]
        for guess in guesses:
            known = sets[-1]
            sets.append(known if len(known) == 1 else self.after(known, guess, int(self.answers[guess, secret])))
        return sets

    def remaining_loss(self, candidates: Indices, guess: int) -> float:
        if len(candidates) == 1:
            return 0.0
        expected = self.expected_remaining(candidates)
        return float(expected[guess] - expected.min())


class GuessSolver:
    """Optimal guessing by dynamic programming over sets of candidates: exact, for up to about 64 secrets.

    A set is the bits of a whole number. ``cost(S, h)`` is the sum, over the secrets in ``S``, of the guesses that
    optimal play with ``h`` guesses left takes, with ``lost`` more for every secret that it doesn't find: ``cost(S, h) =
    |S| + min_g sum_a cost(S with answer a to g, h - 1)``, if a right guess costs nothing more. Guesses are tried in the
    order of a lower bound, and left as soon as they can't be the best.
    """

    def __init__(self, table: AnswerTable, lost: int) -> None:
        self._lost = lost
        self._rows: list[list[int]] = table.answers.tolist()
        self._num_answers = table.num_answers
        self._classes: list[tuple[int, ...]] = []  # per guess: the secrets of each answer, but for the right one
        for guess, row in enumerate(self._rows):
            secrets: dict[int, int] = {}
            for secret, answer in enumerate(row):
                secrets[answer] = secrets.get(answer, 0) | 1 << secret
            self._classes.append(tuple(bits for bits in secrets.values() if bits != 1 << guess))
        most = max(map(len, self._classes)) + 1
        self._bounds = [self._lower_bounds(h, most) for h in range(3 + 1)]
        self._costs: dict[tuple[int, int], int] = {}

    def value(self, candidates: Indices, guesses_left: int) -> float:
        return -self._cost(_bits(candidates), guesses_left) / len(candidates)

    def guess_value(self, candidates: Indices, guess: int, guesses_left: int) -> float:
        return -1.0 - self._cost_after(_bits(candidates), guess, guesses_left) / len(candidates)

    def regret(self, candidates: Indices, guess: int, guesses_left: int) -> float:
        n = len(candidates)
        if n == 1:  # known already, as at most guesses of a player who doesn't take the answers in
            missed = guess != candidates[0]
            return float(missed and (1 if guesses_left > 1 else self._lost))
        bits = _bits(candidates)
        return (n + self._cost_after(bits, guess, guesses_left) - self._cost(bits, guesses_left)) / n

    def _cost_after(self, bits: int, guess: int, guesses_left: int) -> int:
        cost, least = 0, 1 if guesses_left > 1 else self._lost
        for secrets in self._classes[guess]:
            left = bits & secrets
            if left:  # a single one costs least; a set costs what its members do
                cost += self._cost(left, guesses_left - 1) if left & left - 1 else least
        return cost

    def _cost(self, bits: int, guesses_left: int) -> int:
        n = bits.bit_count()
        if n == 0 or guesses_left == 0:
            return self._lost * n
        if n == 1:
            return 1
        if n == 2 and guesses_left > 1:  # the first guess is one of them
            return 3
        # A good guess rules out at least one candidate, so that more guesses than candidates are never needed
        guesses_left = min(guesses_left, n)
        key = (bits, guesses_left)
        if key not in self._costs:
            quick = self._told_apart(bits, n, guesses_left)
            self._costs[key] = self._search(bits, n, guesses_left) if quick is None else quick
        return self._costs[key]

    def _told_apart(self, bits: int, n: int, guesses_left: int) -> int | None:
        """Return the cost if one guess tells all candidates apart, as in most small sets; else ``None``.

        A candidate that does so is right or lets the next guess be right; nothing is better. Any other guess then costs
        one more in all, and so does at least every candidate after which two are left that look alike.
        """
        if guesses_left == 1:  # one candidate may be right
            return n + self._lost * (n - 1)
        if n > self._num_answers or guesses_left + self._lost < 3:
            return None
        members = [secret for secret in range(bits.bit_length()) if bits >> secret & 1]
        for guess in members:
            row = self._rows[guess]
            if len({row[secret] for secret in members}) == n:
                return 2 * n - 1
        for row in self._rows:
            if len({row[secret] for secret in members}) == n:
                return 2 * n
        return None

    def _lower_bounds(self, guesses_left: int, most: int) -> list[int]:
        """Return the least that a set can cost, by its size: one is found at once, ``most - 1`` one guess later."""
        costs = [min(found, guesses_left + self._lost) for found in (1, *[2] * (most - 1))]
        costs += [min(3, guesses_left + self._lost)] * (len(self._classes) - most)
        return [sum(costs[:n]) if guesses_left else self._lost * n for n in range(len(self._classes) + 1)]

    def _search(self, bits: int, n: int, guesses_left: int) -> int:
        bounds, least = self._bounds[min(guesses_left - 1, 3)], self._bounds[min(guesses_left, 3)][n]
        splits: dict[tuple[int, ...], int] = {}  # {the sets that a guess leaves: lower bound of its cost}
        # candidates first: in a small set one of them often tells all others apart, and nothing is better
        for _, classes in sorted(enumerate(self._classes), key=lambda each: not bits >> each[0] & 1):
            split = tuple(sorted([left for secrets in classes if (left := bits & secrets)], key=int.bit_count))
            if split == (bits,):  # a guess that tells nothing
                continue
            bound = n + sum([bounds[left.bit_count()] for left in split])
            if bound == least and split[-1].bit_count() == 1:  # a bound that is reached
                return bound
            splits[split] = bound
        best = n + self._lost * n + guesses_left * n  # more than any
        for split, bound in sorted(splits.items(), key=lambda item: item[1]):
            if bound >= best:
                break
            cost = bound
            for left in split:
                cost += self._cost(left, guesses_left - 1) - bounds[left.bit_count()]
                if cost >= best:
                    break
            best = min(best, cost)
        return best


def _bits(candidates: Indices) -> int:
    if len(candidates) == 1 + candidates[-1]:  # all of the first ones
        return (1 << len(candidates)) - 1
    return sum([1 << secret for secret in candidates.tolist()])
