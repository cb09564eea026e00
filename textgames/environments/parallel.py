"""A game with any number of players as a PettingZoo ParallelEnv, and what PettingZoo's two forms have in common."""

from collections.abc import Mapping
from typing import Any, ClassVar

from gymnasium.error import ResetNeeded
from pettingzoo import ParallelEnv

from textgames.environments.render import RENDER_MODES, checked_view
from textgames.environments.rules import ALL_SEATS_SETTINGS, INVALID_ACTION, MaxSteps, checked_options, made
from textgames.environments.spaces import ObservationText, ResponseText, response_space
from textgames.environments.table import OneTable, Snapshot, Table
from textgames.tsmg import TSMG, Player


class AllSeats(OneTable):
    """What the environments of all players have in common, before PettingZoo's form of them is added."""

    agents: list[Player]
    _counts = "round"

    def __init__(
        self,
        game: str | type[TSMG[Any]] | TSMG[Any],
        *,
        max_steps: MaxSteps = None,
        max_cycles: int | None = None,
        format_penalty: float = 0.0,
        invalid_action: str = INVALID_ACTION,
        render_mode: str | None = None,
        render_view: str | None = None,
        **settings: Any,
    ) -> None:
        self.game, self.rules = made(
            game, settings, max_steps, format_penalty, invalid_action, ALL_SEATS_SETTINGS, max_cycles
        )
        self.render_mode, self.render_view = checked_view(self.game, render_mode, render_view)
        self._player = self.game.players[0]
        self.possible_agents = list(self.game.players)
        self.agents = []
        commands = response_space(self.game).commands
        self.observation_spaces = {agent: ObservationText() for agent in self.possible_agents}
        self.action_spaces = {agent: ResponseText(commands) for agent in self.possible_agents}
        self._table = Table(self.game, self.rules)

    def observation_space(self, agent: Player) -> ObservationText:
        return self.observation_spaces[agent]

    def action_space(self, agent: Player) -> ResponseText:
        return self.action_spaces[agent]

    @property
    def instructions(self) -> Mapping[Player, str]:
        """``{agent: the rules and actions as it reads them}``."""
        return {agent: self.game.instructions(agent) for agent in self.possible_agents}

    def state(self) -> Any:
        return self._table.state

    def observe(self, agent: Player) -> str:
        """Return what an agent reads now; ``ResetNeeded`` is raised before the first reset."""
        self._require_reset("observe()")
        if agent not in self.possible_agents:
            raise KeyError(f"there is no agent {agent!r}; there are {', '.join(self.possible_agents)}")
        return self._table.observe(agent)

    def _deal(self, seed: int | None, options: dict[str, Any] | None) -> None:
        if isinstance(options, Mapping):  # PettingZoo's own API tests reset with {"options": 1}, which means nothing
            options = {name: value for name, value in options.items() if name != "options"}
        self._table.reset(seed, checked_options(options, "layout_seed").get("layout_seed"))

    def _require_agents(self) -> None:
        if not self.agents:
            raise ResetNeeded(
                "no agent is left: the episode is over, or was not started; call reset() before the next step()"
            )


class TextParallelEnv(AllSeats, ParallelEnv[str, str, str]):  # type: ignore[misc]  # pettingzoo is untyped
    """A text-mediated stochastic game for all its players at once.

    Args:
        game: as for :class:`textgames.environments.solo.TextGameEnv`, like the other settings.
        max_cycles: another name for ``max_steps``, the one that PettingZoo uses.
        render_view: the view ``"player"`` is that of the first player here.

    Only those in :attr:`to_move` are asked. A player who is out stays in ``agents`` until the game is over, as it may
    be paid late, unless the game says that this never happens: a dead snake leaves, and the others play on.
    ``infos[agent]`` is the ``info`` of the Gymnasium environment. With ``invalid_action="terminate"`` an unreadable
    response ends the player's own episode; the others play on, with its default action if the rules need one. With
    ``invalid_action="forfeit"`` it is also paid what a loss pays, and a zero-sum game is over, won by the other.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "textgames_v0",
        "render_modes": RENDER_MODES,
        "render_fps": 4,
        "is_parallelizable": True,
    }

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
        self._deal(seed, options)
        self.agents = self._table.agents
        if self.render_mode == "human":
            self.render()
        return self._observations(self.agents), {agent: self._table.first_info(agent) for agent in self.agents}

    def step(
        self, actions: dict[str, str]
    ) -> tuple[dict[str, str], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one round with the response of every agent in :attr:`to_move`; responses of others are ignored.

        Returns observations, rewards, terminations, truncations and infos of all agents that were there before the
        round. ``info["action"]`` of an agent that was not asked is ``""``. A player who has left and is paid late is in
        the rewards alone. ResetNeeded is raised when no agent is left, and a ValueError if a response is missing.
        """
        table, agents, asked = self._table, self.agents, self._table.asked
        self._require_agents()
        try:
            responses = {agent: actions[agent] for agent in asked}
        except KeyError:
            missing = ", ".join([agent for agent in asked if agent not in actions])
            raise ValueError(f"no response of {missing}; step() needs one of every agent in {[*asked]}") from None
        except TypeError:  # not asked for beforehand: a step of a small game takes no longer than a few such questions
            raise TypeError(f"step() takes {{agent: response}} of every agent in {[*asked]}, got {actions!r}") from None
        rewards, terminated, truncated, infos = table.play(responses)
        self.agents = table.agents  # another list if an agent has left
        if self.render_mode == "human":
            self.render()
        terminations = {agent: agent in terminated for agent in agents}
        truncations = {agent: agent in truncated for agent in agents}
        return self._observations(agents), rewards, terminations, truncations, infos

    def _observations(self, agents: list[str]) -> dict[str, str]:
        return {agent: self._table.observe(agent) for agent in agents}

    def restore_state(self, snapshot: Snapshot) -> dict[str, str]:
        """Return to a snapshot, and observe what the agents that still play read in its state."""
        self._table.restore(snapshot)
        self.agents = self._table.agents
        return self._observations(self.agents)
