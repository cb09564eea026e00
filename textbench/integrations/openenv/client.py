"""The client of a game that is served by ``textbench serve``, with types."""

from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient

from textbench.integrations.openenv.models import TextbenchAction, TextbenchObservation, TextbenchState


class TextbenchEnv(EnvClient[TextbenchAction | str, TextbenchObservation, TextbenchState]):
    """One session on the server: its own episode, whatever others play there.

    ``step`` takes a response as it is, or a :class:`TextbenchAction`; ``reset`` takes what
    :meth:`textbench.integrations.openenv.environment.TextbenchEnvironment.reset` takes.
    """

    def _step_payload(self, action: TextbenchAction | str) -> dict[str, Any]:
        if not isinstance(action, str | TextbenchAction):
            raise TypeError(f"step takes a response as a string, or a TextbenchAction, got {action!r}")
        return {"message": action if isinstance(action, str) else action.message}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[TextbenchObservation]:
        reward, done = payload.get("reward"), payload.get("done", False)
        observation = TextbenchObservation(**{**payload["observation"], "reward": reward, "done": done})
        return StepResult(observation, reward, done, payload.get("metadata"))

    def _parse_state(self, payload: dict[str, Any]) -> TextbenchState:
        return TextbenchState(**payload)
