"""What players of Gathering and Cleanup read: everything from the reader's own place and heading, then the map."""

from abc import abstractmethod
from collections.abc import Sequence

from textgames.bases import BoardGame, Marks
from textgames.social.commons.board import APPLE, DIRT, FLOOR, HEADINGS, RIVER, START, WALL, Cells, beams_of
from textgames.social.commons.state import Body, CommonsConfig, CommonsState, Deed
from textgames.texts.grids import board_line, board_rows, grid_rows
from textgames.tsmg import JointAction, Player

ARROWS = "^>v<"  # the reader's own mark on the map, by its heading

APPLE_MARK, EMPTY_MARK, FLOOR_MARK, WALL_MARK, RIVER_MARK, DIRT_MARK = "Aa_#~D"

_PLAYERS = (
    (74, 176, 92), (240, 202, 64), (170, 96, 204), (64, 186, 186), (222, 112, 168),
    (240, 128, 36), (150, 186, 60), (120, 108, 220), (232, 160, 128), (200, 200, 200),
)  # fmt: skip
MARKS: Marks = {
    **{str(number): (f"player_{number}", colour) for number, colour in enumerate(_PLAYERS)},
    APPLE_MARK: ("apple", (214, 60, 62)),
    EMPTY_MARK: ("apple cell without its apple", (48, 66, 46)),
    WALL_MARK: ("wall", (120, 134, 150)),
    RIVER_MARK: ("clean river", (70, 132, 222)),
    DIRT_MARK: ("dirt in the river", (134, 98, 58)),
    FLOOR_MARK: ("floor", (28, 32, 38)),
}
_GROUND = str.maketrans(
    {WALL: WALL_MARK, FLOOR: FLOOR_MARK, START: FLOOR_MARK, APPLE: EMPTY_MARK, RIVER: RIVER_MARK, DIRT: RIVER_MARK}
)


class CommonsText(BoardGame[CommonsState]):
    """The texts that both games share; a subclass tells of the apples and the river."""

    marks = MARKS
    key = f"{APPLE_MARK} apple, {EMPTY_MARK} apple cell without its apple"
    shared: str  # what players do, for the first line of the instructions

    def __init__(self, config: CommonsConfig) -> None:
        self.config, self._map, self._names = config, config.board, config.board.names
        self.players = tuple(f"player_{number}" for number in range(config.num_players))
        self._numbers = {player: number for number, player in enumerate(self.players)}
        self._ground = self._map.tiles.translate(_GROUND)
        self._beams = beams_of(config.map, config.beam_length, config.beam_width)
        grid, self._offsets = grid_rows(self._ground, self._map.ncol, False)
        self._grid = list(grid)
        self._header = board_line(self._map.ncol, self._map.nrow)

    @abstractmethod
    def world(self, state: CommonsState, number: int) -> list[str]:
        """Return what a player reads of apples and river."""

    @abstractmethod
    def rules(self) -> list[str]:
        """Return what the instructions say of apples and river."""

    def observe(self, state: CommonsState, player: Player) -> str:
        """Return what a player reads: itself, the others, the world, the last round, and the map with its own arrow."""
        number, names = self._numbers[player], list(self.players)
        body = state.bodies[number]
        others = [f"{other} {name}" for other, name in enumerate(names) if other != number]
        names[number] = "you"
        told = zip(names, state.deeds, strict=False)
        deeds = [f"{name}: {', '.join([deed.action or 'out', *_came_of(deed, names)])}" for name, deed in told]
        returns = [f"{name} {tally.total:g}" for name, tally in zip(names, state.tallies, strict=True)]
        walls = f", {WALL_MARK} wall" if WALL in self._map.tiles else ""
        lines = [
            self._header,
            f"Rounds played: {state.round}",
            *self._own(state, number),
            *[self._other(state, other, body) for other in range(len(names)) if other != number],
            *self.world(state, number),
            f"Last round: {'; '.join(deeds)}." if deeds else "Last round: none yet.",
            f"Reward so far: {', '.join(returns)}",
            f"Map (^ > v < you, pointing where you face, {', '.join(others)}, {self.key}{walls}, {FLOOR_MARK} floor):",
        ]
        grid = self._grid.copy()
        self._draw(state, grid, self._offsets)
        if not body.out:  # the reader finds itself among others on its cell
            grid[self._offsets[body.cell]] = ARROWS[body.heading]
        return "\n".join(lines) + "\n" + "".join(grid)

    def _own(self, state: CommonsState, number: int) -> list[str]:
        body, player = state.bodies[number], self.players[number]
        if body.out:
            return [f"You are {player}: {self._out(body)}."]
        ways = []
        for quarter, way in enumerate(("forward", "step right", "backward", "step left")):
            to = self._map.steps[(body.heading + quarter) % 4][body.cell]
            ways.append(f"{way} is blocked" if to == body.cell else f"{way} to {self._names[to]}")
        reached = self._beams[body.heading][body.cell]
        hit = [self.players[i] for i, o in enumerate(state.bodies) if i != number and not o.out and o.cell in reached]
        return [
            f"You are {player}: {self._place(body)}.",
            f"Ways: {', '.join(ways)}.",
            f"Beam: {ready(body.beam_wait)}; as everyone stands now it would hit {' and '.join(hit) or 'nobody'}.",
        ]

    def _place(self, body: Body) -> str:
        needed = self.config.hits_until_out
        taken = f", hit {body.hits} of {needed} times" if needed > 1 else ""
        return f"at {self._names[body.cell]}, facing {HEADINGS[body.heading]}{taken}"

    def _out(self, body: Body) -> str:
        return f"out for {count(body.out, 'round')}, then back at {self._names[body.home]}"

    def _other(self, state: CommonsState, other: int, reader: Body) -> str:
        body = state.bodies[other]
        if body.out:
            return f"{self.players[other]}: {self._out(body)}."
        aims = not reader.out and not body.beam_wait and reader.cell in self._beams[body.heading][body.cell]
        return f"{self.players[other]}: {self._place(body)}" + ("; its beam would hit you." if aims else ".")

    def _draw(self, state: CommonsState, marks: list[str], places: "Cells | range") -> None:
        for missing, cell in zip(state.apples, self._map.apples, strict=True):
            if not missing:
                marks[places[cell]] = APPLE_MARK
        for cell in state.dirt:
            marks[places[cell]] = DIRT_MARK
        for number in range(len(state.bodies) - 1, -1, -1):
            body = state.bodies[number]
            if not body.out:
                marks[places[body.cell]] = str(number)

    def board(self, state: CommonsState) -> tuple[str, ...]:
        marks = list(self._ground)
        self._draw(state, marks, range(len(marks)))
        return board_rows("".join(marks), self._map.ncol)

    def seen_by(self, state: CommonsState, player: Player) -> None:
        return None  # a board doesn't show who faces where, and how long a player is out

    def describe(self, state: CommonsState) -> str:
        lines = [" ".join(row) for row in self.board(state)]
        for player, body, tally in zip(self.players, state.bodies, state.tallies, strict=True):
            where = f"out for {body.out}" if body.out else f"{self._names[body.cell]} facing {HEADINGS[body.heading]}"
            lines.append(f"{player}: {where}, reward so far {tally.total:g}")
        return "\n".join(lines)

    def what_happened(
        self, state: CommonsState, joint_action: JointAction, next_state: CommonsState, player: Player
    ) -> str:
        number = self._numbers[player]
        out = next_state.bodies[number].out
        if state.bodies[number].out:
            return "out for another round" if out else "back from now on"
        told = _came_of(next_state.deeds[number], self.players, f" ({self.config.apple_reward:+g})")
        by = [self.players[other] for other, one in enumerate(next_state.deeds) if number in one.struck]
        if by:
            told.append("hit by " + " and ".join(by) + (", and out" if out else ""))
        return "; ".join(told)

    def instructions(self, player: Player) -> str:
        config = self.config
        lanes = (
            "in your own lane" if config.beam_width == 1 else f"in {config.beam_width} lanes with yours in the middle"
        )
        hits = "One hit puts" if config.hits_until_out == 1 else f"{config.hits_until_out} hits put"
        cooldown = f" After using it you have to wait {config.beam_cooldown} rounds." if config.beam_cooldown else ""
        prices = (("using it", config.beam_reward), ("being hit", config.hit_reward))
        costs = ", ".join(f"{what} {reward:+g}" for what, reward in prices if reward)
        paid = f" Rewards: {costs}." if costs else " Using it costs nothing."
        lines = [
            f"You are {player}, one of {len(self.players)} players who {self.shared}. "
            "Collect as much reward as you can.",
            "In every round all players choose at the same time. Actions: stay (do nothing); forward, backward, "
            "step left, step right (move by one cell without turning); turn left, turn right (a quarter turn, without "
            "moving); beam" + ("; clean." if DIRT_MARK in self.key else "."),
            "All directions of moves are seen from where you face. Walls and the edge of the map block you. Players "
            "don't block each other.",
            f"The beam hits every other player that stands up to {config.beam_length} cells ahead of you {lanes}, "
            f"after this round's moves. Walls stop it. {hits} a player out for {config.out_rounds} rounds: it does "
            f"nothing in them, and then comes back at its own start.{cooldown}{paid}",
        ]
        return "\n".join([*lines, *self.rules()])


def _came_of(deed: Deed, names: Sequence[str], paid: str = "") -> list[str]:
    """List what came of a player's action; ``paid`` follows an apple that was eaten."""
    told = [f"hit {' and '.join(names[other] for other in deed.struck)}"] if deed.struck else []
    if deed.cleaned:
        told.append(f"removed dirt from {count(deed.cleaned, 'cell')}")
    return [*told, f"ate an apple{paid}"] if deed.ate else told


def ready(wait: int) -> str:
    """Return ``"ready"``, or for how many rounds a beam may not be used."""
    return f"not ready for {count(wait, 'more round')}" if wait else "ready"


def count(number: int, thing: str) -> str:
    """Return a number with its word, such as ``"1 cell"`` and ``"2 cells"``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
