"""Histories in the prompt: who heeds them gains, who doesn't stays as he was. All answers are written by hand."""

import json
import tomllib
from pathlib import Path

import pytest

from agents.prompt_texts import PromptTexts
from benchmark.errors import UsageError
from research.improve.methods import learning
from research.improve.methods.imitating.histories import check_measures, measured, weights
from research.improve.methods.imitating.offline import HEAD, NONE_IMPROVES, RecordedEpisode, improving

PLAY = ("--scenario", "frozen-lake", "--mode", "direct", "--seed-offset", 1000, "--quiet", "--json")


def test_episodes_are_taken_from_the_worst_to_the_best():
    found = [RecordedEpisode("lake", seed, result, []) for seed, result in enumerate([3.0, 0.0, 2.0, 1.0, 4.0])]
    assert [one.result for one in improving(found, 3)] == [0, 2, 4]
    assert [one.result for one in improving(found, 1)] == [4]
    assert [one.result for one in improving(found, 9)] == [0, 1, 2, 3, 4]  # there are no more, and none comes twice


@pytest.mark.parametrize(
    ("curve", "improvement", "stability"),
    [
        ([0, 1, 2, 3], 0.5, 1),  # (2.5 - 0.5) / 4, and only rises
        ([0, 3, 1, 4], 0.25, 6 / 8),  # (2.5 - 1.5) / 4; it rises by 3 and 3, and falls by 2
        ([3, 2, 1, 0], 0, 0),
        ([2, 2], 0, 1),
        ([0, 0, 4, 0, 4, 4, 4, 4], 0.75, 1),  # as 0, 2, 4, 4
    ],
)
def test_measures_of_a_curve_by_hand(curve, improvement, stability):
    assert measured(curve, span=4) == pytest.approx({"improvement": improvement, "stability": stability})


def test_noisy_histories_are_dropped_and_those_left_are_weighed():
    curves = {1: [0.0, 1.0], 2: [1.0, 0.0], 3: [1.0, 1.0], 4: [0.0, 2.0]}
    found = [RecordedEpisode("lake", seed, curves[seed][at], [None] * 2) for at in (0, 1) for seed in curves]
    both = ["improvement", "stability"]
    assert weights(found, both, 1.0) == pytest.approx([2 / 3, 0, 0, 4 / 3] * 2)
    assert weights(found, both, 0.25) == pytest.approx([0, 0, 0, 1] * 2)
    assert weights(found, ["stability"], 1.0) == pytest.approx([1, 0, 1, 1] * 2)
    assert weights([one for one in found if one.seed == 2], both, 1.0) == [0, 0]
    with pytest.raises(UsageError, match="weigh has 'size'; histories are weighed by improvement and stability"):
        check_measures(["improvement", "size"])


@pytest.fixture
def improve(server, textbench):
    for player, episodes in (("planner", 8), ("random", 8)):
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


LEARNER = ("--set", "weigh=improvement,stability", "--set", "top=1", "--set")


@pytest.mark.slow
@pytest.mark.parametrize(("order", "success"), [("random,planner", 1), ("planner,random", 0)])
def test_of_a_learner_that_improves_he_learns_and_of_one_that_gets_worse_nothing(improve, order, success):
    told = improve("studying", *LEARNER, f"learn_from={order}")
    assert told["after"][0]["success_rate"]["value"] == success
    assert told["changed"] is bool(success)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "gains"), [("random,planner,planner", True), ("planner,planner,random", False)], ids=["better", "worse"]
)
def test_weights_are_trained_on_histories_that_improve_alone(textbench, monkeypatch, order, gains):
    monkeypatch.setattr(learning, "COMPARED", 20)
    for player in ("planner", "random"):
        assert textbench("run", "--agent", player, *PLAY, "--episodes", 60, "--out", player).code == 0
    done = textbench(
        *("improve", "offline", "--agent", "tiny", "--mode", "direct", "--scenario", "frozen-lake", "--out", "made"),
        *("--set", "method=weighted", "--set", "weigh=improvement", "--set", "top=1", "--eval-episodes", 0),
        *("--set", "learning_rate=0.003", "--set", f"learn_from={order}"),
    )
    assert done.code == 0, done.err
    assert (NONE_IMPROVES in done.err) is not gains
    assert json.loads(Path("made/improvement.json").read_text())["changed"] is gains
