"""The observation map of Snake, the instructions for the prompt, and the spectator's board."""

from typing import TypeVar

from textgames.bases import Marks
from textgames.snake.rules import ACTIONS, Cells, SnakeRules, SnakeState
from textgames.texts.grids import board_line, coordinates_of, grid_rows
from textgames.tsmg import SeenBoard

ValueT = TypeVar("ValueT")

HEADS = "123456789"
BODY, APPLE, BANANA, FIRE, EMPTY = "TABF_"

_HEAD_COLOURS = (
    (74, 176, 92), (70, 132, 222), (170, 96, 204), (64, 186, 186), (222, 112, 168), (150, 120, 84), (150, 186, 60),
    (120, 108, 220), (232, 160, 128),
)  # fmt: skip
MARKS: Marks = {
    **{head: (f"head of snake {head}", colour) for head, colour in zip(HEADS, _HEAD_COLOURS, strict=True)},
    BODY: ("body", (120, 134, 150)),
    APPLE: ("apple", (214, 60, 62)),
    BANANA: ("banana", (240, 202, 64)),
    FIRE: ("fire", (240, 128, 36)),
    EMPTY: ("empty", (28, 32, 38)),
}


def empty_grid(width: int, height: int, axes: bool) -> tuple[bytes, Cells]:
    """Return an empty board as ASCII text, and the index into it of every cell's character."""
    text, offsets = grid_rows(EMPTY * (width * height), width, axes)
    return text.encode("ascii"), _upwards(offsets, width)


def _upwards(values: tuple[ValueT, ...], width: int) -> tuple[ValueT, ...]:
    """Turn the order of the written rows, top first, into the order of the cells, bottom first."""
    starts = range(len(values) - width, -1, -width)
    return tuple(value for start in starts for value in values[start : start + width])


class SnakeText:
    """The texts of a game of Snake, for one choice of what is told."""

    def __init__(self, game: SnakeRules) -> None:
        self.game, self.coordinates, self.grid, self.axes = game, game.coordinates, game.grid, game.axes
        self._names = _upwards(coordinates_of(game.height, game.width), game.width)
        self._template, self._offsets = empty_grid(game.width, game.height, game.axes)
        self._plain_template, self._plain_offsets = empty_grid(game.width, game.height, False)
        # in the order in which a state has them
        self._foods = (
            ("an apple", APPLE, game.num_apples, game.apple_reward),
            ("a banana", BANANA, game.num_bananas, game.banana_reward),
            ("a fire", FIRE, game.num_fires, game.fire_reward),
        )
        self._header = board_line(game.width, game.height)
        # (what stands before the list, its place among the foods of the state) of every kind of food that there is
        self._lists = tuple(
            (f"\n{name.split()[1].title()}s ({worth:+g} each): ", field)
            for field, (name, _, number, worth) in enumerate(self._foods)
            if number
        )
        # snakes of length 1 are common in an episode's first rounds, so their texts are kept
        self._short = tuple(f"head {name}, body none" for name in self._names)
        self._key = self._key_line()

    def _key_line(self) -> str:
        heads = ["1 your head"]
        if self.game.num_snakes > 1:
            heads.append("2 enemy head" if self.game.num_snakes == 2 else "2.. enemy heads")
        food = [
            f"{letter} {name.split()[1]}" + ("" if self.coordinates else f" ({worth:+g})")
            for name, letter, number, worth in self._foods
            if number
        ]
        key = ", ".join([*heads, f"{BODY} body", *food, f"{EMPTY} empty"])
        if self.axes:
            key += "; rows are Y, columns are X"
        elif not self.coordinates:  # nothing else would tell which row is Y = 0
            key += "; the top row has the largest Y"
        return f"\nGrid ({key}):\n"

    def observe(self, state: SnakeState, reader: int) -> str:
        """Return what snake ``reader`` reads: it is number 1, the others are 2, 3, ... in order; dead ones are left
        out.

        Items of one kind are listed in the order of their cells, bodies from head to tail.
        """
        snakes = state[0]
        own = snakes[reader]
        others = snakes[:reader] + snakes[reader + 1 :]
        text = self._header
        if self.coordinates:
            text += self._coordinate_lines(state, own, others)
        elif not own:
            text += "\nYou: dead"
        if self.grid:
            grid = bytearray(self._template)
            _draw(grid, self._offsets, (own, *others), state)
            return text + self._key + grid.decode("ascii")
        return text

    def _coordinate_lines(self, state: SnakeState, own: Cells, others: tuple[Cells, ...]) -> str:
        names, foods = self._names, state[1:]
        text = ""
        for label, field in self._lists:
            text += label + (", ".join([names[cell] for cell in foods[field]]) or "none")
        number = 2
        for snake in others:
            if snake:
                text += f"\nEnemy {number}: {self._snake_text(snake)}"
            number += 1
        return f"{text}\nYou: {self._snake_text(own)}" if own else text + "\nYou: dead"

    def _snake_text(self, snake: Cells) -> str:
        if len(snake) == 1:
            return self._short[snake[0]]
        head, *body = [self._names[cell] for cell in snake]
        return f"head {head}, body {', '.join(body)}"

    def board(self, snakes: tuple[Cells, ...], state: SnakeState) -> tuple[str, ...]:
        grid = bytearray(self._plain_template)
        _draw(grid, self._plain_offsets, snakes, state)
        return tuple(grid.decode("ascii").replace(" ", "").split("\n"))

    def seen_by(self, state: SnakeState, reader: int) -> SeenBoard:
        """Return the board with the reader's own snake as number 1, as its text has it."""
        snakes, food = state.snakes, {letter: name.split()[1] for name, letter, number, _ in self._foods if number}
        heads = {head: f"head of enemy {head}" for head in HEADS[: len(snakes)]} | {HEADS[0]: "your head"}
        legend = {**heads, BODY: "body", **food, EMPTY: "empty"}
        return self.board((snakes[reader], *snakes[:reader], *snakes[reader + 1 :]), state), legend

    def meal(self, state: SnakeState, cell: int) -> str:
        """Return ``"ate an apple (+1)"`` for a snake whose head moves onto ``cell``, or ``""`` if there is no food."""
        for (name, _, _, worth), cells in zip(self._foods, state[1:], strict=True):
            if cell in cells:
                return f"ate {name} ({worth:+g})"
        return ""

    def instructions(self) -> str:
        game = self.game
        food = [f"{name} {worth:+g}" for name, _, number, worth in self._foods if number]
        lines = [
            f"You control a snake on a board that is {game.width} cells wide and {game.height} cells high. "
            "Collect as much reward as you can.",
            f"Actions: {', '.join(ACTIONS)}. Up increases Y, down decreases Y, left decreases X, right increases X.",
            "In every round all snakes choose at the same time, and all heads move by one cell at the same time.",
            "You die if your head leaves the board, if it enters a cell that any snake (you included) occupied before "
            "this round's move, tails included, or if it enters the same cell as another head.",
        ]
        if food:
            lines.append(
                f"Rewards for moving onto food: {', '.join(food)}. Every piece of food makes your snake one cell "
                "longer, and reappears on a random empty cell. Otherwise your body follows your head."
            )
        lines.append(f"Dying: {game.death_reward:+g}, once; your game is then over.")
        if game.step_reward:
            lines.append(f"Every round you play: {game.step_reward:+g}.")
        others, opponents = game.num_players - 1, game.num_opponents
        enemies = f"Number of enemy snakes: {others + opponents}. A dead snake leaves the board."
        lines.append(enemies if others + opponents else "You are the only snake.")
        if others:
            lines.append(f"Enemies that other players control: {others}.")
        if opponents:
            lines.append(
                f"Enemies that move at random: {opponents}. Each picks, with equal chances, a direction that hits "
                "neither a wall nor its own body; if there is none, any direction."
            )
        return "\n".join(lines)


def _draw(grid: bytearray, offsets: Cells, snakes: tuple[Cells, ...], state: SnakeState) -> None:
    _, apples, bananas, fires = state
    for cell in apples:
        grid[offsets[cell]] = _APPLE
    for cell in bananas:
        grid[offsets[cell]] = _BANANA
    for cell in fires:
        grid[offsets[cell]] = _FIRE
    head = _FIRST_HEAD
    for snake in snakes:
        if snake:
            for cell in snake:
                grid[offsets[cell]] = _BODY
            grid[offsets[snake[0]]] = head
        head += 1


_FIRST_HEAD, _BODY, _APPLE, _BANANA, _FIRE = b"1TABF"
