"""The routes of an OpenAI-compatible server: where a request goes, what it holds, how its answer is read."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from agents.models.base import Decoding
from agents.models.reasoning import NOT_BEGUN, Begun
from agents.models.served import answers
from agents.models.served.answers import ProviderError
from agents.models.tools import NAME, PARAMETER, Tool, argument_in
from agents.prompt import as_text
from agents.turn import Prompt, Turn, prefix_of

RouteName = Literal["chat", "responses", "completions"]
REASONING_FIELDS = ("reasoning_content", "reasoning")  # OpenRouter and vLLM use the second
LLAMA_CPP = "timings"  # a field that only answers of llama.cpp's server have

CONTINUE = {"continue_final_message": True, "add_generation_prompt": False}
"""Continue the last message, the assistant's: vLLM's and SGLang's words. Other servers do it anyway."""


class Route(NamedTuple):
    """One route of OpenAI's protocol. ``read`` raises a ProviderError if an answer with status 200 has no response."""

    path: str
    # of a prompt, decoding, effort of reasoning, and the tool that is offered
    fields: Callable[[Prompt, Decoding, str | None, Tool | None], dict[str, Any]]
    read: Callable[[str, Decoding, Begun], Turn]  # of an answer's body
    limit: str  # the name of the limit on tokens
    seed: bool = True  # whether it takes a seed


def _fields(decoding: Decoding, stop: bool = True) -> dict[str, Any]:
    fields: dict[str, Any] = {"temperature": decoding.temperature}
    if decoding.top_p != 1:
        fields["top_p"] = decoding.top_p
    if stop and decoding.stop:
        fields["stop"] = list(decoding.stop)
    return fields


def _messages(prompt: Prompt, tool: Tool | None, items: bool = False) -> list[dict[str, Any]]:
    """Return the prompt as messages, or as ``items`` of the newer interface; with a tool earlier answers are its calls,
    and the observations behind them its results."""
    messages: list[dict[str, Any]] = []
    called = ""
    for number, message in enumerate(prompt):
        content, asked = message.content, tool is not None and message.role == "assistant"
        if (argument := argument_in(content) if asked else None) is not None:
            called = f"call_{number}"
            function = {"name": NAME, "arguments": json.dumps({PARAMETER: argument})}
            call = {"id": called, "type": "function", "function": function}
            item = {"type": "function_call", "call_id": called, **function}
            messages.append(item if items else {"role": "assistant", "content": "", "tool_calls": [call]})
        elif called:
            item = {"type": "function_call_output", "call_id": called, "output": content}
            messages.append(item if items else {"role": "tool", "tool_call_id": called, "content": content})
            called = ""
        else:
            messages.append(_as_input(message.as_chat()) if items else message.as_chat())
    return messages


def _chat_fields(prompt: Prompt, decoding: Decoding, effort: str | None, tool: Tool | None) -> dict[str, Any]:
    fields = {"messages": _messages(prompt, tool), **_fields(decoding)}
    if tool is not None:
        fields["tools"] = [{"type": "function", "function": tool.function}]
    if effort is not None:
        fields["reasoning_effort"] = effort
    return fields | CONTINUE if prefix_of(prompt) else fields


def read_chat(body: str, decoding: Decoding, begun: Begun = NOT_BEGUN) -> Turn:
    """Return the completion in an answer of the route."""
    answer = answers.decode(body)
    choice = _first_choice(answer, body)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ProviderError(f"a choice without a message: {answers.excerpt(body)}")
    finish_reason = answers.finish_reason_of(choice.get("finish_reason"))
    content = message.get("content")
    if content is None:  # perhaps a refusal stands in its place
        refusal = message.get("refusal")
        content = refusal if isinstance(refusal, str) else ""
        finish_reason = "refusal" if content else finish_reason
    elif isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        content = "".join(parts) if all(isinstance(part, str) for part in parts) else None
    if not isinstance(content, str):
        raise ProviderError(f"content that isn't text: {answers.excerpt(body)}")
    if LLAMA_CPP in answer:  # whose message includes the prefix
        content = content.removeprefix(begun.prefix)
    reasoning = next((text for name in REASONING_FIELDS if isinstance(text := message.get(name), str) and text), "")
    calls = message.get("tool_calls") or message.get("function_call")
    return answers.completion_of(answer, content, finish_reason, decoding.stop, choice, reasoning, begun, calls)


def _first_choice(answer: Mapping[str, Any], body: str) -> dict[str, Any]:
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ProviderError(f"no choices: {answers.excerpt(body)}")
    if choices[0].get("error"):
        raise ProviderError(f"an error in place of the model's response: {answers.excerpt(body)}")
    return choices[0]


def _responses_fields(prompt: Prompt, decoding: Decoding, effort: str | None, tool: Tool | None) -> dict[str, Any]:
    """Return the fields of OpenAI's newer interface, which knows neither stop strings nor seeds nor prefixes."""
    if prefix := prefix_of(prompt):
        raise ProviderError(f"the route /responses can't continue the response prefix {prefix!r}", may_pass=False)
    # some servers stream unless told not to; nothing is to be stored at the provider
    fields = {"input": _messages(prompt, tool, items=True), **_fields(decoding, stop=False)}
    fields |= {"store": False, "stream": False}
    if tool is not None:
        fields["tools"] = [{"type": "function", **tool.function}]
    return fields if effort is None else {**fields, "reasoning": {"effort": effort, "summary": "auto"}}


def _as_input(message: dict[str, Any]) -> dict[str, Any]:
    """Return a chat message as this interface has it: its parts of images have other names."""
    if isinstance(message["content"], str):
        return message
    shown, told = message["content"]
    parts = [{"type": "input_image", "image_url": shown["image_url"]["url"]}, {**told, "type": "input_text"}]
    return {**message, "content": parts}


def read_responses(body: str, decoding: Decoding, begun: Begun = NOT_BEGUN) -> Turn:
    """Return the completion in an answer of the route."""
    answer = answers.decode(body)
    output, status, details = (answer.get(name) for name in ("output", "status", "incomplete_details"))
    if not isinstance(output, list):
        raise ProviderError(f"no output: {answers.excerpt(body)}")
    items = [item for item in output if isinstance(item, dict)]
    if status == "incomplete" and isinstance(details, dict):
        status = details.get("reason")
    finish_reason = answers.finish_reason_of("stop" if status == "completed" else status)

    def texts(kind: str, key: str, *names: str) -> list[str]:
        """Return the texts of all parts ``item[key]`` of the items of one kind."""
        lists = [item[key] for item in items if item.get("type") == kind and isinstance(item.get(key), list)]
        parts = [part for parts in lists for part in parts if isinstance(part, dict)]
        return [text for part in parts for name in names if isinstance(text := part.get(name), str)]

    if finish_reason == "stop" and any(texts("message", "content", "refusal")):
        finish_reason = "refusal"
    text = "".join(texts("message", "content", "text", "refusal"))
    reasoning = "\n\n".join([*texts("reasoning", "summary", "text"), *texts("reasoning", "content", "text")])
    calls = [item for item in items if str(item.get("type")).endswith("_call")]
    nothing_cut_out = {"stop_reason": None}
    return answers.completion_of(answer, text, finish_reason, decoding.stop, nothing_cut_out, reasoning, begun, calls)


def _completions_fields(prompt: Prompt, decoding: Decoding, effort: str | None, tool: Tool | None) -> dict[str, Any]:
    """Return the fields for a base model, which knows no chat, no effort of reasoning and no tools."""
    if tool is not None or any(message.image for message in prompt):
        what = "--observe" if tool is None else "--protocol tools"
        raise ProviderError(f"the route /completions takes no images and no tools: leave {what} out", may_pass=False)
    return {"prompt": as_text(prompt), **_fields(decoding)}


def read_completions(body: str, decoding: Decoding, begun: Begun = NOT_BEGUN) -> Turn:
    """Return the completion in an answer of the route."""
    answer = answers.decode(body)
    choice = _first_choice(answer, body)
    if not isinstance(text := choice.get("text"), str):
        raise ProviderError(f"a choice without a text: {answers.excerpt(body)}")
    finish_reason = answers.finish_reason_of(choice.get("finish_reason"))
    return answers.completion_of(answer, text, finish_reason, decoding.stop, choice, begun=begun)


ROUTES: dict[RouteName, Route] = {
    "chat": Route("/chat/completions", _chat_fields, read_chat, "max_tokens"),
    "responses": Route("/responses", _responses_fields, read_responses, "max_output_tokens", seed=False),
    "completions": Route("/completions", _completions_fields, read_completions, "max_tokens"),
}
