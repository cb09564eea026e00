"""Many thousand episodes of the slippery lake at once, with their luck, for tests of coverage.

The arithmetic of ``benchmark.score.luck`` once more, over arrays: tables of a pool of layouts, policies as tables
of action probabilities. That both agree is tested.
"""

from typing import NamedTuple

import numpy as np

from textgames.frozen_lake import FrozenLake
from textgames.frozen_lake.rules import directions, move_table

HORIZON = 15
LAYOUTS = 200


class Episodes(NamedTuple):
    """Columns of episodes, shape (runs, episodes)."""

    layout: np.ndarray
    returns: np.ndarray
    start: np.ndarray
    luck: np.ndarray
    variance: np.ndarray
    third: np.ndarray


class Lakes:
    """A pool of layouts of ``frozen-lake-slippery`` with their tables."""

    def __init__(self, layouts: int = LAYOUTS, seed: int = 5) -> None:
        game = FrozenLake(frozen_probability=0.9, is_slippery=True)
        rng = np.random.default_rng(seed)
        self.states = [game.initial_state(rng) for _ in range(layouts)]
        tiles = np.array([list(state.lake.tiles) for state in self.states])
        self.over = (tiles == "H") | (tiles == "G")
        moves = np.array(move_table(4, 4))
        ways = [directions(action, True, 1 / 3) for action in range(4)]
        self.chance = np.array([[chance for chance, _ in way] for way in ways])  # (actions, outcomes)
        targets = np.array([[[moves[cell][way] for _, way in each] for each in ways] for cell in range(16)])
        self.target = np.where(self.over[:, :, None, None], np.arange(16)[:, None, None], targets)
        goal = tiles == "G"
        self.pay = np.take_along_axis(goal[:, :, None, None].repeat(4, 2).repeat(3, 3), self.target, 1) * 1.0
        self.pay[self.over] = 0.0
        self.q = np.zeros((HORIZON + 1, layouts, 16, 4))
        self.v = np.zeros((HORIZON + 1, layouts, 16))
        for left in range(1, HORIZON + 1):
            self.q[left] = self.backup(self.v[left - 1])
            self.v[left] = self.q[left].max(axis=2)

    def backup(self, values: np.ndarray) -> np.ndarray:
        return (self.chance * (self.pay + self.next_values(values))).sum(axis=3)

    def next_values(self, values: np.ndarray) -> np.ndarray:
        rows = np.arange(len(self.states))[:, None, None, None]
        return values[rows, self.target]

    def policy(self, skill: float) -> np.ndarray:
        """Action probabilities, (steps left, layouts, cells, actions): optimal with chance ``skill``, else random."""
        best = self.q >= self.q.max(axis=3, keepdims=True) - 1e-12
        first = best & (best.cumsum(axis=3) == 1)
        return skill * first + (1 - skill) / 4

    def value_of(self, policy: np.ndarray) -> np.ndarray:
        values = np.zeros(self.v.shape[1:])
        for left in range(1, HORIZON + 1):
            values = (policy[left] * self.backup(values)).sum(axis=2)
        return values[:, 0]

    def play(self, policy: np.ndarray, runs: int, episodes: int, rng: np.random.Generator) -> Episodes:
        shape = (runs, episodes)
        layout = rng.integers(len(self.states), size=shape)
        cell = np.zeros(shape, dtype=int)
        columns = {name: np.zeros(shape) for name in ("returns", "luck", "variance", "third")}
        for left in range(HORIZON, 0, -1):
            playing = ~self.over[layout, cell]
            action = (rng.random(shape)[..., None] > policy[left][layout, cell].cumsum(-1)[..., :3]).sum(-1)
            outcome = (rng.random(shape)[..., None] > self.chance[action].cumsum(-1)[..., :2]).sum(-1)
            targets, pays = self.target[layout, cell, action], self.pay[layout, cell, action]
            after = pays + self.v[left - 1][layout[..., None], targets]
            off = after - self.q[left][layout, cell, action][..., None]
            pick = outcome[..., None]
            columns["returns"] += playing * np.take_along_axis(pays, pick, -1)[..., 0]
            columns["luck"] += playing * np.take_along_axis(off, pick, -1)[..., 0]
            columns["variance"] += playing * (self.chance[action] * off**2).sum(-1)
            columns["third"] += playing * (self.chance[action] * off**3).sum(-1)
            cell = np.where(playing, np.take_along_axis(targets, pick, -1)[..., 0], cell)
        return Episodes(layout, start=self.v[HORIZON][layout, 0], **columns)
