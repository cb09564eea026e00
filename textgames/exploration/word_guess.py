"""Word guessing: find a hidden five-letter word from letters that are green, yellow or grey.

The answer to a guess is that of the well-known word game: first the letters in the right place are green; then, from
left to right, a letter is yellow while the word has one of it that no other letter of the guess was counted for.

The hidden word comes from a list of our own (``words.txt``), and every guess must be in it.
The instructions show the whole list unless a setting says otherwise: the reference player knows it too, and a model
that doesn't would be measured by whether its favourite words happen to be among ours.
"""

from functools import lru_cache
from importlib.resources import files
from itertools import product

import numpy as np
from numpy.typing import NDArray

from textgames.exploration.guessing import GuessingGame, GuessState
from textgames.texts.commands import Command, Word

WORDS = tuple(files("textgames").joinpath("exploration/words.txt").read_text(encoding="utf-8").split())
"""In alphabetical order; lower case, none twice."""

GREEN, YELLOW, GREY = "green", "yellow", "grey"


@lru_cache(maxsize=200_000)
def marks(guess: str, word: str) -> tuple[str, ...]:
    """Return the mark of each letter of a guess."""
    # letters of the word that are not green, which yellow ones are taken from
    left = [theirs for ours, theirs in zip(guess, word, strict=True) if ours != theirs]
    found = []
    for ours, theirs in zip(guess, word, strict=True):
        if ours == theirs:
            found.append(GREEN)
        elif ours in left:
            left.remove(ours)
            found.append(YELLOW)
        else:
            found.append(GREY)
    return tuple(found)


class WordGuess(GuessingGame):
    """Guess a five-letter word. Every guess costs 1; a game that ends without the word costs 1 more.

    Args:
        max_guesses: the game ends after this many.
        show_words: whether the instructions list the words; without it they say "a common English word".
    """

    noun = "word"
    is_solved = True

    def __init__(self, *, max_guesses: int = 10, show_words: bool = True) -> None:
        self.show_words = bool(show_words)
        command = Command("{word}", word=Word(WORDS, help=f"one of the {len(WORDS)} words of the list"))
        super().__init__(WORDS, command, max_guesses)

    def answer(self, guess: str, secret: str) -> str:
        return ", ".join([f"{letter} {mark}" for letter, mark in zip(guess, marks(guess, secret), strict=True)])

    @staticmethod
    def answers(secrets: tuple[str, ...]) -> NDArray[np.integer]:
        numbers = {found: number for number, found in enumerate(product((GREY, YELLOW, GREEN), repeat=len(WORDS[0])))}
        return np.array([[numbers[marks(guess, word)] for word in secrets] for guess in secrets])

    def action_help(self, state: GuessState, player: str) -> str:
        return "one of the words of the list" if self.show_words else "a common English word of five letters"

    def instructions(self, player: str) -> str:
        if self.show_words:
            words = f"It is one of these {len(WORDS)} words, all equally likely:\n{' '.join(WORDS)}\n"
        else:
            words = f"It is one of {len(WORDS)} common English words, all equally likely, which you aren't shown.\n"
        return (
            f"You are guessing a word. A word of five letters is hidden; find it. {words}"
            "Each turn you guess one of these words. Every letter of your guess is then marked: green where the word "
            "has this letter in this place, yellow where the word has it in another place, grey where it doesn't. A "
            "letter that you write more often than the word has it is grey where it is too many.\n"
            f"{self.how_it_pays()}\n"
            "Action: your word. One that is not among these words can't be guessed."
        )
