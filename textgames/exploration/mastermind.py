"""Mastermind: find a hidden code of colours from how many pegs of each guess are right.

Knuth, "The computer as Master Mind", Journal of Recreational Mathematics 9 (1976), gives the rules of the answer; the
classic size is 4 pegs and 6 colours. Here the default is 3 pegs and 4 colours, small enough that optimal guessing is
computed exactly (:class:`~textgames.exploration.deduction.GuessSolver`).
"""

from functools import lru_cache
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from textgames.bases import BoardGame, Marks
from textgames.exploration.deduction import Indices
from textgames.exploration.guessing import GuessingGame, GuessState
from textgames.settings import check_whole
from textgames.texts.commands import Command
from textgames.tsmg import SeenBoard

COLOURS = ("red", "green", "blue", "yellow", "white", "orange", "purple", "black")
# up to this many codes, optimal guessing is computed; for 3 pegs and 4 colours that takes under a second
EXACT_CODES = 64

MOST_CODES = 5000  # more codes would make the table of answers, one number a pair of codes, too large


@lru_cache(maxsize=200_000)
def score(guess: str, code: str) -> tuple[int, int]:
    """Return how many pegs have the right colour in the right place, and how many more have it in a wrong place."""
    pegs, hidden = guess.split(), code.split()
    exact = sum(map(str.__eq__, pegs, hidden))
    return exact, sum([min(pegs.count(colour), hidden.count(colour)) for colour in set(pegs)]) - exact


class Mastermind(GuessingGame, BoardGame[GuessState]):
    """Guess a code of colours. Every guess costs 1; a game that ends without the code costs 1 more.

    Args:
        pegs: places of the code, 1 to 6.
        colours: colours that a place may have, 2 to 8; a colour may appear several times.
        max_guesses: the game ends after this many.
    """

    noun = "code"
    marks: ClassVar[Marks] = {
        "r": ("red", (213, 94, 0)),
        "g": ("green", (0, 158, 115)),
        "b": ("blue", (0, 114, 178)),
        "y": ("yellow", (240, 228, 66)),
        "w": ("white", (250, 250, 250)),
        "o": ("orange", (230, 159, 0)),
        "p": ("purple", (204, 121, 167)),
        "k": ("black", (40, 40, 40)),
        "!": ("exact", (20, 20, 20)),
        "?": ("misplaced", (150, 150, 150)),
        "_": ("", (205, 190, 170)),
    }

    def __init__(self, *, pegs: int = 3, colours: int = 4, max_guesses: int = 10) -> None:
        check_whole("pegs", pegs, 1, 6)
        check_whole("colours", colours, 2, len(COLOURS))
        if colours**pegs > MOST_CODES:
            raise ValueError(
                f"pegs={pegs} and colours={colours} give {colours**pegs} codes; at most {MOST_CODES} are accepted"
            )
        self.pegs, self.colours = int(pegs), COLOURS[: int(colours)]
        names = [f"peg_{place}" for place in range(1, self.pegs + 1)]
        command = Command(" ".join(f"{{{name}}}" for name in names), **dict.fromkeys(names, self.colours))
        super().__init__(tuple(map(" ".join, product(self.colours, repeat=self.pegs))), command, max_guesses)
        self.is_solved = len(self.secrets) <= EXACT_CODES

    def answer(self, guess: str, secret: str) -> str:
        exact, misplaced = score(guess, secret)
        return f"{exact} exact, {misplaced} misplaced"

    @staticmethod
    def answers(secrets: tuple[str, ...]) -> NDArray[np.integer]:
        """Return all answers at once: ``exact * pegs + exact and misplaced``."""
        codes = np.array([[COLOURS.index(peg) for peg in code.split()] for code in secrets], dtype=np.int16)
        exact = sum((codes[:, np.newaxis, place] == own).astype(np.int16) for place, own in enumerate(codes.T))
        counts = [(codes == colour).sum(axis=1, dtype=np.int16) for colour in range(len(COLOURS))]
        shared = sum(np.minimum(count[:, np.newaxis], count) for count in counts)
        return np.asarray(exact * codes.shape[1] + shared)

    def regret(self, candidates: Indices, guess: int, guesses_left: int) -> float | None:
        solver = self.solver()
        return None if solver is None else solver.regret(candidates, guess, guesses_left)

    def action_help(self, state: GuessState, player: str) -> str:
        return f"{self.pegs} colours separated by spaces, each one of {', '.join(self.colours)}"

    def instructions(self, player: str) -> str:
        example = " ".join((self.colours * self.pegs)[: self.pegs])
        return (
            f"You are playing Mastermind. A code of {self.pegs} colours is hidden; find it.\n"
            f"Each place of the code has one of the colours {', '.join(self.colours)}; a colour may appear more than "
            "once, and all codes are equally likely.\n"
            "Each turn you guess a whole code. The answer counts exact pegs, of the right colour in the right place, "
            "and misplaced ones, whose colour is in the code in another place. Each peg of the code is counted once at "
            "most.\n"
            f"{self.how_it_pays()}\n"
            f'Action: the {self.pegs} colours from the first place to the last, such as "{example}".'
        )

    def board(self, state: GuessState) -> tuple[str, ...]:
        return self._rows(state, self._letters(state.secret))

    def seen_by(self, state: GuessState, player: str) -> SeenBoard:
        pegs = ("exact", "misplaced", *self.colours)
        return self._rows(state, "_" * self.pegs), {mark: name for mark, name in self.legend.items() if name in pegs}

    def _rows(self, state: GuessState, code: str) -> tuple[str, ...]:
        rows = [code + "_" * (self.pegs + 1)]
        for guess in state.guesses:
            exact, misplaced = score(guess, state.secret)
            rows.append(f"{self._letters(guess)}_{('!' * exact + '?' * misplaced).ljust(self.pegs, '_')}")
        return (*rows, *["_" * (2 * self.pegs + 1)] * (self.max_guesses - len(state.guesses)))

    def _letters(self, code: str) -> str:
        return "".join("k" if colour == "black" else colour[0] for colour in code.split())
