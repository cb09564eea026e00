"""Reading answers of servers: which count as a response of the model, and which as a failure of the provider.

``docs/players.md`` (Servers) has the table of answers and outcomes. But for a content filter and a huge answer, which
would come again, a request that failed is repeated as after a status 500.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from agents.models.reasoning import NOT_BEGUN, Begun, end_of_response, split_reasoning
from agents.turn import MOST_TOKENS, NO_USAGE, FinishReason, Turn, Usage
from textgames.texts.actions import OPEN_TAG, THINK, THOUGHT

MAX_ANSWER_BYTES = 2**20  # 256 tokens are some kilobytes; the rest is room for a long visible reasoning
MAX_NAME_LENGTH = 200
NO_ANSWER = "no answer from"
"""The beginning of the error of a request whose time was up; a server's address follows."""


class ProviderError(Exception):
    """There is no response of the model; the same request may be answered the next time (``may_pass``), and fewer at
    once may help if the server is ``overloaded``."""

    def __init__(self, message: str, *, may_pass: bool = True, overloaded: bool = False) -> None:
        super().__init__(message)
        self.may_pass, self.overloaded = may_pass, overloaded


def is_hopeless(error: str) -> bool:
    """Report whether a provider's error would meet every further request: a wrong key, or an account without money."""
    return re.search(r"\bstatus 40[12] from |\binsufficient_quota\b", error) is not None


FINISH_REASONS: dict[str, FinishReason] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "stop_sequence", "end_turn", "tool_calls", "function_call"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    "refusal": "refusal",
    "content_filter": "content_filter",
}
"""The finish reasons of complete responses, in OpenAI's words and those of other servers; case doesn't count."""


def parsed(text: str) -> Any:
    """Return the JSON value of a text; ``None`` if it isn't JSON, or brackets without end."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def decode(body: str) -> dict[str, Any]:
    """Return the JSON object of an answer; a ProviderError if it isn't one, or is an error."""
    if (answer := parsed(body)) is None:
        raise ProviderError(f"something that isn't JSON: {excerpt(body)}")
    if not isinstance(answer, dict):
        raise ProviderError(f"something that isn't a completion: {excerpt(body)}")
    if _is_error(answer):  # gateways put upstream errors into a status 200
        raise ProviderError(f"an error: {error_message(answer) or excerpt(body)}")
    return answer


def _is_error(answer: Mapping[str, Any]) -> bool:
    inside, wrapped = answer.get("base_resp"), answer.get("Response")  # MiniMax's and Tencent's
    words = [str(answer.get(name)).casefold() for name in ("object", "type", "status")]  # vLLM, FastChat, Anthropic
    codes = [answer.get("error_code"), answer.get("code")]  # Baidu, iFlytek, DashScope
    codes += [inside.get("status_code")] if isinstance(inside, dict) else []
    return (
        bool(answer.get("error") or answer.get("errors") or answer.get("success") is False)  # OpenAI, Cloudflare
        or not {"error", "failed", "fail", "failure"}.isdisjoint(words)
        or any(str(code).casefold() not in ("none", "0", "", "200", "ok", "success") for code in codes)
        or (isinstance(wrapped, dict) and bool(wrapped.get("Error")))
    )


_MESSAGES = (
    *("error", "errors", "message", "detail", "error_msg", "msg", "base_resp", "status_msg"),
    *("Response", "Error", "Message"),
)


def error_message(answer: object) -> str | None:
    """Return the text of an error object, which may be nested: ``{"error": {"message": ...}}`` and such."""
    for _ in range(10):  # a server may nest its errors, but not for ever
        if isinstance(answer, list) and answer:
            answer = answer[0]
        if not isinstance(answer, dict):
            break
        answer = next((text for key in _MESSAGES if (text := answer.get(key))), None)
    return answer if isinstance(answer, str) else None


def excerpt(body: str) -> str:
    """Return the beginning of an answer, for a message."""
    return repr(body[:120])


def finish_reason_of(given: object) -> FinishReason:
    """Return the meaning of a server's finish reason; a ProviderError if the response isn't known to be complete."""
    if given is None:
        raise ProviderError("a response without a finish_reason: whether it is complete isn't known")
    reason = FINISH_REASONS.get(str(given).casefold())
    if reason is None:
        raise ProviderError(f"finish_reason {str(given)[:80]!r}, which isn't that of a complete response")
    if reason == "content_filter":
        raise ProviderError("a content filter's notice in place of the model's response", may_pass=False)
    return reason


def writable(text: str) -> str:
    """Return the text without half surrogate pairs: they are legal JSON, but no file and no request holds them."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def with_stop_string(text: str, stops: tuple[str, ...], choice: Mapping[str, Any], prefix: str = "") -> str:
    """Return the response with the stop string that ended it, which servers cut out, if that is known.

    vLLM names the string (``stop_reason``). Elsewhere it is put back if its tag is open at the end, perhaps by the
    ``prefix``; the protocol can't tell this from a model that fell silent inside the tag. If a server ignores stop
    strings, the response ends here, outside of a ``<think>``.
    """
    if (end := end_of_response(text, stops, prefix)) is not None:
        return text[:end]
    if "stop_reason" in choice:
        reason = choice["stop_reason"]
        return text + reason if isinstance(reason, str) and reason in stops else text
    behind = (prefix + text).rpartition(THOUGHT)[2]
    opened = (stop for stop in stops if stop.startswith("</") and behind.count("<" + stop[2:]) == 1)
    return text + next(opened, "")


def completion_of(
    answer: Mapping[str, Any],
    text: str,
    finish_reason: FinishReason,
    stops: tuple[str, ...],
    choice: Mapping[str, Any],
    reasoning: str = "",
    begun: Begun = NOT_BEGUN,
    tool_calls: object = None,
) -> Turn:
    """Return the completion that an answer holds; ``stops`` and ``choice`` are as in :func:`with_stop_string`.

    Reasoning in the text joins the reasoning that the server gave apart. If a text closes more reasoning than it opens,
    the chat template had opened it. Text behind the end was paid for: it is in ``cut``.
    """
    text, behind, cut = writable(text), 0, ""
    if not begun.prefix and text.count(THOUGHT) > text.count(THINK):
        begun, behind = Begun(opening="open"), text.rindex(THOUGHT) + len(THOUGHT)
    before = text[:behind] or begun.text
    if finish_reason in ("stop", "length") and (end := end_of_response(text[behind:], stops, before)) is not None:
        text, cut, finish_reason = text[: behind + end], text[behind + end :], "stop"
    inside, text = split_reasoning(text, begun.opening)
    reasoning = "\n\n".join(part for part in (reasoning, inside) if part)
    if finish_reason == "stop" and not (reasoning and not text):
        text = with_stop_string(text, stops, choice, begun.prefix)
    if finish_reason == "stop" and not tool_calls and _REFUSAL.match(text) and OPEN_TAG not in text:
        finish_reason = "refusal"
    usage = read_usage(answer.get("usage"))
    return Turn(
        text,
        finish_reason=finish_reason,
        usage=usage,
        uncounted=usage == NO_USAGE,
        served_by=served_by(answer),
        reasoning=writable(reasoning),
        tool_calls=writable(json.dumps(tool_calls)) if tool_calls else "",
        cut=cut,
    )


_REFUSAL = re.compile(
    r"\W*(?:(?:I['’]m|I am) (?:very |really |so )?sorry|sorry|(?:my )?apologies|I apologi[sz]e|I must decline"
    r"|I (?:can['’]?t|can ?not|won['’]t|will not|(?:am|['’]m) (?:unable|not able) to)|I['’]m (?:unable|not able) to)\b"
    r"(?=.{0,200}\b(?:help|assist|comply|provide|participate|engage|fulfil+|continue|answer|play|request)\b)",
    re.IGNORECASE | re.DOTALL,
)
"""The beginning of a refusal in words. It only names the reason of a response that can't be read anyway."""


def read_usage(usage: object) -> Usage:
    """Return the tokens as the server counted them; absurd or absent counts are 0. Reasoning that a server counts
    beside the completion, as its total tells, is added to that."""
    if not isinstance(usage, dict):
        return Usage()

    def count(holder: object, *names: str) -> int:
        values = [holder.get(name) for name in names] if isinstance(holder, dict) else []
        return next((value for value in values if type(value) is int and 0 <= value <= MOST_TOKENS), 0)

    prompt = count(usage, "prompt_tokens", "input_tokens")
    completion = count(usage, "completion_tokens", "output_tokens")
    prompt_details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    reasoning = count(details, "reasoning_tokens")
    cached = count(prompt_details, "cached_tokens") or count(usage, "prompt_cache_hit_tokens")
    if reasoning and count(usage, "total_tokens") == prompt + completion + reasoning:
        completion += reasoning
    return Usage(
        prompt, completion, reasoning_tokens=min(reasoning, completion), cached_prompt_tokens=min(cached, prompt)
    )


def usage_in(body: str) -> Usage:
    """Return the tokens that an answer names which is no response: they may be paid for all the same."""
    answer = parsed(body)
    return read_usage(answer.get("usage")) if isinstance(answer, dict) else NO_USAGE


def served_by(answer: Mapping[str, Any]) -> str | None:
    """Return the model's name and fingerprint as the answer has them."""
    names = [answer.get(name) for name in ("model", "system_fingerprint")]
    return " ".join(writable(text[:MAX_NAME_LENGTH]) for text in names if isinstance(text, str) and text) or None
