"""``--protocols``: the same agents on the same seeds by several protocols, and what that makes of their returns."""

import json
from pathlib import Path

import pytest

from agents.protocol import SIDE_BY_SIDE
from benchmark import evaluate, read_results
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import read_manifest
from tests.benchmark.stubborn_players import Hesitant

PLAYERS = Path(__file__).parents[1] / "stubborn_players.py"
COMMAND = ("run", "--agent", f"hesitant={PLAYERS}:Hesitant", "--agent", "random", "--quiet", "--out", "beside")
GAMES = ("--scenario", "snake", "--scenario", "tic-tac-toe", "--episodes", 6)


def returns(folder: str, agent: str) -> dict[int, float]:
    records = (one for one in RunFolder.open(Path("beside") / folder).records() if one.scenario == "snake")
    return {one.seed: one.returns["player_0"] for one in records if one.agents["player_0"] == agent}


@pytest.mark.slow
def test_every_agent_stands_beside_itself(textbench):
    done = textbench(*COMMAND, *GAMES, "--protocols", "forfeit, random,retry:2,unlisted", "--json")
    assert done.code == 0, done.err
    rules = {name: read_manifest(Path("beside") / name)["settings"] for name in SIDE_BY_SIDE}
    assert {name: (one["protocol"], one["moves"]) for name, one in rules.items()} == {
        **{name: (name, "listed") for name in ("random", "retry", "forfeit")},
        "unlisted": ("random", "unlisted"),
    }
    document = json.loads(done.out)
    assert document["complete"] is True
    rows = [row for row in document["protocols"] if row["agent"] == "hesitant"]
    assert {row["scenario"] for row in rows} == {"snake"}  # where agents meet, the others change as well
    assert rows[0]["protocol"] == "random"
    assert rows[0]["difference"] is None
    plain = returns("random", "hesitant")
    for row in rows[1:]:
        other = returns("unlisted" if row["moves"] == "unlisted" else row["protocol"], "hesitant")
        assert other.keys() == plain.keys()
        assert row["pairs"] == 6
        assert row["difference"]["value"] == pytest.approx(sum(other[seed] - plain[seed] for seed in plain) / 6)
        if row["moves"] == "listed":  # there its returns differ from seed to seed
            assert row["difference"]["low"] < row["difference"]["value"] < row["difference"]["high"]
        assert row["mean"]["value"] == pytest.approx(sum(other.values()) / 6)
    by_rules = {(row["protocol"], row["moves"]): row["difference"] for row in rows[1:]}
    assert by_rules["random", "unlisted"]["value"] == 0.0  # it doesn't read the list
    assert by_rules["forfeit", "listed"]["value"] < 0
    assert [row["agent"] for row in document["overall"]][:2] == ["random", "hesitant"]  # the plain run's own names
    shown = textbench("leaderboard", "beside", "--stats").out
    assert "by protocol" in shown
    assert "less the first" in shown


def test_the_same_command_goes_on_and_plays_more(textbench):
    protocols = ("--scenario", "snake", "--protocols", "random,forfeit")
    assert textbench(*COMMAND, *protocols, "--episodes", 2).code == 0
    before = (Path("beside") / "forfeit" / "episodes.jsonl").read_bytes()
    assert textbench(*COMMAND, *protocols, "--episodes", 3).code == 0
    after = (Path("beside") / "forfeit" / "episodes.jsonl").read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == 6 > before.count(b"\n")
    whole = textbench("resume", "beside")
    assert whole.code == 2
    assert "there are runs in it, name one: beside/forfeit, beside/random" in whole.err
    assert "there is no beside/forfit (did you mean 'forfeit'?)" in textbench("resume", "beside/forfit").err


def test_from_python_too():
    results = evaluate({"hesitant": Hesitant()}, scenarios="snake", episodes=3, protocols="random,retry", quiet=True)
    rows = results.leaderboard().document["protocols"]
    assert [(row["protocol"], row["against"]) for row in rows] == [("random", "random"), ("retry", "random")]
    assert len(results.folders) == 2


def test_other_agents_under_one_name_are_not_compared(workplace):
    for name, options in {"a": {}, "b": {"protocol": "forfeit"}, "c": {"protocol": "forfeit"}}.items():
        agent = {"same": "random"} if name != "b" else {"same": "greedy"}
        evaluate(agent, scenarios="snake", episodes=2, out=name, quiet=True, **options)
    assert "protocols" not in read_results("a", "b", quiet=True).leaderboard().document
    assert len(read_results("a", "c", quiet=True).leaderboard().document["protocols"]) == 2


def test_a_dry_run_counts_all_of_them(textbench):
    done = textbench("run", "--agent", "random", "--scenario", "snake", "--protocols", "all", "--dry-run", "--json")
    document = json.loads(done.out)
    counts = {row["scenario"]: row["requests_at_most"] for row in document["matchups"]}
    assert counts["snake (retry)"] == 3 * counts["snake"] == 3 * counts["snake (unlisted)"]
    assert document["episodes"] == 4 * 50


def test_one_budget_is_for_all_of_them_in_order(textbench):
    Path("prices.toml").write_text("[prices.always]\ninput = 1.0\noutput = 10.0\n")
    always = f"always={PLAYERS.parent / 'players_for_tests.py'}:Always"
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


@pytest.mark.slow
def test_one_time_is_for_all_of_them(textbench):
    command = ("--scenario", "snake", "--protocols", "random,forfeit", "--episodes", 500, "--run-timeout", 0.05)
    assert "(--run-timeout 0.05)" in textbench(*COMMAND, *command).err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--protocols", "random"), "several protocols stand side by side"),
        (("--protocols", "retry,retry:2"), "several protocols stand side by side"),
        (("--protocols", "random,unlistd"), "got 'unlistd' (did you mean 'unlisted'?)"),
        (("--protocols", "all", "--protocol", "retry"), "--protocol can't be given with --protocols"),
        (("--protocols", "all", "--moves", "unlisted"), "--moves can't be given with --protocols"),
    ],
)
def test_what_makes_no_sense_is_refused(textbench, options, sentence):
    done = textbench(*COMMAND, "--scenario", "snake", *options)
    assert (done.code, sentence in done.err, Path("beside").exists()) == (2, True, False)
