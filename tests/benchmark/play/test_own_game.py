"""A game of the user's own, from one class and one registration line, and what settings make of any game."""

import json
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import benchmark
from agents.baselines import search
from benchmark.runs.plan import find_scenarios
from benchmark.score.references import References
from tests.benchmark.helpers import refused
from textgames import SCENARIOS, known_scenario

GAME = '''
from textgames import TSMG, register


class Nim(TSMG):
    """Take one to three stones; so does the opponent, at random. The last stone wins."""

    actions = ("one", "two", "three")

    def initial_state(self, rng):
        return int(rng.integers(3, 10))

    def legal_actions(self, state, player):
        return self.actions[:state] if state else self.actions

    def transition(self, state, joint_action, rng):
        state -= 1 + self.actions.index(joint_action["player_0"])
        if state == 0:
            return 0, {"player_0": 1.0}, True
        state -= int(rng.integers(1, min(3, state) + 1))
        return state, {"player_0": -1.0 if state == 0 else 0.0}, state == 0

    def observe(self, state, player):
        return f"Stones: {state}"

    def instructions(self, player):
        return "Take one, two or three stones. Whoever takes the last one wins."


register("Nim-v0", "nim_game:Nim", max_steps=6)
'''

SEARCH = """
from functools import cache

from agents.baselines.search import SearchPlayer, register_search_player


@cache
def value(stones, steps, uniform):
    values = [take(stones, taken, steps, uniform) for taken in range(1, min(3, stones) + 1)] if steps else [0.0]
    return sum(values) / len(values) if uniform else max(values)


def take(stones, taken, steps, uniform=False):
    left = stones - taken
    if left == 0:
        return 1.0
    replies = range(1, min(3, left) + 1)
    return sum(-1.0 if left == reply else value(left - reply, steps - 1, uniform) for reply in replies) / len(replies)


class NimSearch(SearchPlayer):
    kind = "optimal"
    method = "backward induction"

    def __init__(self, game):
        self.game = game

    def values(self, request):
        stones = int(request.observation.split()[-1])
        return {name: take(stones, 1 + i, request.steps_left) for i, name in enumerate(request.legal_actions)}

    def uniform_value(self, request):
        return value(int(request.observation.split()[-1]), request.steps_left, True)


register_search_player("nim_game:Nim", "nim_game:NimSearch")
"""


@pytest.fixture
def game(workplace, short_search):
    Path("nim_game.py").write_text(GAME)
    yield "nim_game:Nim-v0"
    sys.modules.pop("nim_game", None)
    search._FACTORIES.entries.pop("nim_game:Nim", None)


@pytest.fixture
def nim(game):
    """The same game with a player that searches it."""
    Path("nim_game.py").write_text(GAME + SEARCH)
    return game


def test_an_own_game_is_played_resumed_and_shown_by_the_commands_that_the_run_ends_with(textbench, game):
    done = textbench("run", "--agent", "random", "--scenario", game, "--episodes", 6, "--out", "r")
    assert done.code == 0, done.err
    lines = Path("r/episodes.jsonl").read_bytes().splitlines(keepends=True)
    Path("r/episodes.jsonl").write_bytes(b"".join(lines[:2]))
    told = [line.partition(": textbench ")[2].split() for line in done.err.splitlines() if ": textbench " in line]
    assert told == [["replay", "r", "--import", "nim_game"], ["leaderboard", "r", "--stats", "--import", "nim_game"]]
    for command in (("resume", "r", "--quiet"), *told):
        sys.modules.pop("nim_game", None)  # as in a process of its own: the run has named it, so the resume needn't
        assert textbench(*command).code == 0
    (row,) = json.loads(textbench("leaderboard", "r", "--json").out)["scores"]
    assert (row["scenario"], row["episodes"]) == (game, 6)
    assert "Stones: " in textbench("replay", "r", "--plain").out
    assert textbench("leaderboard", "r", "--html", "page.html").code == 0
    shipped = textbench("run", "--agent", "random", "--scenario", "taxi", "--episodes", 2, "--out", "s")
    assert "--import" not in shipped.err


def test_mistakes_about_own_games(textbench, game):
    forfeits = "invalid_action='forfeit'"
    for scenario, more, said in (
        ("nm_game:Nim-v0", (), "can't be imported: No module named 'nm_game'"),
        ("nim_game:Nimm-v0", (), "did you mean 'Nim-v0'?"),
        (game, ("--protocol", "forfeit"), f"{game} can't be played with --protocol forfeit: {forfeits}"),
        (game, ("--protocols", "random,retry"), f"{game} can't be played with --protocol retry: {forfeits}"),
    ):
        refused(textbench("run", "--scenario", scenario, "--agent", "random", "--out", "r", *more), said)
    assert not Path("r").exists()


def test_one_registration_gives_players_exact_references_and_inspection(textbench, nim):
    agents = [word for name in ("random", "greedy", "planner") for word in ("--agent", name)]
    done = textbench("run", *agents, "--scenario", nim, "--episodes", 60, "--out", "r", "--json")
    assert done.code == 0, done.err
    assert "playing" not in done.err  # nothing is played for the reference
    rows = {row["agent"]: row for row in json.loads(done.out)["scores"]}
    reference = rows["planner"]["reference"]
    assert (reference["kind"], reference["source"]) == ("optimal", "backward induction")
    assert rows["random"]["mean_return"]["value"] < rows["greedy"]["mean_return"]["value"]
    # 60 games: the players agree with the exact values of the same first states
    assert rows["planner"]["mean_return"]["value"] == pytest.approx(reference["value"], abs=0.25)
    assert rows["random"]["mean_return"]["value"] < rows["planner"]["blind"]["value"] + 0.4 < reference["value"] + 0.4

    done = textbench("inspect", "planner", "--scenario", nim, "--samples", 1, "--json")
    assert done.code == 0, done.err
    inspection = json.loads(done.out)
    assert inspection["values"] == "exact"
    assert all(step["regret"] == 0 and step["action"] in step["best_actions"] for step in inspection["steps"])
    shown = textbench("inspect", "random", "--scenario", nim, "--seed", 100_002).out
    assert "not legal" in shown  # fewer stones, fewer actions


def test_the_scale_is_the_value_of_the_first_state(workplace, nim):
    """Three stones are taken at once; with four, every move leaves a reply that takes the rest with some chance."""
    scenario = find_scenarios([nim])[nim]
    stones = {}
    env = scenario.parallel_env()
    for seed in range(200):
        observations, _ = env.reset(seed=seed)
        stones.setdefault(int(observations["player_0"].split()[-1]), seed)
    seeds = [stones[3], stones[4]]
    scale = References().scale(scenario, seeds)
    # four stones: one leaves 3 (lost in 1 of 3, else I win), two leave 2 (1 of 2), three leave 1 (lost)
    assert scale.reference.values.tolist() == pytest.approx([1.0, 1 / 3])
    # blind play has to be played, as the game doesn't tell its chances: one mean for every start
    assert (scale.blind.exact, len(set(scale.blind.values))) == (False, 1)
    assert scale.blind.error > 0
    assert -1 < scale.blind.values[0] < 1 / 3


def test_a_game_without_a_search_player_is_said_before_the_first_episode(textbench, game):
    for agent, scenarios in (("greedy", (game,)), ("planner", ("frozen-lake", game))):
        flags = [word for name in scenarios for word in ("--scenario", name)]
        done = textbench("run", "--agent", "random", "--agent", f"me={agent}", *flags, "--episodes", 2, "--out", "r")
        refused(done, f"agent 'me' on {game}: greedy and planner can't play Nim: they (and inspect) need")
        assert not Path("r").exists()
    done = textbench("inspect", "random", "--scenario", game)
    refused(done, "(and inspect) need a player that reads Nim's observations")
    document = json.loads(textbench("run", "--scenario", game, "--dry-run", "--json").out)
    players = [matchup["agents"] for matchup in document["matchups"]]
    assert ["random"] in players, "without a named agent, all play that can"
    assert not [agents for agents in players if {"greedy", "planner"} & {*agents}]


def test_a_search_player_may_refuse_settings(textbench, game):
    class Refuses(search.SearchPlayer):
        def __init__(self, game):
            raise ValueError("only with two sides")

        def values(self, request):
            return {}

    search.register_search_player("nim_game:Nim", Refuses)
    try:
        done = textbench("run", "--agent", "planner", "--scenario", game, "--out", "r")
        assert (done.code, done.err) == (2, f"textbench: agent 'planner' on {game}: only with two sides\n")
        done = textbench("run", "--agent", "random", "--scenario", game, "--episodes", 2, "--json")
        assert done.code == 0, done.err
        assert json.loads(done.out)["scores"][0]["reference"]["value"] is None
    finally:
        search._FACTORIES.entries.pop("nim_game:Nim")


NAME = "frozen-lake(size=6)"
OWN = """
from textgames import register
from textgames.frozen_lake import FrozenLake

class Labelled(FrozenLake):
    def __init__(self, size=4, label="a"):
        super().__init__(size=size)

register("OwnLake-v0", Labelled, max_steps=8)
"""


def test_a_run_with_settings_is_another_scenario_and_resumes(textbench):
    lake = ("run", "--agent", "planner", "--scenario", "frozen-lake", "--setting", "size=6")
    assert textbench(*lake, "--episodes", 2, "--out", "runs/a").code == 0
    manifest = json.loads(Path("runs/a/manifest.json").read_text())
    told, made = manifest["scenarios"][NAME], gym.make("TextFrozenLake-v0", size=6).unwrapped
    assert (told["kwargs"]["size"], told["horizon"]) == (6, made.rules.max_steps)
    assert manifest["settings"]["scenarios"] == [NAME]
    assert textbench("resume", "runs/a", "--episodes", 3).code == 0
    by_name = textbench("run", "--agent", "planner", "--scenario", NAME, "--episodes", 3, "--out", "runs/a")
    assert by_name.code == 0, by_name.err  # the same run, by the scenario's name
    # and no part of the standard score
    results = benchmark.evaluate(["planner", "random"], scenarios=["frozen-lake", NAME], episodes=2, quiet=True)
    assert results.leaderboard().document["overall_scenarios"] == ["frozen-lake"]
    assert {row["scenario"] for row in results.leaderboard().scores} == {"frozen-lake", NAME}


def test_settings_of_the_standard_are_the_standard():
    lake = SCENARIOS["frozen-lake"]
    assert lake.with_settings(size=4, axes=False, max_steps=8) is lake
    assert lake.with_settings(size=6, twin=2).name == f"{NAME}-twin-2"
    assert lake.with_settings(level=3) == lake.level(3)
    turned = lake.with_settings(is_slippery=True, size=6)
    assert turned == known_scenario(turned.name) == find_scenarios([turned.name])[turned.name]
    assert lake.with_settings(is_slippery=1, size=6).name == turned.name
    assert turned.standard_name == "frozen-lake"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("frozen-lake --setting sise=6", "no setting 'sise'; it has size, frozen_probability"),
        ("frozen-lake --setting size=1", "size must be a whole number from 2 to 100, got 1"),
        ("frozen-lake --setting size", "--setting takes NAME=VALUE, got 'size'"),
        ("frozen-lake --setting twin=1.0", "twin must be a whole number of at least 0, got 1.0"),
        ("frozen-lake --setting max_steps=1000000", "episodes have at most 100,000 rounds"),
        # names that are not as they are written
        ("frozen-lake(size=4)", "is frozen-lake"),
        ("frozen-lake(axes=false,size=6)", f"is {NAME}"),
        ("frozen-lake(size)", "the settings in a name are (NAME=VALUE,...), such as (size=6), got (size)"),
    ],
)
def test_a_wrong_setting_is_said_before_the_first_episode(textbench, words, told):
    scenario, *setting = words.split()
    for command in (("run", "--dry-run", "--scenario"), ("play",)):
        refused(textbench(*command, scenario, *setting), told)
    assert setting or known_scenario(scenario) is None


def test_a_game_of_ones_own_is_named_with_its_settings(textbench, workplace):
    (workplace / "own.py").write_text(OWN, encoding="utf-8")
    name = "own:OwnLake-v0(size=5)"
    given = textbench("run", "--agent", "random", "--scenario", "own:OwnLake-v0", "--setting", "size=5",
                      "--episodes", 1, "--out", "runs/own")  # fmt: skip
    named = textbench("run", "--agent", "random", "--scenario", name, "--episodes", 2, "--out", "runs/own")
    assert (given.code, named.code) == (0, 0), given.err + named.err
    assert name in named.out
    assert "--import own\n" in named.err
    refused = textbench("run", "--scenario", "own:OwnLake-v0", "--setting", "label=null", "--dry-run")
    assert (refused.code, "the settings in a name are" in refused.err) == (2, True)
