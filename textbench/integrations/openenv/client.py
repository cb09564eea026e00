"""The client of a game that is served by ``textbench serve``, and what goes over the wire."""

from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


class TextbenchAction(Action):
    """The response of a player, which is what an action is here."""

    message: str = Field(description="the model's whole response; the name of an action alone is accepted too")


class TextbenchObservation(Observation):
    """What the player reads next, and what became of its last response.

    ``reward`` is what the player was paid since its last response (``None`` after a reset, unless the episode is over
    before the client was asked); ``done`` says that the
    episode is over, by the rules or by the step limit.
    """

    text: str = Field(description="the game as the player sees it now")
    instructions: str = Field(description="the game's rules and actions; they don't change during an episode")
    messages: list[dict[str, str]] = Field(
        default_factory=list, description="the prompt for a chat model, complete in itself; empty when done"
    )
    player: str = Field(
        description="the player that is asked now; when done, the one asked last, or the client's seat if none was"
    )
    legal_actions: list[str] = Field(
        default_factory=list, description="the names that count as an action now; empty if they can't be listed"
    )
    steps_left: int | None = Field(default=None, description="rounds until truncation; null if there is no limit")
    valid: bool | None = Field(
        default=None, description="whether the last response named a legal action; null if nothing was played yet"
    )
    action: str = Field(default="", description="the action that was executed for it")
    unreadable: str | None = Field(default=None, description="why the last response wasn't valid")
    success: bool | None = Field(default=None, description="whether the player has reached its goal; null until done")
    truncated: bool = Field(default=False, description="whether the step limit ended the episode")


class TextbenchState(State):
    """The episode that a session plays, for logs; nothing of it belongs in a prompt."""

    scenario: str = Field(description="the scenario's name")
    seed: int | None = Field(default=None, description="of layout and transitions; null before the first reset")
    layout_seed: int | None = Field(default=None, description="of the initial state alone, if one was given")
    player: str | None = Field(default=None, description="the player that is asked now; null when none is")
    returns: dict[str, float] = Field(default_factory=dict, description="what every player was paid so far")
    done: bool = Field(default=False, description="whether the episode is over")


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
