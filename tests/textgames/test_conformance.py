"""The conformance suite over every id and scenario, and the golden transcripts."""

import os
import subprocess
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

import textgames
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


def _once_a_game() -> Iterator[Any]:
    """In a quick run the checks are made once for every game.

    Its further scenarios are other numbers for the same rules, and CI makes every check on them, too.
    """
    games = set[str]()
    for case, (env_id, _) in CASES.items():
        further = case in SCENARIOS and env_id in games
        games.add(env_id)
        yield pytest.param(case, marks=pytest.mark.slow if further else ())


@pytest.mark.parametrize("case", list(_once_a_game()))
def test_conforms(case):
    """Every check; the error names the first one that fails."""
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


@pytest.mark.parametrize(
    ("env_id", "settings"),
    [
        ("TextBandit-v0", {"rounds": 50}),
        ("TextMatrixGame-v0", {"rounds": 50}),
        ("TextConnectFour-v0", {"rows": 12, "columns": 12}),
    ],
)
def test_a_game_may_be_longer_than_the_checks_play_it(env_id, settings):
    run_check("rewards", env_id, **settings)


@pytest.mark.parametrize(
    "settings", [{"level": 10}, {"level": 10, "max_steps": 7}, {"max_steps": None}, {"desc": ["SFFFFFFG"]}, {"size": 8}]
)
def test_episodes_are_checked_at_a_level_too_which_has_a_horizon_of_its_own(settings):
    run_check("episodes", "TextFrozenLake-v0", **settings)


def test_every_registered_id_is_checked():
    # other tests register games of their own
    shipped = {id for id in textgames.registered_ids() if not id.startswith("Test")}
    ours = {id for id in shipped if str(textgames.settings_of(id)["game"]).startswith("textgames.")}
    openspiel = {id for id in ours if id.startswith("OpenSpiel")}  # these need an extra: see test_open_spiel.py
    assert ours - openspiel == {env_id for env_id, _ in CASES.values()}


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
    text = transcript(env_id, shown=6, **how)
    path = TRANSCRIPTS / f"{case.replace(' ', '-').replace(',', '')}.txt"
    if os.environ.get("TEXTBENCH_UPDATE_TRANSCRIPTS"):
        path.write_text(text)
    assert path.exists(), (
        f"no golden transcript for {case!r}: run with TEXTBENCH_UPDATE_TRANSCRIPTS=1 and review {path}"
    )
    # our own difference, since pytest's is cut to a few lines
    changed = "\n".join(unified_diff(path.read_text().split("\n"), text.split("\n"), "golden", "now", lineterm=""))
    assert not changed, (
        f"{changed}\nTo read all rounds, here and where the test still passed: "
        f"from textgames.conformance import transcript; print(transcript({env_id!r}, **{how}))"
    )


def test_no_transcript_without_its_case():
    assert {path.stem for path in TRANSCRIPTS.glob("*.txt")} == {
        case.replace(" ", "-").replace(",", "") for case in CASES
    }


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'TextSnake-v0'"):
        check("TextSnaek-v0")
    with pytest.raises(ValueError, match="did you mean 'states'"):
        run_check("state", "TextSnake-v0")


@pytest.mark.slow
def test_episodes_are_equal_in_another_process():
    code = (
        "from textgames.conformance import transcript; print(transcript('TextSnake-v0', seed=4, num_fires=2), end='')"
    )
    here = transcript("TextSnake-v0", seed=4, num_fires=2)
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": hash_seed}
        )
        assert done.stdout == here
