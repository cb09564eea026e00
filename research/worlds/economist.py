"""A planner taxes workers with stories, who choose how many days they work: a two-level game with exact answers.

As in the LLM Economist (arXiv 2507.15815) a planner sets marginal tax rates by bracket, workers known by a story
choose their labour by an isoelastic utility, what is raised is shared out, and the planner is paid social welfare.
In ``Economist-v0`` the workers are in an equilibrium of their own, found by enumeration, so the planner's optimum is
Stackelberg's and its yardstick exact; in ``Economy-v0`` they are players too. Our reading: the bracket, the rates and
three stories are ours, welfare is the mean utility, and of several equilibria workers choose the one with most welfare.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from textgames import TSMG, Action, Outcome, Player, check_whole
from textgames.solving import Floats

WAGES = (1, 2, 4)  # a day
STORIES = {
    "A carpenter who likes the workshop: a day of work costs little.": 0.1,
    "A clerk with a usual life: a day of work costs as much as for most people.": 0.2,
    "A parent alone with twins: a day of work costs much.": 0.4,
}
DAYS = range(6)
RATES = tuple(product((0, 25, 50, 75), repeat=2))  # in percent, below and above the bracket
Worker = tuple[int, str]  # its wage and its story


class Year(NamedTuple):
    """A year that begins, or, once it has taxes, waits for the workers."""

    workers: tuple[Worker, ...]
    year: int = 1
    taxes: tuple[int, ...] = ()
    before: tuple[tuple[int, ...], ...] = ()  # the last year's taxes, and the days of each worker


class Economist(TSMG[Year]):
    """Set the taxes of a small economy, year by year; or work in it.

    Args:
        num_workers: 1 to 4 workers, whose wages and stories are drawn.
        years: 1 to 10.
        bracket: the income from which on the second rate holds.
        play_workers: whether workers are players: ``player_1`` and on.
    """

    pays_late = False
    worst_round = -2.0 - 0.4 * max(DAYS) ** 2 / 2  # no income, and the most work

    def __init__(self, *, num_workers: int = 2, years: int = 3, bracket: int = 4, play_workers: bool = False) -> None:
        for name, value, most in ("num_workers", num_workers, 4), ("years", years, 10), ("bracket", bracket, 20):
            check_whole(name, value, 1, most)
        self.num_workers, self.years, self.bracket = num_workers, years, bracket
        self.players = tuple(f"player_{number}" for number in range(1 + num_workers * play_workers))
        self.usual_limit = self.longest_episode = years * (1 + play_workers)
        self._taxes = tuple(f"tax {low} {high}" for low, high in RATES)
        self._work = tuple(f"work {days}" for days in DAYS)
        self.actions = self._taxes + self._work * play_workers
        self._settled: dict[Any, tuple[int, ...]] = {}

    def initial_outcomes(self) -> list[tuple[float, Year]]:
        drawn = [*product(product(WAGES, STORIES), repeat=self.num_workers)]
        return [(1 / len(drawn), Year(workers)) for workers in drawn]

    def initial_state(self, rng: Generator) -> Year:
        return Year(tuple((int(rng.choice(WAGES)), str(rng.choice([*STORIES]))) for _ in range(self.num_workers)))

    def to_move(self, state: Year) -> tuple[Player, ...]:
        return self.players[1:] if state.taxes else self.players[:1]

    def legal_actions(self, state: Year, player: Player) -> tuple[Action, ...]:
        return self._taxes if player == self.players[0] else self._work

    def transition(
        self, state: Year, joint_action: Mapping[Player, Action], rng: Generator | None
    ) -> tuple[Year, dict[Player, float], bool]:
        movers = self.to_move(state)
        chosen, legal = [joint_action.get(player, "") for player in movers], self.legal_actions(state, movers[0])
        if not {*chosen} <= {*legal}:
            raise ValueError(f"{', '.join(movers)} must choose of {', '.join(legal)}, got {chosen}")
        numbers = tuple(int(word) for action in chosen for word in action.split()[1:])
        if not state.taxes and len(self.players) > 1:
            return state._replace(taxes=numbers), dict.fromkeys(self.players, 0.0), False
        taxes, days = (state.taxes, numbers) if state.taxes else (numbers, self.settled(state.workers, numbers))
        paid = self.utilities(state.workers, taxes, np.array([days]))[0]
        rewards = dict(zip(self.players, [float(paid.mean()), *paid.tolist()], strict=False))
        return Year(state.workers, state.year + 1, (), (taxes, days)), rewards, state.year == self.years

    def outcomes(self, state: Year, joint_action: Mapping[Player, Action]) -> list[Outcome[Year]]:
        return [(1.0, *self.transition(state, joint_action, None))]

    def consumption(self, workers: Sequence[Worker], taxes: Sequence[int], days: Floats) -> Floats:
        """Return what (N, workers) days leave each worker: its income less taxes, and a share of all taxes."""
        income = days * np.array([wage for wage, _ in workers])
        low, high = (rate / 100 for rate in taxes)
        tax = low * np.minimum(income, self.bracket) + high * np.maximum(income - self.bracket, 0)
        return np.asarray(income - tax + tax.mean(axis=1, keepdims=True))

    def utilities(self, workers: Sequence[Worker], taxes: Sequence[int], days: Floats) -> Floats:
        """Return the (N, workers) utilities of (N, workers) days: ``2 (sqrt(consumption) - 1) - cost days^2 / 2``."""
        costs = np.array([STORIES[story] for _, story in workers])
        return np.asarray(2 * (np.sqrt(self.consumption(workers, taxes, days)) - 1) - costs * days**2 / 2)

    def settled(self, workers: tuple[Worker, ...], taxes: tuple[int, ...]) -> tuple[int, ...]:
        """Return the days with the least that a worker gains alone (0: an equilibrium), then with the most welfare."""
        if (workers, taxes) not in self._settled:
            days, shape = np.array([*product(DAYS, repeat=len(workers))]), [len(DAYS)] * len(workers)
            paid = self.utilities(workers, taxes, days)
            tables = [own.reshape(shape) for own in paid.T]
            regret = np.max([own.max(axis=one, keepdims=True) - own for one, own in enumerate(tables)], axis=0).ravel()
            found = np.flatnonzero(regret <= regret.min() + 1e-9)
            self._settled[workers, taxes] = tuple(days[found[paid[found].mean(axis=1).round(9).argmax()]].tolist())
        return self._settled[workers, taxes]

    def observe(self, state: Year, player: Player) -> str:
        own = self.players.index(player)
        lines = [f"Year {state.year} of {self.years}. You are {f'worker {own}' if own else 'the planner'}."]
        lines += [f"Worker {1 + one}, {wage} a day: {story}" for one, (wage, story) in enumerate(state.workers)]
        if state.before:
            taxes, days = state.before
            paid = self.utilities(state.workers, taxes, np.array([days]))[0].tolist()
            told = "; ".join(f"{one} days, utility {each:.2f}" for one, each in zip(days, paid, strict=True))
            lines.append(f"Last year: tax {taxes[0]} {taxes[1]}; by worker: {told}")
        return "\n".join([*lines, *([f"Now: tax {state.taxes[0]} {state.taxes[1]}"] if state.taxes else [])])

    def read_observation(self, observation: str, player: Player) -> Year:
        taxes = dict(re.findall(r"^(Year|Last year|Now):?(?: tax)? (\d+(?: \d+)?)", observation, re.MULTILINE))
        year, now, then = (tuple(map(int, taxes.get(of, "").split())) for of in ("Year", "Now", "Last year"))
        workers = tuple((int(wage), story) for wage, story in re.findall(r", (\d+) a day: (.*)", observation))
        days = tuple(map(int, re.findall(r"(\d+) days, utility", observation)))
        state = Year(workers, (year or (0,))[0], now, (then, days) if then else ())
        if not {story for _, story in workers} <= {*STORIES} or self.observe(state, player) != observation:
            raise ValueError(f"not an observation of this economy for {player}: {observation[:80]!r}")
        return state

    def instructions(self, player: Player) -> str:
        costs = ", ".join(f"{cost} if {story.rpartition(': ')[2][:-1]}" for story, cost in STORIES.items())
        return (
            f"A planner taxes {self.num_workers} workers for {self.years} years. Each year it sets two rates in "
            f"percent, of income up to {self.bracket} and above. Then each worker works 0 to {max(DAYS)} days at its "
            "wage, as is best for it. Taxes are shared equally among workers. A worker's reward is its utility, 2 "
            "(sqrt(consumption) - 1) - cost days^2 / 2, where consumption is income less taxes plus the share and cost "
            f"is {costs}. The planner's is the mean.\nActions: {', '.join(self.actions)}."
        )
