"""A game being played by several players: who is asked, what a round does, who leaves, and what everybody is paid.

Every environment for several players is a table with another face: PettingZoo's two forms (``parallel``, ``aec``), and
Gymnasium's, where one player sits outside and the others inside (:class:`OneSeat`).
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from textgames.environments.metrics import Metrics
from textgames.environments.rules import EpisodeRules, Snapshot
from textgames.environments.spaces import ResponseText
from textgames.tsmg import TSMG, Player

_SAMPLED_COMMANDS = 32
_NOT_ASKED = ("", None)


class Round(NamedTuple):
    """What came of everybody's responses, for everybody who was at the table before the round.

    Attributes:
        rewards: what each was paid, format penalties included; and what others were paid who had left already.
        terminations: whether its own episode ended by the rules of the game.
        truncations: whether its own episode ended by the step limit.
        infos: its ``info``, as :class:`textgames.environments.solo.TextGameEnv` describes it.
    """

    rewards: dict[Player, float]
    terminations: dict[Player, bool]
    truncations: dict[Player, bool]
    infos: dict[Player, dict[str, Any]]


class Table:
    """One game between its start and its end.

    Args:
        game: the rules.
        rules: what the environment adds to them.

    Attributes:
        state: the game's state; ``None`` before the start.
        elapsed: rounds played.
        agents: the players whose own episodes go on, in the order of the game's.
        asked: those of them who are to move now; nobody when the episode is over.
        waits_out: whether a player who is out stays until the game is over, as it may be paid late.
    """

    def __init__(self, game: TSMG[Any], rules: EpisodeRules) -> None:
        self.game, self.rules = game, rules
        self.waits_out = game.pays_late is not False
        self.state: Any = None
        self.elapsed = 0
        self.agents: list[Player] = []
        self.asked: tuple[Player, ...] = ()
        self._sent_away: frozenset[Player] = frozenset()  # by an invalid response; they are paid nothing any more

    def start(self, state: Any) -> None:
        """Begin in an initial state, in which everybody plays."""
        self.state, self.elapsed, self.agents, self._sent_away = state, 0, list(self.game.players), frozenset()
        self.asked = self._to_move()

    def resume(self, state: Any, elapsed: int) -> None:
        """Begin in any state, as if so many rounds had been played; who is out of the game already isn't here."""
        self.start(state)
        self.elapsed = elapsed
        if not self.waits_out:
            self.agents = [player for player in self.agents if self.game.is_playing(state, player)]
            self.asked = self._to_move()

    def _to_move(self) -> tuple[Player, ...]:
        agents = self.agents
        if not agents:
            return ()
        moving = self.game.to_move(self.state)
        return moving if len(agents) == len(self.game.players) else tuple([each for each in moving if each in agents])

    def legal_actions(self, player: Player) -> tuple[str, ...]:
        """What a player may choose from now; nothing where it isn't asked."""
        return self.game.legal_actions(self.state, player) if player in self.asked else ()

    def play(self, responses: Mapping[Player, str], rng: np.random.Generator) -> Round:
        """Play a round with the response of everybody who is to move.

        Where only players are to move who have been sent away for an invalid response, their default actions are
        played at once, until it is somebody else's turn. Giving up ends a zero-sum game.
        """
        game, rules, before = self.game, self.rules, self.state
        rewards = dict.fromkeys(self.agents, 0.0)
        left = float("inf") if rules.max_steps is None else rules.max_steps - self.elapsed
        executed: dict[Player, tuple[str | None, str | None]] = {}
        actions: dict[Player, str] = {}
        for player, response in responses.items():
            action, unreadable = executed[player] = rules.choose(game, before, player, response, rng)
            if unreadable is not None:
                rewards[player] -= rules.format_penalty
            if action is None:
                self._sent_away |= {player}
                for paid, reward in rules.forfeited(game, before, player, left).items():
                    rewards[paid] = rewards.get(paid, 0.0) + reward
            else:
                actions[player] = action
        if self._given_up:
            self.elapsed += 1
            return self._outcome(rewards, executed, over=True, cut_off=False)
        over = self._transition(actions, rewards, rng)
        limit = self.rules.max_steps
        cut_off = limit is not None and self.elapsed >= limit
        while self._sent_away and not over and not cut_off and self._only_absent_players_move():
            over = self._transition({}, rewards, rng)
            cut_off = self.elapsed == limit
        return self._outcome(rewards, executed, over, cut_off)

    @property
    def _given_up(self) -> bool:
        """Whether the response that sent a player away also ended the game."""
        return bool(self._sent_away) and self.game.zero_sum and self.rules.invalid_action == "forfeit"

    def _transition(self, actions: dict[Player, str], rewards: dict[Player, float], rng: np.random.Generator) -> bool:
        """Play one transition, add what it pays to ``rewards``, and tell whether the game is over."""
        game, before, sent_away = self.game, self.state, self._sent_away
        if sent_away:  # the rules want an action of everyone who is to move
            for player in game.to_move(before):
                if player not in actions:
                    actions[player] = game.default_action(before, player)
        self.state, paid, over = game.transition(before, actions, rng)
        self.elapsed += 1
        for player, reward in paid.items():
            if reward and player not in sent_away:  # who has left already, but wasn't sent away, is paid late
                rewards[player] = rewards.get(player, 0.0) + reward
        return over

    def _only_absent_players_move(self) -> bool:
        present = [player for player in self.agents if player not in self._sent_away]
        return bool(present) and not any(player in present for player in self.game.to_move(self.state))

    def _outcome(
        self,
        rewards: dict[Player, float],
        executed: dict[Player, tuple[str | None, str | None]],
        over: bool,
        cut_off: bool,
    ) -> Round:
        """Who leaves the table after a round, and what everybody is told."""
        game, state, agents = self.game, self.state, self.agents
        terminations = dict.fromkeys(agents, over)
        truncations = dict.fromkeys(agents, cut_off and not over)
        if not over and (self._sent_away or not self.waits_out):  # somebody may leave while others play on
            for player in agents:
                if player in self._sent_away or not (self.waits_out or game.is_playing(state, player)):
                    terminations[player], truncations[player] = True, False
        if over or cut_off:
            self.agents = []
        elif True in terminations.values():
            self.agents = [player for player in agents if not terminations[player]]
        self.asked = self._to_move()
        infos: dict[Player, dict[str, Any]] = {}
        asked, legal_actions = self.asked, game.legal_actions
        for player in agents:
            action, unreadable = executed.get(player, _NOT_ASKED)
            infos[player] = {
                "valid": unreadable is None,
                "action": action or "",
                "unreadable": unreadable,
                "success": False,
                "legal_actions": legal_actions(state, player) if player in asked else (),
            }
        if self.agents is not agents:
            for player in agents:
                if terminations[player] or truncations[player]:
                    action, _ = executed.get(player, _NOT_ASKED)
                    won = self._given_up or game.succeeded(state, player)  # against somebody who gave up, by that
                    infos[player]["success"] = action is not None and won
                    infos[player]["metrics"] = Metrics(game, state, player)
        return Round(rewards, terminations, truncations, infos)

    def first_info(self, player: Player) -> dict[str, Any]:
        """A player's ``info`` after the start."""
        return {"success": False, "legal_actions": self.legal_actions(player)}

    def snapshot(self, rng: np.random.Generator) -> Snapshot:
        # the generator's state is a fresh dictionary at every call
        return Snapshot(
            self.state, self.elapsed, tuple(self.agents), dict(rng.bit_generator.state), tuple(sorted(self._sent_away))
        )

    def restore(self, snapshot: Snapshot) -> None:
        self.state, self.elapsed, self.agents = snapshot.state, snapshot.elapsed_steps, list(snapshot.agents)
        self._sent_away = frozenset(snapshot.sent_away)
        self.asked = self._to_move()


def response_space(game: TSMG[Any]) -> ResponseText:
    """The space of responses; it samples the game's actions, or random ones of its start where none are listed."""
    if game.actions:
        return ResponseText(game.actions)
    rng = np.random.default_rng(0)
    sampled = []
    for _ in range(_SAMPLED_COMMANDS):
        state = game.initial_state(rng)
        sampled.append(game.sample_action(state, game.to_move(state)[0], rng))
    return ResponseText(tuple(dict.fromkeys(sampled)))


class OpponentTurn(NamedTuple):
    """What a player inside an environment is asked with.

    Attributes:
        observation: what it reads.
        instructions: the game's rules for it.
        legal_actions: what it may choose from; empty where that can't be listed.
        player: who it is.
        rng: the environment's generator, for players that draw.
    """

    observation: str
    instructions: str
    legal_actions: tuple[str, ...]
    player: Player
    rng: np.random.Generator


Opponent = Callable[[OpponentTurn], str]
"""A player inside an environment: its turn -> its response."""


class OneSeat:
    """A game for several players as one of them meets it: the others play inside.

    Args:
        game: the rules.
        rules: what the environment adds to them. The format penalty is for the player outside alone.
        player: who plays outside.
        opponents: who plays inside: ``"random"`` (legal actions with equal chances), an :data:`Opponent`, or
            ``{player: either of them}``.

    Raises:
        ValueError: no such player, or none given for one of the others.
    """

    def __init__(self, game: TSMG[Any], rules: EpisodeRules, player: Player, opponents: Any) -> None:
        others = [other for other in game.players if other != player]
        if len(others) == len(game.players):
            raise ValueError(f"seat must be one of {', '.join(game.players)}, got {player!r}")
        given = opponents if isinstance(opponents, Mapping) else dict.fromkeys(others, opponents)
        for other in others:
            if given.get(other) != "random" and not callable(given.get(other)):
                raise ValueError(
                    f"opponents must give {other} 'random' or a function that takes a "
                    f"textgames.environments.table.OpponentTurn and returns a response, got {given.get(other)!r}"
                )
        self._game, self._rules, self._player = game, rules, player
        self._opponents: dict[Player, Opponent | str] = {other: given[other] for other in others}

    def start(self, state: Any, rng: np.random.Generator) -> tuple[Any, float, bool, int]:
        """Play up to the player's first turn.

        There may be none: then the player's first response ends the episode and does nothing else.

        Returns:
            The state, what the player was paid meanwhile, whether the game is over already, and the rounds played.
        """
        return self._until_its_turn(state, 0.0, False, rng, self._rules.max_steps)

    def play(
        self, game: TSMG[Any], state: Any, player: str, response: str, rng: np.random.Generator, rounds_left: float
    ) -> tuple[Any, float, bool, str, str | None, int]:
        """As :meth:`EpisodeRules.play`, up to the player's next turn; also tells the number of rounds."""
        if rounds_left <= 0 or player not in game.to_move(state):  # the episode ended before its first turn
            if not isinstance(response, str):
                raise TypeError(f"a response is a string such as 'right', got {type(response).__name__}: {response!r}")
            return state, 0.0, rounds_left > 0 or not game.to_move(state), "", None, 0
        action, unreadable = self._rules.choose(game, state, player, response, rng)
        penalty = 0.0 if unreadable is None else self._rules.format_penalty
        if action is None:
            lost = self._rules.forfeited(game, state, player, rounds_left).get(player, 0.0)
            return state, lost - penalty, True, "", unreadable, 1
        state, reward, over = self._round(state, {player: action}, rng, rounds_left)
        limit = None if rounds_left == float("inf") else int(rounds_left) - 1
        state, reward, over, rounds = self._until_its_turn(state, reward, over, rng, limit)
        return state, reward - penalty, over, action, unreadable, 1 + rounds

    def _until_its_turn(
        self, state: Any, reward: float, over: bool, rng: np.random.Generator, rounds_left: int | None
    ) -> tuple[Any, float, bool, int]:
        game, player, rounds = self._game, self._player, 0
        while not over and rounds != rounds_left:
            if not game.is_playing(state, player) and game.pays_late is False:
                return state, reward, True, rounds
            if player in game.to_move(state):
                break
            left = float("inf") if rounds_left is None else rounds_left - rounds
            state, more, over = self._round(state, {}, rng, left)
            reward, rounds = reward + more, rounds + 1
        return state, reward, over, rounds

    def _round(
        self, state: Any, joint: dict[Player, str], rng: np.random.Generator, rounds_left: float
    ) -> tuple[Any, float, bool]:
        for other in self._game.to_move(state):
            if other == self._player:
                continue
            move = self._move(state, other, rng)
            if move is None and self._game.zero_sum and self._rules.invalid_action == "forfeit":
                return state, self._rules.forfeited(self._game, state, other, rounds_left)[self._player], True
            joint[other] = self._game.default_action(state, other) if move is None else move
        state, rewards, over = self._game.transition(state, joint, rng)
        return state, rewards[self._player], over

    def _move(self, state: Any, player: Player, rng: np.random.Generator) -> str | None:
        """What somebody inside plays; ``None`` for a response that ends its episode."""
        game, opponent = self._game, self._opponents[player]
        if isinstance(opponent, str):
            return game.sample_action(state, player, rng)
        legal = game.legal_actions(state, player)
        turn = OpponentTurn(game.observe(state, player), game.instructions(player), legal, player, rng)
        return self._rules.choose(game, state, player, opponent(turn), rng)[0]


def seat_of(game: TSMG[Any], rules: EpisodeRules, player: Player, opponents: Any) -> OneSeat | None:
    """The seat of a player in an environment for one player; ``None`` in a game that has no other players.

    Raises:
        ValueError: no such player, or nobody is named who plays the others.
    """
    if len(game.players) == 1 and player == game.players[0]:
        return None
    if opponents is None and len(game.players) > 1:
        raise ValueError(
            f"a Gymnasium environment has one player and this game has {len(game.players)}; say who plays the others, "
            'opponents="random" for example, or use textgames.parallel_env(...) with the same arguments'
        )
    return OneSeat(game, rules, player, opponents)
