"""The route ``/responses``: OpenAI's newer interface, which some of its models need.

It knows neither stop strings nor seeds, so a response is ended here. The summary of the reasoning is asked for, and
nothing is to be stored at the provider.
"""

from collections.abc import Mapping
from typing import Any

from agents.models.base import Decoding
from agents.models.reasoning import NOT_BEGUN, Begun
from agents.models.served import answers
from agents.models.served.answers import ProviderError
from agents.turn import Prompt, Turn, prefix_of


def fields(prompt: Prompt, decoding: Decoding, effort: str | None) -> dict[str, Any]:
    """Return the part of a request's body that says what to write and how.

    Raises:
        ProviderError: the response is to begin with a prefix, which this interface doesn't know.
    """
    if prefix := prefix_of(prompt):
        raise ProviderError(f"the route /responses can't go on from the response prefix {prefix!r}", may_pass=False)
    asked: dict[str, Any] = {
        "input": [{"role": message.role, "content": message.content} for message in prompt],
        "temperature": decoding.temperature,
        "store": False,
        "stream": False,  # as OpenAI has it by default, but not every server
    }
    if decoding.top_p != 1:
        asked["top_p"] = decoding.top_p
    if effort is not None:
        asked["reasoning"] = {"effort": effort, "summary": "auto"}
    return asked


def read(body: str, decoding: Decoding, begun: Begun = NOT_BEGUN) -> Turn:
    """Return the completion in an answer with status 200; a ProviderError if there is none."""
    answer = answers.decode(body)
    output = answer.get("output")
    if not isinstance(output, list):
        raise ProviderError(f"no output: {answers.excerpt(body)}")
    items = [item for item in output if isinstance(item, dict)]
    finish_reason = answers.finish_reason_of(_finish(answer))
    text = "".join(_texts(items, "message", "content", ("text", "refusal")))
    if finish_reason == "stop" and any(_texts(items, "message", "content", ("refusal",))):
        finish_reason = "refusal"
    reasoning = "\n\n".join(
        said for key in ("summary", "content") for said in _texts(items, "reasoning", key, ("text",))
    )
    calls = [item for item in items if str(item.get("type")).endswith("_call")]
    nothing_cut_out = {"stop_reason": None}
    return answers.completion_of(answer, text, finish_reason, decoding.stop, nothing_cut_out, reasoning, begun, calls)


def _finish(answer: Mapping[str, Any]) -> object:
    """Return how the response ended, in the words of the other routes."""
    status, details = answer.get("status"), answer.get("incomplete_details")
    if status == "incomplete":
        return details.get("reason") if isinstance(details, dict) else "incomplete"
    return "stop" if status == "completed" else status


def _texts(items: list[dict[str, Any]], kind: str, key: str, names: tuple[str, ...]) -> list[str]:
    """Return the texts of all parts ``item[key]`` of the items of one kind."""
    lists = [item[key] for item in items if item.get("type") == kind and isinstance(item.get(key), list)]
    parts = [part for parts in lists for part in parts if isinstance(part, dict)]
    return [said for part in parts for name in names if isinstance(said := part.get(name), str)]
