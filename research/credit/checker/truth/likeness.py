"""The advantages of a file beside the true ones, in a game whose chances are known."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from agents import Policy
from agents.common import ANYWHERE, Array, Estimate, over_rows, ratio
from agents.msgrpo.credit import Floats
from benchmark import UsageError
from research.credit.checker.formula.formulas import assigned, registered
from research.credit.checker.formula.played import played
from research.credit.checker.rows import Dump, Row, place
from research.credit.instrument.exact.truth import Truth
from research.credit.instrument.fidelity import CORRELATIONS, SHARES, agreement, correlation
from textgames import Scenario, layout_generator

NEEDED = ("advantage", "layout", "state")


class Likeness(NamedTuple):
    """The likeness of some turns' advantages to the true ones; intervals are over groups."""

    turns: str
    number: int
    correlation: Estimate  # Pearson's
    right_sign: Estimate  # of the turns whose true advantage isn't 0
    offset: Estimate  # the mean assigned less the mean true advantage, each in its own standard deviations


def truth_of(dump: Dump, policy: Policy, scenario: Scenario, max_steps: int | None = None) -> Truth:
    """Return the true values of a policy from the layouts of a file; a UsageError names the field that it lacks."""
    if lacking := [name for name in NEEDED if not dump.has(name)]:
        raise UsageError(
            f"the truth takes {' and '.join(lacking)} of every response: the layout is the layout_seed, and the state "
            "is the observation"
        )
    game, unused = scenario.game(), np.random.default_rng(0)
    layouts = sorted({row.layout for row in dump.responses if row.layout is not None})
    starts = [game.initial_state(layout_generator(layout, unused)) for layout in layouts]
    return Truth.of(policy, game, starts, max_steps or scenario.horizon)


def true_advantages(dump: Dump, truth: Truth) -> list[Floats]:
    """Return (T,) true advantages of each episode's turns; a UsageError names a row that the game doesn't have."""
    graph = truth.graph
    if len(graph.decisions) != len(graph.players) * len(set(graph.state_of.tolist())):
        raise UsageError("players take turns in this game: the truth is computed if each player acts in every round")
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, decision in enumerate(graph.decisions):
        player = graph.players[decision.player]
        shown = graph.game.observe(graph.states[decision.state], player)
        numbers.setdefault((shown, player), []).append(number)
    return [np.array([_true(row, truth, numbers) for row in rows]) for rows in dump.episodes.values()]


def _true(row: Row, truth: Truth, numbers: Mapping[tuple[str, str], Sequence[int]]) -> float:
    graph, found = truth.graph, numbers.get((str(row.state), row.player), ())
    if not found:
        raise UsageError(f"no state that can be reached shows {row.player} this observation: {place(row)}")
    if len(found) > 1:
        raise UsageError(f"{len(found)} states show {row.player} this observation, and one is accepted: {place(row)}")
    if row.turn >= graph.horizon:
        raise UsageError(
            f"the game is cut off after {graph.horizon} rounds: {place(row)}; --max-steps N says another number"
        )
    actions = graph.decisions[found[0]].actions
    if row.action is not None and row.action not in actions:
        legal = ", ".join(map(str, actions))
        raise UsageError(f"the action {row.action!r} isn't legal, {legal} are: {place(row)}")
    chosen = -1 if row.action is None else actions.index(row.action)
    return truth.solution.advantage(row.turn, found[0], chosen)


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
        columns = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y, *agreement(x, y), x - y], axis=1)
        sums = np.array([columns[group == one].sum(axis=0) for one in np.unique(group)])
        figures = (correlation, CORRELATIONS), (ratio(6, 7), SHARES), (ratio(8, 0), ANYWHERE)
        return Likeness(turns, len(x), *(over_rows(sums, of, within) for of, within in figures))


def _scaled(values: Floats) -> Floats:
    return values / values.std() if np.ptp(values) else values


def correlations_of_methods(dump: Dump, true: Sequence[Floats]) -> dict[str, float]:
    """Return what the correlation were if registered methods had credited the same episodes, the largest first."""
    shown, found = played(dump), {}
    for formula in registered():
        expected = assigned(shown, formula.make)
        if expected is not None and np.ptp(flat := np.concatenate(expected)) > 0:
            found[formula.name] = float(np.corrcoef(flat, np.concatenate(true))[0, 1])
    return dict(sorted(found.items(), key=lambda one: -one[1]))
