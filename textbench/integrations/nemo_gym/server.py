"""Episodes behind NeMo Gym's ``GymnasiumServer``: ``/reset`` and ``/step``, asked by its ``gymnasium_agent``."""

from typing import Any

from nemo_gym.base_resources_server import BaseResourcesServerConfig
from nemo_gym.openai_utils import NeMoGymResponse
from pydantic import Field
from resources_servers.gymnasium import GymnasiumServer, extract_text

from textbench.integrations.starts import Conversation

MOST_EPISODES = 10_000
"""Episodes that are kept open: an agent that stops at its ``max_steps`` doesn't close its own."""


class TextbenchConfig(BaseResourcesServerConfig):
    """Settings of the server, in its YAML file.

    Attributes:
        scenario: what is played if a row of the data names no scenario.
        mode: the response template of the prompt, ``"think"`` or ``"direct"``.
        opponents: the agent in the other seats of a game of several players.
        seed: of the transitions.
        settings: of the environment, such as ``{format_penalty: 1.0}``.
    """

    scenario: str = "frozen-lake"
    mode: str = "think"
    opponents: str = "random"
    seed: int = 0
    settings: dict[str, Any] = Field(default_factory=dict)


class TextbenchServer(GymnasiumServer):
    """Plays an episode for every rollout, from the start that its row names: ``scenario``, ``layout_seed``, ``seat``.

    Rollouts of one row begin alike, and their transitions differ.
    """

    config: TextbenchConfig

    async def reset(self, metadata: dict[str, Any], session_id: str | None = None) -> tuple[str | None, dict[str, Any]]:
        """Begin an episode, and return its first prompt; a ValueError names a wrong scenario, seat or setting."""
        options = self.config.model_dump(include={"scenario", "mode", "opponents", "seed", "settings"})
        conversation = Conversation(metadata, **options)
        while len(self.session_state) >= MOST_EPISODES:
            self.session_state.pop(next(iter(self.session_state)))
        self.session_state[session_id] = conversation
        return "\n\n".join(message["content"] for message in conversation.opening()), {}

    async def step(
        self, action: NeMoGymResponse, metadata: dict[str, Any], session_id: str | None = None
    ) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        """Give the model's response to the game, and return the next observation and reward."""
        conversation = self.session_state.get(session_id)
        if conversation is None:
            raise ValueError("no episode is open in this session: POST /reset comes first, with the same cookies")
        outcome = conversation.answer(extract_text(action))
        told = {"valid": outcome.valid, "action": outcome.action, "unreadable": outcome.unreadable}
        if not conversation.session.over:
            return conversation.observation()[0]["content"], outcome.reward, False, False, told
        truncated = conversation.session.episode.truncated
        return None, outcome.reward, not truncated, truncated, {**told, **conversation.metrics()}
