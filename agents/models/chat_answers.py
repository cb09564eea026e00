"""Reading a chat completion: which answers of a server count as a response of the model, and which as a failure.

==================================================  ==========================================================
answer                                              outcome
==================================================  ==========================================================
text                                                the response
text cut off by the token limit                     the response, ``finish_reason="length"``; nothing is repaired
no content, for any reason but a filter             the response ``""``: the model had its say and said nothing
refusal                                             the refusal's text is the response: the model chose not to play
withheld by a content filter                        an error: what the model said isn't known
4xx, or 5xx and 429 after all retries               an error
no choices, not JSON, JSON of another shape         an error
==================================================  ==========================================================
"""

import json
from collections.abc import Mapping
from typing import Any

from agents.models.base import Completion, Decoding
from agents.turn import FinishReason, Usage


class BadAnswerError(Exception):
    """A successful status around something that isn't a response of the model."""


FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


def read_completion(body: bytes, decoding: Decoding) -> Completion:
    """The completion in a server's answer.

    Raises:
        BadAnswerError: there is none; the message completes "the server answered with ...".
    """
    answer = _decode(body)
    if isinstance(error := answer.get("error"), dict):  # gateways put upstream errors into a status 200
        raise BadAnswerError(f"an error: {error.get('message')}")
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise BadAnswerError(f"no choices: {_excerpt(body)}")
    choice = choices[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        raise BadAnswerError(f"a choice without a message: {_excerpt(body)}")
    finish_reason = FINISH_REASONS.get(str(choice.get("finish_reason")), "stop")
    if choice.get("finish_reason") == "error" or isinstance(choice.get("error"), dict):
        raise BadAnswerError(f"an error in place of the model's response: {_excerpt(body)}")
    if finish_reason == "content_filter":
        raise BadAnswerError("a content filter's notice in place of the model's response")
    text = _text(message)
    if text is None:
        raise BadAnswerError(f"content that isn't text: {_excerpt(body)}")
    if not text.isascii():  # half a surrogate pair is legal JSON, but no file and no later request can hold it
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if finish_reason == "stop":
        text = with_stop_string(text, decoding.stop, choice)
    return Completion(text, finish_reason=finish_reason, usage=_usage(answer.get("usage")))


def _decode(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, or brackets without end
        raise BadAnswerError(f"something that isn't JSON: {_excerpt(body)}") from None
    if not isinstance(answer, dict):
        raise BadAnswerError(f"something that isn't a completion: {_excerpt(body)}")
    return answer


def _excerpt(body: bytes) -> str:
    return repr(body[:120].decode("utf-8", "replace"))


def _text(message: Mapping[str, Any]) -> str | None:
    """The text of a message: its content, or the refusal in its place; ``None`` for something else."""
    content = message.get("content")
    if content is None:
        refusal = message.get("refusal")
        return refusal if isinstance(refusal, str) else ""
    if isinstance(content, list):  # content parts
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "".join(parts) if all(isinstance(part, str) for part in parts) else None
    return content if isinstance(content, str) else None


def with_stop_string(text: str, stops: tuple[str, ...], choice: Mapping[str, Any]) -> str:
    """The response with the stop string that ended it, where that is known.

    Servers cut the stop string out, so a response that was stopped at ``</action>`` comes back as ``...<action>up``.
    What is put back is the decoding's own stop string, not a guess at a move, and only where the server says that the
    response ended by stopping, not at the token limit. vLLM names the string (``stop_reason``), and then that is what
    counts. Elsewhere it is taken for the cause when its tag is open at the end; the protocol has no way to tell this
    from a model that fell silent inside the tag. A server that ignores stop strings is stopped here.
    """
    ends = [text.index(stop) + len(stop) for stop in stops if stop in text]
    if ends:
        return text[: min(ends)]
    if "stop_reason" in choice:
        reason = choice["stop_reason"]
        return text + reason if isinstance(reason, str) and reason in stops else text
    for stop in stops:
        if stop.startswith("</") and text.count("<" + stop[2:]) == 1:
            return text + stop
    return text


def _usage(usage: object) -> Usage:
    """Tokens as counted by the server; 0 where it doesn't say."""
    if not isinstance(usage, dict):
        return Usage()

    def count(name: str) -> int:
        value = usage.get(name)
        return value if isinstance(value, int) and value >= 0 else 0

    return Usage(count("prompt_tokens"), count("completion_tokens"))
