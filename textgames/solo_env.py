"""A game with one player as a Gymnasium environment: text observation in, free text out."""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from textgames.episode_rules import EpisodeRules, Snapshot, checked_options, layout_generator, make_game
from textgames.render import RENDER_MODES, check_render_mode, render_state
from textgames.spaces import ObservationText, ResponseText
from textgames.tsmg import TSMG


class TextGameEnv(gym.Env[str, str]):
    """A text-mediated stochastic game for one player.

    Args:
        game: the game's class, ``"module:Class"``, or a built game.
        max_steps: rounds after which the episode is truncated; ``None`` for no limit.
        format_penalty: subtracted from the reward when a response is invalid (1.0 in training, 0.0 in evaluation).
        invalid_action: what an invalid response executes: ``"default"`` (the first action), ``"random"``, ``"noop"``
            where the game has one, or ``"terminate"``: the episode ends.
        render_mode: ``"ansi"`` (text), ``"human"`` (a live board in the terminal), ``"rgb_array"`` (a picture) or
            ``None``.
        **settings: the game's own settings.

    ``info`` has ``valid`` (bool), ``action`` (the executed action's name, ``""`` where none was), ``unreadable`` (why
    the response was invalid, or ``None``), ``success`` (bool, can only be true on the last step) and ``legal_actions``
    (tuple of names).

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
        max_steps: int | None = None,
        format_penalty: float = 0.0,
        invalid_action: str = "default",
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        self.game = make_game(game, settings)
        if len(self.game.players) != 1:
            raise ValueError(
                f"a Gymnasium environment has one player and this game has {len(self.game.players)}; "
                "use textgames.parallel_env(...) with the same arguments"
            )
        self.rules = EpisodeRules.checked(self.game, max_steps, format_penalty, invalid_action)
        check_render_mode(self.game, render_mode)
        self.render_mode = render_mode
        self.observation_space = ObservationText()
        self.action_space = ResponseText(self.game.actions)
        self._player = self.game.players[0]
        self._limit = float("inf") if self.rules.max_steps is None else self.rules.max_steps
        self._state: Any = None
        self._elapsed = 0
        self._over = True

    @property
    def instructions(self) -> str:
        return self.game.instructions(self._player)

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
        state = self._state = game.initial_state(rng)
        self._elapsed, self._over = 0, False
        if self.render_mode == "human":
            self.render()
        return game.observe(state, player), {"success": False, "legal_actions": game.legal_actions(state, player)}

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
        play = self.rules.play
        state, reward, terminated, chosen, unreadable = play(game, self._state, player, action, self.np_random)
        self._state = state
        self._elapsed += 1
        truncated = not terminated and self._elapsed >= self._limit
        over = self._over = terminated or truncated
        if self.render_mode == "human":
            self.render()
        info = {
            "valid": unreadable is None,
            "action": chosen,
            "unreadable": unreadable,
            "success": over and chosen != "" and game.succeeded(state, player),
            "legal_actions": game.legal_actions(state, player),
        }
        return game.observe(state, player), reward, terminated, truncated, info

    def save_state(self) -> Snapshot:
        """Everything that the rest of the episode depends on; ``ResetNeeded`` is raised before the first reset."""
        if self._state is None:
            raise ResetNeeded("save_state() was called before reset(); call reset() first")
        agents = () if self._over else (self._player,)
        # the generator's state is a fresh dictionary at every call
        return Snapshot(self._state, self._elapsed, agents, dict(self.np_random.bit_generator.state))

    def restore_state(self, snapshot: Snapshot) -> str:
        """Go back to a snapshot, of this environment or of another one with the same settings, and observe it."""
        self._state, self._elapsed, self._over = snapshot.state, snapshot.elapsed_steps, not snapshot.agents
        self.np_random.bit_generator.state = snapshot.rng_state
        return self.game.observe(self._state, self._player)

    def render(self) -> str | NDArray[np.uint8] | None:
        if self._state is None:
            raise ResetNeeded("render() was called before reset(); call reset() first")
        return render_state(self.game, self._state, self.render_mode, f"step {self._elapsed}")
