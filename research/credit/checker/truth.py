"""The advantages of a file and their gradient beside the true ones, in a game whose chances are known."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from agents import Policy
from agents.common import ANYWHERE, Array, Estimate, over_parts, over_rows, ratio
from agents.msgrpo import TokenRow
from agents.msgrpo.credit import Floats
from benchmark import UsageError
from research.credit.checker.formulas import assigned, played, registered
from research.credit.checker.rows import Dump, Row, place
from research.credit.instrument.exact.truth import Truth
from research.credit.instrument.fidelity import CORRELATIONS, SHARES, agreement, correlation
from research.credit.instrument.gradients import exact_gradient
from research.credit.instrument.scores import ScoreModel, why_no_gradient
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


def why_not(dump: Dump, policy: Policy) -> str | None:
    """Return why there is no gradient to compare; ``None`` if there is one."""
    if (reason := why_no_gradient(policy)) is not None:
        return reason
    if not dump.has("token_ids") or not _prompts(dump).keys() >= set(map(_place, dump.responses)):
        return "gradients take the token_ids of each response and of a prompt or observation for each turn"
    return None


def _place(row: Any) -> tuple[Any, ...]:
    return row.update, row.episode, row.turn


def _prompts(dump: Dump) -> dict[tuple[Any, ...], tuple[int, ...]]:
    return {_place(row): row.token_ids for row in dump.rows if row.kind in ("prompt", "observation") and row.token_ids}


class Part(NamedTuple):
    """Some turns' part of the gradient along the exact one; intervals are over groups."""

    turns: str
    number: int
    share: Estimate  # of the file's whole gradient, along the exact one
    bias: Estimate  # its share less that of the true advantages on the same episodes
    variance: Estimate  # over groups, in times that of the true advantages, both scaled to one whole


class Gradients(NamedTuple):
    """The policy gradient of a file beside the exact one."""

    cosines: dict[str, Estimate]  # with the exact gradient: of the file's, and of what the true advantages give there
    parts: list[Part]  # by turn, and by length of episode


def gradients(dump: Dump, truth: Truth, policy: Policy, true: Sequence[Floats]) -> Gradients:
    """Compare the gradient of the file's advantages, and that of the true ones on its episodes, with the exact one.

    A turn's prompt is the span before its response alone, as trainers without a history have it.
    """
    model, prompts = ScoreModel(policy), _prompts(dump)
    exact = exact_gradient(model, truth.answers, truth.solution, truth.halves)
    groups, cells = dict[Any, int](), dict[tuple[int, int], int]()
    turns: Mapping[tuple[int, int], list[tuple[TokenRow, Any, float]]] = defaultdict(list)
    for rows, own in zip(dump.episodes.values(), true, strict=True):
        for row, a in zip(rows, own.tolist(), strict=True):
            group = groups.setdefault((row.update, row.group), len(groups))
            cell = cells.setdefault((row.turn, len(rows)), len(cells))
            tokens = TokenRow(prompts[_place(row)], row.token_ids or ())
            turns[group, cell].append((tokens, row.advantage, a))
    whole, along = np.zeros((2, len(groups), model.size)), np.zeros((2, len(groups), len(cells)))
    direction = exact.vector.double().numpy()
    for (group, cell), these in turns.items():
        for column in (0, 1):
            weights = [torch.tensor(one[1 + column]) for one in these]
            vector = model.weighted([one[0] for one in these], weights).numpy()
            whole[column, group] += vector
            along[column, group, cell] = vector @ direction
    norm, told = math.sqrt(max(exact.squared_norm, 0.0)), ("file", "true advantages")
    return Gradients(
        {name: _cosine(each, direction, norm) for name, each in zip(told, whole, strict=True)},
        _parts(along, cells, Counter(cell for (_, cell), these in turns.items() for _ in these)),
    )


def _parts(along: Array, cells: Mapping[tuple[int, int], int], numbers: Mapping[int, int]) -> list[Part]:
    """Return the parts; ``along`` is (2, groups, cells), and a cell is a turn of episodes of one length."""
    found = []
    for column, name in ((0, "turn {}"), (1, "of {} turns")):
        for value in sorted({cell[column] for cell in cells}):
            chosen = [number for cell, number in cells.items() if cell[column] == value]
            sums = np.concatenate([along[:, :, chosen].sum(axis=2), along.sum(axis=2)]).T  # (groups, 4)
            squares = np.concatenate([sums, sums[:, :2] ** 2], axis=1)

            def bias(means: Array) -> Array:
                return np.asarray(means[..., 0] / means[..., 2] - means[..., 1] / means[..., 3])

            def log_variance(means: Array) -> Array:
                spread = (means[..., 4:6] - means[..., :2] ** 2) / means[..., 2:4] ** 2
                return np.asarray(np.log(spread[..., 0] / spread[..., 1]))

            # the logarithm of a ratio of variances is nearer to normal than the ratio
            share, less, log = (over_rows(squares, of) for of in (ratio(0, 2), bias, log_variance))
            low, high = (None if end is None else float(np.exp(end)) for end in log[1:])
            times = Estimate(float(np.exp(log.value)), low, high)
            found.append(Part(name.format(value), sum(numbers[one] for one in chosen), share, less, times))
    return found


def _cosine(vectors: Array, along: Array, norm: float) -> Estimate:
    """Return the cosine of the sum of groups' gradients with the exact one; NaN if either is 0."""
    products, with_exact = vectors @ vectors.T, vectors @ along

    def of(weights: Array) -> Array:
        lengths = np.sqrt(np.maximum(np.einsum("...i,ij,...j->...", weights, products, weights), 0.0))
        return np.asarray((weights @ with_exact) / (lengths * norm))

    return over_parts(of, len(vectors), (-1.0, 1.0))
