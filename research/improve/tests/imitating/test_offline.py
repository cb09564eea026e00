"""Recorded play: which of it is imitated and how much, and what a model gains by it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agents.prompt import PromptMap
from agents.prompt_texts import PromptTexts
from benchmark.errors import UsageError
from research.improve.methods.imitating.critic import MOST_WEIGHT
from research.improve.methods.imitating.offline import RecordedEpisode, Shown, _saying, imitated, recorded
from textgames.scenarios import SCENARIOS

SEEDED = (*("run", "--agent", "random", "--scenario", "frozen-lake", "--mode", "direct", "--quiet", "--json"),)


def episodes(*returns: Sequence[float], decisions: int = 1) -> list[RecordedEpisode]:
    """A seed a list of returns."""
    return [
        RecordedEpisode("lake", seed, result, [None] * decisions)  # type: ignore[list-item]
        for seed, results in enumerate(returns)
        for result in results
    ]


def shown(found: list[RecordedEpisode], method: str, top: float = 0.25, beta: float = 1.0) -> list[Shown]:
    return imitated(found, method, top, beta)  # type: ignore[arg-type]


def test_filtered_imitates_the_best_share_of_each_scenario_and_never_the_lowest():
    found = episodes([0.0, 3.0, 1.0, 2.0])
    other = [one._replace(scenario="snake", result=10 * one.result) for one in found]
    assert [one.episode.result for one in shown([*found, *other], "filtered", 0.25)] == [3, 30]
    assert [one.episode.result for one in shown(found, "filtered", 0.5)] == [3, 2]
    assert [one.episode.result for one in shown(found, "filtered", 1.0)] == [3, 1, 2]
    # a tie goes together: four of ten succeeded, and a tenth was asked for
    assert len(shown(episodes([1.0] * 4 + [0.0] * 6), "filtered", 0.1)) == 4


@pytest.mark.parametrize("method", ["filtered", "weighted", "return"])
def test_equal_returns_tell_nothing(method):
    assert shown(episodes([1.0, 1.0], [1.0]), method) == []


def test_weighted_is_the_exponential_of_the_advantage_over_the_same_start():
    found = episodes([1.0, 0.0], [1.0, 1.0], [0.0, 0.0])
    spread = np.std([1, 0, 1, 1, 0, 0])
    # where the start decided the end, nothing was done well or badly
    expected = np.exp(np.array([0.5, -0.5, 0, 0, 0, 0]) / spread / 2.0)
    weights = [one.weight for one in shown(found, "weighted", beta=2.0)]
    assert weights == pytest.approx(expected / expected.mean())
    # seeds that were played once are compared with their scenario
    alone = [one.weight for one in shown(episodes([0.0], [1.0]), "weighted")]
    assert alone[1] / alone[0] == pytest.approx(np.exp(2.0))
    steep = [one.weight for one in shown(found, "weighted", beta=1e-3)]
    assert steep[0] / steep[2] == pytest.approx(MOST_WEIGHT)


def test_return_tells_how_an_episode_ended_in_the_place_of_the_best():
    found = shown(episodes([-1.0, 0.0, 4.0]), "return")
    assert [one.line for one in found] == [f"Your result: {number} of 10." for number in (0, 2, 10)]
    texts = replace(PromptTexts.default(), opening="$instructions\n\nYour result: 10 of 10.")
    assert (
        _saying(PromptMap("direct", 0, texts), found[1].line).texts.opening == "$instructions\n\nYour result: 2 of 10."
    )


def test_scored_episodes_are_never_learnt_from(textbench):
    first = SCENARIOS["frozen-lake"].first_seed
    assert textbench(*SEEDED, "--episodes", 3, "--out", "scored").code == 0
    with pytest.raises(UsageError, match=r"there is nothing to learn from for frozen-lake in scored: .*--seed-offset"):
        recorded([Path("scored")], ["frozen-lake"], "direct")
    assert textbench(*SEEDED, "--episodes", 3, "--seed-offset", 1000, "--out", "free").code == 0
    found = recorded([Path("scored"), Path("free")], ["frozen-lake"], "direct")
    assert [one.seed for one in found] == [first + 1000 + number for number in range(3)]
    assert all(one.decisions for one in found)
    apart = {first + 1001}  # on which players are compared
    kept = recorded([Path("free")], ["frozen-lake"], "direct", apart=apart)
    assert [one.seed for one in kept] == [first + 1000, first + 1002]
    with pytest.raises(UsageError, match="nothing to learn from for snake in free: what was played there is frozen-l"):
        recorded([Path("free")], ["snake"], "direct")
    wordless = ("--agent", "tests.benchmark.players_for_tests:Always", "--episodes", 3, "--seed-offset", 1000)
    assert textbench("run", *wordless, "--scenario", "frozen-lake", "--out", "wordless").code == 0
    with pytest.raises(UsageError, match="in wordless: no response there is valid in the mode think"):
        recorded([Path("wordless")], ["frozen-lake"], "think")


def improved(textbench, *more):
    """Success before and after, of 60 episodes each."""
    done = textbench(
        *("improve", *more, "--agent", "tiny", "--scenario", "frozen-lake", "--eval-episodes", 60, "--out", "o"),
        "--quiet",
    )
    assert done.code == 0, done.err
    about = json.loads(Path("o/improvement.json").read_text())
    return [about[when][0]["success_rate"]["value"] for when in ("before", "after")]


@pytest.mark.slow
def test_a_model_plays_better_by_the_best_of_its_own_play(textbench):
    pytest.importorskip("torch")
    before, after = improved(textbench, "offline", "--set", "episodes=120")
    assert after > before + 0.15


@pytest.mark.nightly
def test_a_model_does_not_play_better_by_all_of_its_own_play(textbench):
    pytest.importorskip("torch")
    # at temperature 1, since a model that imitates what it says at a lower one becomes surer, and plays better by that
    flat = ("--set", "method=weighted", "--set", "beta=1e6", "--set", "episodes=60", "--temperature", 1)
    before, after = improved(textbench, "offline", *flat)
    assert abs(after - before) < 0.15


@pytest.mark.nightly  # two minutes of a core
def test_a_model_plays_better_by_a_planner_and_not_by_a_random_player(textbench):
    pytest.importorskip("torch")
    direct = ("--mode", "direct", "--set", "rank=0", "--set", "explore=0.5")
    _, after = improved(textbench, "imitate", *direct, "--set", "examples=4000")
    assert after > 0.35
    Path("o").rename("planner")
    _, after = improved(textbench, "imitate", *direct, "--set", "examples=1000", "--set", "teacher=random")
    assert after < 0.25


WORDY = '''
from agents.turn import Turn


class Wordy:
    """Reasons in the form of the mode think at every other decision."""

    name = "wordy"

    def act(self, requests):
        thought = "<think>a path</think><plan>right</plan>"
        begun = [thought if request.steps_left % 2 else "Well. " for request in requests]
        return [Turn(begin + "<action>right</action>") for begin in begun]
'''


def test_answers_without_the_reasoning_of_their_mode_are_left_out(textbench, workplace):
    Path("wordy.py").write_text(WORDY)
    run = ("run", "--agent", "wordy.py:Wordy", "--scenario", "frozen-lake", "--episodes", 4, "--quiet", "--json")
    assert textbench(*run, "--seed-offset", 1000, "--out", "o").code == 0
    direct, think = (recorded([Path("o")], ["frozen-lake"], mode) for mode in ("direct", "think"))
    counts = [sum(len(one.decisions) for one in found) for found in (direct, think)]
    assert 0 < counts[1] < counts[0]
    assert all(decision.response.startswith("<think>") for one in think for decision in one.decisions)
