"""A game being played: which players are asked, what a round does, who leaves, and what all of them are paid.

Every environment (Gymnasium's, the batch, PettingZoo's two forms) and every episode of the benchmark and the trainer is
a table with another face.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from numpy.typing import NDArray

from textgames.environments.render import render_state
from textgames.environments.rules import EpisodeRules, layout_generator, not_a_response
from textgames.texts.actions import Unreadable
from textgames.tsmg import TSMG, Action, GameError, Player

Round = tuple[dict[Player, float], Collection[Player], Collection[Player], dict[Player, dict[str, Any]]]
"""What came of a round, for all who were at the table before it: what each was paid, format penalties included (and
players who had left already, if they are paid late); the players whose own episodes the game ended, and those that the
step limit ended; and each player's ``info``, as :class:`textgames.environments.solo.TextGameEnv` describes it."""


class Snapshot(NamedTuple):
    """Everything that the rest of an episode depends on: a value that can be kept and pickled."""

    state: Any
    elapsed_steps: int  # rounds played
    agents: tuple[str, ...]  # the players whose own episode isn't over
    rng_state: dict[str, Any]  # of the generator that transitions draw from, as numpy describes it
    sent_away: tuple[str, ...] = ()  # the players whose own episode was ended by an invalid response
    early: Round | None = None  # what came before the first turn of a Gymnasium environment's player


class Table:
    """One game between its start and its end.

    Args:
        rules: what the environment adds to the game's.
        seats: the players without whom the game ends; all of them when not given.
        random: the players who are not asked: legal actions with equal chances are played for them.

    Attributes:
        state: the game's state; ``None`` before the first reset.
        elapsed: rounds played.
        agents: the players whose own episodes aren't over, in the order of the game's.
        asked: those of them who are to move now; empty when the episode is over.
        rng: the NumPy generator that everything random is drawn from; ``None`` before the first reset.
        early: what came before the first turn of the one player outside, until it answers; see
            :class:`textgames.environments.opponents.Seat`.
    """

    def __init__(
        self, game: TSMG[Any], rules: EpisodeRules, seats: Collection[Player] = (), random: Collection[Player] = ()
    ) -> None:
        self.game, self.rules = game, rules
        self.limit = float("inf") if rules.max_steps is None else rules.max_steps
        self.state: Any = None
        self.elapsed = 0
        self.agents: list[Player] = []
        self.asked: tuple[Player, ...] = ()
        self.rng: Any = None
        self.early: Round | None = None
        self._seats, self._random = seats or game.players, frozenset(random)
        self._answering = [player for player in game.players if player not in self._random]
        self._several = len(game.players) > 1
        self._ends_by_giving_up = game.zero_sum and rules.invalid_action == "forfeit"
        # a player who is out stays, as it may be paid late; one player alone is out when the game is over
        self._waits_out = game.pays_late is not False or not self._several
        self._sent_away = self._absent = frozenset[Player]()  # by an invalid response; and those at random as well
        self._moving: tuple[Player, ...] = ()  # whom the game asks in this state, absent players too

    def reset(self, seed: int | np.random.Generator | None = None, layout_seed: int | None = None) -> None:
        """Start an episode with everything random in it seeded; a generator is drawn from as it is, ``None`` keeps the
        last one. ``layout_seed`` draws the initial state that this ``seed`` would draw, and leaves the rest to
        ``seed``.
        """
        if isinstance(seed, np.random.Generator):
            self.rng = seed
        elif seed is not None or self.rng is None:  # NumPy's whole numbers are seeds too, which Gymnasium doesn't take
            self.rng = seeding.np_random(int(seed) if isinstance(seed, np.integer) else seed)[0]
        rng = self.rng if layout_seed is None else layout_generator(layout_seed, self.rng)
        self._begin(self.game.initial_state(rng), 0)

    def resume(self, state: Any, elapsed: int = 0, seed: int | None = None) -> None:
        """Begin in a state after ``elapsed`` rounds; a ValueError if no round is left, or no player is to move."""
        if elapsed < 0 or elapsed >= self.limit:
            limit = self.rules.max_steps
            raise ValueError(f"elapsed_steps must be at least 0 and below max_steps = {limit}, got {elapsed}")
        if seed is not None or self.rng is None:
            self.rng = seeding.np_random(seed)[0]
        self._begin(state, elapsed)
        if not self.asked or not self.game.to_move(state):
            raise ValueError("an episode can't begin in this state: the game is over there, no player is to move")

    def _begin(self, state: Any, elapsed: int) -> None:
        self.state, self.elapsed, self.early = state, elapsed, None
        self._sent_away, self._absent = frozenset(), self._random
        self.agents = self._staying(self._answering) if not self._waits_out else list(self._answering)
        self._ask()

    def _staying(self, agents: list[Player]) -> list[Player]:
        state, away, waits = self.state, self._sent_away, self._waits_out
        return [each for each in agents if each not in away and (waits or self.game.is_playing(state, each))]

    def _ask(self) -> None:
        # one player alone is to move until the game is over
        self._moving = self.game.to_move(self.state) if self._several and self.agents else self.game.players
        self._choose_asked()

    def _choose_asked(self) -> None:
        everyone = len(self.agents) == len(self.game.players)
        self.asked = self._moving if everyone else tuple([each for each in self._moving if each in self.agents])

    @property
    def steps_left(self) -> int | None:
        """Rounds until truncation, the one to be played included; ``None`` if there is no limit."""
        return None if self.rules.max_steps is None else self.rules.max_steps - self.elapsed

    def observe(self, player: Player) -> str:
        """Return what a player reads now; a GameError if it is no text."""
        text: Any = self.game.observe(self.state, player)
        if not isinstance(text, str):
            raise GameError(f"{type(self.game).__name__}.observe has to return a text, and returned {text!r}")
        return text

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return self.game.legal_actions(self.state, player) if player in self.asked else ()

    def first_info(self, player: Player) -> dict[str, Any]:
        return {"success": False, "legal_actions": self.legal_actions(player)}

    def play(self, responses: Mapping[Player, str], read: Mapping[Player, Action | Unreadable] | None = None) -> Round:
        """Play a round, and on to the next one in which a player of the table is asked.

        An absent player, who was sent away for an invalid response, plays its default action; if it was the last of the
        seats, the game stops. Giving up ends a zero-sum game. ``responses`` are those of all players in :attr:`asked`,
        and ``read`` what :meth:`~textgames.tsmg.TSMG.read` made of them, if that is known already.

        Raises:
            TypeError: a response is no text.
            GameError: the game paid a player nothing, or no finite number.
        """
        game, state, agents, several = self.game, self.state, self.agents, self._several
        rewards = dict.fromkeys(agents, 0.0)
        actions: dict[Player, Action] = {}
        infos = {player: dict(_NOT_ASKED) for player in agents} if several else {}
        for player, response in responses.items():
            if not isinstance(response, str):
                raise TypeError(not_a_response(response))
            action = game.read(response, state, player) if read is None else read[player]
            if isinstance(action, Unreadable):
                infos[player] = self._replaced(player, action, actions, rewards)
                continue
            actions[player] = action
            infos[player] = {
                "valid": True,
                "action": action,
                "unreadable": None,
                "success": False,
                "legal_actions": (),
            }
        over = given_up = False
        going, absent, staying = True, self._absent, agents
        if self._sent_away:
            over = given_up = self._ends_by_giving_up
            staying = self._staying(agents)
            going = not given_up and any(seat in staying for seat in self._seats)
            if not going:  # nothing is executed in place of the response, and the state stays
                self.elapsed += 1
        while going:
            if absent:  # the rules want an action of every player who is to move
                for player in self._moving:
                    if player in self._random:
                        actions[player] = game.sample_action(self.state, player, self.rng)
                    elif player in absent:
                        actions[player] = game.default_action(self.state, player)
            self.state, paid, over = game.transition(self.state, actions, self.rng)
            self.elapsed += 1
            try:
                for player in game.players:
                    if (reward := paid[player]) != 0.0:
                        if not isfinite(reward):
                            raise ValueError
                        if player not in self._sent_away:  # another one that has left already is paid late
                            rewards[player] = rewards.get(player, 0.0) + float(reward)
            except (KeyError, TypeError, ValueError, OverflowError):
                raise GameError(
                    f"{type(game).__name__}.transition has to pay every player a finite number, {player} too; its "
                    f"rewards were {paid!r}"
                ) from None
            going = False
            if several and not over:
                self._moving = game.to_move(self.state)
                if self._sent_away or not self._waits_out:
                    staying = self._staying(agents)
                if absent and self.elapsed < self.limit:  # on to the next player here, if a seat is left for one
                    going = not any(player in staying for player in self._moving)
                    going, actions = going and any(seat in staying for seat in self._seats), {}
        terminated: Collection[Player] = ()
        truncated: Collection[Player] = ()
        if over or several or self._sent_away or self.elapsed >= self.limit:
            terminated, truncated = self._leave(infos, staying, over, given_up)
        for player in self.asked:
            infos[player]["legal_actions"] = game.legal_actions(self.state, player)
        return rewards, terminated, truncated, infos

    def _replaced(
        self, player: Player, unreadable: Unreadable, actions: dict[Player, Action], rewards: dict[Player, float]
    ) -> dict[str, Any]:
        """Put an action in place of an invalid response, or send its player away; returns the player's ``info``.

        A random action takes one uniform number if actions are listed; nothing else is random.
        """
        game, rules, state, rng = self.game, self.rules, self.state, self.rng
        rewards[player] -= rules.format_penalty
        action: Action | None = None
        match rules.invalid_action:
            case "random":
                legal = game.legal_actions(state, player)
                action = legal[int(rng.random() * len(legal))] if legal else game.sample_action(state, player, rng)
            case "default":
                action = game.default_action(state, player)
            case "noop":
                action = game.noop
            case "forfeit":
                for paid, reward in game.forfeit(state, player, self.limit - self.elapsed).items():
                    rewards[paid] = rewards.get(paid, 0.0) + reward
        if action is None:
            self._sent_away |= {player}
            self._absent |= {player}
        else:
            actions[player] = action
        told = {"valid": False, "action": action or "", "unreadable": str(unreadable.reason)}
        return {**_NOT_ASKED, **told, "invalid_action": rules.consequence}

    def _leave(
        self, infos: dict[Player, dict[str, Any]], staying: list[Player], over: bool, given_up: bool
    ) -> tuple[Collection[Player], Collection[Player]]:
        """Let all leave whose own episode has ended; return the terminated and the truncated players."""
        agents, cut_off = self.agents, self.elapsed >= self.limit
        terminated = agents if over else [] if staying is agents else [one for one in agents if one not in staying]
        truncated = staying if cut_off and not over else []
        if over or cut_off or (terminated and not any(seat in staying for seat in self._seats)):
            self.agents, self.asked = [], ()
        else:
            self.agents = staying if terminated else agents
            self._choose_asked()
        for ended in (terminated, truncated):
            for player in ended:
                info = infos[player]
                # a player has won against one that gave up, whatever the state says; one that is sent away never has
                here = info["valid"] or info["action"] != ""
                info["success"] = here and (given_up or self.game.succeeded(self.state, player))
                info["metrics"] = Metrics(self.game, self.state, player)
        return terminated, truncated

    def metrics(self) -> dict[Player, dict[str, float]]:
        """Return ``{player: {name: value}}`` in this state; empty for games without metrics."""
        told = {player: dict(Metrics(self.game, self.state, player)) for player in self.game.players}
        return {player: metrics for player, metrics in told.items() if metrics}

    def snapshot(self) -> Snapshot:
        state = dict(self.rng.bit_generator.state)  # a fresh dictionary at every call
        away = tuple(sorted(self._sent_away))
        return Snapshot(self.state, self.elapsed, tuple(self.agents), state, away, self.early)

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a snapshot; a TypeError if it is none."""
        if not isinstance(snapshot, Snapshot):
            raise TypeError(f"a snapshot is what save_state() returned, got {type(snapshot).__name__}: {snapshot!r}")
        self.game.observe(snapshot.state, self.game.players[0])  # of another game it fails before anything has changed
        self.state, self.elapsed, self.agents = snapshot.state, snapshot.elapsed_steps, list(snapshot.agents)
        self._sent_away, self.early = frozenset(snapshot.sent_away), snapshot.early
        self._absent = self._random | self._sent_away
        self._ask()
        if self.rng is None:
            self.rng = seeding.np_random()[0]
        self.rng.bit_generator.state = snapshot.rng_state


_NOT_ASKED = {"valid": True, "action": "", "unreadable": None, "success": False, "legal_actions": ()}


class Metrics(Mapping[str, float]):
    """``{name: value}`` at an episode's end, computed when first looked at, as some cost more than the episode."""

    def __init__(self, game: TSMG[Any], state: Any, player: Player) -> None:
        self._asked = game, state, player

    @cached_property
    def _values(self) -> dict[str, float]:
        game, state, player = self._asked
        return {name: float(value) for name, value in game.metrics(state, player).items()}

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._values,)


class OneTable:
    """What the environments around one table have in common."""

    game: TSMG[Any]
    rules: EpisodeRules
    render_mode: str | None
    render_view: str | None
    _player: Player  # as whom the view "player" sees
    _table: Table
    _counts = "step"  # what is counted above a rendered board

    def _require_reset(self, what: str) -> None:
        if self._table.state is None:
            raise ResetNeeded(f"{what} was called before reset(); call reset() first")

    @property
    def steps_left(self) -> int | None:
        """Rounds until truncation; ``None`` if there is no limit."""
        return self._table.steps_left

    def save_state(self) -> Snapshot:
        """Return everything that the rest of the episode depends on; a ResetNeeded before the first reset."""
        self._require_reset("save_state()")
        return self._table.snapshot()

    def render(self, view: str | None = None) -> str | NDArray[np.uint8] | None:
        """Draw the state in the mode ``render_mode``; ``view`` is one of ``render_view``, in its place."""
        self._require_reset("render()")
        title, view = f"{self._counts} {self._table.elapsed}", view or self.render_view
        return render_state(self.game, self._table.state, self.render_mode, title, view, self._player)
