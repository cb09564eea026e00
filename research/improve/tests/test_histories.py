"""Histories in the prompt: who heeds them gains, who doesn't stays as he was. All answers are written by hand."""

import json
import tomllib
from pathlib import Path

import pytest

from agents.prompt_texts import PromptTexts
from research.improve.methods.offline import HEAD, RecordedEpisode, improving

PLAY = ("--scenario", "frozen-lake", "--mode", "direct", "--seed-offset", 1000, "--quiet", "--json")


def test_episodes_are_taken_from_the_worst_to_the_best():
    found = [RecordedEpisode("lake", seed, result, []) for seed, result in enumerate([3.0, 0.0, 2.0, 1.0, 4.0])]
    assert [one.result for one in improving(found, 3)] == [0, 2, 4]
    assert [one.result for one in improving(found, 1)] == [4]
    assert [one.result for one in improving(found, 9)] == [0, 1, 2, 3, 4]  # there are no more, and none comes twice


@pytest.fixture
def improve(server, textbench):
    for player, episodes in (("planner", 4), ("random", 8)):
        assert textbench("run", "--agent", player, *PLAY, "--episodes", episodes, "--out", player).code == 0

    def run(model, *more):
        done = textbench(
            *("improve", "offline", "--agent", f"openai:{model}", "--mode", "direct", "--temperature", 0),
            *("--set", "method=context", "--set", "learn_from=planner,random", *more),
            *("--scenario", "frozen-lake", "--eval-episodes", 6, "--out", "made"),
        )
        assert done.code == 0, done.err
        return json.loads(Path("made/improvement.json").read_text())

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("top", "returns"), [pytest.param(1, ["0", "1"], id="all"), pytest.param(0.25, ["1", "1"], id="filtered")]
)
def test_who_heeds_histories_gains_by_them(improve, top, returns):
    told = improve("studying", "--set", "told=2", "--set", f"top={top}")
    (before,), (after,) = told["before"], told["after"]
    assert (before["success_rate"]["value"], after["success_rate"]["value"]) == (0, 1)
    agent = tomllib.loads(Path("made/agent.toml").read_text())
    opening = PromptTexts.from_file(Path("made", agent["prompts"])).opening
    assert opening.index("$instructions") < opening.index(HEAD)
    assert [line.removeprefix("Return: ") for line in opening.splitlines() if line.startswith("Return")] == returns


@pytest.mark.slow
def test_who_does_not_heed_them_stays_as_he_was(improve):
    told = improve("heeding", "--set", "told=2")
    assert told["after"][0]["success_rate"]["value"] == 0
    assert "prompts" not in tomllib.loads(Path("made/agent.toml").read_text())
