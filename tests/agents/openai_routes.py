"""The routes of the local server: what a request asks for, and the bodies of the answers, in OpenAI's shapes."""

import time
from collections.abc import Mapping
from typing import Any

PATHS = {"/chat/completions": "chat", "/completions": "completions", "/responses": "responses"}

WRONG_ROUTE = {
    "responses": "This model is only supported in v1/responses and not in v1/chat/completions.",
    "completions": "This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean "
    "to use v1/completions?",
}
"""What OpenAI's servers say of a model that has another route."""


def refusal(request: Mapping[str, Any], refused: Mapping[str, str]) -> dict[str, Any] | None:
    """The error about the first refused parameter of a request, in OpenAI's words."""
    for name, advice in refused.items():
        if name in request:
            message = f"Unsupported parameter: '{name}' is not supported with this model."
            if advice == "default":
                message = f"Unsupported value: '{name}' does not support {request[name]} with this model. Only the "
                message += "default (1) value is supported."
            elif advice:
                message += f" Use '{advice}' instead."
            return {"message": message, "type": "invalid_request_error", "param": name, "code": "unsupported_parameter"}
    return None


def words_of(request: Mapping[str, Any], route: str) -> int:
    if route == "completions":
        return len(request["prompt"].split())
    messages = request["messages" if route == "chat" else "input"]
    told = [message["content"] if "role" in message else message.get("output", "") for message in messages]
    return sum(len(text_of(content).split()) for content in told)


def text_of(content: Any) -> str:
    """The text of a message, whose content may be a list of parts; one without any text is no request."""
    return content if isinstance(content, str) else " ".join(part["text"] for part in content if "text" in part["type"])


def limit_of(request: Mapping[str, Any]) -> int | None:
    names = ("max_completion_tokens", "max_output_tokens", "max_tokens")
    return next((request[name] for name in names if name in request), None)


def chat_body(choice: dict[str, Any], usage: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    answer = {"id": "chatcmpl-local", "object": "chat.completion", "created": int(time.time()), **about}
    return answer | {"choices": [choice], "usage": usage}


def completions_body(choice: dict[str, Any], usage: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    told = {"index": 0, "logprobs": None, "text": choice["message"]["content"]}
    told["finish_reason"] = choice["finish_reason"]
    return {"id": "cmpl-local", "object": "text_completion", "created": 0, **about, "choices": [told], "usage": usage}


def responses_body(choice: dict[str, Any], usage: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    message, whole = choice["message"], choice["finish_reason"] in ("stop", "tool_calls")
    output: list[dict[str, Any]] = []
    if message.get("reasoning_content"):
        summary = [{"type": "summary_text", "text": message["reasoning_content"]}]
        output.append({"type": "reasoning", "id": "rs_1", "summary": summary})
    if message["content"]:
        part = {"type": "output_text", "text": message["content"], "annotations": []}
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "content": [part]})
    calls = message.get("tool_calls", ())
    output += [{"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls]
    return {
        "id": "resp_local",
        "object": "response",
        **about,
        "status": "completed" if whole else "incomplete",
        "incomplete_details": None if whole else {"reason": "max_output_tokens"},
        "error": None,
        "output": output,
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"],
            "input_tokens_details": usage.get("prompt_tokens_details", {}),
            "output_tokens_details": usage.get("completion_tokens_details", {}),
        },
    }


BODIES = {"chat": chat_body, "completions": completions_body, "responses": responses_body}
