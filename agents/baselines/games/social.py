"""Reference players of Gathering, Cleanup and Werewolf: fixed rules, named as such, and no optimum.

In Gathering and Cleanup ``greedy`` walks to the apple that it can have first; ``planner`` prefers apples that no other
player can have as soon. Neither uses its beam: fired whenever it would hit, it gained nothing. In Cleanup the first
player keeps the river clean as ``planner``; as ``greedy`` all harvest, so the river stays dirty.

In Werewolf ``planner`` follows the seer. The seer says whom it saw to be a wolf, and the village votes for that player
as long as the speaker isn't known to be a wolf. While there is no such claim, the village abstains if an even number is
alive, else votes for the first player in the list. The doctor protects the player that spoke as the seer, else itself;
the wolves attack and vote against that player. They tell no lies. ``greedy`` says nothing and believes no other player.
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
from textgames.social.werewolf.game import ABSTAIN
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


_OWN = re.compile(r"^You are (\w+), a (\w+), ", re.MULTILINE)
_SEEN = re.compile(r"night \d+ (\w+) is a (\w+)")
_FOUND_OUT = re.compile(r"(\w+) \(a wolf\)")
_CLAIM = re.compile(r'^Day \d+: (\w+) says: "I am the seer, and (\w+) is a wolf\."$', re.MULTILINE)
_QUIET = "I have nothing to say."


class _Village(NamedTuple):
    """A player's view, as read from an observation."""

    role: str  #: its own role
    alive: tuple[str, ...]  #: the living players, itself included
    wolves: tuple[str, ...]  #: other living players that it knows to be wolves, as the seer or as their fellow
    cleared: frozenset[str]  #: players that it has seen to be no wolves
    seer: str  #: the living player that it believes to be the seer, or ``""``
    accused: str


class WerewolfPlayer(SearchPlayer):
    """Werewolf by fixed rules: follow the seer."""

    method = "fixed rules: the village follows the seer"

    def values(self, request: TurnRequest) -> dict[str, float]:
        raise ValueError("the reference player of Werewolf follows fixed rules and can't tell what actions are worth")

    def plan(self, request: TurnRequest) -> Choice:
        view = _read_village(request)
        if not request.legal_actions:
            if view.role == "seer" and view.wolves:
                return Choice(f"I am the seer, and {view.wolves[0]} is a wolf.", "The village has to know.")
            return Choice(_QUIET, "I know nothing that would help my side.")
        if ABSTAIN in request.legal_actions or "Vote now" in request.observation:
            return self._vote(view, request)
        if view.role == "doctor":
            for name, why in ((view.seer, "The seer must live."), (request.player, "I had better live.")):
                if name in request.legal_actions:
                    return Choice(name, why)
        if view.role == "wolf" and view.seer in request.legal_actions:
            return Choice(view.seer, "The seer is our greatest danger.")
        return self._random(view, request)

    def _vote(self, view: _Village, request: TurnRequest) -> Choice:
        legal = request.legal_actions
        if view.role == "wolf":
            others = [name for name in legal if name not in (*view.wolves, ABSTAIN)]
            target = view.seer if view.seer in others else others[0]
            return Choice(target, f"Without {target} we are nearer to winning.")
        if view.role == "seer" and view.wolves:
            return Choice(view.wolves[0], f"I have seen that {view.wolves[0]} is a wolf.")
        if view.accused in legal:
            return Choice(view.accused, f"{view.seer} says that {view.accused} is a wolf.")
        if view.accused == request.player and view.seer in legal:
            return Choice(view.seer, f"I am no wolf, so {view.seer} lies.")
        if ABSTAIN in legal and len(view.alive) % 2 == 0:
            # with an even number a wrong vote costs the village a day, and abstaining costs it nothing
            return Choice(ABSTAIN, "We know nothing, and have as many days left if nobody is out today.")
        names = [name for name in legal if name != ABSTAIN]
        target = next((name for name in names if name not in view.cleared), names[0])
        return Choice(target, f"We know nothing, so all of us should vote for the same one, and {target} comes first.")

    def greedy(self, request: TurnRequest) -> Choice:
        if not request.legal_actions:
            return Choice(_QUIET, "I keep what I know to myself.")
        return self._random(_read_village(request), request)

    def _random(self, view: _Village, request: TurnRequest) -> Choice:
        """Return a wolf that it knows of, for the village; else any player not known to be on its own side."""
        names = [name for name in request.legal_actions if name != ABSTAIN]
        voting = "Vote now" in request.observation
        if voting and view.role == "seer" and view.wolves:
            return Choice(view.wolves[0], f"I have seen that {view.wolves[0]} is a wolf.")
        if view.role == "wolf":
            names = [name for name in names if name not in view.wolves] or names
        if view.role == "seer":
            known = view.cleared if voting else {*view.cleared, *view.wolves}
            names = [name for name in names if name not in known] or names
        rng = np.random.default_rng(request.seed or 0)
        return Choice(names[int(rng.integers(len(names)))], "I know nothing that speaks for another choice.")


def _read_village(request: TurnRequest) -> _Village:
    text = request.observation
    own = _OWN.search(text)
    if own is None:
        raise ValueError(f"not an observation of Werewolf: {text[:200]!r}")
    me, role = own.groups()
    alive = _names(text, "Alive")
    wolves, cleared = _names(text, "Your fellow wolves"), frozenset[str]()
    if role == "seer":
        seen = _SEEN.findall(next(line for line in text.splitlines() if line.startswith("You have seen: ")))
        wolves = tuple(name for name, shown in seen if shown == "wolf")
        cleared = frozenset(name for name, shown in seen if shown != "wolf")
    liars = set(_FOUND_OUT.findall(next(line for line in text.splitlines() if line.startswith("Out: "))))
    claims = [(speaker, named) for speaker, named in _CLAIM.findall(text) if speaker not in liars]
    first = claims[0][0] if claims else ""
    accused = next((named for speaker, named in reversed(claims) if speaker == first and named in alive), "")
    seer = first if first in alive and first != me else ""
    return _Village(role, alive, tuple(name for name in wolves if name in alive), cleared, seer, accused)


def _names(text: str, label: str) -> tuple[str, ...]:
    """Return the players of the line ``"Alive: player_0, player_1"``; none if there is no such line."""
    found = re.search(rf"^{label}: (.*)$", text, re.MULTILINE)
    return tuple(re.findall(r"player_\d+", found[1])) if found else ()
