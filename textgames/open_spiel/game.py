"""A game of OpenSpiel as a TSMG.

``pyspiel.State -> SpielState -> text``. Chance never reaches a player: its nodes are sampled with the generator that
the contract hands in, right after the move before them, and listed exactly in :meth:`OpenSpiel.outcomes`.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Any

from numpy.random import Generator

from textgames.open_spiel.library import (
    COLOURS,
    SpielState,
    about,
    library,
    load,
    reading_of,
    replay,
    resolved,
    sampled,
    summary,
    turn_order,
)
from textgames.open_spiel.minimax import small_positions
from textgames.settings import check_one_of
from textgames.texts.actions import Unreadable, UnreadableReason
from textgames.tsmg import TSMG, Action, JointAction, Outcome, Player, Rewards, Transition

MAX_OUTCOMES = 20_000  # the most outcomes of chance that are listed at once: a deal of many cards has more

# the most action names that the rules list; a game with more of them tells the legal ones with every turn
MAX_LISTED = 150


class OpenSpiel(TSMG[SpielState]):
    """A game of OpenSpiel.

    Args:
        name: as the library calls it, ``"kuhn_poker"``.
        parameters: the game's parameters, ``{"players": 3}``.
        observation: what a player reads: ``"observation"`` (the library's observation string), ``"history"`` (its
            information state string, which has everything that the player saw and did since the start), or ``"auto"``:
            the latter where something is hidden and the library has it, because each turn is read on its own.

    Raises:
        ValueError: no such game, parameter or text, or a game that can't be played here; the message says why.
        ModuleNotFoundError: the library isn't installed.
    """

    success_means = "got the most of all, and more than 0"

    def __init__(
        self,
        *,
        name: str = "tic_tac_toe",
        parameters: Mapping[str, Any] | None = None,
        observation: str = "auto",
    ) -> None:
        if not isinstance(parameters or {}, Mapping):
            raise ValueError(f'parameters must be a dictionary such as {{"players": 3}}, got {parameters!r}')
        self._made_of = (name, tuple(sorted((parameters or {}).items())), observation)
        self.key = self._made_of[:2]  # the library's game; equal keys are equal rules
        self._game = game = load(*self.key)
        pyspiel, kind = library(), game.get_type()
        self.reading = reading_of(*self.key)
        self.players = tuple(f"player_{number}" for number in range(game.num_players()))
        self.actions = self.reading.actions
        self.longest_episode = game.max_game_length()
        ends = float(game.min_utility()), float(game.max_utility())
        self.return_range = ends if all(map(math.isfinite, ends)) else None
        self.zero_sum = len(self.players) == 2 and kind.utility == pyspiel.GameType.Utility.ZERO_SUM
        self._team = kind.utility == pyspiel.GameType.Utility.IDENTICAL
        self.hidden_information = kind.information == pyspiel.GameType.Information.IMPERFECT_INFORMATION
        self._history_is_read = _reads_history(name, kind, self.hidden_information, observation)

    @property
    def library_game(self) -> Any:
        """The library's own game, for its algorithms."""
        return self._game

    def __reduce__(self) -> tuple[Any, ...]:
        name, parameters, observation = self._made_of
        return partial(OpenSpiel, name=name, parameters=dict(parameters), observation=observation), ()

    # ---------------------------------------------------------------- rules

    def initial_state(self, rng: Generator) -> SpielState:
        return sampled(replay(self.key, ()), rng)

    def initial_outcomes(self) -> Sequence[tuple[float, SpielState]]:
        return self._listed(replay(self.key, ()))

    @cached_property
    def has_initial_outcomes(self) -> bool:
        """Whether chance begins the game in few enough ways to list them."""
        return len(list(islice(resolved(1.0, replay(self.key, ())), MAX_OUTCOMES + 1))) <= MAX_OUTCOMES

    @property
    def has_outcomes(self) -> bool:
        """Whether a round has few enough outcomes to be listed; they aren't where many cards are dealt at once."""
        return self.reading.lists_chances

    def _listed(self, state: SpielState) -> list[tuple[float, SpielState]]:
        listed = list(islice(resolved(1.0, state), MAX_OUTCOMES + 1))
        if len(listed) > MAX_OUTCOMES:
            raise NotImplementedError(f"chance has more than {MAX_OUTCOMES:,} outcomes here in {self.key[0]}")
        return listed

    def to_move(self, state: SpielState) -> tuple[Player, ...]:
        node = state.node
        if node.is_terminal():
            return ()
        if node.is_simultaneous_node():
            return tuple(player for place, player in enumerate(self.players) if node.legal_actions(place))
        return (self.players[node.current_player()],)

    def legal_actions(self, state: SpielState, player: Player) -> tuple[Action, ...]:
        return tuple(state.actions(self.players.index(player), self.reading))

    def transition(self, state: SpielState, joint_action: JointAction, rng: Generator) -> Transition[SpielState]:
        after = sampled(self._moved(state, joint_action), rng)
        return after, self._paid(state, after), bool(after.node.is_terminal())

    def outcomes(self, state: SpielState, joint_action: JointAction) -> Sequence[Outcome[SpielState]]:
        return [
            (chance, after, self._paid(state, after), bool(after.node.is_terminal()))
            for chance, after in self._listed(self._moved(state, joint_action))
        ]

    def _moved(self, state: SpielState, joint_action: JointAction) -> SpielState:
        moving = self.to_move(state)
        if not moving:
            raise ValueError(f"the game of {self.key[0]} is over, so no player can move")
        numbers = {}
        for player in moving:
            legal = state.actions(self.players.index(player), self.reading)
            action = joint_action.get(player)
            if action is None or action not in legal:
                raise ValueError(f"{player} may play {', '.join(legal)}; got {action!r}")
            numbers[player] = legal[action]
        if state.node.is_simultaneous_node():  # who has no choice there is given the number 0, which the library wants
            return state.after(tuple(numbers.get(player, 0) for player in self.players))
        return state.after(numbers[moving[0]])

    def _paid(self, before: SpielState, after: SpielState) -> Rewards:
        paid = zip(self.players, before.node.returns(), after.node.returns(), strict=True)
        return {player: float(now - then) for player, then, now in paid}

    def forfeit(self, state: SpielState, player: Player, rounds_left: float) -> Rewards:
        """Return the lowest return; a team that has been paid already, as in Hanabi, can still lose all of that."""
        lost = super().forfeit(state, player, rounds_left)
        return {**lost, player: lost[player] - state.node.returns()[self.players.index(player)]} if self._team else lost

    def succeeded(self, state: SpielState, player: Player) -> bool:
        """Return whether a player of several got the most of all, and something above 0; alone, something above 0."""
        if not state.node.is_terminal():
            return False
        returns = state.node.returns()
        return bool(returns[self.players.index(player)] == max(returns) > 0)

    # ---------------------------------------------------------------- text

    def observe(self, state: SpielState, player: Player) -> str:
        node, place = state.node, self.players.index(player)
        text = node.information_state_string(place) if self._history_is_read else node.observation_string(place)
        return f"{_printable(text)}\n{self._turn(state, player)}".strip("\n")

    def _turn(self, state: SpielState, player: Player) -> str:
        node = state.node
        if node.is_terminal():
            return f"The game is over. Your return is {node.returns()[self.players.index(player)]:g}."
        moving = self.to_move(state)
        if len(moving) > 1 and player in moving:
            return "It is your turn, and others move at the same time."
        return "It is your turn." if player in moving else f"It is the turn of {' and '.join(moving)}."

    def instructions(self, player: Player) -> str:
        reading, place = self.reading, self.players.index(player)
        lines = [reading.rules or about(self._game)]
        if len(self.players) > 1:
            seats = reading.seats or COLOURS.get(self.key[0], ())
            order = "" if reading.seats or reading.rules else turn_order(self._game, place)
            told = [f"You are {player}", *seats[place : place + 1], *([f"and {order}"] if order else [])]
            lines.append(f"{', '.join(told)}.")
        if 0 < len(self.actions) <= MAX_LISTED:
            lines.append(f"Actions: {', '.join(self.actions)}.")
        return "\n".join(lines)

    def action_help(self, state: SpielState, player: Player) -> str:
        return summary(self.legal_actions(state, player))

    def read_action(self, inside: str, state: SpielState, player: Player) -> Action | Unreadable:
        """Return a legal action by its name, in any case unless two of them differ by that alone."""
        legal, name = state.actions(self.players.index(player), self.reading), inside.strip()
        if name in legal:
            return name
        alike = [each for each in legal if each.casefold() == name.casefold()]
        if len(alike) == 1:
            return alike[0]
        if not name:
            return Unreadable(UnreadableReason.EMPTY, inside)
        known = name.casefold() in self.action_names
        return Unreadable(UnreadableReason.ILLEGAL if known else UnreadableReason.UNKNOWN_NAME, inside)

    @cached_property
    def reads_observations(self) -> bool:
        try:
            return bool(small_positions(self.key))
        except ValueError:
            return False

    def read_observation(self, observation: str, player: Player) -> SpielState:
        """Return a state in which a player who is to move reads this: in games small enough for minimax."""
        state = self._states_by_observation.get((player, observation))
        if state is None:
            raise ValueError(f"not an observation of {self.key[0]} at which {player} is to move: {observation[:80]!r}")
        return state

    @cached_property
    def _states_by_observation(self) -> Mapping[tuple[Player, str], SpielState]:
        try:
            states = small_positions(self.key).values()
        except ValueError as error:
            raise NotImplementedError(f"observations can't be read back: {error}") from None
        return {(player, self.observe(state, player)): state for state in states for player in self.to_move(state)}

    def describe(self, state: SpielState) -> str:
        return _printable(state.node.to_string())


def _reads_history(name: str, kind: Any, hidden: bool, observation: str) -> bool:
    check_one_of("observation", observation, ("auto", "observation", "history"))
    has = {"observation": kind.provides_observation_string, "history": kind.provides_information_state_string}
    if observation == "auto":
        return bool(has["history"] and (hidden or not has["observation"]))
    if not has[observation]:
        raise ValueError(f"{name} has no such text: observation={observation!r}; leave it at 'auto'")
    return observation == "history"


def _printable(text: str) -> str:
    lines = [
        "".join(char if char.isprintable() else " " for char in line.expandtabs()).rstrip() for line in text.split("\n")
    ]
    return "\n".join(lines).strip("\n")
