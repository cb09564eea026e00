"""A game with any number of players as a PettingZoo AECEnv: one player after the other.

In a game with turns, the environment's order is the game's. If several act at once, they are asked one after the other,
all in the state before the round; the round is played when the last of them has answered.
"""

from typing import Any, ClassVar

from pettingzoo import AECEnv

from textgames.environments.parallel import AllSeats
from textgames.environments.render import RENDER_MODES
from textgames.environments.rules import not_a_response
from textgames.tsmg import TSMG


class TextAECEnv(AllSeats, AECEnv[str, str, str]):  # type: ignore[misc]  # pettingzoo is untyped
    """A text-mediated stochastic game, one player's turn at a time.

    Args are those of :class:`textgames.environments.parallel.TextParallelEnv`, and so are ``infos``.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "textgames_aec_v0",
        "render_modes": RENDER_MODES,
        "render_fps": 4,
        # PettingZoo's conversion asks everybody in every round; textgames.parallel_env(id) asks whose turn it is
        "is_parallelizable": False,
    }

    def __init__(self, game: str | type[TSMG[Any]] | TSMG[Any], **settings: Any) -> None:
        super().__init__(game, **settings)
        self._responses: dict[str, str] = {}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self._deal(seed, options)
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
        """Take the response of ``agent_selection``; ``None`` of a player whose episode is over."""
        self._require_agents()
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if not isinstance(action, str):
            raise TypeError(not_a_response(action))
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._responses[agent] = action
        waiting = [player for player in self._table.asked if player not in self._responses]
        if waiting:
            self.agent_selection = waiting[0]
            return
        table = self._table
        rewards, terminated, truncated, infos = table.play(self._responses)
        self._responses = {}
        for agent in self.agents:
            self.rewards[agent] = rewards.get(agent, 0.0)
        self.terminations |= dict.fromkeys(terminated, True)
        self.truncations |= dict.fromkeys(truncated, True)
        self.infos |= infos
        self._accumulate_rewards()
        if table.agents:
            self.agent_selection = table.asked[0]
        self._deads_step_first()
        if self.render_mode == "human":
            self.render()

    def close(self) -> None:
        """Nothing is held open; PettingZoo wants the method of an environment that can be rendered."""
