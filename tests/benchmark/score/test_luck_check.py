"""Luck as a check: honest players pass, those that see the future or what is hidden don't, and its power."""

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium.utils import seeding

from agents import load_agent
from agents.baselines.random import RandomPlayer
from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from agents.policy import as_requests
from agents.turn import Policy, Turn, TurnRequest
from benchmark.runs.replay import replay
from benchmark.score.luck import LuckValues
from benchmark.score.luck_check import (
    SHARES,
    SUSPICIOUS,
    HiddenStart,
    LuckCheck,
    LuckTally,
    luck_check,
    luck_problems,
    power_of,
)
from tests.benchmark.score.simulation import rounds
from textgames.exploration.bandit import Bandit, BanditState
from textgames.scenarios import SCENARIOS, Scenario

ICE = SCENARIOS["frozen-lake-slippery"]
EPISODES = 20


class Clairvoyant:
    """Reads the episode's random numbers from its seed, and takes the action whose draw is best. Snake it plays badly.

    Everything that it needs stands in the request: the seed of the task, from which the environment draws.
    """

    name = "clairvoyant"

    def __init__(self):
        self._random, self._values, self._episodes = RandomPlayer(), LuckValues.of(ICE.game()), {}

    def act(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        game, (seed, number, _) = request.game, request.seed
        if game.return_range is None or not game.is_slippery:
            return self._random.act([request])[0]
        if number == 0:
            rng = seeding.np_random(seed)[0]
            self._episodes[seed] = game.initial_state(rng), rng
        state, rng = self._episodes[seed]
        come = {}
        for action in game.actions:
            drawn = deepcopy(rng)
            after, rewards, over = game.transition(state, {request.player: action}, drawn)
            left = 0.0 if over else self._values.value(after, request.steps_left - 1)
            come[action] = rewards[request.player] + left, after, drawn
        best = max(come, key=lambda action: come[action][0])
        self._episodes[seed] = come[best][1:]
        return Turn(f"<action>{best}</action>")


@pytest.mark.slow
def test_a_clairvoyant_entry_is_refused_and_an_honest_one_is_told_its_luck(textbench, monkeypatch):
    monkeypatch.setattr("benchmark.entries.entry.MIN_EPISODES", EPISODES)
    agents = ("--agent", f"seer={__file__}:Clairvoyant", "--agent", "greedy")
    done = textbench("run", *agents, "--episodes", EPISODES, "--out", "run", "--quiet", "--json")
    assert done.code == 0, done.err
    rows = {row["agent"]: row for row in json.loads(done.out)["scores"] if row["scenario"] == ICE.name}
    score = rows["seer"]
    assert score["success_rate"]["value"] > 0.9  # beyond the 0.4 of optimal play
    assert score["luck_free_return"]["value"] < score["mean_return"]["value"] - 0.3
    assert score["luck"]["z"] > 6
    refused = textbench("submit", "run", "--agent", "seer", "--out", "entries")
    assert refused.code == 1
    assert f"{ICE.name}: the draws of chance favoured this player by" in refused.err
    assert textbench("submit", "run", "--agent", "greedy", "--out", "entries").code == 0
    checked = textbench("validate", "entries", "--json")
    assert checked.code == 1
    seer, greedy = (json.loads(checked.out)[f"entries/{name}"] for name in ("seer", "greedy"))
    assert seer["valid"] is False
    assert seer["luck"][ICE.name]["z"] == pytest.approx(score["luck"]["z"])
    assert seer["luck"][ICE.name]["p"] < 1e-8
    (problem,) = seer["problems"]
    assert "an entry is refused" in problem
    assert list(greedy["luck"]) == [ICE.name, "snake", "snake-poison"]  # the other lake has no chance
    for check in greedy["luck"].values():
        assert set(check) == {"z", "p"}
        assert abs(check["z"]) < 3
    assert f"luck: {ICE.name} z = " in textbench("validate", "entries/greedy").out


@pytest.mark.slow
@pytest.mark.parametrize("skill", [1.0, 0.5])
def test_honest_entries_are_hardly_ever_suspected_and_the_best_of_four_attempts_are(skill):
    """2,000 entries of 50 episodes: z is close to standard normal, and 5% and 1% are where they should be."""
    _, played = rounds(skill, 2000, 50, np.random.default_rng(4))
    z = played.luck.sum(axis=1) / np.sqrt(played.variance.sum(axis=1))
    assert abs(z.mean()) < 0.08
    assert abs(z.std() - 1) < 0.06
    assert 0.03 < (z > 1.645).mean() < 0.07
    assert (z > 2.326).mean() < 0.02
    assert z.max() < 4.5
    attempts = played._replace(**{name: one.reshape(500, 4, 50) for name, one in played._asdict().items()})
    best = attempts.returns.argmax(axis=1)[:, None]
    luck, variance = (np.take_along_axis(one, best, 1)[:, 0].sum(axis=1) for one in (attempts.luck, attempts.variance))
    assert skill < 1 or (luck / np.sqrt(variance) > 3.719).mean() > 0.95  # p < 1e-4


def test_the_probability_is_one_sided_and_corrected_over_scenarios():
    check = luck_check(np.array([3.0, 0.9]), np.array([0.5, 0.5]))
    assert check["z"] == pytest.approx(3.9)
    assert check["p"] == pytest.approx(4.81e-5, rel=0.01)
    assert luck_check(np.array([-3.9]), np.array([1.0]))["p"] > 0.9999  # bad luck is nobody's doing
    assert list(luck_problems({"a": check}))
    assert not list(luck_problems({"a": check, "b": {"z": 0.0, "p": 0.5}, "c": {"z": 0.0, "p": 0.5}}))
    assert check["p"] < SUSPICIOUS < 3 * check["p"]
    assert luck_check(np.zeros(5), np.zeros(5)) is None, "there is no luck without chance"


@pytest.mark.parametrize(("episodes", "scenarios"), [(50, 1), (200, 3)])
def test_the_power_is_what_is_found_in_four_of_five_cases(episodes, scenarios):
    """Normal luck of known variance with as much undue luck as is said to be detectable; and half as much, rarely."""
    variance = np.random.default_rng(1).uniform(0.01, 0.2, episodes)
    power = power_of(variance, scenarios)
    assert (power["episodes"], power["power"]) == (episodes, 0.8)
    rng = np.random.default_rng(2)
    for undue, least, most in ((1.0, 0.77, 0.83), (0.5, 0.01, 0.12), (0.0, 0.0, 0.001)):
        luck = rng.normal(undue * power["detectable"], np.sqrt(variance), (4000, episodes))
        checks = [luck_check(row, variance) for row in luck]
        honest = {str(number): {"z": 0.0, "p": 0.5} for number in range(scenarios - 1)}
        found = [any(luck_problems({"it": check, **honest})) for check in checks]
        assert least <= np.mean(found) <= most
    assert power_of(np.zeros(5), 1) is None


class Reader:
    """Reads what is hidden off the seed, in a share of the episodes; in the others it plays at random."""

    name = "reader"

    def __init__(self, scenario: Scenario, share: float = 1.0) -> None:
        self._game: Any = scenario.game()
        self._share, self._otherwise = share, load_agent("random")

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [self._answer(request) for request in as_requests(requests)]

    def _answer(self, request: TurnRequest) -> Turn:
        if request.seed[0] % 100 >= 100 * self._share:
            return self._otherwise.act([request])[0]
        hidden = self._game.initial_state(np.random.default_rng(request.seed[0]))
        best = hidden.secret if hasattr(hidden, "secret") else self._game.actions[int(np.argmax(hidden.means))]
        return Turn(f"<action>{best}</action>")


def checked(name: str, player: Policy, episodes: int = 50) -> dict[str, LuckCheck]:
    scenario, first = SCENARIOS[name], SCENARIOS[name].first_seed
    tally = LuckTally({name: scenario})
    for episode in rollout(player, [EpisodeTask.of(scenario, first + number) for number in range(episodes)]):
        tally.add(name, replay(episode, scenario))
    return tally.checks()


@pytest.mark.parametrize(
    ("name", "share"), [("guess-number", 1.0), ("word-guess", 1.0), ("bandit-hard", 1.0), ("guess-number", 0.3)]
)
def test_a_player_that_reads_the_seed_is_refused(name, share):
    checks = checked(name, Reader(SCENARIOS[name], share))
    assert share < 1 or checks[name]["p"] < 1e-12
    (problem,) = luck_problems(checks)
    assert "what is hidden" in problem


@pytest.mark.parametrize("name", ["guess-number", "mastermind", "online-trend"])
@pytest.mark.parametrize("player", ["planner", "random"])
def test_honest_players_are_not_refused(name, player):
    checks = checked(name, load_agent(player), 12 if name == "online-trend" else 50)  # of thousands of starts each
    assert checks[name]["p"] > 0.01
    assert not list(luck_problems(checks))


ROUNDS = 4


@pytest.mark.parametrize("share", SHARES)
def test_no_honest_plan_has_a_wealth_of_more_than_one_on_average(share):
    """Exactly, over all arms that may be best and all that they may pay; and in the mean its gains are 0.

    The plan learns from noise. What an action is truly worth would be no fair bet: later ones depend on it, and a
    player is never told.
    """

    def plan(state: BanditState) -> int:
        return max(range(3), key=lambda arm: state.sums[arm] - state.pulls[arm] / 2)

    game = Bandit(num_arms=3, rounds=ROUNDS)
    starts, wealth, gain = HiddenStart(game), 0.0, 0.0
    for before, start in game.initial_outcomes():
        for chance, played in all_episodes(game, (start,), (), before, plan):
            gains = list(starts.gains(played))
            wealth += chance * prod(1 + share * one.gain / one.worst for one in gains)
            gain += chance * sum(one.gain for one in gains)
    assert wealth == pytest.approx(1)
    assert gain == pytest.approx(0)


def all_episodes(
    game: Bandit, states: tuple[BanditState, ...], steps: tuple[Any, ...], chance: float, plan: Callable[[Any], int]
) -> Iterator[tuple[float, Any]]:
    """Yield every way in which a plan's episode may go on, as a replay, with its probability."""
    if len(steps) == ROUNDS:
        rules = SimpleNamespace(max_steps=ROUNDS, format_penalty=0.0)
        yield chance, SimpleNamespace(states=states, steps=steps, rules=rules)
        return
    action = game.actions[plan(states[-1])]
    for likely, after, paid, over in game.outcomes(states[-1], {"player_0": action}):
        step = SimpleNamespace(action=action, valid=True, reward=paid["player_0"], out=over)
        yield from all_episodes(game, (*states, after), (*steps, step), chance * likely, plan)
