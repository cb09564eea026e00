"""Luck with what is hidden: a player that reads the seed is found, and one that reads the observations never is."""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from agents import load_agent
from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from agents.policy import as_requests
from agents.turn import Policy, Turn, TurnRequest
from benchmark.runs.replay import replay
from benchmark.score.luck_check import SHARES, HiddenStart, LuckCheck, LuckTally, chance_of, luck_problems
from textgames.exploration.bandit import Bandit, BanditState
from textgames.exploration.guess_number import GuessNumber
from textgames.scenarios import SCENARIOS, Scenario


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


@pytest.mark.parametrize("name", ["guess-number", "mastermind", "word-guess", "bandit", "bandit-hard"])
def test_a_player_that_reads_the_seed_is_refused(name: str) -> None:
    checks = checked(name, Reader(SCENARIOS[name]))
    assert checks[name]["p"] < 1e-12
    (problem,) = luck_problems(checks)
    assert "what is hidden" in problem


def test_reading_some_seeds_is_found_too() -> None:
    assert list(luck_problems(checked("guess-number", Reader(SCENARIOS["guess-number"], share=0.3))))


@pytest.mark.parametrize("name", ["guess-number", "mastermind", "bandit", "online-trend"])
@pytest.mark.parametrize("player", ["planner", "random"])
def test_honest_players_are_not_refused(name: str, player: str) -> None:
    checks = checked(name, load_agent(player))
    assert checks[name]["p"] > 0.01
    assert not list(luck_problems(checks))


@pytest.mark.parametrize("guesses", [(1, 2, 3, 4, 5, 6), (3, 1, 2, 5, 4, 6), (6, 6, 6, 1, 1, 2)])
@pytest.mark.parametrize("share", SHARES)
def test_no_honest_plan_has_a_wealth_of_more_than_one_on_average(guesses: Sequence[int], share: float) -> None:
    """Exactly, over all numbers that may be hidden; and in the mean its gains are 0."""
    game = GuessNumber(numbers=6, max_guesses=6)
    settings = {"numbers": 6, "max_guesses": 6}
    scenario = Scenario("six", SCENARIOS["guess-number"].env_id, settings, horizon=6, first_seed=0)
    starts, found = HiddenStart(game), {}
    for seed in range(200):
        secret = game.initial_state(np.random.default_rng(seed)).secret
        if secret not in found:
            plan = [str(guess) for guess in guesses]
            played = rollout(_Plan(plan), [EpisodeTask.of(scenario, seed)])
            found[secret] = list(starts.gains(replay(next(iter(played)), scenario)))
    assert len(found) == 6
    wealth = [prod(1 + share * one.gain / one.worst for one in gains) for gains in found.values()]
    assert np.mean(wealth) == pytest.approx(1)
    assert np.mean([sum(one.gain for one in gains) for gains in found.values()]) == pytest.approx(0)
    assert max(chance_of(gains) for gains in found.values()) == 1.0


class _Plan:
    name = "plan"

    def __init__(self, guesses: Sequence[str]) -> None:
        self._guesses = guesses

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        asked = as_requests(requests)
        return [Turn(f"<action>{self._guesses[one.seed[1]]}</action>") for one in asked]


ROUNDS = 4
PLANS: dict[str, Callable[[BanditState], int]] = {
    "in turn": lambda state: sum(state.pulls) % 3,
    "what paid": lambda state: max(range(3), key=lambda arm: state.sums[arm] - state.pulls[arm] / 2),
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("share", SHARES)
def test_nor_has_one_that_learns_from_noise(plan: str, share: float) -> None:
    """Exactly, over all arms that may be best and all that they may pay.

    What an action is truly worth would be no fair bet: later ones depend on it, and a player is never told.
    """
    game = Bandit(num_arms=3, rounds=ROUNDS)
    starts, wealth, gain = HiddenStart(game), 0.0, 0.0
    for before, start in game.initial_outcomes():
        for chance, played in all_episodes(game, (start,), (), before, PLANS[plan]):
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
