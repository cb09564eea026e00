"""A game with any number of players as a PettingZoo ParallelEnv."""

from typing import Any, ClassVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from textgames.episode_rules import EpisodeRules, Snapshot, checked_options, layout_generator, make_game
from textgames.render import RENDER_MODES, check_render_mode, render_state
from textgames.spaces import ObservationText, ResponseText
from textgames.table import Round, Table, response_space
from textgames.tsmg import TSMG


class TextParallelEnv(ParallelEnv[str, str, str]):  # type: ignore[misc]  # pettingzoo is untyped
    """A text-mediated stochastic game for all its players at once.

    Args:
        game: as for :class:`textgames.solo_env.TextGameEnv`, like the other settings.
        max_cycles: another name for ``max_steps``, the one that PettingZoo uses.

    A player whose own episode is over (a dead snake) leaves ``agents``; the others play on. In a game in which players
    take turns only those in :attr:`to_move` are asked, and who is out stays until the game is over, as it may be paid
    late. ``infos[agent]`` is the ``info`` of the Gymnasium environment. With ``invalid_action="terminate"`` an
    unreadable response ends the player's own episode; the game plays on without it, its default action being played for
    it where the rules need one.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "textgames_v0",
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
        self.game = make_game(game, settings)
        limit = max_cycles if max_cycles is not None else max_steps
        self.rules = EpisodeRules.checked(self.game, limit, format_penalty, invalid_action)
        check_render_mode(self.game, render_mode)
        self.render_mode = render_mode
        self.possible_agents = list(self.game.players)
        self.observation_spaces = {agent: ObservationText() for agent in self.possible_agents}
        space = response_space(self.game)
        self.action_spaces = {agent: ResponseText(space.commands) for agent in self.possible_agents}
        pays_late = self.game.pays_late
        takes_turns = type(self.game).to_move is not TSMG.to_move
        self._table = Table(self.game, self.rules, waits_out=takes_turns if pays_late is None else pays_late)
        self.agents: list[str] = []
        self._rng: np.random.Generator | None = None

    def observation_space(self, agent: str) -> ObservationText:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> ResponseText:
        return self.action_spaces[agent]

    def instructions(self, agent: str) -> str:
        return self.game.instructions(agent)

    def state(self) -> Any:
        return self._table.state

    @property
    def to_move(self) -> tuple[str, ...]:
        """The agents that are asked now; in a game of simultaneous moves all of ``agents``."""
        return self._table.asked

    @property
    def elapsed_steps(self) -> int:
        """Rounds played in this episode."""
        return self._table.elapsed

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        """Start an episode; ``seed`` and ``options`` as in the Gymnasium environment."""
        if seed is not None or self._rng is None:
            self._rng = seeding.np_random(seed)[0]
        # PettingZoo's own API tests reset with {"options": 1}, so that name is let through; it means nothing
        layout_seed = checked_options(options, "layout_seed", "options").get("layout_seed")
        self._table.start(self.game.initial_state(layout_generator(layout_seed, self._rng)))
        self.agents = self._table.agents
        if self.render_mode == "human":
            self.render()
        infos = {agent: self._table.first_info(agent) for agent in self.agents}
        return self._observations(self.agents), infos

    def step(
        self, actions: dict[str, str]
    ) -> tuple[dict[str, str], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one round with the response of every agent in :attr:`to_move`; responses of others are ignored.

        Returns:
            Observations, rewards, terminations, truncations and infos of all agents that were there before the round.
            Who was not asked has ``info["action"] == ""``. A player who has left and is paid late is in the rewards
            alone.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset, or when no agent is left.
            ValueError: an agent's response is missing.
        """
        agents = self.agents
        round_ = self.play(actions)
        return self._observations(agents), round_.rewards, round_.terminations, round_.truncations, round_.infos

    def play(self, actions: dict[str, str]) -> Round:
        """As :meth:`step`, without what everybody reads next: for those who :meth:`observe` only who is to move."""
        table = self._table
        if not self.agents:
            raise ResetNeeded(
                "no agent is left: the episode is over, or was not started; call reset() before the next step()"
            )
        asked = table.asked
        assert self._rng is not None
        try:
            responses = {agent: actions[agent] for agent in asked}
        except KeyError:
            missing = ", ".join([agent for agent in asked if agent not in actions])
            raise ValueError(f"no response of {missing}; step() needs one of every agent in {[*asked]}") from None
        round_ = table.play(responses, self._rng)
        self.agents = table.agents  # another list where somebody has left
        if self.render_mode == "human":
            self.render()
        return round_

    def observe(self, agent: str) -> str:
        """What an agent reads now."""
        return self.game.observe(self._table.state, agent)

    def _observations(self, agents: list[str]) -> dict[str, str]:
        observe, state = self.game.observe, self._table.state
        return {agent: observe(state, agent) for agent in agents}

    def save_state(self) -> Snapshot:
        """As :meth:`textgames.solo_env.TextGameEnv.save_state`."""
        if self._rng is None:
            raise ResetNeeded("save_state() was called before reset(); call reset() first")
        return self._table.snapshot(self._rng)

    def restore_state(self, snapshot: Snapshot) -> dict[str, str]:
        """Go back to a snapshot; returns the observations of the agents that still play in its state."""
        self._table.restore(snapshot)
        self.agents = self._table.agents
        if self._rng is None:
            self._rng = seeding.np_random()[0]
        self._rng.bit_generator.state = snapshot.rng_state
        return self._observations(self.agents)

    def render(self) -> str | NDArray[np.uint8] | None:
        if self._table.state is None:
            raise ResetNeeded("render() was called before reset(); call reset() first")
        return render_state(self.game, self._table.state, self.render_mode, f"round {self._table.elapsed}")
