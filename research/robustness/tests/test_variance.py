"""The parts of the variance, that of wordings too: recovered from drawn returns, and told of runs."""

import json
from collections.abc import Sequence
from pathlib import Path
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
from research.robustness.tables.wordings import Split, flipped, split

NAMES, SIX = tuple("abcdefg"), tuple("abcdef")
REPLICATIONS, SPLITS = 200, 400
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


@pytest.mark.slow
def test_a_second_run_tells_starts_from_sampling(tmp_path):
    played: dict[str, Any] = {"scenarios": ["frozen-lake-slippery", "cliff-walking"], "episodes": 60, "quiet": True}
    for name, more in (("first", {}), ("again", {}), ("other", {"resample": 1})):
        benchmark.evaluate({"random": "random", "planner": "planner"}, out=tmp_path / name, **played, **more)
    told = read_results(tmp_path / "first", tmp_path / "other").document(max_episodes=0)["variance"]
    rows = {(row["agent"], row["scenario"]): row for row in told}
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
    again = read_results(tmp_path / "first", tmp_path / "again")  # equal samples say nothing
    assert "variance" not in again.document(max_episodes=0)


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


# ---- between and within wordings -------------------------------------------------------------------------------------


def worded(rng: np.random.Generator, deviation: float, episodes: int = 120) -> tuple[np.ndarray, list[str]]:
    """Returns of mean 0, with wordings of this deviation and episodes of deviation 1."""
    effects = dict(zip(SIX, rng.normal(0, deviation, len(SIX)), strict=True))
    wordings = [wording_of(seed, SIX) for seed in range(1000, 1000 + episodes)]
    return np.array([effects[name] for name in wordings]) + rng.normal(size=episodes), wordings


def splits(deviation: float, seed: int = 0) -> list[Split]:
    rng = np.random.default_rng(seed)
    found = [split(*worded(rng, deviation)) for _ in range(SPLITS)]
    return [one for one in found if one is not None]


def covered(estimates: Sequence[Any]) -> float:
    return float(np.mean([one.low <= 0 <= one.high for one in estimates]))


@pytest.mark.parametrize("deviation", [0.25, 1.0])
def test_the_interval_over_wordings_covers_and_the_parts_are_recovered(deviation):
    found = splits(deviation)
    error = 2.5 * np.sqrt(0.05 * 0.95 / SPLITS)  # of the share that is covered
    assert 0.95 - error < covered([one.over_wordings for one in found]) < 0.95 + error + 0.02
    assert covered([one.over_starts for one in found]) < 0.85  # it is for six wordings alone, not for others
    between = np.array([one.between for one in found])
    assert between.mean() == pytest.approx(deviation**2, abs=3 * between.std() / np.sqrt(SPLITS))
    assert np.mean([one.within for one in found]) == pytest.approx(1, abs=0.02)


def test_the_parts_of_a_table_that_is_worked_out_by_hand():
    found = split(np.array([0.0, 2.0, 4.0, 6.0]), ["a", "a", "b", "b"])
    assert found is not None
    assert found.means == {"a": 1.0, "b": 5.0}
    assert (found.mean, found.within) == (3.0, 2.0)
    assert found.between == 8.0 - 1.0  # the variance of the means, less what two episodes each add to it
    low, high = found.over_starts.low, found.over_starts.high
    assert low is not None
    assert high is not None
    assert (high - low) / 2 == pytest.approx(4.302653 * np.sqrt(2 / 4))  # Student's, 2 degrees of freedom
    wide = found.over_wordings
    assert wide.high is not None
    assert wide.high - 3 == pytest.approx(12.706205 * np.sqrt(7 / 2 + 2 / 4))  # 1 degree
    assert split(np.array([1.0, 2.0, 3.0]), ["a", "a", "b"]) is None
    assert split(np.ones(6), ["a", "b"] * 3) is None


def test_how_many_episodes_or_wordings_reach_a_half_width():
    six = dict.fromkeys(SIX, 0.0)
    plain = Split(six, 120, within=1.0, between=0.0, error=1 / 120)
    assert plain.episodes_for(0.1) == int(np.ceil((2.570582 / 0.1) ** 2))
    assert plain.wordings_for(0.1) == 2
    worded = Split(six, 120, within=1.0, between=0.04, error=1 / 120)
    floor = 2.570582 * 0.2 / np.sqrt(6)
    assert worded.episodes_for(0.99 * floor) is None  # however many: six wordings leave more
    assert worded.wordings_for(0.99 * floor) == 7
    assert worded.wordings_for(1.01 * floor) == 6
    episodes = worded.episodes_for(1.2 * floor)
    assert episodes is not None
    assert 2.570582 * np.sqrt(0.04 / 6 + 1 / episodes) == pytest.approx(1.2 * floor, rel=0.01)


def test_an_order_flips_where_both_sides_are_beyond_chance():
    rng = np.random.default_rng(1)
    wordings = list(SIX) * 20
    effect = {"a": 1.5, "b": -1.5}
    differences = np.array([effect.get(name, 0.0) for name in wordings]) + rng.normal(size=120)
    assert flipped(differences, wordings) == (["a"], ["b"])
    assert flipped(np.abs(differences), wordings)[1] == []
    nothing = [flipped(rng.normal(size=120), wordings) for _ in range(200)]
    assert sum(bool(better or worse) for better, worse in nothing) <= 200 * 0.05 + 8  # Holm: of all six together
    assert not any(better and worse for better, worse in nothing)


def faller(words: str) -> LanguageAgentPolicy:
    """A player that walks off the cliff where the prompt has these words, and else into a wall."""

    def answer(prompt: Prompt, *_: object) -> str:
        return f"<action>{'right' if words in prompt[-1].content else 'left'}</action>"

    return LanguageAgentPolicy(ScriptedModel(answer), PromptMap("direct", texts=PromptTexts.from_file("all")))


@pytest.mark.slow
def test_a_run_in_all_wordings_shows_what_they_do(textbench):
    players = {"german": faller("Schreibe"), "markdown": faller("## Your answer"), "random": "random"}
    results = benchmark.evaluate(players, scenarios=["cliff-walking"], episodes=60, out="run", quiet=True)
    first, second = results.document(max_episodes=0)["wordings"]  # the player without prompts isn't there
    assert (first["agent"], second["agent"], first["episodes"]) == ("german", "markdown", 60)
    assert first["flips"] == [{"agent": "markdown", "better_in": ["markdown"], "worse_in": ["german"]}]
    assert second["flips"] == []
    *others, german = sorted(first["means"].values(), reverse=True)
    assert german == first["means"]["german"] < min(others)
    assert first["over_starts"]["value"] == first["over_wordings"]["value"] == pytest.approx(np.mean([*others, german]))
    assert first["spread"] > 0
    (parts, _) = results.document(max_episodes=0)["variance"]
    assert parts["starts_and_sampling"] == {"value": 0, "low": 0, "high": 0}  # it starts at one place, nothing is drawn
    assert parts["wording"] is not None
    assert parts["wording"]["value"] == pytest.approx(first["spread"] ** 2)
    assert first["wording_worth"] is None
    assert first["episodes_for_it"] is None
    wordings = first["wordings_for_it"]
    assert wordings is not None
    assert wordings > 6
    assert textbench("export", "run", "--agent", "german", "--sft", "data.jsonl").code == 0
    texts = PromptTexts.from_file("all")
    lines = [json.loads(line) for line in Path("data.jsonl").read_text().splitlines()]
    assert len({line["seed"] for line in lines}) == 60
    for line in lines:  # made again, in the wording of then
        asked = texts.of_seed(line["seed"]).response["direct"].partition("$")[0]
        assert asked in line["prompt"][-1]["content"]
    told = textbench("leaderboard", "run", "--stats").out
    assert "over starts and wordings" in told
    assert f"{wordings} wordings" in told
    assert "german: by wording: better than markdown in markdown, and worse in german" in " ".join(told.split())
    assert json.loads(textbench("leaderboard", "run", "--json").out)["wordings"] == [first, second]
