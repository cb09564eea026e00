"""The conformance suite over every id and scenario, and proof that it notices broken games."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import textgames
from textgames import SCENARIOS, TSMG
from textgames.conformance import CHECKS, ConformanceError, check, run_check, transcript

TRANSCRIPTS = Path(__file__).parent / "transcripts"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{id: (id, {}) for id in ("TextFrozenLake-v0", "TextSnake-v0")},
    **{name: (s.env_id, {**s.kwargs, "max_steps": s.horizon}) for name, s in SCENARIOS.items()},
    "snake of three players": ("TextSnake-v0", {"num_players": 3, "num_opponents": 1, "width": 7, "height": 4}),
    "lake with axes, no coordinates": ("TextFrozenLake-v0", {"size": 11, "coordinates": False, "axes": True}),
    "lake without a grid": ("TextFrozenLake-v0", {"grid": False, "is_slippery": True}),
    "lake of two starts": ("TextFrozenLake-v0", {"desc": ("SFS", "HFG"), "max_steps": 5}),
    "snake alone": ("TextSnake-v0", {"num_opponents": 0, "num_fires": 2, "num_bananas": 1, "width": 5, "height": 3}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", CHECKS)
def test_conforms(name: str, case: str) -> None:
    env_id, settings = CASES[case]
    run_check(name, env_id, **settings)


def test_every_registered_id_is_checked() -> None:
    # other tests register games of their own; ours are registered by the name of their module
    ours = {id for id in textgames.registered_ids() if str(textgames.settings_of(id)["game"]).startswith("textgames.")}
    assert ours == {env_id for env_id, _ in CASES.values()}


@pytest.mark.parametrize("case", CASES)
def test_transcript(case: str, request: pytest.FixtureRequest) -> None:
    """A change of any text, rule or random stream shows here, readable in review.

    To accept it: ``TEXTBENCH_UPDATE_TRANSCRIPTS=1 pytest tests/textgames/test_conformance.py``.
    """
    env_id, settings = CASES[case]
    responses = (
        "<think>...</think><action> RIGHT </action>",
        "no tag",
        "<action>up</action><action>down</action>",
        "left",
    )
    text = transcript(env_id, seed=8, responses=responses, **settings)
    path = TRANSCRIPTS / f"{case.replace(' ', '-').replace(',', '')}.txt"
    if os.environ.get("TEXTBENCH_UPDATE_TRANSCRIPTS"):
        path.write_text(text)
    assert path.exists(), (
        f"no golden transcript for {case!r}: run with TEXTBENCH_UPDATE_TRANSCRIPTS=1 and review {path}"
    )
    assert text == path.read_text()


def test_no_transcript_without_its_case() -> None:
    assert {path.stem for path in TRANSCRIPTS.glob("*.txt")} == {
        case.replace(" ", "-").replace(",", "") for case in CASES
    }


class Counter(TSMG[int]):
    """Count to three; the base of the broken games below."""

    actions = ("one", "two")

    def initial_state(self, rng: np.random.Generator) -> int:
        return 0

    def transition(
        self, state: int, joint_action: Mapping[str, str], rng: np.random.Generator
    ) -> tuple[int, dict[str, float], bool]:
        if joint_action.get("player_0") not in self.actions:
            raise ValueError(f"expected one or two, got {joint_action}")
        state += 1 + self.actions.index(joint_action["player_0"])
        return state, {"player_0": float(state == 3)}, state >= 3

    def observe(self, state: int, player: str) -> str:
        return f"The count is {state}."

    def instructions(self, player: str) -> str:
        return "Count to exactly three. Actions: one, two."


class MutableState(Counter):
    def initial_state(self, rng: np.random.Generator) -> Any:
        return np.zeros(1)


class HiddenRandomness(Counter):
    def transition(self, state: int, joint_action: Mapping[str, str], rng: np.random.Generator) -> Any:
        state, rewards, _ = super().transition(state, joint_action, rng)
        return state + int(np.random.default_rng().integers(1000)), rewards, True


class SilentAboutAnAction(Counter):
    def instructions(self, player: str) -> str:
        return "Count: one."


class Guesser(Counter):
    def interpret(self, text: str, state: int, player: str) -> str | None:
        return next((name for name in self.actions if name in text.casefold()), "one")


class AcceptsAnything(Counter):
    def transition(self, state: int, joint_action: Mapping[str, str], rng: np.random.Generator) -> Any:
        return state + 1, {"player_0": 0.0}, state > 2


class Unprintable(Counter):
    def observe(self, state: int, player: str) -> str:
        return f"The count is {state}☃"


class Remembering(Counter):
    def observe(self, state: int, player: str) -> str:
        self.reads = getattr(self, "reads", 0) + 1
        return f"The count is {state}, seen {self.reads} times."


class IntegerRewards(Counter):
    def transition(self, state: int, joint_action: Mapping[str, str], rng: np.random.Generator) -> Any:
        state, _, over = super().transition(state, joint_action, rng)
        return state, {"player_0": 1}, over


BROKEN = {
    MutableState: "states",
    HiddenRandomness: "equal generators",
    SilentAboutAnAction: "don't name the action 'two'",
    Guesser: "must be invalid",
    AcceptsAnything: "must raise ValueError",
    Unprintable: "outside of its space",
    Remembering: "observe",
    IntegerRewards: "float",
}


def test_a_sound_game_passes() -> None:
    textgames.register("TestCounter-v0", Counter, max_steps=8)
    check("TestCounter-v0")


@pytest.mark.parametrize("game", BROKEN, ids=lambda game: game.__name__)
def test_broken_games_are_noticed(game: type[TSMG[Any]]) -> None:
    env_id = f"Test{game.__name__}-v0"
    textgames.register(env_id, game, max_steps=8)
    with pytest.raises((ConformanceError, TypeError), match=BROKEN[game] if game is not MutableState else None):
        check(env_id)


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'TextSnake-v0'"):
        check("TextSnaek-v0")
    with pytest.raises(ValueError, match="did you mean 'states'"):
        run_check("state", "TextSnake-v0")


def test_episodes_are_equal_in_another_process() -> None:
    code = (
        "from textgames.conformance import transcript; print(transcript('TextSnake-v0', seed=4, num_fires=2), end='')"
    )
    here = transcript("TextSnake-v0", seed=4, num_fires=2)
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": hash_seed}
        )
        assert done.stdout == here
