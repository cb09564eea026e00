"""A game as a Gymnasium environment, for one player: text observation in, free text out. Others play inside it."""

import copy
from typing import Any, ClassVar

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded

from textgames.environments.opponents import Seat
from textgames.environments.render import RENDER_MODES, checked_view
from textgames.environments.rules import INVALID_ACTION, EpisodeRules, MaxSteps, checked_options, made
from textgames.environments.spaces import ObservationText, response_space
from textgames.environments.table import OneTable, Snapshot
from textgames.tsmg import TSMG, Player


class StatesLimit:
    """Gymnasium's spec with the limit of the environment as ``max_episode_steps``."""

    game: TSMG[Any]
    rules: EpisodeRules
    _spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:  # an attribute in Gymnasium, which make() sets
        return self._spec

    @spec.setter
    def spec(self, made_of: EnvSpec | None) -> None:
        self._spec = copy.copy(made_of)
        if self._spec is not None:
            own = self.rules.max_steps or self.game.longest_episode
            self._spec.max_episode_steps = self._spec.kwargs.get("max_episode_steps", own)


class TextGameEnv(StatesLimit, OneTable, gym.Env[str, str]):
    """A text-mediated stochastic game for one player, or for one of several.

    Args:
        game: the game's class, ``"module:Class"``, or a built game.
        max_steps: rounds after which the episode is truncated; ``None`` for no limit, ``"auto"`` for the one that fits
            the game's settings (:attr:`textgames.tsmg.TSMG.usual_limit`). A level brings its own. The
            ``max_episode_steps`` of ``gymnasium.make`` is Gymnasium's wrapper: it cuts episodes shorter, never longer.
        format_penalty: subtracted from the reward when a response is invalid (1.0 in training, 0.0 in evaluation).
        invalid_action: what an invalid response executes: ``"random"`` (a random legal action of the episode's stream),
            ``"default"`` (the first one, as in the paper's training), ``"noop"`` if the game has one, ``"terminate"``:
            the episode ends, or ``"forfeit"``: it ends and pays what a loss pays (:meth:`textgames.tsmg.TSMG.forfeit`).
        render_mode: ``"ansi"`` (text), ``"human"`` (a live board in the terminal), ``"rgb_array"`` (a picture) or
            ``None``.
        render_view: what is drawn: ``"player"`` (what the player may see), another player's name or ``"spectator"``
            (all). ``None``: the player's view in a game that hides something, else the spectator's.
        seat: in a game of several players, the one that plays outside; the first one when not given.
        opponents: the players inside then; see :class:`textgames.environments.opponents.Seat`.
        **settings: the game's own settings; every game has ``level`` and ``twin``.

    ``info`` has ``valid`` (bool), ``action`` (the executed action's name, ``""`` if none was), ``unreadable`` (why the
    response was invalid, or ``None``), ``success`` (bool, can only be true on the last step) and ``legal_actions``
    (tuple of names); after an invalid response also ``invalid_action``, a sentence on what it led to; at the end of an
    episode also ``metrics``, a mapping that is worked out when it is looked at.

    In a game of several players a step lasts until the player's next turn, and ``max_steps`` counts the rounds of all.
    What the player is paid meanwhile belongs to the step, and what it is paid before its first turn to the first step.
    If the game is over before the first turn, the first step executes nothing and ends the episode.

    The environment enforces reset-before-step itself, so it needs none of Gymnasium's checking wrappers.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]  # Gymnasium's convention, typed there as per instance
        "render_modes": RENDER_MODES,
        "render_fps": 4,
    }

    def __init__(
        self,
        game: str | type[TSMG[Any]] | TSMG[Any],
        *,
        max_steps: MaxSteps = None,
        format_penalty: float = 0.0,
        invalid_action: str = INVALID_ACTION,
        render_mode: str | None = None,
        render_view: str | None = None,
        seat: str | None = None,
        opponents: Any = None,
        **settings: Any,
    ) -> None:
        self.game, self.rules = made(game, settings, max_steps, format_penalty, invalid_action)
        self.render_mode, self.render_view = checked_view(self.game, render_mode, render_view)
        self.observation_space = ObservationText()
        self.action_space = response_space(self.game)
        self._seat = Seat(self.game, seat, opponents)
        self._player = self._seat.player
        self._table = self._seat.table(self.rules)
        self._draws = render_mode == "human"

    @property
    def instructions(self) -> str:
        return self.game.instructions(self._player)

    @property
    def player(self) -> Player:
        """The player outside, one of ``game.players``."""
        return self._player

    @property
    def is_asked(self) -> bool:
        """True if the player is to move: between a reset and the episode's end."""
        return self._player in self._table.asked

    @property
    def action_help(self) -> str:
        """What may be written inside the action tag now; ``ResetNeeded`` is raised before the first reset."""
        self._require_reset("action_help")
        return self.game.action_help(self.state, self._player)

    @property
    def state(self) -> Any:
        """The game's current state: an immutable, hashable value. ``None`` before the first reset."""
        return self._table.state

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; returns the first observation, and ``info`` with ``legal_actions`` and ``success``.

        Args:
            seed: seeds everything random in the episode: the initial state, then the transitions.
            options: ``{"layout_seed": n}`` draws the initial state that ``reset(seed=n)`` draws, and leaves only the
                transitions to ``seed``; a ValueError for any other.
        """
        if seed is not None:
            super().reset(seed=seed)
        table, player = self._table, self._player
        layout_seed = checked_options(options, "layout_seed").get("layout_seed") if options is not None else None
        table.reset(self.np_random, layout_seed)
        if player not in table.asked:
            self._seat.play({0: table}, {})
        if self._draws:
            self.render()
        return self.game.observe(table.state, player), table.first_info(player)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Give the game a response, a model's whole text or a bare action name; a TypeError if it is no string.

        Returns observation, reward, terminated (the game's own end), truncated (the step limit; never both), info.
        ResetNeeded is raised before the first reset and after the episode's end.
        """
        table, player = self._table, self._player
        if not table.agents and table.early is None:
            self._require_reset("step()")
            raise ResetNeeded(f"the episode ended after {table.elapsed} steps; call reset() before the next step()")
        if self._seat.alone and table.early is None:
            rewards, terminated, truncated, infos = table.play({player: action})
        else:
            rewards, terminated, truncated, infos = self._seat.play({0: table}, {0: action})[0]
        if self._draws:
            self.render()
        read, reward, info = self.game.observe(table.state, player), rewards[player], infos[player]
        return read, reward, player in terminated, player in truncated, info

    def restore_state(self, snapshot: Snapshot) -> str:
        """Return to a snapshot, of this environment or of another one with the same settings, and observe it."""
        self._table.restore(snapshot)
        return self.game.observe(self.state, self._player)
