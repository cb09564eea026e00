"""A game for several players as one of them meets it, in Gymnasium's environments: the others play inside."""

from collections.abc import Callable, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, NamedTuple

import numpy as np

from textgames.environments.rules import EpisodeRules, not_a_response
from textgames.environments.table import Round, Table
from textgames.tsmg import TSMG, Player


class OpponentTurn(NamedTuple):
    """What a player inside an environment is asked with."""

    observation: str
    instructions: str
    legal_actions: tuple[str, ...]  # empty if they can't be listed
    player: Player
    rng: np.random.Generator  # the environment's, for players that draw
    game: TSMG[Any]
    state: Any  # hidden parts included, for code that asks a player in another form
    steps_left: int | None  # rounds until truncation, this one included; ``None`` if there is no limit


Opponent = Callable[[OpponentTurn], str]
"""A player inside an environment: its turn -> its response."""


class Together:
    """An opponent that answers many turns at once, as a model does: a batch of games asks it once for all of them."""

    def __init__(self, answer: Callable[[list[OpponentTurn]], Sequence[str]]) -> None:
        self._answer = answer

    def __call__(self, turn: OpponentTurn) -> str:
        return self.answer([turn])[0]

    def answer(self, turns: list[OpponentTurn]) -> Sequence[str]:
        """Return the responses to the turns, in their order; a ValueError if the function gave another number."""
        responses = self._answer(turns)
        if isinstance(responses, str) or len(responses) != len(turns):
            raise ValueError(f"opponents must give {len(turns)} responses to {len(turns)} turns, got {responses!r}")
        return responses


class Seat:
    """The one player outside, and the players inside; a ValueError for an unknown or missing player or agent.

    Args:
        player: the player outside; the first one when not given.
        opponents: the players inside: ``"random"`` (legal actions with equal chances), an agent by its name
            (``"planner"``), an :data:`Opponent` such as one that answers :class:`Together`, or ``{player: any of
            them}``. ``None`` in a game for one player.

    Attributes:
        alone: whether no player inside writes responses, so that a table plays by itself up to the player's next turn.
    """

    def __init__(self, game: TSMG[Any], player: Player | None, opponents: Any) -> None:
        self._game, self.player = game, game.players[0] if player is None else player
        others = [other for other in game.players if other != self.player]
        if len(others) == len(game.players):
            raise ValueError(f"seat must be one of {', '.join(game.players)}, got {player!r}")
        if not others and opponents not in (None, "random"):  # which an id is registered with whose game may have more
            raise ValueError(
                f"this game has one player, and opponents = {opponents!r} has no seat to fill: leave it out"
            )
        if others and opponents is None:
            raise ValueError(
                f"a Gymnasium environment has one player and this game has {len(game.players)}; say who plays the "
                'others, opponents="random" for example, or use textgames.parallel_env(...) with the same arguments'
            )
        given = opponents if isinstance(opponents, Mapping) else dict.fromkeys(others, opponents)
        for other in others:
            if not isinstance(given.get(other), str) and not callable(given.get(other)):
                raise ValueError(
                    f"opponents must give {other} 'random', an agent such as 'planner', or a function that takes a "
                    "textgames.environments.opponents.OpponentTurn and returns a response, got "
                    f"{given.get(other)!r}"
                )
        if strangers := [name for name in given if name not in others]:
            raise ValueError(
                f"opponents names {strangers[0]!r}; the players inside the environment are {', '.join(others)}"
            )
        # by its path, since this package imports none of those that are made of it; it is there if a name is given
        named = {
            spec: resolve_name("agents.loop.session:opponent_in")(game, spec)
            for spec in given.values()
            if isinstance(spec, str) and spec != "random"
        }
        self._inside: dict[Player, Opponent] = {
            other: named[given[other]] if isinstance(given[other], str) else given[other]
            for other in others
            if given[other] != "random"
        }
        self._random = [other for other in others if other not in self._inside]
        self.alone = not self._inside

    def table(self, rules: EpisodeRules) -> Table:
        return Table(self._game, rules, (self.player,), self._random)

    def play(self, tables: Mapping[int, Table], responses: Mapping[int, str]) -> dict[int, Round]:
        """Play, table by table, to the player's next turn or its end; players inside are asked on the way.

        An opponent that plays at several tables is asked for all of them at once. At a table without a response, where
        the episode has just begun, what is played before the player's first turn is kept as the table's ``early``, and
        belongs to its first response; if the episode has ended by then, that does nothing else. Return what the player
        was paid and told, of the tables with a response, and raise a TypeError for a response that is no text.
        """
        for response in responses.values():
            if not isinstance(response, str):
                raise TypeError(not_a_response(response))
        rounds: dict[int, Round] = {i: tables[i].early for i in responses if not tables[i].agents}  # type: ignore[misc]
        going = [i for i, table in tables.items() if table.agents and (i in responses or self._waits(table))]
        first = True
        while going:
            inside = self._answers({i: tables[i] for i in going})
            for i in going:
                own = {self.player: responses[i]} if first and i in responses else {}
                rounds[i] = self._joined(rounds.get(i), tables[i].play(own | inside[i]))
            going, first = [i for i in going if self._waits(tables[i])], False
        for i, table in tables.items():
            early, table.early = table.early, None if i in responses else rounds.pop(i, None)
            if early is not None and early is not rounds[i]:
                paid, *rest = rounds[i]
                rounds[i] = {self.player: paid[self.player] + early[0][self.player]}, *rest  # type: ignore[assignment]
        return rounds

    def _waits(self, table: Table) -> bool:
        return bool(table.agents) and self.player not in table.asked

    def _joined(self, before: Round | None, then: Round) -> Round:
        if before is None:
            return then
        player, (paid, *_, told), (more, terminated, truncated, infos) = self.player, before, then
        response = {name: value for name, value in told[player].items() if name not in _OF_THE_STATE}
        return {player: paid[player] + more[player]}, terminated, truncated, {player: infos[player] | response}

    def _answers(self, tables: Mapping[int, Table]) -> dict[int, dict[Player, str]]:
        turns = {
            (i, other): _turn(table, other)
            for i, table in tables.items()
            for other in table.asked
            if other in self._inside
        }
        found: dict[tuple[int, Player], str] = {}
        for opponent in {id(each): each for each in self._inside.values()}.values():
            asked = {place: turn for place, turn in turns.items() if self._inside[place[1]] is opponent}
            if isinstance(opponent, Together):
                found |= zip(asked, opponent.answer([*asked.values()]) if asked else (), strict=True)
            else:
                found |= {place: opponent(turn) for place, turn in asked.items()}
        return {
            i: {other: found[i, other] for other in table.asked if other in self._inside} for i, table in tables.items()
        }


_OF_THE_STATE = ("success", "legal_actions", "metrics")  # of an ``info``, what doesn't come from the response


def _turn(table: Table, player: Player) -> OpponentTurn:
    game, state, rng = table.game, table.state, table.rng
    legal = game.legal_actions(state, player)
    return OpponentTurn(
        game.observe(state, player), game.instructions(player), legal, player, rng, game, state, table.steps_left
    )
