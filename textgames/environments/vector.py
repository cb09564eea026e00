"""A batch of games as a Gymnasium vector environment, in one process; one player of each plays outside.

The rules are those of the single environment, called in a loop: with text to write and to read, a Python loop over pure
rules costs less than a round trip to a worker process. Every sub-environment has its own generator and behaves step by
step as ``gym.make`` does with the same seed.
"""

from collections.abc import Collection, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from textgames.environments.opponents import GIVEN_UP, Played, finished, seat_of
from textgames.environments.render import check_render_mode, render_state
from textgames.environments.rules import (
    INVALID_ACTION,
    EpisodeRules,
    MaxSteps,
    Metrics,
    checked_options,
    layout_generator,
    make_game,
    not_a_response,
    rounds_of,
)
from textgames.environments.seeds import seeded
from textgames.environments.solo import Limits, TextGameEnv
from textgames.environments.spaces import ObservationText, response_space
from textgames.names import did_you_mean
from textgames.settings import check_whole
from textgames.tsmg import TSMG

MOST_ENVS = 100_000
"""The most episodes of a batch: they are all in memory."""

BoolArray = NDArray[np.bool_]


class TextVectorEnv(gym.vector.VectorEnv[tuple[str, ...], Sequence[str], NDArray[Any]]):
    """``num_envs`` independent games: observations are a tuple of strings, actions a sequence of strings.

    Args:
        game: as for :class:`textgames.environments.solo.TextGameEnv`, like the other settings.
        num_envs: how many games.
        autoreset_mode: ``gymnasium.vector.AutoresetMode`` or its value: ``"NextStep"`` (the default: the step after
            an episode's end resets and ignores its action), ``"SameStep"`` (the new episode's observation comes at
            once; the old one's last observation and info are ``infos["final_obs"]`` and ``infos["final_info"]``) or
            ``"Disabled"`` (``reset(options={"reset_mask": mask})`` is up to you).
        seat, opponents: as for the single environment, in a game of several players.
        max_episode_steps: as for the single environment; ``gymnasium.make_vec`` hands it over.

    Infos follow Gymnasium's layout: one array of length ``num_envs`` a key, and a mask ``_key`` of where it is set.
    Masks of all games are shared and can't be written to.
    """

    _spec: EnvSpec | None = None

    def __init__(
        self,
        game: str | type[TSMG[Any]] | TSMG[Any],
        num_envs: int = 1,
        *,
        max_steps: MaxSteps = None,
        max_episode_steps: int | None = None,
        format_penalty: float = 0.0,
        invalid_action: str = INVALID_ACTION,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        seat: str | None = None,
        opponents: Any = None,
        **settings: Any,
    ) -> None:
        check_whole("num_envs", num_envs, 1, MOST_ENVS)
        self.game = make_game(game, settings)
        self.limits = Limits.of(
            rounds_of(game, settings, max_steps, self.game), max_episode_steps, len(self.game.players)
        )
        self.rules = EpisodeRules.checked(self.game, self.limits.rounds, format_penalty, invalid_action)
        check_render_mode(render_mode)
        self.render_mode = render_mode
        self.num_envs = int(num_envs)
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.metadata = {**TextGameEnv.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = ObservationText()
        self.single_action_space = response_space(self.game)
        # one space object `num_envs` times: equal to a batch of copies, and 4096 copies would take a second
        self.observation_space = spaces.Tuple([self.single_observation_space] * self.num_envs)
        self.action_space = spaces.Tuple([self.single_action_space] * self.num_envs)
        self._player = self.game.players[0] if seat is None else seat
        self._seat = seat_of(self.game, self.rules, self._player, opponents)
        self._play = self.rules.play if self._seat is None else self._seat.play
        self._limit = float("inf") if self.rules.max_steps is None else self.rules.max_steps
        self._states: list[Any] = [None] * self.num_envs
        self._observations: list[str] = [""] * self.num_envs
        self._elapsed, self._steps = [0] * self.num_envs, [0] * self.num_envs  # rounds, and calls of step()
        self._pending = [0.0] * self.num_envs  # paid before the player's first turn
        self._over = [True] * self.num_envs
        self._rngs: list[Any] = [None] * self.num_envs  # np.random.Generator, from the first reset on
        self._everywhere = np.ones(self.num_envs, dtype=np.bool_)
        self._everywhere.flags.writeable = False

    @property
    def spec(self) -> EnvSpec | None:  # an attribute in Gymnasium, which make_vec() sets
        """What Gymnasium made the environment of, with its limit as ``max_episode_steps``."""
        return self._spec

    @spec.setter
    def spec(self, made_of: EnvSpec | None) -> None:
        self._spec = self.limits.stated_in(made_of, self.game.longest_episode)

    @property
    def instructions(self) -> str:
        return self.game.instructions(self._player)

    @property
    def states(self) -> tuple[Any, ...]:
        return tuple(self._states)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Start an episode in every game, or in those of a mask.

        Args:
            seed: ``n`` seeds the games with ``n, n + 1, ...``; a sequence gives each its own; ``None`` goes on with
                the generators.
            options: ``"reset_mask"``: boolean array of shape (num_envs,), the games to reset; the others are left
                as they are. ``"layout_seed"``: as in the single environment; a number for all games or a sequence of
                numbers.

        Returns:
            The observations of all games, and the infos of those that were reset.

        Raises:
            ValueError: an option with another name, a bad mask, or not as many seeds as there are games.
        """
        given = checked_options(options, "layout_seed", "reset_mask")
        mask = given.get("reset_mask")
        chosen = range(self.num_envs) if mask is None else np.flatnonzero(_checked_mask(mask, self.num_envs)).tolist()
        seeds = self._per_game("seed", seed, spread=True)
        layouts = self._per_game('options["layout_seed"]', given.get("layout_seed"), spread=False)
        for i in chosen:
            if seeds[i] is not None or self._rngs[i] is None:
                self._rngs[i] = seeded(seeds[i])
        self._reset_games(chosen, layouts)
        reset = self._everywhere if mask is None else np.array(mask)
        infos = {"success": np.zeros(self.num_envs, dtype=np.bool_), "_success": reset}
        return tuple(self._observations), {**infos, **self._legal_info(None if mask is None else reset)}

    def step(
        self, actions: Sequence[str]
    ) -> tuple[tuple[str, ...], NDArray[np.float64], BoolArray, BoolArray, dict[str, Any]]:
        """Give every game its response; see :meth:`TextGameEnv.step`.

        Returns:
            Observations (tuple of strings), rewards (float64), terminations and truncations (bool), all of length
            ``num_envs``, and infos.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset, or after an episode's end where autoreset is disabled.
            TypeError: one string for all games, or a response that is not a string.
            ValueError: not as many responses as there are games.
        """
        if isinstance(actions, str):
            raise TypeError(
                f"expected {self.num_envs} responses, one a game, got one string: {actions!r}; "
                f"to give it to every game, write step([{actions!r}] * {self.num_envs})"
            )
        if not isinstance(actions, Sequence | np.ndarray):
            raise TypeError(f"expected {self.num_envs} responses, one a game, got {actions!r}")
        if len(actions) != self.num_envs:
            raise ValueError(f"expected {self.num_envs} responses, one a game, got {len(actions)}")
        given: Sequence[Any] = actions
        for i, response in enumerate(given):  # all before the first is played
            if not isinstance(response, str) and not self._over[i]:
                raise TypeError(f"game {i}: {not_a_response(response)}")
        restarted = self._restart() if True in self._over else ()
        game, player, limit, play = self.game, self._player, self._limit, self._play
        states, observations, rngs = self._states, self._observations, self._rngs
        n, everywhere, elapsed, over = self.num_envs, self._everywhere, self._elapsed, self._over
        steps, step_limit = self._steps, self.limits.steps
        pending = self._pending
        # arrays start as what most games need, so that most games write nothing
        rewards, executed, reasons = np.zeros(n), np.empty(n, dtype=object), np.empty(n, dtype=object)
        terminations, truncations, successes = np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        valid = played = everywhere
        if restarted:  # this step is only a reset for the game: it has no response to tell of
            played, valid = everywhere.copy(), everywhere.copy()
            played[[*restarted]] = valid[[*restarted]] = False
        ended: list[int] = []
        together = self._play_together(actions, restarted) if self._seat and self._seat.asks_together else None
        for i, response in enumerate(actions):
            if i in restarted:
                continue
            state, reward, terminated, action, reason, rounds = (
                play(game, states[i], player, response, rngs[i], limit - elapsed[i])
                if together is None
                else together[i]
            )
            states[i] = state
            observations[i] = game.observe(state, player)
            elapsed[i] += rounds
            steps[i] += 1
            if pending[i]:
                reward, pending[i] = reward + pending[i], 0.0
            executed[i] = action
            if reward:
                rewards[i] = reward
            if reason is not None:
                valid = everywhere.copy() if valid is everywhere else valid
                valid[i] = False
                reasons[i] = reason
            if terminated or elapsed[i] >= limit or steps[i] >= step_limit:
                (terminations if terminated else truncations)[i] = over[i] = True
                sent_away = action == "" and reason is not None
                successes[i] = not sent_away and (terminated == GIVEN_UP or game.succeeded(state, player))
                ended.append(i)
        infos: dict[str, Any] = {
            "valid": valid,
            "_valid": played,
            "action": executed,
            "_action": played,
            "unreadable": reasons,
            "_unreadable": played,
            "success": successes,
            "_success": everywhere,
        }
        if valid is not played:
            told = np.empty(n, dtype=object)
            invalid = played & ~valid
            told[invalid] = self.rules.consequence
            infos |= {"invalid_action": told, "_invalid_action": invalid}
        if ended:
            infos |= self._metrics(ended)
        if ended and self.autoreset_mode is AutoresetMode.SAME_STEP:
            infos = self._reset_same_step(ended, infos)
        return tuple(observations), rewards, terminations, truncations, {**infos, **self._legal_info(None)}

    def render(self) -> tuple[Any, ...]:
        if self._states[0] is None:
            raise ResetNeeded("render() was called before reset(); call reset() first")
        return tuple(
            render_state(self.game, state, self.render_mode, f"game {i}, step {self._elapsed[i]}")
            for i, state in enumerate(self._states)
        )

    def _play_together(self, actions: Sequence[str], left_out: Collection[int]) -> dict[int, Played]:
        """What comes of everybody's responses, where opponents answer for all games at once."""
        assert self._seat is not None
        states, rngs, elapsed = self._states, self._rngs, self._elapsed
        playing = {
            i: self._seat.playing(states[i], response, rngs[i], self._limit - elapsed[i])
            for i, response in enumerate(actions)
            if i not in left_out
        }
        return dict(zip(playing, finished([*playing.values()]), strict=True))

    def _reset_games(self, chosen: Sequence[int], layouts: Sequence[Any]) -> None:
        """Begin new episodes; opponents who answer together are asked once for all of them."""
        for i in chosen:
            self._states[i] = self.game.initial_state(layout_generator(layouts[i], self._rngs[i]))
            self._elapsed[i], self._steps[i], self._pending[i], self._over[i] = 0, 0, 0.0, False
        if self._seat is not None:
            starts = finished([self._seat.starting(self._states[i], self._rngs[i]) for i in chosen])
            for i, (state, paid, _, rounds) in zip(chosen, starts, strict=True):
                self._states[i], self._pending[i], self._elapsed[i] = state, paid, rounds
        for i in chosen:
            self._observations[i] = self.game.observe(self._states[i], self._player)

    def _restart(self) -> frozenset[int]:
        """Reset the games that are over; returns which they were."""
        ended = [i for i, over in enumerate(self._over) if over]
        i = ended[0]
        if self._states[i] is None:
            raise ResetNeeded("step() was called before reset(); call reset() first")
        if self.autoreset_mode is AutoresetMode.DISABLED:
            raise ResetNeeded(
                f"the episode of game {i} ended after {self._elapsed[i]} steps and autoreset is disabled; call "
                'reset(options={"reset_mask": terminations | truncations}) before the next step()'
            )
        self._reset_games(ended, [None] * self.num_envs)
        return frozenset(ended)

    def _reset_same_step(self, ended: list[int], infos: dict[str, Any]) -> dict[str, Any]:
        """Reset the games that just ended.

        Returns:
            The infos as Gymnasium lays them out: those of an ended game are now its reset's, and its last ones stand
            under ``"final_info"``, beside its last observation.
        """
        n = self.num_envs
        mask = np.zeros(n, dtype=np.bool_)
        mask[ended] = True
        observations, legal = np.empty(n, dtype=object), np.empty(n, dtype=object)
        for i in ended:
            observations[i] = self._observations[i]
            legal[i] = self._legal_actions(i)
        self._reset_games(ended, [None] * n)
        final: dict[str, Any] = {"legal_actions": legal, "_legal_actions": mask}
        rest: dict[str, Any] = {"_success": self._everywhere}
        if "metrics" in infos:
            final |= {"metrics": infos["metrics"], "_metrics": infos["_metrics"]}
        for name in ("valid", "action", "unreadable", "success"):
            values = infos[name]
            final[name], rest[name] = np.zeros_like(values), values.copy()
            if values.dtype == np.object_:
                final[name].fill(None)
            final[name][ended] = values[ended]
            rest[name][ended] = False if values.dtype == np.bool_ else None
            final[f"_{name}"] = mask
        rest |= dict.fromkeys(("_valid", "_action", "_unreadable"), ~mask)
        if "invalid_action" in infos:
            told, where = infos["invalid_action"], infos["_invalid_action"]
            final |= {"invalid_action": np.where(mask, told, None), "_invalid_action": where & mask}
            rest |= {"invalid_action": np.where(mask, None, told), "_invalid_action": where & ~mask}
        return {"final_obs": observations, "_final_obs": mask, "final_info": final, "_final_info": mask, **rest}

    def _legal_info(self, mask: BoolArray | None) -> dict[str, Any]:
        where = self._everywhere if mask is None else mask
        legal = np.empty(self.num_envs, dtype=object)
        legal_actions, states, over, player = self.game.legal_actions, self._states, self._over, self._player
        for i in range(self.num_envs) if mask is None else np.flatnonzero(mask).tolist():
            if self._seat is None:  # as `_legal_actions`, without a call of it for every game and step
                legal[i] = () if over[i] else legal_actions(states[i], player)
            else:
                legal[i] = self._legal_actions(i)
        return {"legal_actions": legal, "_legal_actions": where}

    def _legal_actions(self, i: int) -> tuple[str, ...]:
        """As in the single environment: nothing after the end, or where it came before the player's first turn."""
        state = self._states[i]
        if self._over[i]:
            return ()
        if self._seat is not None and (self._elapsed[i] >= self._limit or self._player not in self.game.to_move(state)):
            return ()
        return self.game.legal_actions(state, self._player)

    def _metrics(self, ended: list[int]) -> dict[str, Any]:
        """The metrics of the games that just ended, as an array of mappings."""
        metrics, where = np.empty(self.num_envs, dtype=object), np.zeros(self.num_envs, dtype=np.bool_)
        for i in ended:
            metrics[i], where[i] = Metrics(self.game, self._states[i], self._player), True
        return {"metrics": metrics, "_metrics": where}

    def _per_game(self, name: str, value: Any, *, spread: bool) -> list[Any]:
        if value is None:
            return [None] * self.num_envs
        if isinstance(value, int | np.integer):
            return [value + i if spread else value for i in range(self.num_envs)]
        values = list(value) if isinstance(value, Collection) else []
        if len(values) != self.num_envs:
            got = len(values) if values and not isinstance(value, str) else repr(value)
            raise ValueError(f"{name} must be one whole number or {self.num_envs} of them, got {got}")
        return values


def _autoreset_mode(mode: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        modes = [known.value for known in AutoresetMode]
        near = did_you_mean(str(mode), modes)
        raise ValueError(f"autoreset_mode must be one of {', '.join(modes)}, got {mode!r}{near}") from None


def _checked_mask(mask: Any, num_envs: int) -> BoolArray:
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,) or not mask.any():
        raise ValueError(
            f'options["reset_mask"] must be a boolean array of shape ({num_envs},) with at least one True, got {mask!r}'
        )
    return mask
