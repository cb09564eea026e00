"""Players of the guessing games: they read the answers so far, and know no more than any player does."""

import re

import numpy as np

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer
from agents.turn import TurnRequest
from textgames.exploration.deduction import Indices
from textgames.exploration.guess_number import GuessNumber, guess_value
from textgames.exploration.guessing import LOST_GUESSES, GuessingGame
from textgames.exploration.mastermind import Mastermind

_LEFT = re.compile(r"^Guesses left: (\d+)$", re.MULTILINE)
_ANSWER = re.compile(r"^\d+\. ([^:\n]+): (.+)$", re.MULTILINE)


class GuessingPlayer(SearchPlayer):
    """The guess whose answer tells most: entropy, with a bonus for guesses that may be right themselves."""

    method = "entropy-greedy"

    def __init__(self, game: GuessingGame) -> None:
        self._game = game

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
        """Of the possibilities, the one whose answer leaves the fewest on average."""
        candidates, _, _ = self._read(request)
        expected = self._game.table.expected_remaining(candidates)[candidates]
        best = int(expected.argmin())
        guess = self._game.secrets[int(candidates[best])]
        return Choice(guess, f"{len(candidates)} are possible; {guess} leaves {expected[best]:.2f} on average.")

    def uniform_value(self, request: TurnRequest) -> float:
        """Random guesses are right with one chance in all, whatever is known, so their number is geometric."""
        _, guesses_left, lost = self._read(request)
        wrong = 1.0 - 1.0 / len(self._game.secrets)
        return -sum(wrong**guess for guess in range(guesses_left)) - lost * wrong**guesses_left

    def _read(self, request: TurnRequest) -> tuple[Indices, int, int]:
        """What is possible, how many guesses are left, and what it costs if none of them is right."""
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


class MastermindPlayer(GuessingPlayer):
    """Optimal guessing where there are few enough codes, else the guess whose answer tells most."""

    def __init__(self, game: Mastermind) -> None:
        super().__init__(game)
        self._solve = game.solver
        self.kind = "optimal" if game.solver() is not None else "reference"
        self.method = "dynamic programming over sets of codes" if self.exact else GuessingPlayer.method

    def values(self, request: TurnRequest) -> dict[str, float]:
        candidates, guesses_left, lost = self._read(request)
        solver = self._solve(lost)
        if solver is None:
            return super().values(request)
        return {
            guess: solver.guess_value(candidates, place, guesses_left) for place, guess in enumerate(self._game.secrets)
        }


class GuessNumberPlayer(GuessingPlayer):
    """Optimal guessing of a number, exactly: what is possible is an interval."""

    kind = "optimal"
    method = "dynamic programming over intervals"

    def __init__(self, game: GuessNumber) -> None:
        super().__init__(game)

    def values(self, request: TurnRequest) -> dict[str, float]:
        candidates, guesses_left, lost = self._read(request)
        low, high = int(candidates[0]) + 1, int(candidates[-1]) + 1
        return {guess: guess_value(low, high, int(guess), guesses_left, lost) for guess in self._game.secrets}
