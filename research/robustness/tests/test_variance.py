"""The four parts of the variance: recovered from drawn returns whose parts are known, and told of runs."""

import json
from typing import Any

import numpy as np
import pytest

import benchmark
from agents import LanguageAgentPolicy, PromptMap, PromptTexts
from agents.models.scripted import ScriptedModel
from agents.prompt_texts import wording_of
from agents.turn import Prompt
from benchmark.results import read_results
from research.robustness.tables.variance import Plays, parts

NAMES = tuple("abcdefg")
REPLICATIONS = 200
DEVIATIONS = {"starts": 1.0, "sampling": 0.7, "chance": 0.5}


def drawn(rng: np.random.Generator, deviation: float, again: float) -> tuple[Plays, dict[str, float]]:
    """120 seeds, of which a share is played again, with wordings of this deviation; and the true parts."""
    effects = dict(zip(NAMES, rng.normal(0, deviation, len(NAMES)), strict=True))
    wordings = np.array([wording_of(seed, NAMES) for seed in range(1000, 1120)])
    base = np.array([effects[name] for name in wordings]) + rng.normal(0, DEVIATIONS["starts"], 120)
    free = base[:, None] + rng.normal(0, DEVIATIONS["sampling"], (120, 2))
    free[int(120 * again) :, 1] = np.nan
    plain = free + rng.normal(0, DEVIATIONS["chance"], (120, 1))
    true = {name: one**2 for name, one in DEVIATIONS.items()}
    return Plays(free, plain, wordings), true | {"wording": float(np.var(list(effects.values()), ddof=1))}


@pytest.mark.slow
@pytest.mark.parametrize(("deviation", "again"), [(0.4, 0.5), (0.4, 1.0), (0.0, 1.0)])
def test_all_four_parts_are_recovered_and_covered(deviation, again):
    rng = np.random.default_rng(0)
    errors: dict[str, list[float]] = {name: [] for name in (*DEVIATIONS, "wording")}
    covered = dict.fromkeys(errors, 0)
    for _ in range(REPLICATIONS):
        plays, true = drawn(rng, deviation, again)
        found = parts(plays)
        assert found["starts"].value + found["sampling"].value == pytest.approx(found["rest"].value)
        for name, value in true.items():
            low, high = found[name].low, found[name].high
            assert low is not None
            assert high is not None
            covered[name] += low <= value <= high
            errors[name].append(found[name].value - value)
    for name, own in errors.items():
        assert np.mean(own) == pytest.approx(0, abs=3.5 * np.std(own) / np.sqrt(REPLICATIONS)), name
        assert covered[name] > 0.88 * REPLICATIONS, name


def test_what_one_play_of_every_start_cant_tell_isnt_told():
    plays, _ = drawn(np.random.default_rng(0), 0.4, 0.0)
    assert parts(plays).keys() == {"rest", "chance", "wording"}
    assert parts(plays._replace(plain=None, wordings=np.full(120, ""))).keys() == {"rest"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same seeds three times: as they are, as they are again, and with other samples."""
    folder = tmp_path_factory.mktemp("variance")
    played: dict[str, Any] = {"scenarios": ["frozen-lake-slippery", "cliff-walking"], "episodes": 60, "quiet": True}
    for name, more in (("first", {}), ("again", {}), ("other", {"resample": 1})):
        benchmark.evaluate({"random": "random", "planner": "planner"}, out=folder / name, **played, **more)
    return [folder / name for name in ("first", "again", "other")]


@pytest.mark.slow
def test_a_second_run_tells_starts_from_sampling(runs):
    rows = {
        (row["agent"], row["scenario"]): row
        for row in read_results(runs[0], runs[2]).document(max_episodes=0)["variance"]
    }
    assert {agent for agent, _ in rows} == {"random", "planner"}
    random, planner = (rows[agent, "frozen-lake-slippery"] for agent in ("random", "planner"))
    assert (random["seeds"], random["plays"]) == (60, 2)
    assert random["sampling"]["value"] > 0.005
    assert random["chance"]["value"] > random["sampling"]["value"]
    assert planner["sampling"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert planner["starts"]["value"] > 0.005
    cliff = rows["random", "cliff-walking"]  # one start, and no chance
    assert cliff["chance"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert abs(cliff["starts"]["value"]) < 0.4 * cliff["sampling"]["value"]
    assert not any(row["missing"] for row in rows.values())  # neither has prompts, whose wordings could be varied
    assert "variance" not in read_results(runs[0], runs[1]).document(max_episodes=0)  # equal samples say nothing


def guesser() -> LanguageAgentPolicy:
    def answer(prompt: Prompt, decoding: object, seed: tuple[int, ...]) -> str:
        return f"<action>{np.random.default_rng(seed).choice(['left', 'right', 'up', 'down'])}</action>"

    return LanguageAgentPolicy(ScriptedModel(answer), PromptMap("direct", texts=PromptTexts.from_file("all")))


def test_the_table_says_which_command_tells_more(textbench):
    played: dict[str, Any] = {"scenarios": "frozen-lake-slippery", "episodes": 14, "quiet": True}
    benchmark.evaluate({"guesser": guesser()}, out="r", **played)
    told = " ".join(textbench("leaderboard", "r", "--stats").out.split())
    assert "where the variance comes from" in told
    assert "give the command of r again with --resample 1 --out DIR, and show both: textbench leaderboard r DIR" in told
    assert "frozen-lake-slippery: chance is in starts and sampling" in told
    benchmark.evaluate({"guesser": guesser()}, out="DIR", resample=1, **played)
    told = " ".join(textbench("leaderboard", "r", "DIR", "--stats").out.split())
    assert "--resample" not in told
    (row,) = json.loads(textbench("leaderboard", "r", "DIR", "--json").out)["variance"]
    assert None not in (row["sampling"], row["starts"], row["wording"])
    assert row["chance"] is None
