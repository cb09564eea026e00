"""One episode as a ``BaseTextEnv``: ``init(prompt)``, then ``step(response)`` until it is over."""

from collections.abc import Mapping
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput, ConversationType

from textbench.integrations.starts import Conversation, list_starts, rows_of

ENV_CLASS = "textbench"
OPTIONS = ("scenario", "mode", "opponents", "seed", "settings")


class GameEnv(BaseTextEnv):
    """An episode of a game, from the start that its row names.

    The conversation grows by a response and an observation with every step: that is SkyRL's generator, which appends
    what ``step`` returns. Every step pays its own reward, and their sum is the episode's return.

    Args:
        env_config: of the trainer, ``environment.skyrl_gym.textbench``: ``scenario`` (where the row has none), ``mode``
            (``"think"``), ``opponents`` (``"random"``), ``seed`` of the transitions, and ``settings`` of the
            environment, such as ``{format_penalty: 1.0}``.
        extras: the row's columns: ``scenario``, ``layout_seed`` and ``seat``, as :func:`start_rows` writes them. Rows
            that are sampled several times begin at one start, and their transitions depend on how many episodes this
            process has begun before.

    Raises:
        ValueError: an option that there isn't, no such scenario, player, agent, mode or setting.
    """

    def __init__(self, env_config: Mapping[str, Any] | None = None, extras: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        options = dict(env_config or {})
        if unknown := [name for name in options if name not in OPTIONS]:
            raise ValueError(
                f"environment.skyrl_gym.{ENV_CLASS} has no option {', '.join(unknown)}; there are {', '.join(OPTIONS)}"
            )
        self._conversation = Conversation(extras or {}, **options)
        self.session = self._conversation.session
        self.max_turns = self.session.task.kwargs.get("max_steps") or 10**6

    def init(self, prompt: ConversationType) -> tuple[ConversationType, dict[str, Any]]:
        """Return the first prompt, which the game writes: ``prompt`` comes from the data set and is empty."""
        return self._conversation.opening(), {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        outcome = self._conversation.answer(action)
        self.turns = self._conversation.turns
        return BaseTextEnvStepOutput(
            observations=self._conversation.observation(),
            reward=outcome.reward,
            done=self.session.over,
            metadata={"valid": outcome.valid, "action": outcome.action, "unreadable": outcome.unreadable},
            postprocessed_action=None,
        )

    def get_metrics(self) -> dict[str, Any]:
        return self._conversation.metrics()


def start_rows(scenario: str, starts: int = 64, **options: Any) -> list[dict[str, Any]]:
    """Return rows of a data set: the starts of :func:`textbench.integrations.starts.list_starts`, with its options."""
    return rows_of(list_starts(scenario, starts, **options), env_class=ENV_CLASS)
