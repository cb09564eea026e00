"""Reference players of Gathering and Cleanup: fixed rules, named as such, and no optimum.

``greedy`` walks to the apple that it can have first; ``planner`` prefers apples that no other player can have as soon.
Neither uses its beam: fired whenever it would hit, it gained nothing. In Cleanup the first player keeps the river clean
as ``planner``; as ``greedy`` all harvest, so the river stays dirty.
"""

import re
from collections import deque
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer
from agents.turn import TurnRequest
from textgames.social.cleanup import Cleanup
from textgames.social.commons.board import HEADINGS, beams_of, board_of
from textgames.social.commons.game import BEAM, CLEAN, STAY, STEPS, TURNS, CommonsGame
from textgames.social.gathering import Gathering
from textgames.texts.grids import name_rows

_SELF = re.compile(r"^You are \w+: at (\(\d+, \d+\)), facing (\w+)", re.MULTILINE)
_CELL = re.compile(r"\(\d+, \d+\)")
_COMING = re.compile(r"(\(\d+, \d+\)) in (\d+)")
_OTHER = re.compile(r"^player_\d+: at (\(\d+, \d+\))", re.MULTILINE)

_WORTH_CLEANING = 3
"""Dirty cells that one use of the cleaning beam has to remove to be worth its cost."""
_NO_LIMIT = 40
"""Rounds that values look ahead if an episode has no end."""


class _View(NamedTuple):
    """A player's cell and heading, and cells by their content, as read from an observation."""

    cell: int
    heading: int
    apples: dict[int, int]
    others: tuple[int, ...]
    dirt: frozenset[int]


class CommonsPlayer(SearchPlayer):
    """Walks to the apple that can be had first."""

    _game: CommonsGame

    def __init__(self, game: CommonsGame) -> None:
        super().__init__(game)
        self._map = game.config.board
        self._cells = name_rows(self._map.nrow, self._map.ncol)
        self._costs = {BEAM: game.config.beam_reward}
        self._back_after: int | None = None

    @cached_property
    def _far(self) -> list[list[int]]:
        return distances(self._game.config.map)

    def _read(self, observation: str) -> _View:
        found = _SELF.search(observation)
        if found is None:
            raise ValueError(f"not an observation of a player that is to move: {observation[:200]!r}")
        apples = {self._cells[name]: 0 for name in _listed(observation, "Apples")}
        apples |= {self._cells[name]: int(rounds) for name, rounds in _COMING.findall(observation)}
        dirt = frozenset(self._cells[name] for name in _listed(observation, "Dirt"))
        others = tuple([self._cells[name] for name in _OTHER.findall(observation)])
        return _View(self._cells[found[1]], HEADINGS.index(found[2]), apples, others, dirt)

    def _after(self, view: _View, action: str) -> tuple[int, int]:
        """Return the cell and the heading in which an action leaves its player."""
        if action in STEPS:
            return self._map.steps[(view.heading + STEPS[action]) % 4][view.cell], view.heading
        return view.cell, (view.heading + TURNS.get(action, 0)) % 4

    def greedy(self, request: TurnRequest) -> Choice:
        return self._harvest(self._read(request.observation)._replace(others=()))

    def plan(self, request: TurnRequest) -> Choice:
        return self._harvest(self._read(request.observation))

    def _harvest(self, view: _View) -> Choice:
        """Step towards the apple that can be had first (a round later if another player is as near), or to where apples
        grow."""
        far = self._far[view.cell]
        if view.apples:

            def wait(cell: int) -> int:
                """Count the rounds until the player can have an apple, one more if another can have it as soon."""
                mine = max(far[cell], view.apples[cell])
                return mine + any(max(self._far[other][cell], view.apples[cell]) <= mine for other in view.others)

            goal = min(view.apples, key=lambda cell: (wait(cell), far[cell], cell))
            why = f"I can have the apple at {self._map.names[goal]} first"
        else:
            goal = min(self._map.apples, key=lambda cell: (far[cell], cell))
            why = "There is no apple, so I wait where they grow"
        if goal == view.cell:
            return Choice(STAY, f"{why}, and I stand there.")
        action = min(STEPS, key=lambda step: self._far[self._after(view, step)[0]][goal])
        return Choice(action, f"{why}, and {action} is the shortest way.")

    def values(self, request: TurnRequest) -> dict[str, float]:
        """Estimate what the player would still collect alone; apples that are yet to grow by chance don't count."""
        view = self._read(request.observation)
        steps = _NO_LIMIT if request.steps_left is None else request.steps_left
        return {
            action: self._costs.get(action, 0.0) + self._walk(self._after(view, action)[0], view.apples, steps)
            for action in request.legal_actions
        }

    def _walk(self, cell: int, apples: dict[int, int], steps: int) -> float:
        """Return the reward of a walk that stands on ``cell`` after one of ``steps`` rounds."""
        ready, now, eaten = dict(apples), 1, 0
        while ready:
            if ready.get(cell, now + 1) > now:  # nothing to eat here now: on to where something can be had first
                far = self._far[cell]
                goal = min(ready, key=lambda at: (max(now + far[at], ready[at]), far[at], at))
                now, cell = max(now + self._far[cell][goal], ready[goal]), goal
            if now > steps:
                break
            eaten += 1
            if self._back_after is None:
                del ready[cell]
            else:
                ready[cell] = now + self._back_after
        return eaten * self._game.config.apple_reward


class GatheringPlayer(CommonsPlayer):
    """Gathering: the apple that can be had first."""

    method = "the apple that can be had first, by breadth-first search"

    def __init__(self, game: Gathering) -> None:
        super().__init__(game)
        self._back_after = game.config.refill_rounds


class CleanupPlayer(CommonsPlayer):
    """Cleanup: harvesters, and as ``planner`` the first player as the cleaner."""

    method = "one cleans, the others go for the apple that they can have first"

    def __init__(self, game: Cleanup) -> None:
        super().__init__(game)
        self._costs[CLEAN] = game.config.clean_reward
        self._reach = beams_of(game.config.map, game.config.beam_length, game.config.beam_width)
        self._cleaner = game.players[0]

    def plan(self, request: TurnRequest) -> Choice:
        """Harvest; the first player cleans if that removes enough dirt, or moves to the place with the most a round."""
        view = self._read(request.observation)
        if request.player != self._cleaner:
            return self._harvest(view)
        here = len(self._reach[view.heading][view.cell] & view.dirt)
        best_action, best_rate, best_cells = "", float(here) if here >= _WORTH_CLEANING else 0.0, here
        for cell, heading, first, rounds in self._poses(view):
            cells = len(self._reach[heading][cell] & view.dirt)
            if cells >= _WORTH_CLEANING and cells / (rounds + 1) > best_rate:
                best_action, best_rate, best_cells = first, cells / (rounds + 1), cells
        if best_action:
            return Choice(best_action, f"I keep the river clean, and am going where I can clean {best_cells} cells.")
        if here >= _WORTH_CLEANING and CLEAN in request.legal_actions:
            return Choice(CLEAN, f"I keep the river clean: this removes dirt from {here} cells.")
        return Choice(STAY, "I keep the river clean, and there is too little dirt in one place to be worth it yet.")

    def _poses(self, view: _View) -> list[tuple[int, int, str, int]]:
        """Return every other cell and heading that can be reached, by which first move and after how many rounds."""
        seen = {(view.cell, view.heading)}
        queue = deque([(view, "", 0)])
        poses = []
        while queue:
            at, first, rounds = queue.popleft()
            for action in (*STEPS, *TURNS):
                pose = self._after(at, action)
                if pose not in seen:
                    seen.add(pose)
                    poses.append((*pose, first or action, rounds + 1))
                    queue.append((at._replace(cell=pose[0], heading=pose[1]), first or action, rounds + 1))
        return poses


def _listed(observation: str, label: str) -> list[str]:
    """Return the cells of the line ``"Apples: (0, 1), ..."``."""
    found = re.search(rf"^{label}: (.*)$", observation, re.MULTILINE)
    return _CELL.findall(found[1]) if found else []


@lru_cache(maxsize=16)
def distances(rows: tuple[str, ...]) -> list[list[int]]:
    """Return ``distances[a][b]``: steps from one cell of a map to another; the number of cells if there is no way."""
    board = board_of(rows)
    size = len(board.tiles)
    neighbours = np.zeros((size, size))
    for step in board.steps:
        neighbours[range(size), step] = 1
    from scipy.sparse.csgraph import shortest_path  # here: its import takes longer than a list of players

    far = shortest_path(neighbours, unweighted=True)
    steps: list[list[int]] = np.where(np.isfinite(far), far, size).astype(int).tolist()
    return steps
