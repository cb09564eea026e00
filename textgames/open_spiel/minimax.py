"""The yardstick of OpenSpiel's small games without chance and without secrets: minimax over every position."""

from collections import deque
from collections.abc import Mapping
from functools import cache

from textgames.open_spiel.game import OpenSpiel
from textgames.open_spiel.library import Key, library
from textgames.open_spiel.state import SpielState
from textgames.tsmg import Action, Player
from textgames.yardsticks import Yardstick

MAX_POSITIONS = 20_000
"""The most positions that are solved: about a second."""

Position = tuple[int, str]
"""Who moves (below 0 once the game is over) and the library's text of the position."""


def position_of(state: SpielState) -> Position:
    """What a state's value depends on."""
    return state.node.current_player(), state.node.to_string()


@cache
def positions_of(key: Key) -> Mapping[Position, SpielState] | None:
    """Every position of a game, with one state each, the start first; ``None`` where there are too many."""
    game = OpenSpiel(name=key[0], parameters=dict(key[1]))
    (start,) = [state for _, state in game.initial_outcomes()]
    found, queue = {position_of(start): start}, deque([start])  # the shortest way to each: some games limit moves
    while queue:
        state = queue.popleft()
        if state.node.is_terminal():
            continue
        for move in state.node.legal_actions():
            after = state.after(move)
            if position_of(after) not in found:
                found[position_of(after)] = after
                queue.append(after)
        if len(found) > MAX_POSITIONS:
            return None
    return found


def require_small(game: OpenSpiel) -> None:
    """Raise a ValueError unless two take turns in a zero-sum game without chance, secrets and many positions."""
    pyspiel, kind = library(), game.library_game.get_type()
    solvable = (
        kind.dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
        and kind.chance_mode == pyspiel.GameType.ChanceMode.DETERMINISTIC
        and kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
        and kind.utility == pyspiel.GameType.Utility.ZERO_SUM
        and len(game.players) == 2
    )
    if not solvable or positions_of(game.key) is None:
        raise ValueError(f"{game.key[0]} is no small zero-sum game of two who take turns, without chance and secrets")


class Minimax(Yardstick):
    """Values of optimal play by both, in a zero-sum game of two who take turns, without chance and secrets.

    Raises:
        ValueError: another kind of game, or one with more than :data:`MAX_POSITIONS` positions.
    """

    method = "minimax over all positions"

    def __init__(self, game: OpenSpiel) -> None:
        require_small(game)
        self._game = game
        self._longest = int(game.library_game.max_game_length())
        self._values: dict[tuple[Position, int], float] = {}

    def values(self, state: SpielState, steps_left: int | None, player: Player) -> Mapping[Action, float]:
        place, limit = self._game.players.index(player), self._limit(steps_left)
        sign = 1 if place == 0 else -1
        now = state.node.returns()[0]
        return {
            action: sign * (self._first_players_value(state.after(move), limit - 1) - now)
            for action, move in state.actions(place, self._game.reading).items()
        }

    def value(self, state: SpielState, steps_left: int | None, player: Player) -> float:
        """As for every yardstick, also where the other player is to move."""
        value = self._first_players_value(state, self._limit(steps_left)) - float(state.node.returns()[0])
        return value if player == self._game.players[0] else -value

    def _limit(self, steps_left: int | None) -> int:
        return self._longest if steps_left is None else min(steps_left, self._longest)

    def _first_players_value(self, state: SpielState, limit: int) -> float:
        """The return of the first player under optimal play, what it got before included."""
        node = state.node
        if node.is_terminal() or limit == 0:
            return float(node.returns()[0])
        # a limit that the game can't reach any more plays no part, and equal positions then share one entry
        key = position_of(state), -1 if limit >= self._longest - len(state.moves) else limit
        if key not in self._values:
            best = max if node.current_player() == 0 else min
            later = [self._first_players_value(state.after(move), limit - 1) for move in node.legal_actions()]
            self._values[key] = best(later)
        return self._values[key]


@cache
def states_by_observation(key: Key, observation: str) -> Mapping[tuple[Player, str], SpielState]:
    """``{(who moves, what it reads): a state}`` of a small game.

    Raises:
        ValueError: the game isn't small.
    """
    game = OpenSpiel(name=key[0], parameters=dict(key[1]), observation=observation)
    require_small(game)
    states = positions_of(key) or {}
    return {(player, game.observe(state, player)): state for state in states.values() for player in game.to_move(state)}
