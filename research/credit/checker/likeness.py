"""The advantages of a file beside the true ones, in a game whose chances are known."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from agents import Policy
from agents.common import Array, Estimate, over_rows, ratio
from agents.msgrpo.credit import Floats
from benchmark import UsageError
from research.credit.checker.formulas import assigned, registered
from research.credit.checker.played import played
from research.credit.checker.rows import Dump, Row, place
from research.credit.instrument.exact.solution import GameGraph
from research.credit.instrument.exact.truth import Truth
from textgames import Scenario, layout_generator

NEEDED = ("advantage", "layout", "state")


class Likeness(NamedTuple):
    """How like the true advantages those of some turns are; intervals are over groups."""

    turns: str
    number: int
    correlation: Estimate  # Pearson's
    right_sign: Estimate  # of the turns whose true advantage isn't 0
    offset: Estimate  # the mean assigned less the mean true advantage, each in its own standard deviations


def truth_of(dump: Dump, policy: Policy, scenario: Scenario, **rules: Any) -> Truth:
    """Return the true values of a policy from the layouts of a file; a UsageError names the field that it lacks."""
    if lacking := [name for name in NEEDED if not dump.has(name)]:
        raise UsageError(
            f"the truth takes {' and '.join(lacking)} of every response: the layout is the layout_seed, and the state "
            "is the observation"
        )
    game, unused = scenario.game(), np.random.default_rng(0)
    layouts = sorted({row.layout for row in dump.responses if row.layout is not None})
    starts = [game.initial_state(layout_generator(layout, unused)) for layout in layouts]
    return Truth.of(policy, game, starts, scenario.horizon, **rules)


def true_advantages(dump: Dump, truth: Truth) -> list[Floats]:
    """Return (T,) true advantages of each episode's turns; a UsageError names a row that the game doesn't have."""
    graph = truth.graph
    numbers = {(graph.game.observe(state, player), player): number for state, number, player in _decisions(graph)}
    found = []
    for rows in dump.episodes.values():
        own = list[float]()
        for row in rows:
            decision = numbers.get((str(row.state), row.player))
            if decision is None:
                raise UsageError(f"no state that can be reached shows {row.player} this observation: {place(row)}")
            actions = graph.decisions[decision].actions
            if row.action is not None and row.action not in actions:
                raise UsageError(
                    f"the action {row.action!r} isn't legal, {', '.join(map(str, actions))} are: {place(row)}"
                )
            chosen = -1 if row.action is None else actions.index(row.action)
            own.append(truth.solution.advantage(row.turn, decision, chosen))
        found.append(np.array(own))
    return found


def _decisions(graph: GameGraph) -> list[tuple[Any, int, str]]:
    return [(graph.states[s], number, graph.players[p]) for (s, p), number in graph.decision_of.items()]


def likenesses(dump: Dump, true: Sequence[Floats]) -> list[Likeness]:
    """Compare all turns, those of each place in an episode, and those of episodes of each length."""
    rows = list(dump.episodes.values())
    given = [np.array([float(np.mean(row.advantage)) for row in own]) for own in rows]  # type: ignore[arg-type]
    table = _Table(rows, given, true)
    found = [table.of("all", np.ones(len(table.turn), dtype=bool))]
    found += [table.of(f"turn {turn}", table.turn == turn) for turn in np.unique(table.turn)]
    return found + [table.of(f"of {n} turns", table.length == n) for n in np.unique(table.length)]


class _Table:
    """The turns of a file in columns."""

    def __init__(self, rows: Sequence[Sequence[Row]], given: Sequence[Floats], true: Sequence[Floats]) -> None:
        self.turn = np.array([row.turn for own in rows for row in own])
        self.length = np.array([len(own) for own in rows for _ in own])
        _, self.group = np.unique([f"{row.update} {row.group!r}" for own in rows for row in own], return_inverse=True)
        self.given, self.true = (_scaled(np.concatenate(each)) for each in (given, true))

    def of(self, turns: str, chosen: Array) -> Likeness:
        x, y, group = self.given[chosen], self.true[chosen], self.group[chosen]
        counted = np.abs(y) > 1e-9
        agrees = counted * np.where(np.abs(x) > 1e-9, x * y > 0, 0.5)
        columns = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y, x - y, agrees, counted], axis=1)
        sums = np.array([columns[group == one].sum(axis=0) for one in np.unique(group)])
        signs = over_rows(sums, ratio(7, 8), (0.0, 1.0))
        return Likeness(turns, len(x), over_rows(sums, _correlation, (-1.0, 1.0)), signs, over_rows(sums, ratio(6, 0)))


def _scaled(values: Floats) -> Floats:
    return values / values.std() if np.ptp(values) else values


def _correlation(means: Array) -> Array:
    n, x, y, xx, yy, xy = np.moveaxis(means[..., :6], -1, 0)
    spread = (xx / n - (x / n) ** 2) * (yy / n - (y / n) ** 2)
    found: Array = (xy / n - x * y / n**2) / np.sqrt(np.maximum(spread, 0))
    return np.where(spread > 1e-18, found, np.nan)


def correlations_of_methods(dump: Dump, true: Sequence[Floats]) -> dict[str, float]:
    """Return what the correlation were if registered methods had credited the same episodes, the largest first."""
    shown, found = played(dump), {}
    for formula in registered():
        expected = assigned(shown, formula.make)
        if expected is not None and np.ptp(flat := np.concatenate(expected)) > 0:
            found[formula.name] = float(np.corrcoef(flat, np.concatenate(true))[0, 1])
    return dict(sorted(found.items(), key=lambda one: -one[1]))
