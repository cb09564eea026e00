"""Taxi: fetch a passenger and drive it to its destination, with the dynamics of Gymnasium's ``Taxi-v4``.

The problem is from T. G. Dietterich, "Hierarchical Reinforcement Learning with the MAXQ Value Function Decomposition",
Journal of Artificial Intelligence Research 13 (2000), as are the two variants with chance, rain and a fickle passenger.
"""

import re
from functools import lru_cache
from typing import ClassVar, NamedTuple

from numpy.random import Generator

from textgames.bases import BoardGame, Marks, OnePlayerGame, ReadsBack, neighbours
from textgames.settings import check_number
from textgames.texts.grids import board_line, coordinates_of

ACTIONS = ("south", "north", "east", "west", "pickup", "dropoff")
SIZE = 5
STOPS = (0, 4, 20, 23)  # the cells of the four stops, numbered row by row from the top left: red, green, yellow, blue
RIDING = 4  # the passenger's place while it is in the taxi; else the number of its stop
STEP_REWARD, DELIVERY_REWARD, ILLEGAL_REWARD = -1.0, 20.0, -10.0

_WALLED = frozenset({(1, 2), (6, 7), (15, 16), (17, 18), (20, 21), (22, 23)})  # neighbours with a wall between them
_SOUTH, _NORTH, _EAST, _WEST, _PICKUP, _DROPOFF = range(6)
_LATERAL = ((_EAST, _WEST), (_WEST, _EAST), (_NORTH, _SOUTH), (_SOUTH, _NORTH))  # left and right of each direction


class TaxiState(NamedTuple):
    """Where everybody is."""

    taxi: int  # the taxi's cell
    passenger: int  # the passenger's stop, or :data:`RIDING`
    destination: int  # the stop that it wants to go to
    # whether the passenger may still change its destination, which it does on its first ride or never
    may_change: bool = False


_NEIGHBOURS = tuple(
    tuple(cell if to < 0 or (min(cell, to), max(cell, to)) in _WALLED else to for to in beside)
    for cell, beside in enumerate(neighbours(SIZE, SIZE, ((1, 0), (-1, 0), (0, 1), (0, -1))))
)
_STARTS = tuple(
    (taxi, passenger, destination)
    for taxi in range(SIZE * SIZE)
    for passenger in range(4)
    for destination in range(4)
    if passenger != destination
)


def serve(state: TaxiState, action: int) -> tuple[TaxiState, float, bool]:
    """Pick the passenger up or drop it off: the next state, the reward, and whether the game is over."""
    taxi, passenger, destination, _ = state
    if action == _PICKUP:
        if passenger != RIDING and taxi == STOPS[passenger]:
            return state._replace(passenger=RIDING), STEP_REWARD, False
    elif passenger == RIDING and taxi in STOPS:
        stop = STOPS.index(taxi)
        arrived = stop == destination
        return state._replace(passenger=stop), DELIVERY_REWARD if arrived else STEP_REWARD, arrived
    return state, ILLEGAL_REWARD, False


COLOURS = ("red", "green", "yellow", "blue")
TAXI_MARK, FULL_MARK, PASSENGER_MARK, DESTINATION_MARK, STOP_MARK, ROAD_MARK, WALL_MARK = "TFPDo.|"
_NAMES = coordinates_of(SIZE, SIZE)
_STOP_NAMES = tuple(f"{colour} {_NAMES[cell]}" for colour, cell in zip(COLOURS, STOPS, strict=True))
_FIXED_LINES = (
    f"{board_line(SIZE, SIZE)}\n"
    f"Stops: {', '.join(_STOP_NAMES)}\n"
    f"Walls: {', '.join(f'between {_NAMES[west]} and {_NAMES[east]}' for west, east in sorted(_WALLED))}\n"
)
_MAP_KEY = "Map (T taxi, F taxi with the passenger, P passenger, D destination, o other stop, . road, | wall):\n"
_MAY_CHANGE = "The passenger may change the destination at the start of its first ride.\n"
_FIXED_DESTINATION = "The passenger doesn't change the destination any more.\n"
_READ = re.compile(
    r"^Taxi: (\(\d, \d\))\n"
    rf"Passenger: (?:(in the taxi)|at the destination|waiting at ({'|'.join(COLOURS)}) \(\d, \d\))\n"
    rf"Destination: ({'|'.join(COLOURS)}) ",
    re.MULTILINE,
)


def board_rows(state: TaxiState) -> tuple[str, ...]:
    """Return the map, top row first: the marks of the cells, and between neighbours a wall's mark or a space."""
    taxi, passenger, destination, _ = state
    marks = [ROAD_MARK] * (SIZE * SIZE)
    for stop, cell in enumerate(STOPS):
        marks[cell] = {passenger: PASSENGER_MARK, destination: DESTINATION_MARK}.get(stop, STOP_MARK)
    marks[taxi] = FULL_MARK if passenger == RIDING else TAXI_MARK
    rows = []
    for start in range(0, SIZE * SIZE, SIZE):
        row = marks[start]
        for cell in range(start + 1, start + SIZE):
            row += (WALL_MARK if (cell - 1, cell) in _WALLED else " ") + marks[cell]
        rows.append(row)
    return tuple(rows)


@lru_cache(maxsize=2048)
def observation(state: TaxiState, is_fickle: bool) -> str:
    """Return the observation map ``phi``; there are at most 1,000 different ones."""
    taxi, passenger, destination, may_change = state
    if passenger == RIDING:
        place = "in the taxi"
    else:
        place = "at the destination" if passenger == destination else f"waiting at {_STOP_NAMES[passenger]}"
    return (
        f"{_FIXED_LINES}Taxi: {_NAMES[taxi]}\nPassenger: {place}\nDestination: {_STOP_NAMES[destination]}\n"
        f"{(_MAY_CHANGE if may_change else _FIXED_DESTINATION) if is_fickle else ''}{_MAP_KEY}"
        + "\n".join(board_rows(state))
    )


class Taxi(BoardGame[TaxiState], OnePlayerGame[TaxiState], ReadsBack[TaxiState]):
    """Drive to the passenger, pick it up, drive to its destination, drop it off.

    Every step pays -1, the delivery 20 instead, and picking up or dropping off if that isn't possible -10 instead.

    Args:
        is_rainy: whether a drive that isn't blocked may go astray: to the left or to the right of its direction.
        rainy_probability: in rain, the probability of the direction that was chosen, in [0, 1]; left and right share
            the rest.
        fickle_passenger: whether the passenger may change its destination on its first ride, as the taxi moves.
        fickle_probability: the probability that a fickle passenger does, in [0, 1].
    """

    success_means = "brought the passenger to its destination"
    actions = ACTIONS
    worst_round = ILLEGAL_REWARD
    board_labels = ("0", "", "1", "", "2", "", "3", "", "4"), ("4", "3", "2", "1", "0")
    marks: ClassVar[Marks] = {
        TAXI_MARK: ("taxi", (240, 228, 66)),
        FULL_MARK: ("taxi with the passenger", (213, 94, 0)),
        PASSENGER_MARK: ("passenger", (86, 180, 233)),
        DESTINATION_MARK: ("destination", (0, 158, 115)),
        STOP_MARK: ("other stop", (190, 170, 200)),
        ROAD_MARK: ("", (225, 225, 225)),
        WALL_MARK: ("wall", (60, 60, 60)),
        " ": ("", (205, 205, 205)),
    }

    def __init__(
        self,
        *,
        is_rainy: bool = False,
        rainy_probability: float = 0.8,
        fickle_passenger: bool = False,
        fickle_probability: float = 0.3,
    ) -> None:
        for name, value in (("rainy_probability", rainy_probability), ("fickle_probability", fickle_probability)):
            check_number(name, value, 0, 1)
        self.is_rainy, self.fickle_passenger = bool(is_rainy), bool(fickle_passenger)
        self.rainy_probability = float(rainy_probability) if is_rainy else 1.0
        self.fickle_probability = float(fickle_probability) if fickle_passenger else 0.0

    def initial_state(self, rng: Generator) -> TaxiState:
        """Return one of 300 equally likely starts: a taxi anywhere, passenger and destination at different stops."""
        return TaxiState(*_STARTS[int(rng.integers(len(_STARTS)))], self.fickle_passenger)

    def initial_outcomes(self) -> list[tuple[float, TaxiState]]:
        return [(1 / len(_STARTS), TaxiState(*start, self.fickle_passenger)) for start in _STARTS]

    def act(self, state: TaxiState, action: str, rng: Generator) -> tuple[TaxiState, float, bool]:
        """Play one step; in rain, and when a passenger changes its mind, it takes uniform numbers of ``rng``."""
        way = ACTIONS.index(action)
        if way >= _PICKUP:
            return serve(state, way)
        taxi, passenger, destination, may_change = state
        cell = _NEIGHBOURS[taxi][way]
        if self.is_rainy and cell != taxi:
            chance = rng.random()
            if chance >= self.rainy_probability:
                cell = _NEIGHBOURS[taxi][_LATERAL[way][int(chance >= (1 + self.rainy_probability) / 2)]]
        if may_change and passenger == RIDING and cell != taxi:
            may_change = False
            if rng.random() < self.fickle_probability:
                destination = (destination + 1 + int(rng.random() * 3)) % 4
        return TaxiState(cell, passenger, destination, may_change), STEP_REWARD, False

    def chances(self, state: TaxiState, action: str) -> list[tuple[float, TaxiState, float, bool]]:
        way = ACTIONS.index(action)
        if way >= _PICKUP:
            return [(1.0, *serve(state, way))]
        taxi, passenger, destination, may_change = state
        ahead, aside = _NEIGHBOURS[taxi][way], (1.0 - self.rainy_probability) / 2.0
        left, right = [taxi if ahead == taxi else _NEIGHBOURS[taxi][lateral] for lateral in _LATERAL[way]]
        listed = []
        for chance, cell in ((self.rainy_probability, ahead), (aside, left), (aside, right)):
            decides, change = may_change and passenger == RIDING and cell != taxi, self.fickle_probability / 3
            wishes = {stop: change for stop in range(4) if stop != destination} if decides else {}
            for wish, mind in {destination: 1.0 - self.fickle_probability * decides, **wishes}.items():
                if chance * mind:
                    after = TaxiState(cell, passenger, wish, may_change and not decides)
                    listed.append((chance * mind, after, STEP_REWARD, False))
        return listed

    def is_playing(self, state: TaxiState, player: str) -> bool:
        return state.passenger != state.destination

    def succeeded(self, state: TaxiState, player: str) -> bool:
        return not self.is_playing(state, player)

    def observe(self, state: TaxiState, player: str) -> str:
        return observation(state, self.fickle_passenger)

    def instructions(self, player: str) -> str:
        rain = (
            "It is raining: a drive that nothing blocks goes in the direction that you choose with probability "
            f"{self.rainy_probability:.3g}, and to the left and to the right of it with probability "
            f"{(1 - self.rainy_probability) / 2:.3g} each.\n"
            if self.is_rainy
            else ""
        )
        fickle = (
            "With the first move of the passenger's first ride, it changes its destination to another stop with "
            f"probability {self.fickle_probability:.3g}.\n"
            if self.fickle_passenger
            else ""
        )
        return (
            "You are driving a taxi. Drive to the passenger, pick it up, drive to its destination and drop it off "
            "there, in as few steps as you can.\n"
            "Each turn you drive to a neighbouring cell, south (Y - 1), north (Y + 1), east (X + 1) or west (X - 1), "
            "or take the passenger in (pickup) or let it out (dropoff). Walls and the edges of the board leave you "
            "where you are.\n"
            f"{rain}{fickle}"
            "Every step gives a reward of -1. Letting the passenger out at its destination gives 20 instead and ends "
            "the game. It can be let out at any other stop, too, and be picked up there again. Trying to pick up where "
            "the passenger isn't, or to drop off where that isn't possible, gives -10 instead.\n"
            f"Actions: {', '.join(ACTIONS)}."
        )

    def shown(self, observation: str, player: str) -> TaxiState:
        taxi, riding, waiting, wish = _READ.findall(observation)[0]
        destination = COLOURS.index(wish)
        passenger = RIDING if riding else COLOURS.index(waiting) if waiting else destination
        return TaxiState(_NAMES.index(taxi), passenger, destination, _MAY_CHANGE in observation)

    def told(self, state: TaxiState, action: str, after: TaxiState) -> str:
        way = ACTIONS.index(action)
        if way >= _PICKUP:
            _, reward, arrived = serve(state, way)
            if reward == ILLEGAL_REWARD:
                return f"can't {action} here"
            if way == _PICKUP:
                return "picked the passenger up"
            return "delivered the passenger" if arrived else "let the passenger out at the wrong stop"
        told = []
        if after.taxi == state.taxi:
            told.append("blocked")
        elif after.taxi != _NEIGHBOURS[state.taxi][way]:
            told.append("went astray in the rain")
        if after.destination != state.destination:
            told.append(f"the passenger now wants to go to {COLOURS[after.destination]}")
        return "; ".join(told)

    def board(self, state: TaxiState) -> tuple[str, ...]:
        return board_rows(state)

    def describe(self, state: TaxiState) -> str:
        return "\n".join(board_rows(state))
