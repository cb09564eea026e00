"""The same seeds otherwise: several protocols side by side, twins on the game's scale, and other samples."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.protocol import SIDE_BY_SIDE
from benchmark import evaluate, read_results
from benchmark.entries.validation import manifest_problems
from benchmark.errors import UsageError
from benchmark.play.agents.choice import choose_scenarios, with_twins
from benchmark.play.options import RunOptions
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import read_manifest
from benchmark.runs.plan import Plan
from tests.benchmark.helpers import PLAYERS, refused

COMMAND = ("run", "--agent", f"hesitant={PLAYERS}:Hesitant", "--agent", "random", "--quiet", "--out", "beside")


def returns(folder: str, agent: str = "hesitant", scenarios: tuple[str, ...] = ("snake",)) -> dict[Any, float]:
    records = [one for one in RunFolder.open(Path("beside", folder)).records() if one.scenario in scenarios]
    return {(one.scenario, one.seed): one.returns["player_0"] for one in records if one.agents["player_0"] == agent}


@pytest.mark.slow
def test_every_agent_stands_beside_itself(textbench):
    games = ("--scenario", "snake", "--scenario", "tic-tac-toe", "--episodes", 6)
    done = textbench(*COMMAND, *games, "--protocols", "forfeit, random,retry:2,unlisted", "--json")
    assert done.code == 0, done.err
    rules = {name: read_manifest(Path("beside") / name)["settings"] for name in SIDE_BY_SIDE}
    assert {name: (one["protocol"], one["moves"]) for name, one in rules.items()} == {
        **{name: (name, "listed") for name in ("random", "retry", "forfeit")},
        "unlisted": ("random", "unlisted"),
    }
    document = json.loads(done.out)
    assert document["complete"] is True
    first, *rows = [row for row in document["protocols"] if row["agent"] == "hesitant"]
    assert (first["scenario"], first["protocol"], first["difference"]) == ("snake", "random", None)
    plain = returns("random")
    for row in rows:
        other = returns("unlisted" if row["moves"] == "unlisted" else row["protocol"])
        assert (row["scenario"], row["pairs"]) == ("snake", 6)  # where agents meet, the others change as well
        assert row["difference"]["value"] == pytest.approx(sum(other[seed] - plain[seed] for seed in plain) / 6)
        assert row["mean"]["value"] == pytest.approx(sum(other.values()) / 6)
        if row["moves"] == "unlisted":
            assert row["difference"]["value"] == 0.0  # it doesn't read the list
        else:  # there its returns differ from seed to seed
            assert row["difference"]["low"] < row["difference"]["value"] < row["difference"]["high"]
    assert [row["agent"] for row in document["overall"]][:2] == ["random", "hesitant"]  # the plain run's own names
    assert "by protocol" in textbench("leaderboard", "beside", "--stats").out


def test_the_same_command_goes_on_and_plays_more(textbench):
    protocols = ("--scenario", "snake", "--protocols", "random,forfeit")
    assert textbench(*COMMAND, *protocols, "--episodes", 2).code == 0
    before = (Path("beside") / "forfeit" / "episodes.jsonl").read_bytes()
    assert textbench(*COMMAND, *protocols, "--episodes", 3).code == 0
    after = (Path("beside") / "forfeit" / "episodes.jsonl").read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == 6 > before.count(b"\n")
    refused(textbench("resume", "beside"), "there are runs in it, name one: beside/forfeit, beside/random")
    assert "there is no beside/forfit (did you mean 'forfeit'?)" in textbench("resume", "beside/forfit").err


def test_other_agents_under_one_name_are_not_compared(workplace):
    for name, options in {"a": {}, "b": {"protocol": "forfeit"}, "c": {"protocol": "forfeit"}}.items():
        agent = {"same": "random"} if name != "b" else {"same": "greedy"}
        evaluate(agent, scenarios="snake", episodes=2, out=name, quiet=True, **options)
    assert "protocols" not in read_results("a", "b", quiet=True).leaderboard().document
    assert len(read_results("a", "c", quiet=True).leaderboard().document["protocols"]) == 2


def test_one_budget_is_for_all_of_them_in_order(textbench):
    Path("prices.toml").write_text("[prices.always]\ninput = 1.0\noutput = 10.0\n")
    always = f"always={PLAYERS}:Always"
    command = ("run", "--agent", always, "--scenario", "rock-paper-scissors-tft", "--protocols", "random,unlisted")
    command += ("--episodes", 3, "--max-concurrency", 1, "--prices", "prices.toml", "--out", "beside", "--quiet")

    def spent(out):
        records = (one for folder in Path(out).glob("*/") for one in RunFolder.open(folder).records())
        return 0.002 * sum(len(one.steps) for one in records)

    assert textbench(*command, "--episodes", 1, "--out", "one").code == 0
    each = spent("one") / 2  # all have as many steps
    for limit in (4.5 * each, 5.5 * each):
        told = textbench(*command, "--max-cost", limit).err
        assert f"{limit - 0.5 * each:.4f} USD spent of --max-cost {limit:g}; resume with a larger --max-cost" in told
        assert told.endswith("  the same command with --out beside and a larger --max-cost\n")
        assert textbench("resume", "beside/unlisted", "--quiet").code == 1  # alone, it has what the other one left
        assert spent("beside") == pytest.approx(limit - 0.5 * each)
    assert textbench(*command, "--max-cost", 6 * each + 1e-9).code == 0


def test_the_overall_score_counts_a_game_once():
    called = {"scenarios": ["frozen-lake", "taxi"], "episodes": 6, "twins": 2, "quiet": True}
    document = evaluate(["planner", "random"], **called).document(max_episodes=0)
    assert document["overall_scenarios"] == ["frozen-lake", "taxi"]
    twins = {"frozen-lake": 0, "frozen-lake-twin-1": 1, "frozen-lake-twin-2": 2, "taxi": 0}
    assert {row["scenario"]: row["twin"] for row in document["scores"]} == twins
    lakes = [row for row in document["scores"] if row["scenario"].startswith("frozen-lake")]
    assert len({(row["blind"]["value"], row["reference"]["value"]) for row in lakes}) == 1  # one scale for all


def test_a_run_says_what_has_no_twins(textbench):
    ran = textbench(
        *("run", "--agent", "random", "--scenario", "nim", "--scenario", "taxi", "--episodes", 2, "--twin", 3),
        *("--out", "run", "--json"),
    )
    assert ran.code == 0
    assert "these have no twins and are not played: taxi" in ran.err
    document = json.loads(ran.out)
    assert [(row["scenario"], row["twin"]) for row in document["scores"]] == [("nim-twin-3", 3)]
    assert textbench("resume", "run").code == 0


def test_options_that_contradict_each_other_are_refused():
    def choose(**options: Any) -> list[str]:
        told = RunOptions(given=frozenset(options), **options)
        return list(with_twins(choose_scenarios(told), told, print).scenarios)

    assert choose(scenarios=("nim",), twins=2) == ["nim", "nim-twin-1", "nim-twin-2"]
    assert choose(scenarios=("nim",), twin=0) == ["nim"]
    with pytest.raises(UsageError, match="give one of them"):
        choose(scenarios=("nim",), twin=1, twins=2)
    with pytest.raises(UsageError, match="no twins of taxi"):
        choose(scenarios=("taxi",), twin=1)


def test_other_samples_are_of_the_same_starts_and_chances_and_no_entry_and_no_part_of_the_run(textbench, workplace):
    games = ("frozen-lake-slippery", "cliff-walking")
    for name, more in (("first", {}), ("again", {}), ("other", {"resample": 1})):
        agents = {"random": "random", "planner": "planner"}
        evaluate(agents, scenarios=games, episodes=10, out=workplace / "beside" / name, quiet=True, **more)
    first, again, other = (returns(name, "random", games) for name in ("first", "again", "other"))
    assert first == again != other
    # the planner draws nothing, and meets the same chances
    assert returns("first", "planner", games) == returns("other", "planner", games)
    assert "resample" not in read_manifest(Path("beside/first"))["settings"]
    manifest = read_manifest(Path("beside/other"))
    assert manifest["settings"]["resample"] == 1
    merged = textbench("merge", "beside/first", "beside/other", "--out", "merged")
    assert (merged.code, "was played with resample 1, " in " ".join(merged.err.split())) == (2, True)
    card = manifest["agents"][0]
    own = [row for row in manifest["matchups"] if row["agents"] == [card["name"]]]
    manifest = {**manifest, "agents": [card], "agent": card["name"], "matchups": own}
    problems = list(manifest_problems(manifest, Plan.from_manifest(manifest)))
    assert "manifest.json: settings.resample is 1, an entry has the samples of its seeds" in problems
    assert textbench("run", "--agent", "random", "--scenario", "nim", "--resample", 0).code == 2
