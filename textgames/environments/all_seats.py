"""What the two environments of all players have in common: their game, its table, their spaces and their pictures.

``parallel`` and ``aec`` add PettingZoo's two forms of asking.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from textgames.environments.render import check_render_mode, render_state
from textgames.environments.rules import (
    ALL_SEATS_SETTINGS,
    INVALID_ACTION,
    EpisodeRules,
    MaxSteps,
    checked_options,
    layout_generator,
    make_game,
    rounds_of,
)
from textgames.environments.seeds import seeded
from textgames.environments.spaces import ObservationText, ResponseText, response_space
from textgames.environments.table import Table
from textgames.tsmg import TSMG, Player, read_by


class AllSeats:
    """What the environments of all players have in common, before PettingZoo's form of them is added.

    Args:
        game: the game's class, ``"module:Class"``, or a built game.
        max_steps: rounds after which the episode is truncated; ``None`` for no limit, ``"auto"`` for the one that fits
            the game's settings.
        max_cycles: another name for ``max_steps``, the one that PettingZoo uses.
        format_penalty, invalid_action, render_mode: as for :class:`textgames.environments.solo.TextGameEnv`.
        **settings: the game's own settings.
    """

    agents: list[Player]

    def __init__(
        self,
        game: str | type[TSMG[Any]] | TSMG[Any],
        *,
        max_steps: MaxSteps = None,
        max_cycles: int | None = None,
        format_penalty: float = 0.0,
        invalid_action: str = INVALID_ACTION,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        self.game = make_game(game, settings, ALL_SEATS_SETTINGS)
        limit = max_cycles if max_cycles is not None else rounds_of(game, settings, max_steps, self.game)
        self.rules = EpisodeRules.checked(self.game, limit, format_penalty, invalid_action)
        check_render_mode(render_mode)
        self.render_mode = render_mode
        self.possible_agents = list(self.game.players)
        self.agents = []
        commands = response_space(self.game).commands
        self.observation_spaces = {agent: ObservationText() for agent in self.possible_agents}
        self.action_spaces = {agent: ResponseText(commands) for agent in self.possible_agents}
        self._table = Table(self.game, self.rules)
        self._rng: np.random.Generator | None = None

    def observation_space(self, agent: Player) -> ObservationText:
        return self.observation_spaces[agent]

    def action_space(self, agent: Player) -> ResponseText:
        return self.action_spaces[agent]

    def instructions(self, agent: Player) -> str:
        return self.game.instructions(agent)

    def state(self) -> Any:
        return self._table.state

    def observe(self, agent: Player) -> str:
        """What an agent reads now; ``ResetNeeded`` is raised before the first reset."""
        if self._table.state is None:
            raise ResetNeeded("observe() was called before reset(); call reset() first")
        if agent not in self.possible_agents:
            raise KeyError(f"there is no agent {agent!r}; there are {', '.join(self.possible_agents)}")
        return read_by(self.game, self._table.state, agent)

    def _deal(self, seed: int | None, options: dict[str, Any] | None) -> None:
        """Draw the first state; ``seed`` and ``options`` as in the Gymnasium environment."""
        if seed is not None or self._rng is None:
            self._rng = seeded(seed)
        if isinstance(options, Mapping):  # PettingZoo's own API tests reset with {"options": 1}, which means nothing
            options = {name: value for name, value in options.items() if name != "options"}
        layout_seed = checked_options(options, "layout_seed").get("layout_seed")
        self._table.start(self.game.initial_state(layout_generator(layout_seed, self._rng)))

    def _require_agents(self) -> None:
        if not self.agents:
            raise ResetNeeded(
                "no agent is left: the episode is over, or was not started; call reset() before the next step()"
            )

    def render(self) -> str | NDArray[np.uint8] | None:
        if self._table.state is None:
            raise ResetNeeded("render() was called before reset(); call reset() first")
        return render_state(self.game, self._table.state, self.render_mode, f"round {self._table.elapsed}")
