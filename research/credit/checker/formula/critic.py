"""Advantages of a critic: GAE over the values that rows have, and what becomes of rows without values."""

import itertools

import numpy as np

from agents.msgrpo.credit import Floats
from research.credit.checker.formula.matching import Given, Match, close
from research.credit.checker.formula.played import Played

MOST_ALIKE, LIKELY = 0.5, 3.0


def fitted(shown: Played) -> Match | None:
    """Return GAE over the rows' values, by turn or by token, if some discount and lambda give all advantages.

    ``A_t = r_t - V_t + gamma V_{t+1} + gamma lambda A_{t+1}`` is linear in the unknown numbers, also if advantages were
    whitened, by a factor and an offset of each update. Nothing follows the end of an episode.
    """
    changes, found = list[tuple[float, float]](), ""
    for indices in shown.by_update():
        table = np.concatenate([_equations(shown, i) for i in indices])
        columns, given = table[:, :-1], table[:, -1]
        solved, _, rank, _ = np.linalg.lstsq(columns, given, rcond=1e-9)
        paid, value, after, carried, _, last = solved
        if len(given) < 2 * columns.shape[1] or not close(given, columns @ solved, 10 * shown.tolerance).all():
            return None
        if max(paid, -value) * np.abs(columns[:, :2]).max() <= 10 * shown.tolerance:
            return None  # neither rewards nor values are in them, or with the opposite sign
        if rank == columns.shape[1]:
            gamma = after / paid
            if abs(paid + value) > 1e-4 * abs(paid) or not (-1e-4 < carried < gamma + 1e-4 and gamma < 1 + 1e-4):
                return None
            found = f" with discount {gamma:.4g} and lambda {max(0.0, carried / gamma):.4g}"
        changes.append((float(-value), float(last)))
    plain = all(abs(factor - 1) < 1e-5 and abs(offset) < 1e-5 for factor, offset in changes)
    return Match(f"GAE over the rows' values{found}", 1.0, [], () if plain else tuple(changes))


def _equations(shown: Played, i: int) -> Floats:
    """Return (places, 7): what is paid, the value, the next value and advantage, 1 if there is a next, 1 if not, A."""
    rows, paid = [], []
    for row, reward in zip(shown.rows[i], shown.trajectories[i].rewards.tolist(), strict=True):
        tokens = isinstance(row.value, tuple)
        own = np.stack([np.asarray(row.each(name))[row.trained] for name in ("value", "advantage")], axis=1)
        own = own if tokens else own[:1]
        rows.append(own)
        paid.append(np.append(np.zeros(max(0, len(own) - 1)), reward)[: len(own)])
    value, given = np.concatenate(rows).T
    there = np.append(np.ones(len(value) - 1), 0.0) if len(value) else value
    after, carried = (np.append(each[1:], 0.0)[: len(value)] for each in (value, given))
    return np.stack([np.concatenate(paid), value, after, carried, there, 1 - there, given], axis=1)


def perhaps(shown: Played, given: Given, nearest: float) -> bool:
    """Return whether advantages may be a critic's: they differ in an episode, rise with what is earned from a turn on,
    and no formula has most of them."""
    if nearest > MOST_ALIKE or all(len(own) < 2 for own in shown.rows):
        return False
    ends = np.cumsum([len(own) for own in shown.rows])[:-1]
    if not any(np.ptp(own) > given.tolerance for own in np.split(given.advantage, ends)):
        return False
    earned = np.concatenate([each.returns_to_go() for each in shown.trajectories])
    turn = np.array(list(itertools.chain.from_iterable(range(len(own)) for own in shown.rows)))
    x, y = (_less_means(each, turn) for each in (given.advantage, earned))
    size = np.sqrt((x @ x) * (y @ y))
    return bool(size > 1e-9 and x @ y / size * np.sqrt(len(x)) > LIKELY)


def _less_means(values: Floats, turn: np.ndarray) -> Floats:
    values = np.nan_to_num(values)
    centred: Floats = values - (np.bincount(turn, values) / np.bincount(turn))[turn]
    return centred
