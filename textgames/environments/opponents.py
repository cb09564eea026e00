"""A game for several players as one of them meets it, in Gymnasium's environments: the others play inside.

A game that is played up to the player's next turn is a generator: it stops where somebody inside is to answer who
answers :class:`Together`, for all games of a batch at once. Everybody else is asked on the way.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeVar

import numpy as np

from textgames.environments.rules import EpisodeRules, checked_response
from textgames.tsmg import TSMG, Player, paid_to

T = TypeVar("T")


class OpponentTurn(NamedTuple):
    """What a player inside an environment is asked with.

    Attributes:
        observation: what it reads.
        instructions: the game's rules for it.
        legal_actions: what it may choose from; empty where that can't be listed.
        player: who it is.
        rng: the environment's generator, for players that draw.
        game, state: the rules and the state, hidden parts included, for whoever asks a player in another form.
        steps_left: rounds until truncation, this one included; ``None`` where there is no limit.
    """

    observation: str
    instructions: str
    legal_actions: tuple[str, ...]
    player: Player
    rng: np.random.Generator
    game: TSMG[Any]
    state: Any
    steps_left: int | None


Opponent = Callable[[OpponentTurn], str]
"""A player inside an environment: its turn -> its response."""


class Together:
    """An opponent that answers many turns at once, as a model does: a batch of games asks it once for all of them.

    Args:
        answer: turns -> their responses, in the same order.
    """

    def __init__(self, answer: Callable[[list[OpponentTurn]], Sequence[str]]) -> None:
        self._answer = answer

    def __call__(self, turn: OpponentTurn) -> str:
        return self.answer([turn])[0]

    def answer(self, turns: list[OpponentTurn]) -> Sequence[str]:
        """The responses to the turns.

        Raises:
            ValueError: the function gave another number of responses.
        """
        responses = self._answer(turns)
        if isinstance(responses, str) or len(responses) != len(turns):
            raise ValueError(f"opponents must give {len(turns)} responses to {len(turns)} turns, got {responses!r}")
        return responses


Question = tuple[Together, OpponentTurn]
Playing = Generator[list[Question], list[str], T]
"""A game on its way to the player's next turn; it is sent the responses to the questions that it stops with."""

GIVEN_UP = 2
"""How a game is over that somebody inside has given up: the player outside has won it, whatever its state says."""

Played = tuple[Any, float, int, str, str | None, int]
"""State, reward, whether (or how: :data:`GIVEN_UP`) it is over, the executed action, why the response was invalid, and
the rounds."""


def finished(games: Sequence[Playing[T]]) -> list[T]:
    """What comes of games that are played side by side: whoever is asked in several of them is asked once."""
    results: dict[int, T] = {}
    responses: dict[int, list[str]] = {}
    going: Sequence[int] = range(len(games))
    while going:
        asked: dict[int, list[Question]] = {}
        for i in going:
            try:
                asked[i] = games[i].send(responses[i]) if i in responses else next(games[i])
            except StopIteration as end:
                results[i] = end.value
        responses = _answered(asked)
        going = list(asked)
    return [results[i] for i in range(len(games))]


def _answered(asked: Mapping[int, list[Question]]) -> dict[int, list[str]]:
    turns: dict[Together, list[tuple[int, int, OpponentTurn]]] = {}
    for i, questions in asked.items():
        for place, (opponent, turn) in enumerate(questions):
            turns.setdefault(opponent, []).append((i, place, turn))
    responses = {i: [""] * len(questions) for i, questions in asked.items()}
    for opponent, each in turns.items():
        for (i, place, _), response in zip(each, opponent.answer([turn for *_, turn in each]), strict=True):
            responses[i][place] = response
    return responses


class OneSeat:
    """A game for several players as one of them meets it: the others play inside.

    Args:
        game: the rules.
        rules: what the environment adds to them. The format penalty is for the player outside alone.
        player: who plays outside.
        opponents: who plays inside: ``"random"`` (legal actions with equal chances), an agent by its name
            (``"planner"``), an :data:`Opponent` such as one that answers :class:`Together`, or
            ``{player: any of them}``.

    Raises:
        ValueError: no such player, none given for one of the others, or no such agent.
    """

    def __init__(self, game: TSMG[Any], rules: EpisodeRules, player: Player, opponents: Any) -> None:
        others = [other for other in game.players if other != player]
        if len(others) == len(game.players):
            raise ValueError(f"seat must be one of {', '.join(game.players)}, got {player!r}")
        given = opponents if isinstance(opponents, Mapping) else dict.fromkeys(others, opponents)
        for other in others:
            if not isinstance(given.get(other), str) and not callable(given.get(other)):
                raise ValueError(
                    f"opponents must give {other} 'random', an agent such as 'planner', or a function that takes a "
                    "textgames.environments.opponents.OpponentTurn and returns a response, got "
                    f"{given.get(other)!r}"
                )
        if strangers := [name for name in given if name not in others]:
            raise ValueError(f"opponents names {strangers[0]!r}, and who plays inside is {', '.join(others)}")
        self._game, self._rules, self._player = game, rules, player
        named = {spec: _agent(game, spec) for spec in given.values() if isinstance(spec, str) and spec != "random"}
        self._opponents: dict[Player, Opponent | str] = {}
        for other in others:
            who: Opponent | str = given[other]
            self._opponents[other] = named.get(who, who) if isinstance(who, str) else who
        self._giving_up_loses = game.zero_sum and rules.invalid_action == "forfeit"
        self.asks_together = any(isinstance(opponent, Together) for opponent in self._opponents.values())

    def start(self, state: Any, rng: np.random.Generator) -> tuple[Any, float, int, int]:
        """Play up to the player's first turn.

        There may be none: then the player's first response ends the episode and does nothing else.

        Returns:
            The state, what the player was paid meanwhile, whether the game is over already, and the rounds played.
        """
        return finished([self.starting(state, rng)])[0]

    def starting(self, state: Any, rng: np.random.Generator) -> Playing[tuple[Any, float, int, int]]:
        """See :meth:`start`; this stops whenever opponents are asked who answer for a whole batch."""
        return self._until_its_turn(state, 0.0, False, rng, self._rules.max_steps)

    def play(
        self, game: TSMG[Any], state: Any, player: str, response: str, rng: np.random.Generator, rounds_left: float
    ) -> Played:
        """Like :meth:`EpisodeRules.play`, up to the player's next turn; it also returns the number of rounds."""
        return finished([self.playing(state, response, rng, rounds_left)])[0]

    def playing(self, state: Any, response: str, rng: np.random.Generator, rounds_left: float) -> Playing[Played]:
        """See :meth:`play`; this stops whenever opponents are asked who answer for a whole batch."""
        game, player = self._game, self._player
        if rounds_left <= 0 or player not in game.to_move(state):  # the episode ended before its first turn
            checked_response(response)
            moving = game.to_move(state)
            if rounds_left > 0 and moving and game.is_playing(state, player) and self._giving_up_loses:
                return state, 0.0, GIVEN_UP, "", None, 0
            return state, 0.0, rounds_left > 0 or not moving, "", None, 0
        action, unreadable = self._rules.choose(game, state, player, response, rng)
        penalty = 0.0 if unreadable is None else self._rules.format_penalty
        if action is None:
            lost = self._rules.forfeited(game, state, player, rounds_left).get(player, 0.0)
            return state, lost - penalty, True, "", unreadable, 1
        state, reward, over = yield from self._round(state, {player: action}, rng, rounds_left)
        limit = None if rounds_left == float("inf") else int(rounds_left) - 1
        state, reward, over, rounds = yield from self._until_its_turn(state, reward, over, rng, limit)
        return state, reward - penalty, over, action, unreadable, 1 + rounds

    def _until_its_turn(
        self, state: Any, reward: float, over: int, rng: np.random.Generator, rounds_left: int | None
    ) -> Playing[tuple[Any, float, int, int]]:
        game, player, rounds = self._game, self._player, 0
        while not over and rounds != rounds_left:
            if not game.is_playing(state, player) and game.pays_late is False:
                return state, reward, True, rounds
            if player in game.to_move(state):
                break
            left = float("inf") if rounds_left is None else rounds_left - rounds
            state, more, over = yield from self._round(state, {}, rng, left)
            reward, rounds = reward + more, rounds + 1
        return state, reward, over, rounds

    def _round(
        self, state: Any, joint: dict[Player, str], rng: np.random.Generator, rounds_left: float
    ) -> Playing[tuple[Any, float, int]]:
        others = [other for other in self._game.to_move(state) if other != self._player]
        answers: dict[Player, str] = {}
        if self.asks_together:
            asked = {other: self._opponents[other] for other in others}
            questions = {
                other: (opponent, self._turn(state, other, rng, rounds_left))
                for other, opponent in asked.items()
                if isinstance(opponent, Together)
            }
            if questions:
                answers = dict(zip(questions, (yield list(questions.values())), strict=True))
        for other in others:
            move = self._move(state, other, rng, rounds_left, answers.get(other))
            if move is None and self._giving_up_loses:
                return state, self._rules.forfeited(self._game, state, other, rounds_left)[self._player], GIVEN_UP
            joint[other] = self._game.default_action(state, other) if move is None else move
        state, rewards, over = self._game.transition(state, joint, rng)
        return state, paid_to(self._game, self._player, rewards), over

    def _turn(self, state: Any, player: Player, rng: np.random.Generator, rounds_left: float) -> OpponentTurn:
        game = self._game
        left = None if rounds_left == float("inf") else int(rounds_left)
        reads, legal = game.observe(state, player), game.legal_actions(state, player)
        return OpponentTurn(reads, game.instructions(player), legal, player, rng, game, state, left)

    def _move(
        self, state: Any, player: Player, rng: np.random.Generator, rounds_left: float, answer: str | None
    ) -> str | None:
        """What somebody inside plays, who may have answered already; ``None`` for a response that ends its episode."""
        game, opponent = self._game, self._opponents[player]
        if isinstance(opponent, str):
            return game.sample_action(state, player, rng)
        if answer is None:
            answer = opponent(self._turn(state, player, rng, rounds_left))
        return self._rules.choose(game, state, player, answer, rng)[0]


def _agent(game: TSMG[Any], spec: str) -> Opponent:
    # by its path, since this package imports none of those that are made of it; it is there wherever a name is given
    found: Opponent = resolve_name("agents.opponent:opponent_in")(game, spec)
    return found


def seat_of(game: TSMG[Any], rules: EpisodeRules, player: Player, opponents: Any) -> OneSeat | None:
    """The seat of a player in an environment for one player; ``None`` in a game that has no other players.

    Raises:
        ValueError: no such player, nobody is named who plays the others, or somebody where there are no others.
    """
    if len(game.players) == 1 and player == game.players[0]:
        if opponents not in (None, "random"):  # which an id is registered with whose game may have several
            raise ValueError(f"this game has one player, and opponents = {opponents!r} would play nobody: leave it out")
        return None
    if opponents is None and len(game.players) > 1:
        raise ValueError(
            f"a Gymnasium environment has one player and this game has {len(game.players)}; say who plays the others, "
            'opponents="random" for example, or use textgames.parallel_env(...) with the same arguments'
        )
    return OneSeat(game, rules, player, opponents)
