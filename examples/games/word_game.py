"""A word game with open actions: each word must begin with the last letter of the one before. Nothing is listed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import textgames
from textgames import Unreadable, UnreadableReason

STARTS = ("apple", "river", "stone", "cloud")
SAMPLES = {letter: f"{letter}{'aeiou'[i % 5]}{'lnrst'[i % 5]}" for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}

Words = tuple[str, ...]


class WordChain(textgames.TSMG[Words]):
    """Nobody checks that a word exists; what counts is letters, lengths and that no word comes twice."""

    def initial_state(self, rng: np.random.Generator) -> Words:
        return (STARTS[int(rng.integers(len(STARTS)))],)

    def legal_actions(self, state: Words, player: str) -> tuple[str, ...]:
        return ()

    def read_action(self, inside: str, state: Words, player: str) -> str | Unreadable:
        word = inside.strip().casefold()
        if not (word.isascii() and word.isalpha() and 3 <= len(word) <= 12):
            return Unreadable(UnreadableReason.UNKNOWN_NAME, inside)
        fits = word[0] == state[-1][-1] and word not in state
        return word if fits else Unreadable(UnreadableReason.ILLEGAL, word)

    def default_action(self, state: Words, player: str) -> str:
        word = SAMPLES[state[-1][-1]]
        while word in state:
            word += word[-1]
        return word

    def sample_action(self, state: Words, player: str, rng: np.random.Generator) -> str:
        return self.default_action(state, player)

    def action_help(self, state: Words, player: str) -> str:
        return f"a word of 3 to 12 letters that begins with {state[-1][-1]!r} and was not used"

    def transition(
        self, state: Words, joint_action: Mapping[str, str], rng: Any
    ) -> tuple[Words, dict[str, float], bool]:
        word = self.read_action(joint_action.get("player_0", ""), state, "player_0")
        if isinstance(word, Unreadable):
            raise ValueError(f"{joint_action.get('player_0')!r} isn't {self.action_help(state, 'player_0')}")
        return (*state, word), {"player_0": len(word) / 12}, len(state) >= 6

    def observe(self, state: Words, player: str) -> str:
        return f"Words so far: {', '.join(state)}."

    def instructions(self, player: str) -> str:
        return (
            "Add a word that begins with the last letter of the word before. Longer words pay more; none comes twice."
        )


textgames.register("ExampleWordChain-v0", WordChain, max_steps=8)
