"""A one-step game with a known optimum, for all tests of the trainer."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import textgames
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.credit import METHODS
from agents.prompt import PromptMap
from tests.tiny_models import tiny_llama, word_tokenizer
from textgames import TSMG
from textgames.solving.value_iteration import ValueIteration
from textgames.yardsticks import register_yardstick


@dataclass(frozen=True)
class Button:
    """Which of the three buttons pays, and whether it has been pressed."""

    light: str
    pressed: bool = False


class Buttons(TSMG[Button]):
    """A bandit with a context: one step, three buttons, the one that the light shows pays 1. The optimum is 1."""

    success_means = "pressed the right button"
    actions = ("red", "green", "blue")

    def initial_state(self, rng: np.random.Generator) -> Button:
        return Button(str(rng.choice(self.actions)))

    def transition(
        self, state: Button, joint_action: Mapping[str, str], rng: np.random.Generator
    ) -> tuple[Button, dict[str, float], bool]:
        paid = joint_action["player_0"] == state.light
        return Button(state.light, pressed=True), {"player_0": float(paid)}, True

    def observe(self, state: Button, player: str) -> str:
        return f"The light is {state.light}."

    def instructions(self, player: str) -> str:
        return "Press the button."

    def succeeded(self, state: Button, player: str) -> bool:
        return state.pressed


class Corridor(TSMG[int]):
    """Three cells in a row; walking right twice pays 1, and a bump into the left wall leaves the prompt unchanged.

    It tells its chances and reads its observations back, so that it can be planned.
    """

    actions = ("left", "right")
    return_range = (0.0, 1.0)
    success_means = "reached the last cell"

    def initial_state(self, rng: np.random.Generator) -> int:
        return int(rng.integers(2))

    def transition(
        self, state: int, joint_action: Mapping[str, str], rng: np.random.Generator
    ) -> tuple[int, dict[str, float], bool]:
        moved = max(0, state + (1 if joint_action["player_0"] == "right" else -1))
        return moved, {"player_0": float(moved == 2)}, moved == 2

    def outcomes(self, state: int, joint_action: Mapping[str, str]) -> list[tuple[float, int, dict[str, float], bool]]:
        return [(1.0, *self.transition(state, joint_action, np.random.default_rng(0)))]

    def read_observation(self, observation: str, player: str) -> int:
        return int(observation.removeprefix("cell "))

    def observe(self, state: int, player: str) -> str:
        return f"cell {state}"

    def instructions(self, player: str) -> str:
        return "Go right."

    def succeeded(self, state: int, player: str) -> bool:
        return state == 2


textgames.register("TestButtons-v0", Buttons, max_steps=1)
textgames.register("TestCorridor-v0", Corridor, max_steps=4)
register_yardstick(Corridor, ValueIteration)


PROMPTS = """
opening = "$instructions"
observation = "$observation"
clock = ""
[response]
direct = "Answer:"
think = "Think and answer:"
"""


@pytest.fixture(autouse=True)
def _registered_methods(monkeypatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr(METHODS, "_registered", dict(METHODS._registered))


@pytest.fixture
def prompt_file(tmp_path):
    """Prompts of a few words."""
    path = tmp_path / "prompts.toml"
    path.write_text(PROMPTS)
    assert PromptMap.from_file(path, "direct")
    return str(path)


@pytest.fixture
def tokenizer():
    """Knows the words of both test games."""
    return word_tokenizer(
        ("red", "green", "blue", "left", "right", "cell 0", "cell 1", "cell 2", "The light is ", "\n")
    )


@pytest.fixture
def make_llama():
    return tiny_llama


@pytest.fixture
def make_trainer(tokenizer, make_llama, prompt_file):
    def make(
        config: MSGRPOConfig, game: str = "TestCorridor-v0", *, seed: int = 0, resume: Any = None, **options: Any
    ) -> MSGRPOTrainer:
        model = make_llama(len(tokenizer), seed=seed, **options.pop("model", {}))
        config = replace(config, prompt_file=prompt_file)
        trainer = MSGRPOTrainer(model, tokenizer, game, config, quiet=True, **options)
        if resume is not None:
            trainer.resume(resume)
        return trainer

    return make


TINY = """
model = "tiny"
device = "cpu"
scenarios = ["frozen-lake"]
groups = 2
group_size = 4
temperature = 1.0
max_response_tokens = 40
minibatches = 2
learning_rate = 1e-4
eval_every = 0
samples_every = 0
threads = 1
"""


@pytest.fixture
def tiny_config(tmp_path):
    """Writes a file of such a training with further settings, into ``tmp_path/run``; returns its path."""

    def write(**settings: str) -> str:
        lines = dict(line.split(" = ", 1) for line in TINY.strip().splitlines())
        lines |= {"out": f'"{tmp_path / "run"}"'} | settings
        path = tmp_path / "tiny.toml"
        path.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
        return str(path)

    return write
