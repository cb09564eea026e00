"""A game being played by several players: who is asked, what a round does, who leaves, and what everybody is paid.

PettingZoo's two forms of environments (``parallel``, ``aec``) are a table with another face. In Gymnasium's one player
sits outside and the others inside (``opponents``).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from textgames.environments.rules import EpisodeRules, Metrics, Snapshot, check_snapshot
from textgames.tsmg import TSMG, Player, paid_to

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
        for player in game.players:
            reward = paid_to(game, player, paid)
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
        game, rules, state, agents = self.game, self.rules, self.state, self.agents
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
            if unreadable is not None:
                infos[player]["invalid_action"] = rules.consequence
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
        check_snapshot(snapshot)
        self.state, self.elapsed, self.agents = snapshot.state, snapshot.elapsed_steps, list(snapshot.agents)
        self._sent_away = frozenset(snapshot.sent_away)
        self.asked = self._to_move()
