"""Players of the guessing games: they read the answers so far, and know no more than any player does."""

import re
from collections.abc import Collection, Sequence

import numpy as np

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer
from agents.turn import TurnRequest
from textgames.exploration.deduction import Indices
from textgames.exploration.guess_number import guess_value
from textgames.exploration.guessing import LOST_GUESSES, GuessingGame
from textgames.exploration.word_guess import WordGuess

_LEFT = re.compile(r"^Guesses left: (\d+)$", re.MULTILINE)
_ANSWER = re.compile(r"^\d+\. ([^:\n]+): (.+)$", re.MULTILINE)


MANY = 64
"""With more candidates, only the :data:`PROMISING` best guesses are solved by the players that choose."""

PROMISING = 12


class GuessingPlayer(SearchPlayer):
    """The guess whose answer tells most: entropy, with a bonus for guesses that may be right themselves."""

    method = "entropy-greedy"
    _game: GuessingGame

    def values(self, request: TurnRequest) -> dict[str, float]:
        candidates, guesses_left, lost = self._read(request)
        if guesses_left == 1:
            right = np.zeros(len(self._game.secrets))
            right[candidates] = 1 / len(candidates)
            values = -1.0 - lost * (1.0 - right)
        else:
            values = np.maximum(self._game.table.estimated_values(candidates), -float(guesses_left + lost))
        return dict(zip(self._game.secrets, values.tolist(), strict=True))

    def greedy(self, request: TurnRequest) -> Choice:
        """Guess the possibility whose answer leaves the fewest on average."""
        candidates, _, _ = self._read(request)
        expected = self._game.table.expected_remaining(candidates)[candidates]
        best = int(expected.argmin())
        guess = self._game.secrets[int(candidates[best])]
        return Choice(guess, f"{len(candidates)} are possible; {guess} leaves {expected[best]:.2f} on average.")

    def uniform_value(self, request: TurnRequest) -> float:
        """Return the value of random guesses: each is right with one chance in all, so their number is geometric."""
        _, guesses_left, lost = self._read(request)
        wrong = 1.0 - 1.0 / len(self._game.secrets)
        return -sum(wrong**guess for guess in range(guesses_left)) - lost * wrong**guesses_left

    def _read(self, request: TurnRequest) -> tuple[Indices, int, int]:
        """Return the possible secrets, the guesses left, and what it costs if none of them is right."""
        text, game = request.observation, self._game
        left = _LEFT.search(text)
        possible = [
            place
            for place, secret in enumerate(game.secrets)
            if all(game.answer(guess, secret) == answer for guess, answer in _ANSWER.findall(text))
        ]
        if left is None or not possible:
            raise ValueError(f"not an observation of {type(game).__name__}: {text[:80]!r}")
        guesses, steps = int(left[1]), request.steps_left
        # an episode that is cut off before its last guess doesn't pay for having lost
        return np.array(possible), *((guesses, LOST_GUESSES) if steps is None or steps >= guesses else (steps, 0))


class SolvedGuessingPlayer(GuessingPlayer):
    """Optimal guessing if that is computed, else the guess whose answer tells most.

    Among many candidates only the guesses that tell most are solved: a second in place of twenty for 313 words.
    """

    def __init__(self, game: GuessingGame, knows_secrets: bool = True) -> None:
        super().__init__(game)
        self._solve = game.solver
        self._solved = game.is_solved
        self.kind = "optimal" if self._solved and knows_secrets else "reference"
        self.method = "dynamic programming over what is possible" if self._solved else GuessingPlayer.method

    def values(self, request: TurnRequest) -> dict[str, float]:
        return self._values(request, range(len(self._game.secrets)))

    def values_with(self, request: TurnRequest, actions: Collection[str]) -> dict[str, float]:
        wanted = {*self._promising(request), *map(self._game.secrets.index, actions)}
        return self._values(request, sorted(wanted))

    def value(self, request: TurnRequest) -> float:
        return max(self._values(request, self._promising(request)).values())

    def plan(self, request: TurnRequest) -> Choice:
        return self.choice(self._values(request, self._promising(request)))

    def _promising(self, request: TurnRequest) -> list[int]:
        """Return the guesses among which the best one is looked for, in the order of the list."""
        candidates, _, _ = self._read(request)
        if len(candidates) <= MANY or not self._solved:
            return list(range(len(self._game.secrets)))
        estimated = self._game.table.estimated_values(candidates)
        return sorted(np.argsort(-estimated, kind="stable")[:PROMISING].tolist())

    def _values(self, request: TurnRequest, guesses: Sequence[int]) -> dict[str, float]:
        candidates, guesses_left, lost = self._read(request)
        solver = self._solve(lost)
        if solver is None:
            return super().values(request)
        return {self._game.secrets[guess]: solver.guess_value(candidates, guess, guesses_left) for guess in guesses}


def word_guess_player(game: WordGuess) -> SolvedGuessingPlayer:
    """Build the player of Word Guess. It knows the words, so it is optimal only if models are shown them, too."""
    return SolvedGuessingPlayer(game, knows_secrets=game.show_words)


class GuessNumberPlayer(GuessingPlayer):
    """Optimal guessing of a number, exactly: the possible ones are an interval."""

    kind = "optimal"
    method = "dynamic programming over intervals"

    def values(self, request: TurnRequest) -> dict[str, float]:
        candidates, guesses_left, lost = self._read(request)
        low, high = int(candidates[0]) + 1, int(candidates[-1]) + 1
        return {guess: guess_value(low, high, int(guess), guesses_left, lost) for guess in self._game.secrets}
