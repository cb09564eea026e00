"""The routes of an OpenAI-compatible server: where a request goes, what it says, how its answer is read."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from agents.models.base import Decoding
from agents.models.reasoning import Begun
from agents.models.served import chat, completions, responses
from agents.turn import Prompt, Turn

RouteName = Literal["chat", "responses", "completions"]


class Route(NamedTuple):
    """How one route of OpenAI's protocol is asked, and how its answers are read."""

    path: str
    fields: Callable[[Prompt, Decoding, str | None], dict[str, Any]]  # of a prompt, decoding, effort of reasoning
    read: Callable[[str, Decoding, Begun], Turn]  # of the body of an answer with status 200
    limit: str  # the name of the limit on tokens
    seed: bool = True  # whether it takes a seed


ROUTES: dict[RouteName, Route] = {
    "chat": Route("/chat/completions", chat.fields, chat.read, "max_tokens"),
    "responses": Route("/responses", responses.fields, responses.read, "max_output_tokens", seed=False),
    "completions": Route("/completions", completions.fields, completions.read, "max_tokens"),
}
