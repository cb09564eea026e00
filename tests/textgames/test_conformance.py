"""The conformance suite over every id and scenario, and the golden transcripts."""

import os
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

import textgames
from tests.once_a_game import once_a_game
from textgames import SCENARIOS
from textgames.conformance import check, run_check, transcript

TRANSCRIPTS = Path(__file__).parent / "transcripts"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (s.env_id, {**s.kwargs, "max_steps": s.horizon}) for name, s in SCENARIOS.items()},
    "snake of three players": ("TextSnake-v0", {"num_players": 3, "num_opponents": 1, "width": 7, "height": 4}),
    "lake with axes, no coordinates": ("TextFrozenLake-v0", {"size": 11, "coordinates": False, "axes": True}),
    "lake without a grid": ("TextFrozenLake-v0", {"grid": False, "is_slippery": True}),
    "lake of two starts": ("TextFrozenLake-v0", {"desc": ("SFS", "HFG"), "max_steps": 5}),
    "snake alone": ("TextSnake-v0", {"num_opponents": 0, "num_fires": 2, "num_bananas": 1, "width": 5, "height": 3}),
}


@pytest.mark.parametrize("case", [*once_a_game(list(SCENARIOS)), *(case for case in CASES if case not in SCENARIOS)])
def test_conforms(case):
    env_id, settings = CASES[case]
    check(env_id, **settings)


@pytest.mark.parametrize(
    ("env_id", "settings"),
    [
        ("TextBandit-v0", {"num_arms": 2, "gap": 0.3, "rounds": 9, "observation": "raw"}),
        ("TextBlackjack-v0", {"sab": True}),
        ("TextCliffWalking-v0", {"is_slippery": True}),
        ("TextContextualBandit-v0", {"num_arms": 2, "rounds": 2, "noise": 0.0}),
        ("TextFrozenLake-v0", {"is_slippery": True, "success_rate": 0.8}),
        ("TextGathering-v0", {"hits_until_out": 1, "out_rounds": 3}),
        *[("TextMatrixGame-v0", {"opponent": name}) for name in ("hedge", "uniform", "tit-for-tat")],
        ("TextTaxi-v0", {"is_rainy": True, "fickle_passenger": True}),
    ],
)
def test_chances_are_those_of_play_with_other_settings(env_id, settings):
    run_check("outcomes", env_id, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env_id", "settings"),
    [
        ("TextGathering-v0", {"hits_until_out": 1}),
        ("TextCleanup-v0", {"preset": "melting-pot"}),  # seven players
        ("TextWerewolf-v0", {"seers": 0, "speeches": False, "abstain": False, "reveal_roles": False}),
    ],
)
def test_other_settings_conform(env_id, settings):
    check(env_id, max_steps=20, **settings)


@pytest.mark.parametrize("settings", [{"level": 10, "max_steps": 7}, {"max_steps": None}, {"desc": ["SFFFFFFG"]}])
def test_episodes_are_checked_at_a_level_too_which_has_a_horizon_of_its_own(settings):
    run_check("episodes", "TextFrozenLake-v0", **settings)


def test_every_registered_id_is_checked_and_has_its_transcripts():
    # other tests register games of their own; OpenSpiel's need an extra: see test_open_spiel.py
    shipped = {id for id in textgames.registered_ids() if not id.startswith(("Test", "OpenSpiel"))}
    ours = {id for id in shipped if str(textgames.settings_of(id)["game"]).startswith("textgames.")}
    assert ours == {env_id for env_id, _ in CASES.values()}
    assert {*TRANSCRIPTS.glob("*.txt")} == {transcript_of(case) for case in CASES}


def transcript_of(case: str) -> Path:
    return TRANSCRIPTS / f"{case.replace(' ', '-').replace(',', '')}.txt"


@pytest.mark.parametrize("case", CASES)
def test_transcript(case):
    """A change of any text, rule or random stream shows here: of six rounds readable in review, later as a digest.

    To accept it: ``TEXTBENCH_UPDATE_TRANSCRIPTS=1 pytest tests/textgames/test_conformance.py``.
    """
    env_id, settings = CASES[case]
    responses = (
        "<think>...</think><action> RIGHT </action>",
        "no tag",
        "<action>up</action><action>down</action>",
        "left",
    )
    how = {"seed": 8, "responses": responses, **settings}
    text, path = transcript(env_id, shown=6, **how), transcript_of(case)
    if os.environ.get("TEXTBENCH_UPDATE_TRANSCRIPTS"):
        path.write_text(text)
    assert path.exists(), f"no transcript for {case!r}: run with TEXTBENCH_UPDATE_TRANSCRIPTS=1 and review {path}"
    # our own difference, since pytest's is cut to a few lines
    changed = "\n".join(unified_diff(path.read_text().split("\n"), text.split("\n"), "golden", "now", lineterm=""))
    assert not changed, (
        f"{changed}\nTo read all rounds, here and where the test still passed: "
        f"from textgames.conformance import transcript; print(transcript({env_id!r}, **{how}))"
    )


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_episodes_are_equal_in_another_process(hash_seed):
    code = "from textgames.conformance import transcript; print(transcript('TextSnake-v0', seed=4), end='')"
    command, environment = [sys.executable, "-c", code], {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == transcript("TextSnake-v0", seed=4)
