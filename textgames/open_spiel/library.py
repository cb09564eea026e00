"""Loading games of the library, with errors for people, how they read here, and their nodes as values.

``games.toml`` has the rules in our words, and names of actions that can be written easily, for the games that have an
id. Any other game is played with its own action names and a text that says what can be said of every game.
"""

import math
import re
import tomllib
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate, product
from typing import Any

from numpy.random import Generator

from textgames.extras import install_command
from textgames.names import did_you_mean
from textgames.settings import MOST, check_whole
from textgames.tsmg import Action

_CHOICES = re.compile(r"\[(\w)-(\w)\]")

Key = tuple[str, tuple[tuple[str, Any], ...]]
"""A game of the library: its name, and its parameters in order of their names."""


def library() -> Any:
    """Return the module ``pyspiel``, or raise ModuleNotFoundError with the command that installs it."""
    try:
        import pyspiel
    except ModuleNotFoundError:
        sentence = f"OpenSpiel's games need the package open_spiel: {install_command('openspiel')}"
        raise ModuleNotFoundError(sentence, name="pyspiel") from None
    return pyspiel


@cache
def load(name: str, parameters: tuple[tuple[str, Any], ...]) -> Any:
    """Return the library's game; a ValueError if there is none with these parameters, or it can't be played here."""
    pyspiel = library()
    known = {kind.short_name: kind for kind in pyspiel.registered_games()}
    if name not in known:
        raise ValueError(
            f"OpenSpiel has no game {name!r}{did_you_mean(name, known)}; it has {', '.join(sorted(known))}"
        )
    accepted = sorted(known[name].parameter_specification)
    for parameter, value in parameters:
        if isinstance(value, int) and not isinstance(value, bool):  # the library itself takes any, and all the memory
            check_whole(parameter, value, -MOST)
        if parameter not in accepted:
            near = did_you_mean(parameter, accepted)
            raise ValueError(
                f"OpenSpiel's {name} has no parameter {parameter!r}{near}; it has {', '.join(accepted) or 'none'}"
            )
    try:
        game = pyspiel.load_game(name, dict(parameters))
    except (pyspiel.SpielError, TypeError) as error:
        raise ValueError(f"OpenSpiel can't load {name} with {dict(parameters)}: {error}") from None
    kind = game.get_type()
    if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(f"{name} draws its chances inside the library, from no seed of ours, so it can't be repeated")
    if kind.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
        raise ValueError(f"{name} is a mean-field game: it has no players that could be asked one by one")
    if not (kind.provides_observation_string or kind.provides_information_state_string):
        raise ValueError(f"{name} has no text that a player could read")
    return game


@dataclass(frozen=True)
class Reading:
    """One game's readings."""

    rules: str = ""  # the rules in our words; ``""`` if none are written
    seats: tuple[str, ...] = ()  # what each player plays, in the order of players: ``("x", "o")``
    # ``(regular expression, replacement)`` for the library's action names, in lower case
    renamed: tuple[tuple[str, str], ...] = ()
    actions: tuple[str, ...] = ()  # every action's name, after renaming; empty if they aren't listed
    lists_chances: bool = True  # whether the outcomes of every move are few enough to list them

    def rename(self, name: str) -> str:
        for pattern, replacement in self.renamed:
            name = re.sub(pattern, replacement, name)
        return name


@cache
def reading_of(name: str, parameters: tuple[tuple[str, Any], ...]) -> Reading:
    """Return how a game reads; without its rules where its parameters are not those that the rules were written for."""
    for row in _readings().values():
        if row["game"] == name:
            written_for = tuple(sorted(row.get("parameters", {}).items())) == parameters
            return Reading(
                rules=row["rules"].strip() if written_for else "",
                seats=tuple(row.get("seats", ())),
                renamed=tuple((pattern, replacement) for pattern, replacement in row.get("renamed", ())),
                actions=expand(row["actions"]) if written_for else (),
                lists_chances=row.get("lists_chances", True),
            )
    return Reading()


@cache
def _readings() -> Mapping[str, Any]:
    return tomllib.loads(files("textgames").joinpath("open_spiel/games.toml").read_text(encoding="utf-8"))


def expand(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return every name of a list in which ``[a-c]`` stands for each of a, b and c."""
    names = []
    for pattern in patterns:
        pieces = _CHOICES.split(pattern)  # text, first, last, text, first, last, ..., text
        choices = [
            map(chr, range(ord(first), ord(last) + 1)) for first, last in zip(pieces[1::3], pieces[2::3], strict=True)
        ]
        for chosen in product(*choices):
            filled = [text + choice for text, choice in zip(pieces[::3], (*chosen, ""), strict=True)]
            names.append("".join(filled))
    return tuple(names)


MOST_LISTED, MOST_CHARACTERS = 60, 1000
"""Up to so many actions, in so many characters, are listed with a turn; of more the forms are told."""

_FEW, _MOST_FORMS = 3, 8
_SLOT = re.compile(r"(?<![a-z])[a-z](?=\d)|\d+")

_CHESS = ("black, the small letters on the board", "white, the capital letters on the board")
COLOURS: Mapping[str, tuple[str, str]] = {
    "amazons": ("X", "O"),
    "backgammon": ("x", "o"),
    "breakthrough": ("black, b on the board", "white, w on the board"),
    "checkers": ("o", "+"),
    "chess": _CHESS,
    "clobber": ("o", "x"),
    "crazyhouse": _CHESS,
    "dark_chess": _CHESS,
    "go": ("black", "white"),
    "kriegspiel": _CHESS,
    "lines_of_action": ("x", "o"),
    "rbc": _CHESS,
    "shogi": ("black, the capital letters on the board", "white, the small letters on the board"),
    "twixt": ("x", "o"),
    "ultimate_tic_tac_toe": ("x", "o"),
    "xiangqi": ("the capital letters on the board", "the small letters on the board"),
}
"""What the players have by the library's own order of them, in games whose rules aren't written down here."""


def about(game: Any) -> str:
    """Return what the library knows of its game, for the instructions."""
    kind, players = game.get_type(), game.num_players()
    lines = [
        f"{kind.long_name}, as the OpenSpiel library has it under the name {kind.short_name}, "
        f"{'for one player' if players == 1 else f'for {players} players'}.",
    ]
    if parameters := game.get_parameters():
        lines.append(f"Its parameters: {', '.join(f'{name} = {value}' for name, value in parameters.items())}.")
    enums, several = library().GameType, players > 1
    at_once = kind.dynamics == enums.Dynamics.SIMULTANEOUS
    chance = kind.chance_mode != enums.ChanceMode.DETERMINISTIC
    open_ = kind.information == enums.Information.PERFECT_INFORMATION
    told = [
        *(["Players move at the same time." if at_once else "Players move one after the other."] if several else []),
        "Chance plays a part." if chance else "Nothing is left to chance.",
        "Nothing is hidden." if open_ else "Some of it is hidden from some players.",
        f"It lasts at most {game.max_game_length()} moves.",
    ]
    lines.append(" ".join(told))
    when = "at the end" if kind.reward_model == enums.RewardModel.TERMINAL else "as the game goes on"
    paid = f"You are paid {when}, from {game.min_utility():g} to {game.max_utility():g} in all; more is better."
    shared = {
        enums.Utility.ZERO_SUM: "What one player wins others lose.",
        enums.Utility.CONSTANT_SUM: f"What all are paid adds up to {game.utility_sum() or 0:g}.",
        enums.Utility.IDENTICAL: "All are paid the same.",
    }.get(kind.utility, "What one player wins others needn't lose.")
    lines.append(f"{paid} {shared}" if several else paid)
    lines.append(
        "Its rules aren't told here: they are the usual ones, with these parameters, and you are expected to know "
        "them. What you read in each turn is the library's own description, and the legal actions, under the "
        "library's names, are told with every turn."
    )
    return "\n".join(lines)


def turn_order(game: Any, place: int) -> str:
    """Return which player moves first; empty if all move at once or chance decides it."""
    start = game.new_initial_state()
    if game.num_players() == 1 or start.is_chance_node() or start.is_simultaneous_node():
        return ""
    first = start.current_player()
    return "you move first" if first == place else f"player_{first} moves first"


def summary(names: Sequence[str]) -> str:
    """Return the legal actions: all by name if they are few, else their number and their forms, with the first of each.

    ``"90 of the form place ship at (0-8, 0-9)"`` means every number of these ranges; any of them may be written.
    """
    listed = ", ".join(names)
    if len(names) <= MOST_LISTED and len(listed) <= MOST_CHARACTERS:
        return listed
    forms: dict[str, list[str]] = {}
    for name in names:
        forms.setdefault(_SLOT.sub("\0", name), []).append(name)
    told = [_form(form, members) for form, members in list(forms.items())[:_MOST_FORMS]]
    rest = sum(map(len, list(forms.values())[_MOST_FORMS:]))
    more = f"; and {rest} more, of other forms" if rest else ""
    return f"{len(names)} actions are legal: {'; '.join(told)}{more}"


def _form(form: str, members: Sequence[str]) -> str:
    """Return one form: with its ranges if every action of them is legal, else the first few and how many there are."""
    if len(members) <= _FEW:
        return ", ".join(members)
    slots = [
        sorted(set(values), key=lambda value: (int(value) if value.isdigit() else 0, value))
        for values in zip(*map(_SLOT.findall, members), strict=True)
    ]
    if math.prod(map(len, slots)) == len(members):
        pieces = form.split("\0")
        written = "".join(text + between for text, between in zip(pieces, [*map(_ranges, slots), ""], strict=True))
        return f"{written} ({len(members)}, such as {members[0]})"
    return f"{', '.join(members[:_FEW])} and {len(members) - _FEW} more of this form"


def _ranges(values: Sequence[str]) -> str:
    runs: list[list[str]] = []
    for value in values:
        place = int(value) if value.isdigit() else ord(value)
        if runs and place == (int(runs[-1][-1]) if value.isdigit() else ord(runs[-1][-1])) + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return "/".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


# from one node to the next: an action or outcome by its number, or those of all players at once
Move = int | tuple[int, ...]


class SpielState:
    """A node of a game, at which a player decides or the game is over.

    Attributes:
        moves: everything that led here; states of one game are equal when these are.
        node: the library's state; never changed, and no part of the comparison.
    """

    __slots__ = ("_actions", "_game", "moves", "node")

    def __init__(self, game: Key, moves: tuple[Move, ...], node: Any) -> None:
        self._game, self.moves, self.node = game, moves, node
        self._actions: dict[int, dict[Action, int]] = {}

    def actions(self, place: int, reading: Reading) -> Mapping[Action, int]:
        named = self._actions.get(place)
        if named is None:
            named = self._actions[place] = _named_actions(self.node, place, reading)
        return named

    def after(self, move: Move) -> "SpielState":
        node = self.node.clone()
        if isinstance(move, tuple):
            node.apply_actions(list(move))
        else:
            node.apply_action(move)
        return SpielState(self._game, (*self.moves, move), node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpielState) and self.moves == other.moves and self._game == other._game

    def __hash__(self) -> int:
        return hash(self.moves)

    def __reduce__(self) -> tuple[Any, ...]:
        return replay, (self._game, self.moves)

    def __deepcopy__(self, memo: dict[int, Any]) -> "SpielState":
        return self

    def __repr__(self) -> str:
        return f"SpielState({self._game[0]!r}, moves={self.moves})"


def replay(game: Key, moves: tuple[Move, ...]) -> SpielState:
    """Return the state that moves lead to from the beginning."""
    state = SpielState(game, (), load(*game).new_initial_state())
    for move in moves:
        state = state.after(move)
    return state


def _named_actions(node: Any, place: int, reading: Reading) -> dict[Action, int]:
    legal = node.legal_actions(place)
    own = [node.action_to_string(place, action).strip() for action in legal]
    names = [reading.rename(name.casefold()) for name in own]
    if len(set(names)) < len(names):  # Bxc3 and bxc3 are two moves in chess: these keep the library's own names
        names = [name if names.count(name) == 1 else exact for name, exact in zip(names, own, strict=True)]
    return dict(zip(names, legal, strict=True))


def sampled(state: SpielState, rng: Generator) -> SpielState:
    """Draw until a player decides or the game is over: one uniform number for each of chance's nodes."""
    while state.node.is_chance_node():
        moves, chances = zip(*state.node.chance_outcomes(), strict=True)
        drawn = bisect(list(accumulate(chances)), rng.random() * sum(chances))
        state = state.after(moves[min(drawn, len(moves) - 1)])
    return state


def resolved(chance: float, state: SpielState) -> Iterator[tuple[float, SpielState]]:
    """Yield every node at which a player decides or the game is over, with its probability."""
    if not state.node.is_chance_node():
        yield chance, state
        return
    for move, probability in state.node.chance_outcomes():
        if probability > 0:
            yield from resolved(chance * probability, state.after(move))
