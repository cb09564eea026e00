"""A game with any number of players as a PettingZoo ParallelEnv."""

from typing import Any, ClassVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import parallel_to_aec

from textgames.episode_rules import EpisodeRules, Snapshot, checked_options, layout_generator, make_game
from textgames.render import RENDER_MODES, check_render_mode, render_state
from textgames.spaces import ObservationText, ResponseText
from textgames.tsmg import TSMG


class TextParallelEnv(ParallelEnv[str, str, str]):  # type: ignore[misc]  # pettingzoo is untyped
    """A text-mediated stochastic game for all its players at once.

    Args:
        game: as for :class:`textgames.solo_env.TextGameEnv`, like the other settings.
        max_cycles: another name for ``max_steps``, the one that PettingZoo uses.

    A player whose own episode is over (a dead snake) leaves ``agents``; the others play on. ``infos[agent]`` is the
    ``info`` of the Gymnasium environment. With ``invalid_action="terminate"`` an unreadable response ends the player's
    own episode; the game plays on without it, its default action being played for it where the rules need one.
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
        self.agents: list[str] = []
        self.observation_spaces = {agent: ObservationText() for agent in self.possible_agents}
        self.action_spaces = {agent: ResponseText(self.game.actions) for agent in self.possible_agents}
        self._limit = float("inf") if self.rules.max_steps is None else self.rules.max_steps
        self._rng: np.random.Generator | None = None
        self._state: Any = None
        self._elapsed = 0

    def observation_space(self, agent: str) -> ObservationText:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> ResponseText:
        return self.action_spaces[agent]

    def instructions(self, agent: str) -> str:
        return self.game.instructions(agent)

    def state(self) -> Any:
        return self._state

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        """Start an episode; ``seed`` and ``options`` as in the Gymnasium environment."""
        if seed is not None or self._rng is None:
            self._rng = seeding.np_random(seed)[0]
        # PettingZoo's own API tests reset with {"options": 1}, so that name is let through; it means nothing
        layout_seed = checked_options(options, "layout_seed", "options").get("layout_seed")
        self._state = self.game.initial_state(layout_generator(layout_seed, self._rng))
        self._elapsed = 0
        self.agents = list(self.possible_agents)
        if self.render_mode == "human":
            self.render()
        infos = {
            agent: {"success": False, "legal_actions": self.game.legal_actions(self._state, agent)}
            for agent in self.agents
        }
        return {agent: self.game.observe(self._state, agent) for agent in self.agents}, infos

    def step(
        self, actions: dict[str, str]
    ) -> tuple[dict[str, str], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one round with the response of every agent in ``agents``.

        Returns:
            Observations, rewards, terminations, truncations and infos of the agents that played the round.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset, or when no agent is left.
            ValueError: an agent's response is missing.
        """
        if not self.agents:
            raise ResetNeeded(
                "no agent is left: the episode is over, or was not started; call reset() before the next step()"
            )
        if missing := [agent for agent in self.agents if agent not in actions]:
            raise ValueError(f"no response of {', '.join(missing)}; step() needs one of every agent in {self.agents}")
        assert self._rng is not None
        game, before = self.game, self._state
        choices = {agent: self.rules.choose(game, before, agent, actions[agent], self._rng) for agent in self.agents}
        joint = {agent: action or game.legal_actions(before, agent)[0] for agent, (action, _) in choices.items()}
        for agent in self.possible_agents:  # the rules want an action of everyone that is still in the game
            if agent not in joint and game.is_playing(before, agent):
                joint[agent] = game.legal_actions(before, agent)[0]
        self._state, all_rewards, game_over = game.transition(before, joint, self._rng)
        self._elapsed += 1
        return self._outcome(choices, all_rewards, game_over)

    def _outcome(
        self, choices: dict[str, tuple[str | None, str | None]], all_rewards: dict[str, float], game_over: bool
    ) -> tuple[dict[str, str], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        game, state = self.game, self._state
        observations, rewards, terminations, truncations, infos = {}, {}, {}, {}, {}
        for agent, (action, unreadable) in choices.items():
            thrown_out = action is None
            terminated = game_over or thrown_out or not game.is_playing(state, agent)
            truncated = not terminated and self._elapsed >= self._limit
            reward = 0.0 if thrown_out else all_rewards[agent]
            observations[agent] = game.observe(state, agent)
            rewards[agent] = reward - self.rules.format_penalty if unreadable else reward
            terminations[agent], truncations[agent] = terminated, truncated
            infos[agent] = {
                "valid": unreadable is None,
                "action": action or "",
                "unreadable": unreadable,
                "success": (terminated or truncated) and not thrown_out and game.succeeded(state, agent),
                "legal_actions": game.legal_actions(state, agent),
            }
        self.agents = [agent for agent in self.agents if not (terminations[agent] or truncations[agent])]
        if self.render_mode == "human":
            self.render()
        return observations, rewards, terminations, truncations, infos

    def save_state(self) -> Snapshot:
        """As :meth:`textgames.solo_env.TextGameEnv.save_state`."""
        if self._rng is None:
            raise ResetNeeded("save_state() was called before reset(); call reset() first")
        # the generator's state is a fresh dictionary at every call
        return Snapshot(self._state, self._elapsed, tuple(self.agents), dict(self._rng.bit_generator.state))

    def restore_state(self, snapshot: Snapshot) -> dict[str, str]:
        """Go back to a snapshot; returns the observations of the agents that still play in its state."""
        self._state, self._elapsed, self.agents = snapshot.state, snapshot.elapsed_steps, list(snapshot.agents)
        if self._rng is None:
            self._rng = seeding.np_random()[0]
        self._rng.bit_generator.state = snapshot.rng_state
        return {agent: self.game.observe(self._state, agent) for agent in self.agents}

    def render(self) -> str | NDArray[np.uint8] | None:
        if self._state is None:
            raise ResetNeeded("render() was called before reset(); call reset() first")
        return render_state(self.game, self._state, self.render_mode, f"round {self._elapsed}")


def aec_env(**kwargs: Any) -> AECEnv[str, str, str]:
    """The same as a PettingZoo AEC environment (agents take turns, the round is played after the last one's)."""
    return parallel_to_aec(TextParallelEnv(**kwargs))
