"""A chat game: both players see a number each, talk once, and then name the sum. Only what is said is heard."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import textgames
from textgames.texts.commands import Command, Message

SAY, NAME = Command("{message}", message=Message(80)), Command("{total}", total=range(19))


class Talk(NamedTuple):
    numbers: tuple[int, int]
    said: tuple[str, ...] = ()


class TellMe(textgames.TSMG[Talk]):
    players = ("player_0", "player_1")
    hidden_information = True
    bare_responses = False  # a thought whose tags were forgotten must not be spoken

    def initial_state(self, rng: np.random.Generator) -> Talk:
        return Talk((int(rng.integers(10)), int(rng.integers(10))))

    def to_move(self, state: Talk) -> tuple[str, ...]:
        return (self.players[len(state.said)],) if len(state.said) < 2 else self.players

    def command(self, state: Talk) -> Command:
        return SAY if len(state.said) < 2 else NAME

    def legal_actions(self, state: Talk, player: str) -> tuple[str, ...]:
        return ()

    def read_action(self, inside: str, state: Talk, player: str) -> Any:
        return self.command(state).read(inside)

    def default_action(self, state: Talk, player: str) -> str:
        return "..." if len(state.said) < 2 else "0"

    def sample_action(self, state: Talk, player: str, rng: np.random.Generator) -> str:
        return self.command(state).sample(rng)

    def action_help(self, state: Talk, player: str) -> str:
        return self.command(state).help

    def transition(self, state: Talk, joint_action: Mapping[str, str], rng: Any) -> tuple[Talk, dict[str, float], bool]:
        written = {player: self.command(state).values(joint_action.get(player, "")) for player in self.to_move(state)}
        if None in written.values():
            raise ValueError(f"accepted: {self.command(state).help}; got {dict(joint_action)}")
        if len(state.said) < 2:
            (speaker,) = self.to_move(state)
            said = (*state.said, joint_action[speaker])
            return Talk(state.numbers, said), dict.fromkeys(self.players, 0.0), False
        right = all(values == {"total": sum(state.numbers)} for values in written.values())
        return state, dict.fromkeys(self.players, float(right)), True

    def observe(self, state: Talk, player: str) -> str:
        heard = "".join(f'\n{who} said: "{what}"' for who, what in zip(self.players, state.said, strict=False))
        return f"You are {player}. Your number: {state.numbers[self.players.index(player)]}.{heard}"

    def instructions(self, player: str) -> str:
        return "Two players see a number from 0 to 9 each. Each says one thing, then both name the sum. Both right: 1."


textgames.register("ExampleTellMe-v0", TellMe, max_steps=3, opponents="random")
