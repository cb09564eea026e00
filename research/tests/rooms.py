"""Rooms in a row, each with a right door that only a document tells, and a small model that reads documents."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import textgames
from agents import PromptMap
from agents.msgrpo import MSGRPOConfig, save_model
from agents.msgrpo.warmup import TaughtDecision, imitate
from agents.turn import TurnRequest
from tests.tiny_models import tiny_llama, word_tokenizer
from textgames import TSMG
from textgames.solving.value_iteration import ValueIteration
from textgames.yardsticks import register_yardstick

RIGHT = {"red": "left", "green": "right", "blue": "right"}
COLOURS, DOORS = [*RIGHT], ("left", "right")
WORDS = (
    *[f"<action>{door}</action>" for door in DOORS], *[f"room {colour}" for colour in COLOURS],
    *[f"{colour} {door}" for colour in COLOURS for door in DOORS], "\n",
)  # fmt: skip
DOCUMENT = "\n".join(f"{colour} {door}" for colour, door in RIGHT.items())
PROMPTS = 'opening = "$instructions"\nobservation = "$observation"\nclock = ""\n[response]\ndirect = "Answer:"\n'


class Room(NamedTuple):
    """The first room's colour, how many were passed, and whether the game is lost."""

    first: int
    passed: int = 0
    lost: bool = False


class Rooms(TSMG[Room]):
    """The right door pays what its colour does; with ``doors`` a wrong one ends the game, and the last alone pays."""

    actions = DOORS
    success_means = "passed all rooms by the right doors"

    def __init__(self, rooms: int = 4, doors: bool = False) -> None:
        self.rooms, self.doors = rooms, doors

    def colour(self, state: Room) -> str:
        return COLOURS[(state.first + state.passed) % 3]

    def initial_state(self, rng: np.random.Generator) -> Room:
        return Room(int(rng.integers(3)))

    def transition(
        self, state: Room, joint_action: Mapping[str, str], rng: np.random.Generator
    ) -> tuple[Room, dict[str, float], bool]:
        right = joint_action["player_0"] == RIGHT[self.colour(state)]
        after = Room(state.first, state.passed + 1, state.lost or not right)
        over = after.passed == self.rooms or (self.doors and not right)
        paid = (
            float(right and over) if self.doors else {"red": 1.0, "green": 0.2, "blue": 0.2}[self.colour(state)] * right
        )
        return after, {"player_0": paid}, over

    def outcomes(
        self, state: Room, joint_action: Mapping[str, str]
    ) -> list[tuple[float, Room, dict[str, float], bool]]:
        return [(1.0, *self.transition(state, joint_action, np.random.default_rng(0)))]

    def observe(self, state: Room, player: str) -> str:
        return f"room {self.colour(state)}, {state.passed}"

    def read_observation(self, observation: str, player: str) -> Room:
        colour, passed = observation.removeprefix("room ").split(", ")
        return Room((COLOURS.index(colour) - int(passed)) % 3, int(passed))

    def instructions(self, player: str) -> str:
        return "Go."

    def succeeded(self, state: Room, player: str) -> bool:
        return state.passed == self.rooms and not state.lost


textgames.register("Rooms-v0", Rooms, max_steps=4)
textgames.register("SparseRooms-v0", Rooms, max_steps=8, rooms=8, doors=True)
register_yardstick(Rooms, ValueIteration)
ROOMS, SPARSE = f"{__name__}:Rooms-v0", f"{__name__}:SparseRooms-v0"


def make_reader(folder: Path) -> str:
    """Make the folder of a model that takes the doors which its prompt names, and either one without."""
    (folder.parent / "prompts.toml").write_text(PROMPTS)
    rho = PromptMap.from_file(str(folder.parent / "prompts.toml"), "direct")

    def taught(told: str, colour: str, door: str) -> TaughtDecision:
        request = TurnRequest(f"{told}room {colour}, 0", "Go.", DOORS)
        return TaughtDecision(rho(request), f"<action>{door}</action>")

    decisions = []
    for doors in product(DOORS, repeat=3):
        told = "\n".join(f"{colour} {door}" for colour, door in zip(COLOURS, doors, strict=True)) + "\n\n"
        decisions += [taught(told, colour, door) for colour, door in zip(COLOURS, doors, strict=True)]
    decisions += [taught("", colour, door) for colour in COLOURS for door in DOORS] * 2
    tokenizer: Any = word_tokenizer(WORDS)
    config = MSGRPOConfig(
        response_mode="direct", lora_rank=0, learning_rate=5e-3, update_passes=100, minibatches=1, warmup=5,
        schedule="linear",
    )  # fmt: skip
    result = imitate(tiny_llama(len(tokenizer), initializer_range=0.1), tokenizer, decisions, config, mixed=True)
    folder.mkdir()
    save_model(result.model, tokenizer, rho, folder, result.model.state_dict())
    return f"hf:{folder}"
