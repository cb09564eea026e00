"""What players of Gathering and Cleanup read: everything from the reader's own place and heading, then the map."""

from collections.abc import Sequence

from textgames.bases import Marks
from textgames.social.commons.board import APPLE, DIRT, FLOOR, HEADINGS, RIVER, START, WALL, Cells, beams_of
from textgames.social.commons.state import Body, CommonsConfig, CommonsState, Deed
from textgames.texts.grids import board_line, grid_rows

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
_GROUND = {
    WALL: WALL_MARK,
    FLOOR: FLOOR_MARK,
    START: FLOOR_MARK,
    APPLE: EMPTY_MARK,
    RIVER: RIVER_MARK,
    DIRT: RIVER_MARK,
}


class CommonsText:
    """The texts that both games share, for one configuration; a subclass tells of the apples and the river."""

    key = f"{APPLE_MARK} apple, {EMPTY_MARK} apple cell without its apple"
    shared: str  # what players do, for the first line of the instructions

    def __init__(self, config: CommonsConfig) -> None:
        self.config = config
        self.players = tuple(f"player_{number}" for number in range(config.num_players))
        self._map = config.board
        self._names = self._map.names
        self._ground = [_GROUND[tile] for tile in self._map.tiles]
        self._beams = beams_of(config.map, config.beam_length, config.beam_width)
        grid, self._offsets = grid_rows("".join(self._ground), self._map.ncol, False)
        self._grid = list(grid)
        self._header = board_line(self._map.ncol, self._map.nrow)

    def world(self, state: CommonsState, number: int) -> list[str]:
        raise NotImplementedError

    def rules(self) -> list[str]:
        raise NotImplementedError

    def observe(self, state: CommonsState, number: int) -> str:
        """Return what a player reads: itself, the others, the world, the last round, and the map with itself as an
        arrow.
        """
        body, names = state.bodies[number], list(self.players)
        others = [f"{other} {player}" for other, player in enumerate(names) if other != number]
        names[number] = "you"
        deeds = [f"{name}: {self._deed(deed, names)}" for name, deed in zip(names, state.deeds, strict=False)]
        returns = [f"{name} {tally.total:g}" for name, tally in zip(names, state.tallies, strict=True)]
        walls = f", {WALL_MARK} wall" if WALL in self._map.tiles else ""
        lines = [
            self._header,
            f"Rounds played: {state.round}",
            *self._own(state, number),
            *[self._other(state, other, number) for other in range(len(names)) if other != number],
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
        aim = f"as everyone stands now it would hit {' and '.join(hit) or 'nobody'}"
        return [
            f"You are {player}: {self._place(body)}.",
            f"Ways: {', '.join(ways)}.",
            f"Beam: {ready(body.beam_wait)}; {aim}.",
        ]

    def _place(self, body: Body) -> str:
        needed = self.config.hits_until_out
        taken = f", hit {body.hits} of {needed} times" if needed > 1 else ""
        return f"at {self._names[body.cell]}, facing {HEADINGS[body.heading]}{taken}"

    def _out(self, body: Body) -> str:
        return f"out for {count(body.out, 'round')}, then back at {self._names[body.home]}"

    def _other(self, state: CommonsState, other: int, reader: int) -> str:
        body, own = state.bodies[other], state.bodies[reader]
        if body.out:
            return f"{self.players[other]}: {self._out(body)}."
        aims = not own.out and not body.beam_wait and own.cell in self._beams[body.heading][body.cell]
        return f"{self.players[other]}: {self._place(body)}" + ("; its beam would hit you." if aims else ".")

    def _deed(self, deed: Deed, names: Sequence[str]) -> str:
        if not deed.action:
            return "out"
        text = deed.action
        if deed.struck:
            text += f", hit {' and '.join(names[other] for other in deed.struck)}"
        if deed.cleaned:
            text += f", removed dirt from {count(deed.cleaned, 'cell')}"
        return f"{text}, ate an apple" if deed.ate else text

    def marks(self, state: CommonsState) -> list[str]:
        marks = self._ground.copy()
        self._draw(state, marks, range(len(marks)))
        return marks

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

    def standing(self, state: CommonsState) -> list[str]:
        lines = []
        for player, body, tally in zip(self.players, state.bodies, state.tallies, strict=True):
            where = f"out for {body.out}" if body.out else f"{self._names[body.cell]} facing {HEADINGS[body.heading]}"
            lines.append(f"{player}: {where}, reward so far {tally.total:g}")
        return lines

    def what_happened(self, state: CommonsState, number: int) -> str:
        deed, told = state.deeds[number], []
        if deed.struck:
            told.append("hit " + " and ".join(self.players[other] for other in deed.struck))
        if deed.cleaned:
            told.append(f"removed dirt from {count(deed.cleaned, 'cell')}")
        if deed.ate:
            told.append(f"ate an apple ({self.config.apple_reward:+g})")
        by = [self.players[other] for other, one in enumerate(state.deeds) if number in one.struck]
        if by:
            told.append("hit by " + " and ".join(by) + (", and out" if state.bodies[number].out else ""))
        return "; ".join(told)

    def instructions(self, player: str) -> str:
        config = self.config
        lanes = (
            "in your own lane" if config.beam_width == 1 else f"in {config.beam_width} lanes with yours in the middle"
        )
        hits = "One hit puts" if config.hits_until_out == 1 else f"{config.hits_until_out} hits put"
        cooldown = f" After using it you have to wait {config.beam_cooldown} rounds." if config.beam_cooldown else ""
        costs = [
            f"{what} {reward:+g}"
            for what, reward in (("using it", config.beam_reward), ("being hit", config.hit_reward))
            if reward
        ]
        paid = f" Rewards: {', '.join(costs)}." if costs else " Using it costs nothing."
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


def ready(wait: int) -> str:
    """Return ``"ready"``, or for how many rounds a beam may not be used."""
    return f"not ready for {count(wait, 'more round')}" if wait else "ready"


def count(number: int, thing: str) -> str:
    """Return a number with its word, such as ``"1 cell"`` and ``"2 cells"``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
