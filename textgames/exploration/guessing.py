"""What the guessing games share: one hidden thing of a list, guesses at it, and an answer to each guess.

The return is ``-guesses``: every guess costs 1, and a game that ends without the right one costs 1 more, so that not
finding it is always worse than finding it late.
"""

from abc import abstractmethod
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from textgames.bases import OnePlayerGame
from textgames.exploration.deduction import AnswerTable, GuessSolver, Indices
from textgames.settings import check_whole
from textgames.texts.actions import Unreadable
from textgames.texts.commands import Command
from textgames.tsmg import JointAction

GUESS_REWARD = -1.0
LOST_GUESSES = 1
"""What a game costs, in guesses, that ends without the right one."""


class GuessState(NamedTuple):
    """What is hidden, and the guesses so far; the answers follow from both."""

    secret: str
    guesses: tuple[str, ...] = ()


class GuessingGame(OnePlayerGame[GuessState]):
    """Guess something hidden. Subclasses say what can be hidden, how a guess is answered, and tell the rules.

    Attributes:
        secrets: everything that may be hidden, in order; each is as likely, and each may be guessed.
        command: how a guess is written.
        max_guesses: the game ends after this many.
        noun: what is hidden, for texts: ``"code"``.
        is_solved: whether optimal guessing is computed.
    """

    success_means = "found the secret"
    hidden_information = True
    noun = "secret"
    is_solved = False

    def __init__(self, secrets: tuple[str, ...], command: Command, max_guesses: int) -> None:
        check_whole("max_guesses", max_guesses, 1)
        self.secrets, self.command = secrets, command
        self.max_guesses = self.longest_episode = int(max_guesses)
        self.return_range = ((self.max_guesses + LOST_GUESSES) * GUESS_REWARD, GUESS_REWARD)
        self._known = frozenset(secrets)
        self._read = GuessState(""), ""  # the state that was read last, and the lines of its guesses

    @abstractmethod
    def answer(self, guess: str, secret: str) -> str:
        """Return the answer to a guess, as the player reads it."""

    def regret(self, candidates: Indices, guess: int, guesses_left: int) -> float | None:
        """Return the expected guesses that a guess, by its place in ``secrets``, loses; ``None`` if unknown."""
        return None

    def solver(self, lost: int = LOST_GUESSES) -> GuessSolver | None:
        """Return optimal guessing, if not finding it costs ``lost``; ``None`` if that is too much to compute."""
        return _solver(self.table, lost) if self.is_solved else None

    @staticmethod
    @abstractmethod
    def answers(secrets: tuple[str, ...]) -> NDArray[np.integer]:
        """Return the answers as numbers, of every guess (rows) to every secret (columns)."""

    def initial_state(self, rng: Generator) -> GuessState:
        return GuessState(self.secrets[int(rng.random() * len(self.secrets))])

    def initial_outcomes(self) -> list[tuple[float, GuessState]]:
        return [(1.0 / len(self.secrets), GuessState(secret)) for secret in self.secrets]

    def chosen(self, state: GuessState, joint_action: JointAction) -> str:
        guess = joint_action.get("player_0")
        if guess not in self._known:
            raise ValueError(f"joint_action must give player_0 {self.command.help}, got {dict(joint_action)!r}")
        return guess

    def act(self, state: GuessState, action: str, rng: Generator) -> tuple[GuessState, float, bool]:
        after = GuessState(state.secret, (*state.guesses, action))
        if action == state.secret:
            return after, GUESS_REWARD, True
        lost = len(after.guesses) == self.max_guesses
        return after, GUESS_REWARD * (1 + LOST_GUESSES) if lost else GUESS_REWARD, lost

    def forfeit(self, state: GuessState, player: str, rounds_left: float) -> dict[str, float]:
        """Return what is paid if all guesses that are left are wrong."""
        return {player: GUESS_REWARD * (self.max_guesses - len(state.guesses) + LOST_GUESSES)}

    def is_playing(self, state: GuessState, player: str) -> bool:
        return len(state.guesses) < self.max_guesses and not self.succeeded(state, player)

    def succeeded(self, state: GuessState, player: str) -> bool:
        return bool(state.guesses) and state.guesses[-1] == state.secret

    def metrics(self, state: GuessState, player: str) -> dict[str, float]:
        """Return exact figures of the guesses so far.

        ``remaining_loss``: by how much a guess left more possibilities on average than the best one would have.
        ``possible``: how many possibilities agree with all answers. ``regret``: guesses that were lost in expectation
        against optimal play.
        """
        guesses = [self.index[guess] for guess in state.guesses]
        sets = self.table.narrowing(guesses, self.index[state.secret])
        losses = [self.table.remaining_loss(*before) for before in zip(sets, guesses, strict=False)]
        figures = {"remaining_loss": sum(losses) / max(1, len(losses)), "possible": float(len(sets[-1]))}
        regrets = [
            self.regret(candidates, guess, self.max_guesses - played)
            for played, (candidates, guess) in enumerate(zip(sets, guesses, strict=False))
        ]
        return figures if None in regrets else {**figures, "regret": sum(filter(None, regrets))}

    @cached_property
    def index(self) -> dict[str, int]:
        return {secret: place for place, secret in enumerate(self.secrets)}

    @cached_property
    def table(self) -> AnswerTable:
        """The answers as numbers; made when they are first needed, which play itself never does."""
        return _table(type(self), self.secrets)

    def legal_actions(self, state: GuessState, player: str) -> tuple[str, ...]:
        return ()

    def read_action(self, inside: str, state: GuessState, player: str) -> str | Unreadable:
        guess = " ".join(inside.casefold().split())
        # a guess in its one form, as nearly all are, needs no pattern
        return guess if guess in self._known else self.command.read(inside)

    def default_action(self, state: GuessState, player: str) -> str:
        return state.guesses[-1] if state.guesses else self.secrets[0]

    def sample_action(self, state: GuessState, player: str, rng: Generator) -> str:
        return self.secrets[int(rng.integers(len(self.secrets)))]

    def observe(self, state: GuessState, player: str) -> str:
        secret, guesses = state
        known, lines = self._read
        if known.secret != secret or guesses[: len(known.guesses)] != known.guesses:
            known, lines = GuessState(secret), ""
        for number, guess in enumerate(guesses[len(known.guesses) :], len(known.guesses) + 1):
            lines += f"\n{number}. {guess}: {self.answer(guess, secret)}"
        self._read = state, lines
        told = f"Guesses left: {self.max_guesses - len(guesses)}\nGuesses so far:"
        return told + (lines or " none")

    def how_it_pays(self) -> str:
        return (
            f"You have {self.max_guesses} guesses. Every guess costs 1 point, so use as few as you can. "
            f"If none of them is right, that costs 1 more point."
        )

    def told(self, state: GuessState, action: str, after: GuessState) -> str:
        told = self.answer(after.guesses[-1], state.secret)
        if self.succeeded(after, "player_0"):
            return f"{told}; found the {self.noun}"
        return told if self.is_playing(after, "player_0") else f"{told}; the {self.noun} was {state.secret}"

    def describe(self, state: GuessState) -> str:
        return f"Hidden {self.noun}: {state.secret}\n{self.observe(state, 'player_0')}"


# games of equal secrets share both
_table = lru_cache(maxsize=16)(lambda game, secrets: AnswerTable(game.answers(secrets)))
_solver = lru_cache(maxsize=16)(GuessSolver)
