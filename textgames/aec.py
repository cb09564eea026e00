"""A game with any number of players as a PettingZoo AECEnv: one player after the other.

In a game in which players take turns, the environment's order is the game's. Where several act at once, they are asked
one after the other, all in the state before the round; the round is played when the last of them has answered.
"""

from typing import Any, ClassVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import AECEnv

from textgames.episode_rules import EpisodeRules, checked_options, layout_generator, make_game
from textgames.render import RENDER_MODES, check_render_mode, render_state
from textgames.spaces import ObservationText, ResponseText
from textgames.table import Table, response_space
from textgames.tsmg import TSMG


class TextAECEnv(AECEnv[str, str, str]):  # type: ignore[misc]  # pettingzoo is untyped
    """A text-mediated stochastic game, one player's turn at a time.

    Args are those of :class:`textgames.parallel.TextParallelEnv`, and so are ``infos``. A player who is out stays in
    ``agents`` until the game is over, as it may be paid late, unless the game says that this never happens.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "textgames_aec_v0",
        "render_modes": RENDER_MODES,
        "render_fps": 4,
        "is_parallelizable": True,
    }

    def __init__(
        self,
        game: str | type[TSMG[Any]] | TSMG[Any],
        *,
        max_steps: int | None = None,
        max_cycles: int | None = None,
        format_penalty: float = 0.0,
        invalid_action: str = "default",
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        self.game = make_game(game, settings)
        limit = max_cycles if max_cycles is not None else max_steps
        rules = EpisodeRules.checked(self.game, limit, format_penalty, invalid_action)
        check_render_mode(self.game, render_mode)
        self.render_mode = render_mode
        self.possible_agents = list(self.game.players)
        self.agents: list[str] = []
        space = response_space(self.game)
        self.observation_spaces = {agent: ObservationText() for agent in self.possible_agents}
        self.action_spaces = {agent: ResponseText(space.commands) for agent in self.possible_agents}
        self._table = Table(self.game, rules, waits_out=self.game.pays_late is not False)
        self._rng: np.random.Generator | None = None
        self._responses: dict[str, str] = {}

    def observation_space(self, agent: str) -> ObservationText:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> ResponseText:
        return self.action_spaces[agent]

    def instructions(self, agent: str) -> str:
        return self.game.instructions(agent)

    def state(self) -> Any:
        return self._table.state

    def observe(self, agent: str) -> str:
        return self.game.observe(self._table.state, agent)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode; ``seed`` and ``options`` as in the Gymnasium environment."""
        if seed is not None or self._rng is None:
            self._rng = seeding.np_random(seed)[0]
        layout_seed = checked_options(options, "layout_seed", "options").get("layout_seed")
        self._table.start(self.game.initial_state(layout_generator(layout_seed, self._rng)))
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: self._table.first_info(agent) for agent in self.agents}
        self._responses = {}
        self._skip_agent_selection = None
        self.agent_selection = self._table.asked[0]
        if self.render_mode == "human":
            self.render()

    def step(self, action: str | None) -> None:
        """Take the response of ``agent_selection``; ``None`` of a player whose episode is over.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset, or when no agent is left.
            TypeError: the response is not a string.
        """
        if not self.agents:
            raise ResetNeeded(
                "no agent is left: the episode is over, or was not started; call reset() before the next step()"
            )
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if not isinstance(action, str):
            raise TypeError(f"a response is a string such as 'right', got {type(action).__name__}: {action!r}")
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._responses[agent] = action
        waiting = [player for player in self._table.asked if player not in self._responses]
        if waiting:
            self.agent_selection = waiting[0]
            return
        self._play_round()

    def _play_round(self) -> None:
        assert self._rng is not None
        table = self._table
        round_ = table.play(self._responses, self._rng)
        self._responses = {}
        for agent in self.agents:
            self.rewards[agent] = round_.rewards.get(agent, 0.0)
        self.terminations |= round_.terminations
        self.truncations |= round_.truncations
        self.infos |= round_.infos
        self._accumulate_rewards()
        if table.agents:
            self.agent_selection = table.asked[0]
        self._deads_step_first()
        if self.render_mode == "human":
            self.render()

    def render(self) -> str | NDArray[np.uint8] | None:
        if self._table.state is None:
            raise ResetNeeded("render() was called before reset(); call reset() first")
        return render_state(self.game, self._table.state, self.render_mode, f"round {self._table.elapsed}")

    def close(self) -> None:
        """Nothing is held open; PettingZoo wants the method of an environment that can be rendered."""
