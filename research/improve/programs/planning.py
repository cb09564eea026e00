"""Planning with rules that are a program: value iteration over what the rules say can be reached.

This harness (:mod:`research.improve.programs.sandbox`) runs beside the rules in their own process, so it imports the
standard library alone. The rules are ``parse(observation) -> state``, anything that JSON can say; ``actions(state) ->
list of names``; ``outcomes(state, action) -> list of (probability, next_state, reward, done)``. (Code world models:
Lehrach et al., arXiv 2510.04542, and Dainese et al., arXiv 2405.15383.)
"""

import json
import math
from array import array
from typing import Any

WITHOUT_LIMIT = 200
"""Rounds that are looked ahead if the episode has no limit."""

TIE = 1e-9  # values that differ by no more are equal
UNKNOWN = -1  # in place of a successor's number: the game is over, or its state is beyond the limit; worth 0


class Solution:
    """What can be reached from a state by the rules, and what it is worth with every number of steps left.

    At most ``most_states`` states are looked at, the nearest first; what is beyond them counts as worth 0. ``closed``
    says that nothing else can be reached, so that this answers for all of its states and any steps.
    """

    def __init__(self, rules: Any, start: Any, steps: int, most_states: int, discount: float = 1.0) -> None:
        self._discount = discount  # of what is paid a step later
        self.numbers = {key_of(start): 0}
        self.closed = True
        self._actions: list[list[str]] = []
        self._ways: list[list[list[tuple[float, int, float]]]] = []  # by state and action: chance, successor, reward
        frontier = [start]
        for _ in range(steps):
            reached: list[Any] = []
            for state in frontier:
                names = actions_in(rules, state)
                told = [outcomes_of(rules, state, name) for name in names]
                self._actions.append(names)
                self._ways.append([self._seen(outcomes, reached, most_states) for outcomes in told])
            frontier = reached
        self.closed = self.closed and not frontier
        self._tables = [array("d", bytes(8 * (len(self.numbers) + 1)))]  # V_0, V_1, ...; the last place is UNKNOWN's
        self._settled = False  # whether a further round changes nothing

    def _seen(self, outcomes: list[Any], reached: list[Any], most_states: int) -> list[tuple[float, int, float]]:
        found = []
        for chance, state, reward, done in outcomes:
            number = UNKNOWN
            if not done and (number := self.numbers.get(key := key_of(state), UNKNOWN)) == UNKNOWN:
                if len(self.numbers) < most_states:
                    number = self.numbers[key] = len(self.numbers)
                    reached.append(state)
                else:
                    self.closed = False
            found.append((chance, number, reward))
        return found

    def values(self, number: int, steps: int) -> dict[str, float]:
        """Return ``{action: value}`` of a state, by its number, with so many steps left."""
        return dict(zip(self._actions[number], self._back_up(number, self._table(steps - 1)), strict=True))

    def _back_up(self, number: int, after: "array[float]") -> list[float]:
        return [sum(p * (reward + self._discount * after[to]) for p, to, reward in way) for way in self._ways[number]]

    def _table(self, steps: int) -> "array[float]":
        while len(self._tables) <= steps and not self._settled:
            after = self._tables[-1]
            table = array("d", after)
            for number in range(len(self._ways)):
                table[number] = max(self._back_up(number, after), default=0.0)
            self._settled = table == after
            self._tables.append(table)
        return self._tables[min(steps, len(self._tables) - 1)]


_closed: dict[str, Solution] = {}  # by state: solutions of this process that answer for any of their states


def plan(rules: Any, observation: str, legal: list[str], steps_left: int | None, most_states: int) -> str:
    """Return the action that is worth most by the rules, of equals the one that pays soonest; a ValueError without
    one."""
    state, steps = rules.parse(observation), WITHOUT_LIMIT if steps_left is None else steps_left
    key = key_of(state)
    solution = _closed.get(key)
    if solution is None:
        solution = Solution(rules, state, steps, most_states)
        if solution.closed:
            if len(_closed) + len(solution.numbers) > 4 * most_states:
                _closed.clear()
            _closed.update(dict.fromkeys(solution.numbers, solution))
    number = solution.numbers[key]
    best = [name for name in solution.values(number, steps) if name in legal or not legal]
    if not best:
        raise ValueError(f"actions(state) has none of the legal actions {', '.join(legal)}")
    for fewer in range(steps, 0, -1):
        values = solution.values(number, fewer)
        most = max(values[name] for name in best)
        best = [name for name in best if values[name] >= most - TIE]
        if len(best) == 1:
            break
    return best[0]


def optimum(rules: Any, most_states: int) -> float:
    """Return the optimum of a dynamic program, whose ``problem()`` has its start, its horizon and its discount."""
    told = rules.problem()
    try:
        start, horizon, discount = told["start"], told["horizon"], float(told["discount"])
        steps = WITHOUT_LIMIT if horizon is None else int(horizon)
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"problem() is a dict with start, horizon and discount, got {told!r:.80}") from None
    if steps < 1 or not 0 < discount <= 1:
        raise ValueError(f"horizon is at least 1 and discount above 0 and up to 1, got {horizon!r} and {discount!r}")
    solution = Solution(rules, start, steps, most_states + 1, discount)
    if len(solution.numbers) > most_states:
        raise ValueError(f"there are more than {most_states} states: leave out what doesn't matter")
    return float(max(solution.values(0, steps).values(), default=0.0))


def predict(rules: Any, observation: str) -> list[Any]:
    """Return ``[state's key, {action: [[probability, next state's key or null, reward], ...] or why there is none}]``.

    The next state is ``null`` if the rules say that the game is over.
    """
    return expand(rules, rules.parse(observation))


def expand(rules: Any, state: Any) -> list[Any]:
    """Return what :func:`predict` does of a state, as its key has it."""
    found: dict[str, Any] = {}
    for name in actions_in(rules, state):
        try:
            found[name] = [
                [chance, None if done else key_of(after), reward]
                for chance, after, reward, done in outcomes_of(rules, state, name)
            ]
        except Exception as error:  # noqa: BLE001 - of the rules, which are wrong here and may be right elsewhere
            found[name] = f"{type(error).__name__}: {error}"
    return [key_of(state), found]


def key_of(state: Any) -> str:
    """Return a state as a text that is equal for equal states."""
    try:
        return json.dumps(state, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a state is what JSON can say (numbers, texts, lists, dicts by texts): {error}") from None


def actions_in(rules: Any, state: Any) -> list[str]:
    """Return the actions that the rules name in a state, checked."""
    names = rules.actions(state)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"actions(state) returns a list of names, got {names!r:.80}")
    return list(names)


def outcomes_of(rules: Any, state: Any, action: str) -> list[tuple[float, Any, float, bool]]:
    """Return what may come of an action by the rules, checked."""
    told = rules.outcomes(state, action)
    form = "outcomes(state, action) is a list of (probability, next_state, reward, done)"
    try:
        found = [(float(chance), after, float(reward), bool(done)) for chance, after, reward, done in told]
    except (TypeError, ValueError):
        raise ValueError(f"{form}, got {told!r:.80} for {action!r}") from None
    total = sum(chance for chance, *_ in found)
    if not abs(total - 1) < 1e-6 or any(chance < 0 for chance, *_ in found):
        raise ValueError(f"{form} whose probabilities sum to 1, got {total:g} for {action!r}")
    if not all(math.isfinite(reward) for _, _, reward, _ in found):
        raise ValueError(f"{form} with finite rewards, got {told!r:.80} for {action!r}")
    return found
