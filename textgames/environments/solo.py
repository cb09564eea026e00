"""A game as a Gymnasium environment, for one player: text observation in, free text out. Others play inside it.

``max_steps`` counts the rounds of a game, Gymnasium's own ``max_episode_steps`` the calls of ``step``. For one player
these are the same; beside players inside, a step takes the rounds up to the next turn of the player outside. Whoever
gives ``max_episode_steps`` gets exactly that many steps, in a single environment and in a batch: it stands in place of
``max_steps``, which most ids are registered with.
"""

import copy
import sys
from types import FrameType
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from textgames.environments.opponents import GIVEN_UP, seat_of
from textgames.environments.render import RENDER_MODES, check_render_mode, render_state
from textgames.environments.rules import (
    INVALID_ACTION,
    EpisodeRules,
    MaxSteps,
    Metrics,
    Snapshot,
    check_snapshot,
    checked_options,
    layout_generator,
    make_game,
    rounds_of,
)
from textgames.environments.spaces import ObservationText, response_space
from textgames.settings import check_whole
from textgames.tsmg import TSMG

NO_LIMIT = -1
"""How ``max_episode_steps`` says that there is no limit, in Gymnasium too."""


class Limits(NamedTuple):
    """What ends an episode that the game doesn't end.

    Attributes:
        rounds: of the game, or ``None`` for no limit.
        steps: of the environment; infinite where none was asked for.
        given: ``max_episode_steps`` as it was given.
    """

    rounds: int | None
    steps: float
    given: int | None

    @classmethod
    def of(cls, max_steps: int | None, max_episode_steps: int | None, players: int) -> "Limits":
        """The limits of an environment for one of so many players.

        Raises:
            ValueError: ``max_episode_steps`` is no whole number of at least 1, and not -1.
        """
        if max_episode_steps is None:
            return cls(max_steps, float("inf"), None)
        if max_episode_steps == NO_LIMIT:
            return cls(None, float("inf"), max_episode_steps)
        check_whole("max_episode_steps", max_episode_steps, 1, None)
        return cls(max_episode_steps if players == 1 else None, max_episode_steps, max_episode_steps)

    def stated_in(self, spec: EnvSpec | None, longest_episode: int | None) -> EnvSpec | None:
        """A copy of Gymnasium's spec that states the limit (or the rules' own) and makes the same environment again."""
        if spec is None:
            return None
        stated = copy.copy(spec)
        stated.kwargs = {**spec.kwargs, "max_episode_steps": self.given}
        if self.steps == float("inf"):
            stated.max_episode_steps = longest_episode if self.rounds is None else self.rounds
        else:
            stated.max_episode_steps = int(self.steps)
        return stated


def asked_of_gymnasium(caller: FrameType | None) -> int | None:
    """The ``max_episode_steps`` that ``gymnasium.make`` was given, where it is who makes this environment.

    Gymnasium keeps it for a ``TimeLimit`` around the environment. That can cut an episode shorter, but an environment
    with a limit of its own would still end first where more steps were asked for, and in the last step it would neither
    tell the success nor the metrics, for which it must know that it is the last. There is no other way to learn of it.
    """
    if caller is None or caller.f_code is not gym.make.__code__:
        return None
    asked: int | None = caller.f_locals["max_episode_steps"]
    return asked


class TextGameEnv(gym.Env[str, str]):
    """A text-mediated stochastic game for one player, or for one of several.

    Args:
        game: the game's class, ``"module:Class"``, or a built game.
        max_steps: rounds after which the episode is truncated; ``None`` for no limit, ``"auto"`` for the one that fits
            the game's settings (:attr:`textgames.tsmg.TSMG.usual_limit`). A level brings its own.
        max_episode_steps: steps after which it is, in place of ``max_steps``.
        format_penalty: subtracted from the reward when a response is invalid (1.0 in training, 0.0 in evaluation).
        invalid_action: what an invalid response executes: ``"random"`` (a random legal action of the episode's stream),
            ``"default"`` (the first one, as in the paper's training), ``"noop"`` if the game has one, ``"terminate"``:
            the episode ends, or ``"forfeit"``: it ends and pays what a loss pays
            (:meth:`textgames.tsmg.TSMG.forfeit`).
        render_mode: ``"ansi"`` (text), ``"human"`` (a live board in the terminal), ``"rgb_array"`` (a picture) or
            ``None``.
        seat: in a game of several players, which of them plays outside; the first one when not given.
        opponents: who plays inside then: ``"random"``, an agent by its name (``"planner"``), a function that is given a
            :class:`textgames.environments.opponents.OpponentTurn` and returns a response, one that answers many turns
            at once (:class:`textgames.environments.opponents.Together`), or ``{player: any of them}``.
        **settings: the game's own settings; ``level`` and ``twin`` are everybody's.

    ``info`` has ``valid`` (bool), ``action`` (the executed action's name, ``""`` where none was), ``unreadable`` (why
    the response was invalid, or ``None``), ``success`` (bool, can only be true on the last step) and ``legal_actions``
    (tuple of names); after an invalid response also ``invalid_action``, a sentence on what it led to and what else can
    be chosen; at the end of an episode also ``metrics``, a mapping that is worked out when it is looked at.

    In a game of several players a step goes on to the player's next turn, and ``max_steps`` counts the rounds of all.
    What the player is paid meanwhile belongs to the step, and what it is paid before its first turn to the first step.
    Where the game is over before the first turn, the first step executes nothing and ends the episode.

    The environment enforces reset-before-step itself, so it needs none of Gymnasium's checking wrappers.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]  # Gymnasium's convention, typed there as per instance
        "render_modes": RENDER_MODES,
        "render_fps": 4,
    }

    _spec: EnvSpec | None = None

    def __init__(
        self,
        game: str | type[TSMG[Any]] | TSMG[Any],
        *,
        max_steps: MaxSteps = None,
        max_episode_steps: int | None = None,
        format_penalty: float = 0.0,
        invalid_action: str = INVALID_ACTION,
        render_mode: str | None = None,
        seat: str | None = None,
        opponents: Any = None,
        **settings: Any,
    ) -> None:
        self.game = make_game(game, settings)
        asked = asked_of_gymnasium(sys._getframe(1))
        steps = max_episode_steps if asked is None else asked
        self.limits = Limits.of(rounds_of(game, settings, max_steps, self.game), steps, len(self.game.players))
        self.rules = EpisodeRules.checked(self.game, self.limits.rounds, format_penalty, invalid_action)
        check_render_mode(render_mode)
        self.render_mode = render_mode
        self.observation_space = ObservationText()
        self.action_space = response_space(self.game)
        self._player = self.game.players[0] if seat is None else seat
        self._seat = seat_of(self.game, self.rules, self._player, opponents)
        self._play = self.rules.play if self._seat is None else self._seat.play
        self._limit = float("inf") if self.rules.max_steps is None else self.rules.max_steps
        self._state: Any = None
        self._elapsed = self._steps = 0  # rounds, and calls of step()
        self._pending = 0.0  # paid before the player's first turn
        self._over = True

    @property
    def spec(self) -> EnvSpec | None:  # an attribute in Gymnasium, which make() sets
        """What Gymnasium made the environment of, with its limit as ``max_episode_steps``."""
        return self._spec

    @spec.setter
    def spec(self, made_of: EnvSpec | None) -> None:
        self._spec = self.limits.stated_in(made_of, self.game.longest_episode)

    @property
    def instructions(self) -> str:
        return self.game.instructions(self._player)

    @property
    def action_help(self) -> str:
        """What may be written inside the action tag now; ``ResetNeeded`` is raised before the first reset."""
        if self._state is None:
            raise ResetNeeded("action_help was asked for before reset(); call reset() first")
        return self.game.action_help(self._state, self._player)

    @property
    def state(self) -> Any:
        """The game's current state: an immutable, hashable value. ``None`` before the first reset."""
        return self._state

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seeds everything random in the episode: the initial state, then the transitions.
            options: ``{"layout_seed": n}`` draws the initial state that ``reset(seed=n)`` draws, and leaves only
                the transitions to ``seed``.

        Returns:
            The first observation, and ``info`` with ``legal_actions`` and ``success``.

        Raises:
            ValueError: an option with another name, or a layout seed that is not a whole number of at least 0.
        """
        super().reset(seed=seed)
        game, player = self.game, self._player
        rng = self.np_random
        if options:
            rng = layout_generator(checked_options(options, "layout_seed").get("layout_seed"), rng)
        state = game.initial_state(rng)
        self._elapsed, self._steps, self._over, self._pending = 0, 0, False, 0.0
        if self._seat is not None:
            state, self._pending, _, self._elapsed = self._seat.start(state, self.np_random)
        self._state = state
        if self.render_mode == "human":
            self.render()
        return game.observe(state, player), {"success": False, "legal_actions": self._legal_actions()}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Give the game a response.

        Args:
            action: a model's whole response, or a bare action name.

        Returns:
            Observation, reward, terminated (the game's own end), truncated (the step limit; never both), info.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset, or after the episode's end.
            TypeError: the response is not a string.
        """
        if self._over:
            if self._state is None:
                raise ResetNeeded("step() was called before reset(); call reset() first")
            raise ResetNeeded(f"the episode ended after {self._elapsed} steps; call reset() before the next step()")
        game, player = self.game, self._player
        state, reward, ended, chosen, unreadable, rounds = self._play(
            game, self._state, player, action, self.np_random, self._limit - self._elapsed
        )
        self._state = state
        self._elapsed += rounds
        self._steps += 1
        if self._pending:
            reward, self._pending = reward + self._pending, 0.0
        terminated = bool(ended)
        truncated = not terminated and (self._elapsed >= self._limit or self._steps >= self.limits.steps)
        over = self._over = terminated or truncated
        if self.render_mode == "human":
            self.render()
        info = {
            "valid": unreadable is None,
            "action": chosen,
            "unreadable": unreadable,
            "success": over
            and (chosen != "" or unreadable is None)
            and (ended == GIVEN_UP or game.succeeded(state, player)),
            "legal_actions": () if over else self._legal_actions(),
        }
        if unreadable is not None:
            info["invalid_action"] = self.rules.consequence
        if over:
            info["metrics"] = Metrics(game, state, player)
        return game.observe(state, player), reward, terminated, truncated, info

    def _legal_actions(self) -> tuple[str, ...]:
        """What the player may choose from; nothing where the game was over, or cut off, before its first turn."""
        early = self._seat is not None and self._elapsed >= self._limit
        if early or (self._seat is not None and self._player not in self.game.to_move(self._state)):
            return ()
        return self.game.legal_actions(self._state, self._player)

    def save_state(self) -> Snapshot:
        """Everything that the rest of the episode depends on; ``ResetNeeded`` is raised before the first reset."""
        if self._state is None:
            raise ResetNeeded("save_state() was called before reset(); call reset() first")
        agents = () if self._over else (self._player,)
        # the generator's state is a fresh dictionary at every call
        return Snapshot(
            self._state,
            self._elapsed,
            agents,
            dict(self.np_random.bit_generator.state),
            pending=self._pending,
            steps=self._steps,
        )

    def restore_state(self, snapshot: Snapshot) -> str:
        """Go back to a snapshot, of this environment or of another one with the same settings, and observe it.

        Raises:
            TypeError: it is no snapshot.
        """
        check_snapshot(snapshot)
        observation = self.game.observe(snapshot.state, self._player)  # what fails here has changed nothing
        self._state, self._elapsed, self._over = snapshot.state, snapshot.elapsed_steps, not snapshot.agents
        self._pending, self._steps = snapshot.pending, snapshot.steps
        self.np_random.bit_generator.state = snapshot.rng_state
        return observation

    def render(self) -> str | NDArray[np.uint8] | None:
        if self._state is None:
            raise ResetNeeded("render() was called before reset(); call reset() first")
        return render_state(self.game, self._state, self.render_mode, f"step {self._elapsed}")
