"""The route ``/chat/completions``: chat messages in, one message out. Nearly every server has it."""

from collections.abc import Mapping
from typing import Any

from agents.models.base import Decoding
from agents.models.reasoning import NOT_BEGUN, Begun
from agents.models.served import answers
from agents.models.served.answers import ProviderError
from agents.turn import Prompt, Turn, prefix_of

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Where servers put the text of the reasoning: DeepSeek and LiteLLM in the first, OpenRouter and vLLM in the second."""

LLAMA_CPP = "timings"
"""A field that answers of llama.cpp's server have, and no other's."""

CONTINUE = {"continue_final_message": True, "add_generation_prompt": False}
"""Go on from the last message, which is the assistant's: vLLM's and SGLang's words. Others do it anyway."""


def fields(prompt: Prompt, decoding: Decoding, effort: str | None) -> dict[str, Any]:
    """Return the part of a request's body that says what to write and how."""
    asked: dict[str, Any] = {
        "messages": [{"role": message.role, "content": message.content} for message in prompt],
        "temperature": decoding.temperature,
    }
    if decoding.top_p != 1:
        asked["top_p"] = decoding.top_p
    if decoding.stop:
        asked["stop"] = list(decoding.stop)
    if effort is not None:
        asked["reasoning_effort"] = effort
    if prefix_of(prompt):
        asked |= CONTINUE
    return asked


def read(body: str, decoding: Decoding, begun: Begun = NOT_BEGUN) -> Turn:
    """Return the completion in an answer with status 200.

    Raises:
        ProviderError: there is none; the message completes "the server answered with ...".
    """
    answer = answers.decode(body)
    choice = answers.first_choice(answer, body)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ProviderError(f"a choice without a message: {answers.excerpt(body)}")
    if choice.get("error"):
        raise ProviderError(f"an error in place of the model's response: {answers.excerpt(body)}")
    finish_reason = answers.finish_reason_of(choice.get("finish_reason"))
    text = _text(message)
    if text and message.get("content") is None:
        finish_reason = "refusal"
    if text is None:
        raise ProviderError(f"content that isn't text: {answers.excerpt(body)}")
    if LLAMA_CPP in answer:  # which gives the message that it went on from as a whole
        text = text.removeprefix(begun.prefix)
    reasoning = next((said for name in REASONING_FIELDS if isinstance(said := message.get(name), str) and said), "")
    calls = message.get("tool_calls") or message.get("function_call")
    return answers.completion_of(answer, text, finish_reason, decoding.stop, choice, reasoning, begun, calls)


def _text(message: Mapping[str, Any]) -> str | None:
    """Return the text of a message: its content, or the refusal in its place; ``None`` for something else."""
    content = message.get("content")
    if content is None:
        refusal = message.get("refusal")
        return refusal if isinstance(refusal, str) else ""
    if isinstance(content, list):  # content parts
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "".join(parts) if all(isinstance(part, str) for part in parts) else None
    return content if isinstance(content, str) else None
