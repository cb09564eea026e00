"""A game with any number of players as a PettingZoo ParallelEnv."""

from typing import Any, ClassVar

from gymnasium.error import ResetNeeded
from pettingzoo import ParallelEnv

from textgames.environments.all_seats import AllSeats
from textgames.environments.render import RENDER_MODES
from textgames.environments.rules import Snapshot
from textgames.environments.seeds import seeded
from textgames.environments.table import Round
from textgames.tsmg import read_by


class TextParallelEnv(AllSeats, ParallelEnv[str, str, str]):  # type: ignore[misc]  # pettingzoo is untyped
    """A text-mediated stochastic game for all its players at once.

    Args:
        game: as for :class:`textgames.environments.solo.TextGameEnv`, like the other settings.
        max_cycles: another name for ``max_steps``, the one that PettingZoo uses.

    Only those in :attr:`to_move` are asked. A player who is out stays in ``agents`` until the game is over, as it may
    be paid late, unless the game says that this never happens: a dead snake leaves, and the others play on.
    ``infos[agent]`` is the ``info`` of the Gymnasium environment. With ``invalid_action="terminate"`` an unreadable
    response ends the player's own episode; the game plays on without it, its default action being played for it where
    the rules need one. With ``invalid_action="forfeit"`` it is also paid what a loss pays, and a zero-sum game is over,
    won by the other.
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
        """Start an episode; ``seed`` and ``options`` as in the Gymnasium environment."""
        self._deal(seed, options)
        self.agents = self._table.agents
        if self.render_mode == "human":
            self.render()
        infos = {agent: self._table.first_info(agent) for agent in self.agents}
        return self._observations(self.agents), infos

    def start_at(self, state: Any, elapsed_steps: int = 0, *, seed: int | None = None) -> dict[str, dict[str, Any]]:
        """Begin an episode in any state of the game, in place of :meth:`reset`; returns the agents' first infos.

        Args:
            state: a state in which somebody is to move, such as one that was visited before.
            elapsed_steps: rounds that count as played, towards ``max_steps``.
            seed: of everything that is drawn from here on, as in :meth:`reset`.

        Raises:
            ValueError: no round is left, or nobody is to move.
        """
        limit = self.rules.max_steps
        if elapsed_steps < 0 or (limit is not None and elapsed_steps >= limit):
            raise ValueError(f"elapsed_steps must be at least 0 and below max_steps = {limit}, got {elapsed_steps}")
        if seed is not None or self._rng is None:
            self._rng = seeded(seed)
        self._table.resume(state, elapsed_steps)
        self.agents = self._table.agents
        if not self._table.asked:
            raise ValueError("an episode can't begin in this state: the game is over there, nobody is to move")
        return {agent: self._table.first_info(agent) for agent in self.agents}

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
        self._require_agents()
        asked = table.asked
        assert self._rng is not None
        try:
            responses = {agent: actions[agent] for agent in asked}
        except KeyError:
            missing = ", ".join([agent for agent in asked if agent not in actions])
            raise ValueError(f"no response of {missing}; step() needs one of every agent in {[*asked]}") from None
        except TypeError:  # not asked for beforehand: a step of a small game takes no longer than a few such questions
            raise TypeError(f"step() takes {{agent: response}} of every agent in {[*asked]}, got {actions!r}") from None
        round_ = table.play(responses, self._rng)
        self.agents = table.agents  # another list where somebody has left
        if self.render_mode == "human":
            self.render()
        return round_

    def _observations(self, agents: list[str]) -> dict[str, str]:
        game, state = self.game, self._table.state
        return {agent: read_by(game, state, agent) for agent in agents}

    def save_state(self) -> Snapshot:
        """See :meth:`textgames.environments.solo.TextGameEnv.save_state`."""
        if self._rng is None:
            raise ResetNeeded("save_state() was called before reset(); call reset() first")
        return self._table.snapshot(self._rng)

    def restore_state(self, snapshot: Snapshot) -> dict[str, str]:
        """Go back to a snapshot; returns the observations of the agents that still play in its state."""
        self._table.restore(snapshot)
        self.agents = self._table.agents
        if self._rng is None:
            self._rng = seeded(None)
        self._rng.bit_generator.state = snapshot.rng_state
        return self._observations(self.agents)
