"""``--protocol tools``: a model acts by calling a function, in place of writing an action tag.

``request -> Tool -> the server's model calls act(action="left") -> Turn("<action>left</action>")``: a turn's response
is made of the call alone, so that games, records and replays read it as any other. An answer without a call has the
response ``""``, a call of another tool or with another argument ``<action></action>``, and several calls as many tags;
none of these names an action.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from agents.models.served.answers import parsed
from agents.prompt import PromptMap
from agents.prompt_texts import PromptTexts
from agents.turn import Turn
from textgames.texts.actions import CLOSE_TAG, OPEN_TAG, action_content

NAME, PARAMETER = "act", "action"
MODE = "tools"
"""The response mode of a prompt file that words the request for a call; without it there are the words below."""
_ASKED = "Choose one action and call the tool act with it, once. An answer without a call doesn't count. "
_RESPONSE = _ASKED + "The argument action is one of: $actions."
_OPEN_RESPONSE = _ASKED + "As the argument action give: $actions."


@dataclass(frozen=True)
class Tool:
    """The function that one decision offers: its argument is one of ``names``, or if there are none a text, which
    ``form`` describes."""

    names: tuple[str, ...]
    form: str

    @property
    def function(self) -> dict[str, Any]:
        """The function as servers are told it, by a JSON Schema of its parameters."""
        action = {"enum": list(self.names)} if self.names else {"description": self.form}
        parameters = {
            "type": "object",
            "properties": {PARAMETER: {"type": "string", **action}},
            "required": [PARAMETER],
            "additionalProperties": False,
        }
        return {"name": NAME, "description": "Play this action in the game.", "parameters": parameters}


def check_takes_tools(name: str, model: object) -> None:
    """Raise a ValueError for a model, or a class of models, without ``takes_tools``: with it a model is given the
    :class:`Tool` as the last argument of ``generate_async``."""
    if not getattr(model, "takes_tools", False):
        raise ValueError(
            f"{name} can't be played with tools, which are offered to models behind servers, by the routes chat and "
            "responses: serve it (vllm serve, transformers serve, llama-server) and play openai:NAME with --base-url"
        )


def with_calls(prompt_map: PromptMap) -> PromptMap:
    """Return the prompt map with prompts that ask for a call; a ValueError if its texts need an answer in text."""
    for name, used in (("prefix", prompt_map.prefix), ("memory", prompt_map.texts.memory)):
        if used:
            raise ValueError(
                f"prompts with {name} = {used!r} need answers in text, and tools answer by calls: take it out"
            )

    def asking(texts: PromptTexts) -> PromptTexts:
        response = dict.fromkeys(texts.response, texts.response.get(MODE, _RESPONSE))
        opened = dict.fromkeys(texts.response, texts.open_response.get(MODE, _OPEN_RESPONSE))
        wordings = {name: asking(own) for name, own in texts.wordings.items()}
        return replace(texts, response=response, open_response=opened, wordings=wordings)

    return replace(prompt_map, texts=asking(prompt_map.texts))


def read_call(turn: Turn) -> Turn:
    """Return a model's answer with its call as the response; the text beside it becomes ``cut``."""
    if turn.error is not None:
        return turn
    response = "".join(f"{OPEN_TAG}{argument}{CLOSE_TAG}" for argument in _arguments(turn.tool_calls))
    return replace(turn, response=response, cut=turn.response + turn.cut)


def argument_in(response: str) -> str | None:
    """Return the argument of the one call that such a response is made of, else ``None``."""
    found = action_content(response)
    return found[0] if isinstance(found, tuple) and not found[1] else None


def _arguments(calls: str) -> Iterator[str]:
    """Yield the argument of every call, in any server's form; empty of one with another name or argument."""
    found = parsed(calls) or []
    for call in found if isinstance(found, list) else [found]:
        inner = call.get("function", call) if isinstance(call, dict) else None
        told = inner.get("arguments") if isinstance(inner, dict) and inner.get("name") == NAME else None
        told = parsed(told) if isinstance(told, str) else told
        argument = told.get(PARAMETER) if isinstance(told, dict) else None
        yield argument if isinstance(argument, str) else ""
