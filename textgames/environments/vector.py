"""A batch of games as a Gymnasium vector environment, in one process; one player of each plays outside.

With text to write and to read, a Python loop over pure rules costs less than a round trip to a worker process. Every
sub-environment has its own generator and behaves step by step as ``gym.make`` does with the same seed.
"""

from collections.abc import Collection, Sequence
from itertools import repeat
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from textgames.environments.opponents import Seat
from textgames.environments.render import checked_view, render_state
from textgames.environments.rules import INVALID_ACTION, MaxSteps, checked_options, made, not_a_response
from textgames.environments.solo import StatesLimit, TextGameEnv
from textgames.environments.spaces import ObservationText, response_space
from textgames.environments.table import Round
from textgames.settings import check_one_of, check_whole
from textgames.tsmg import TSMG

MOST_ENVS = 100_000
"""The most episodes of a batch: they are all in memory."""

BoolArray = NDArray[np.bool_]

_TOLD = ("valid", "action", "unreadable", "success", "legal_actions", "invalid_action", "metrics")

_NOTHING: dict[str, Any] = {}


class TextVectorEnv(StatesLimit, gym.vector.VectorEnv[tuple[str, ...], Sequence[str], NDArray[Any]]):
    """``num_envs`` independent games: observations are a tuple of strings, actions a sequence of strings.

    Args:
        game: as for :class:`textgames.environments.solo.TextGameEnv`, like the other settings.
        num_envs: how many games.
        autoreset_mode: ``gymnasium.vector.AutoresetMode`` or its value: ``"NextStep"`` (the default: the step after an
            episode's end resets and ignores its action), ``"SameStep"`` (the new episode's observation comes at once;
            the old one's last observation and info are ``infos["final_obs"]`` and ``infos["final_info"]``) or
            ``"Disabled"`` (``reset(options={"reset_mask": mask})`` is up to you).
        max_episode_steps: steps after which an episode is cut off at the latest, as Gymnasium's wrapper does it around
            a single environment; ``gymnasium.make_vec`` hands it over.

    Infos follow Gymnasium's layout: an array of length ``num_envs`` a key, and a mask ``_key`` of those that have it.
    Masks of all games are shared and can't be written to.
    """

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
        render_view: str | None = None,
        seat: str | None = None,
        opponents: Any = None,
        **settings: Any,
    ) -> None:
        check_whole("num_envs", num_envs, 1, MOST_ENVS)
        if max_episode_steps is not None:
            check_whole("max_episode_steps", max_episode_steps, 1, None)
        self.game, self.rules = made(game, settings, max_steps, format_penalty, invalid_action)
        self._most = max_episode_steps
        self.render_mode, self.render_view = checked_view(self.game, render_mode, render_view)
        self.num_envs = int(num_envs)
        if not isinstance(autoreset_mode, AutoresetMode):
            check_one_of("autoreset_mode", autoreset_mode, tuple(mode.value for mode in AutoresetMode))
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**TextGameEnv.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = ObservationText()
        self.single_action_space = response_space(self.game)
        # one space object `num_envs` times: equal to a batch of copies, and 4096 copies would take a second
        self.observation_space = spaces.Tuple([self.single_observation_space] * self.num_envs)
        self.action_space = spaces.Tuple([self.single_action_space] * self.num_envs)
        self._seat = Seat(self.game, seat, opponents)
        self._player, self._inside = self._seat.player, len(self.game.players) > 1
        self._tables = [self._seat.table(self.rules) for _ in range(self.num_envs)]
        self._observations: list[str] = [""] * self.num_envs
        self._steps = [0] * self.num_envs  # calls of step()
        self._over = [True] * self.num_envs
        self._everywhere = np.ones(self.num_envs, dtype=np.bool_)
        self._everywhere.flags.writeable = False

    @property
    def instructions(self) -> str:
        return self.game.instructions(self._player)

    @property
    def states(self) -> tuple[Any, ...]:
        return tuple([table.state for table in self._tables])

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Start an episode in every game, or in those of a mask; returns all observations, and these games' infos.

        Args:
            seed: ``n`` seeds the games with ``n, n + 1, ...``; a sequence gives each its own; ``None`` keeps the
                generators.
            options: ``"reset_mask"``: boolean array of shape (num_envs,), the games to reset. ``"layout_seed"``: as
                in the single environment; a number for all games or one for each. A ValueError for any other.
        """
        given = checked_options(options, "layout_seed", "reset_mask")
        mask = given.get("reset_mask")
        if mask is None:
            mask = self._everywhere
        elif not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(
                f'options["reset_mask"] must be a boolean array of shape ({self.num_envs},) with at least one True, '
                f"got {mask!r}"
            )
        chosen = np.flatnonzero(mask).tolist()
        seeds = self._per_game("seed", seed, spread=True)
        layouts = self._per_game('options["layout_seed"]', given.get("layout_seed"), spread=False)
        told = self._reset_games(chosen, seeds, layouts)
        return tuple(self._observations), self._laid_out(
            [told.get(i, _NOTHING) for i in range(self.num_envs)], step=False
        )

    def step(
        self, actions: Sequence[str]
    ) -> tuple[tuple[str, ...], NDArray[np.float64], BoolArray, BoolArray, dict[str, Any]]:
        """Give every game its response; see :meth:`TextGameEnv.step`.

        Returns:
            Observations (tuple of strings), rewards (float64), terminations and truncations (bool), all of length
            ``num_envs``, and infos.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset, or after an episode's end when autoreset is disabled.
            TypeError, ValueError: not one string for every game.
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
        restarted = self._restart() if True in self._over else {}
        n, player, observe, observations = self.num_envs, self._player, self.game.observe, self._observations
        rewards, terminations, truncations = np.zeros(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        told = [restarted.get(i, _NOTHING) for i in range(n)] if restarted else [_NOTHING] * n
        going = [i for i in range(n) if i not in restarted] if restarted else range(n)
        rounds: dict[int, Round] | None = None
        if self._inside and (not self._seat.alone or any(self._tables[i].early is not None for i in going)):
            rounds = self._seat.play({i: self._tables[i] for i in going}, {i: given[i] for i in going})
        ended = []
        for i in going:
            table = self._tables[i]
            paid, terminated, truncated, infos = table.play({player: given[i]}) if rounds is None else rounds[i]
            told[i] = infos[player]
            observations[i] = observe(table.state, player)
            if reward := paid[player]:
                rewards[i] = reward
            if terminated or truncated:
                (terminations if player in terminated else truncations)[i] = True
                ended.append(i)
        if self._most is not None:
            for i in going:
                self._steps[i] += 1
                if self._steps[i] >= self._most and not (terminations[i] or truncations[i]):
                    truncations[i] = True
                    ended.append(i)
        for i in ended:
            self._over[i] = True
        if not ended or self.autoreset_mode is not AutoresetMode.SAME_STEP:
            return tuple(observations), rewards, terminations, truncations, self._laid_out(told)
        last = np.full(n, None, dtype=object)
        last[ended] = [observations[i] for i in ended]
        final = self._laid_out([info if over else _NOTHING for info, over in zip(told, self._over, strict=True)])
        for i, info in self._reset_games(ended).items():
            told[i] = info
        mask = final["_success"]
        final_infos = {"final_obs": last, "_final_obs": mask, "final_info": final, "_final_info": mask}
        return tuple(observations), rewards, terminations, truncations, final_infos | self._laid_out(told)

    def render(self, view: str | None = None) -> tuple[Any, ...]:
        """Draw every game, as :meth:`TextGameEnv.render` does."""
        if self._tables[0].state is None:
            raise ResetNeeded("render() was called before reset(); call reset() first")
        seen = view or self.render_view
        return tuple(
            render_state(
                self.game, table.state, self.render_mode, f"game {i}, step {table.elapsed}", seen, self._player
            )
            for i, table in enumerate(self._tables)
        )

    def _reset_games(
        self, chosen: Sequence[int], seeds: Sequence[Any] = (), layouts: Sequence[Any] = ()
    ) -> dict[int, dict[str, Any]]:
        tables = {i: self._tables[i] for i in chosen}
        for i, table in tables.items():
            table.reset(seeds[i] if seeds else None, layouts[i] if layouts else None)
            self._steps[i], self._over[i] = 0, False
        if self._inside:
            self._seat.play(tables, {})
        for i, table in tables.items():
            self._observations[i] = self.game.observe(table.state, self._player)
        return {i: table.first_info(self._player) for i, table in tables.items()}

    def _restart(self) -> dict[int, dict[str, Any]]:
        ended = [i for i, over in enumerate(self._over) if over]
        table = self._tables[ended[0]]
        if table.state is None:
            raise ResetNeeded("step() was called before reset(); call reset() first")
        if self.autoreset_mode is AutoresetMode.DISABLED:
            raise ResetNeeded(
                f"the episode of game {ended[0]} ended after {table.elapsed} steps and autoreset is disabled; call "
                'reset(options={"reset_mask": terminations | truncations}) before the next step()'
            )
        return self._reset_games(ended)

    def _laid_out(self, told: Sequence[dict[str, Any]], *, step: bool = True) -> dict[str, Any]:
        """Lay the infos of the games out as Gymnasium does: an array a name, and a mask of the games that have it.

        Those of a step have ``valid``, ``action`` and ``unreadable`` even if all games were only reset.
        """
        infos: dict[str, Any] = {}
        for name in _TOLD:
            column = list(map(dict.get, told, repeat(name)))
            missing = column.count(None)
            if name in ("action", "unreadable"):  # which come with `valid`; the value of the latter may be `None`
                mask = infos.get("_valid")
            elif missing:
                has = missing < len(column) or (step and name == "valid")
                mask = np.array([value is not None for value in column]) if has else None
            else:
                mask = self._everywhere
            if mask is not None:
                infos[name] = np.fromiter(column, np.bool_ if name in ("valid", "success") else np.object_, len(column))
                infos[f"_{name}"] = mask
        return infos

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
