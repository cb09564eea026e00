"""The route ``/completions``: a text in, its continuation out. For base models, which know no chat.

The prompt is its messages' contents joined by blank lines, as for a local model without a chat template.
"""

from typing import Any

from agents.models.base import Decoding
from agents.models.reasoning import NOT_BEGUN, Begun
from agents.models.served import answers
from agents.models.served.answers import ProviderError
from agents.prompt import as_text
from agents.turn import Prompt, Turn


def fields(prompt: Prompt, decoding: Decoding, effort: str | None) -> dict[str, Any]:
    """Return the part of a request's body that says what to write and how. Base models don't reason: no effort is
    sent."""
    asked: dict[str, Any] = {"prompt": as_text(prompt), "temperature": decoding.temperature}
    if decoding.top_p != 1:
        asked["top_p"] = decoding.top_p
    if decoding.stop:
        asked["stop"] = list(decoding.stop)
    return asked


def read(body: str, decoding: Decoding, begun: Begun = NOT_BEGUN) -> Turn:
    """Return the completion in an answer with status 200; a ProviderError if there is none."""
    answer = answers.decode(body)
    choice = answers.first_choice(answer, body)
    if choice.get("error"):
        raise ProviderError(f"an error in place of the model's response: {answers.excerpt(body)}")
    text = choice.get("text")
    if not isinstance(text, str):
        raise ProviderError(f"a choice without a text: {answers.excerpt(body)}")
    finish_reason = answers.finish_reason_of(choice.get("finish_reason"))
    return answers.completion_of(answer, text, finish_reason, decoding.stop, choice, begun=begun)
