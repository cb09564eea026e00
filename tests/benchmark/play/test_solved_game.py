"""A game of one's own with a search player: one registration, and every command knows what its actions are worth."""

import json
import sys
from pathlib import Path

import pytest

from agents import TurnRequest, load_agent
from agents.baselines import search
from benchmark.runs.plan import find_scenarios
from benchmark.score.references import References

NIM = '''
from functools import cache

from agents.baselines.search import SearchPlayer, register_search_player
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


register("Nim-v0", "nim_game:Nim", max_steps=6)
register_search_player("nim_game:Nim", "nim_game:NimSearch")
'''

PLAIN = '''
from textgames import TSMG, register


class Guess(TSMG):
    """Both name a side."""

    actions = ("heads", "tails")

    def __init__(self, num_players: int = 1) -> None:
        self.players = tuple(f"player_{i}" for i in range(num_players))

    def initial_state(self, rng):
        return 0

    def transition(self, state, joint_action, rng):
        return 1, dict.fromkeys(self.players, 0.0), True

    def observe(self, state, player):
        return "Heads or tails?"

    def instructions(self, player):
        return "Name a side."


register("Guess-v0", "guess_game:Guess", max_steps=1)
register("GuessTogether-v0", "guess_game:Guess", max_steps=1, num_players=2)
'''


@pytest.fixture
def nim(workplace, short_search):
    Path("nim_game.py").write_text(NIM)
    yield "nim_game:Nim-v0"
    sys.modules.pop("nim_game", None)
    search._FACTORIES.entries.pop("nim_game:Nim", None)


@pytest.fixture
def guess(workplace, short_search):
    Path("guess_game.py").write_text(PLAIN)
    yield "guess_game:Guess-v0"
    sys.modules.pop("guess_game", None)


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
    done = textbench("inspect", "random", "--scenario", nim, "--seed", 100_002)
    assert done.code == 0, done.err
    assert "not legal" in done.out  # fewer stones, fewer actions


def test_the_scale_is_the_value_of_the_first_state(workplace, nim):
    """Three stones are taken at once; with four, every move leaves a reply that takes the rest with some chance."""
    scenario = find_scenarios([nim])[nim]
    seeds, stones = [], {}
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


def test_greedy_looks_one_step_ahead(workplace, nim):
    scenario = find_scenarios([nim])[nim]
    game = scenario.game()

    def ask(agent: str, stones: int) -> str:
        request = TurnRequest(f"Stones: {stones}", legal_actions=game.actions[:stones], steps_left=6, game=game)
        return load_agent(agent).act([request])[0].response

    assert ask("greedy", 2).endswith("<action>two</action>")
    assert "Looking no further than this step, two gains +1.00" in ask("greedy", 2)
    assert "Playing ahead, one gains +0.33 on average" in ask("planner", 4)


@pytest.mark.parametrize("agent", ["greedy", "planner"])
def test_a_game_without_a_search_player_is_said_before_the_first_episode(textbench, guess, agent):
    for scenarios in ((guess,), ("frozen-lake", guess)):
        flags = [word for name in scenarios for word in ("--scenario", name)]
        done = textbench("run", "--agent", "random", "--agent", f"me={agent}", *flags, "--episodes", 2, "--out", "r")
        assert (done.code, done.out) == (2, "")
        assert f"agent 'me' on {guess}: greedy and planner can't play Guess: they (and inspect) need" in done.err
        assert done.err.count("\n") == 1
        assert not Path("r").exists()
    done = textbench("play", "guess_game:GuessTogether-v0", "--against", agent)
    assert (done.code, done.out) == (2, "")
    assert "greedy and planner can't play Guess" in done.err


def test_an_agent_that_is_inspected_needs_a_search_player_too(textbench, guess):
    done = textbench("inspect", "random", "--scenario", guess)
    assert (done.code, done.out) == (2, "")
    assert "(and inspect) need a player that reads Guess's observations" in done.err
    assert done.err.count("\n") == 1


def test_without_a_named_agent_all_that_can_play_do(textbench, guess):
    document = json.loads(textbench("run", "--scenario", guess, "--dry-run", "--json").out)
    players = [matchup["agents"] for matchup in document["matchups"]]
    assert ["random"] in players
    assert not [one for one in players if one in (["greedy"], ["planner"])]


def test_a_search_player_may_refuse_settings(textbench, guess):
    class Refuses(search.SearchPlayer):
        def __init__(self, game):
            raise ValueError("only with two sides")

        def values(self, request):
            return {}

    search.register_search_player("guess_game:Guess", Refuses)
    try:
        done = textbench("run", "--agent", "planner", "--scenario", guess, "--out", "r")
        assert (done.code, done.err) == (2, f"textbench: agent 'planner' on {guess}: only with two sides\n")
        assert textbench("run", "--scenario", guess, "--dry-run").code == 0
        done = textbench("run", "--agent", "random", "--scenario", guess, "--episodes", 2, "--json")
        assert done.code == 0, done.err
        assert json.loads(done.out)["scores"][0]["reference"]["value"] is None
    finally:
        search._FACTORIES.entries.pop("guess_game:Guess")
