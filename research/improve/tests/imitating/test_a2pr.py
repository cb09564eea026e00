"""A2PR: actions of an advantage in the place of others, by hand and as an improvement."""

from pathlib import Path

import numpy as np
import pytest

from agents.turn import TurnRequest
from benchmark.show.training_data import RecordedDecision
from research.improve.methods.imitating.a2pr import regularised
from research.improve.methods.imitating.offline import RecordedEpisode
from research.improve.tests.imitating.test_offline import WORDY, improved


def episode(seed: int, moves: str, rewards: list[float]) -> RecordedEpisode:
    """Decisions as state and action, "sr tl": what was read, and what was answered with which reward."""
    decisions = [
        RecordedDecision(
            {"scenario": "g", "player": "p", "action": action},
            TurnRequest(state),
            None,
            f"{action}{seed}",
            0.0,
            None,
            r,
        )
        for (state, action), r in zip(moves.split(), rewards, strict=True)
    ]  # type: ignore[arg-type]
    return RecordedEpisode("g", seed, sum(rewards), decisions)


def answers(*episodes: RecordedEpisode, discount: float = 0.5) -> list[list[str]]:
    found = regularised(episodes, discount, np.random.default_rng(0))
    return [[each.response for each in one.decisions] for one in found]


def test_a_decision_is_imitated_with_the_better_action_of_its_state_if_that_has_an_advantage():
    """In t, r pays 1 and l nothing, so that V(t) = 1 by the guided model; in s, d pays 0.6 and r leads to t, 0.5.

    By beta, which plays l in t half of the time, d would be ahead in s by 0.35 in place of 0.1. In u there is but one
    action, in w two that are alike.
    """
    played = [
        episode(0, "sr tr", [0.0, 1.0]), episode(1, "sr tl", [0.0, 0.0]), episode(2, "sd ua wx", [0.6, 0.0, 0.0]),
        episode(3, "wy", [0.0]),
    ]  # fmt: skip
    assert answers(*played) == [["d2", "r0"], ["d2", "r0"], ["d2"]]
    # less discounted, r is worth 0.9 in s; of both responses that say it, either is taken
    (first, second, third) = answers(*played, discount=0.9)
    assert first == ["r0", "r0"]
    assert second == ["r1", "r0"]
    assert third in (["r0"], ["r1"])


def test_a_recorded_action_of_an_advantage_stays_if_a_worse_one_is_drawn():
    """a, b and c pay 3, 2 and 0: a and b are above the mean, so a decision with a stays, and b may become a."""
    played = [
        episode(seed, f"s{action}", [paid]) for seed, (action, paid) in enumerate(zip("abc", (3, 2, 0), strict=True))
    ]
    drawn = [regularised(played, 0.5, np.random.default_rng(seed)) for seed in range(20)]
    said = [{each[at].decisions[0].action for each in drawn} for at in range(3)]
    assert said == [{"a"}, {"a", "b"}, {"a", "b"}]


def test_play_in_which_nothing_is_better_than_the_rest_teaches_nothing(textbench, workplace):
    assert answers(episode(0, "sr tr", [0.0, 1.0]), episode(1, "sr tr", [0.0, 0.0])) == []
    pytest.importorskip("torch")
    Path("wordy.py").write_text(WORDY.replace("begin +", "thought +"))
    run = ("run", "--agent", "wordy.py:Wordy", "--scenario", "frozen-lake", "--episodes", 4, "--quiet", "--json")
    assert textbench(*run, "--seed-offset", 1000, "--out", "play").code == 0
    a2pr = ("--set", "method=a2pr", "--set", "learn_from=play")
    done = textbench("improve", "offline", "--agent", "tiny", "--scenario", "frozen-lake", "--eval-episodes", 2,
                     "--out", "o", *a2pr)  # fmt: skip
    assert "no action does better there than the others of its state" in done.err + done.out
    assert not Path("o/model").exists()
    refused = textbench("improve", "offline", "--agent", "tiny", "--scenario", "frozen-lake", *a2pr,
                        "--set", "discount=1.0")  # fmt: skip
    assert refused.code == 2
    assert "discount between 0 and 1" in refused.err


@pytest.mark.slow
def test_a_model_plays_better_by_what_had_an_advantage_in_its_play(textbench):
    pytest.importorskip("torch")
    before, after = improved(
        textbench, "offline", "--set", "method=a2pr", "--set", "episodes=20", "--set", "attempts=16"
    )
    assert after > before + 0.15
