"""A tokenizer's chat template: the text that it makes of a prompt, and whether the model reasons before it responds."""

import ctypes
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from typing import Any

from agents.models.reasoning import Opening, check_thinking
from agents.turn import Message, Prompt, prefix_of
from textgames.texts.actions import THINK, THOUGHT

TEMPLATE_SECONDS = 5.0  # to render a prompt; published templates take a millisecond

_MARK = "(what the user says)"


def render(tokenizer: Any, prompt: Prompt, arguments: Mapping[str, Any]) -> str:
    """Return the text of a prompt, up to the point at which the model continues, by the template's ``arguments``."""
    messages = [{"role": message.role, "content": message.content} for message in prompt]
    end = "continue_final_message" if prefix_of(prompt) else "add_generation_prompt"
    with _in_time():
        return str(tokenizer.apply_chat_template(messages, tokenize=False, **{**arguments, end: True}))


class TemplateTooSlowError(ValueError):
    """A chat template that has taken longer than :data:`TEMPLATE_SECONDS`."""

    def __init__(self) -> None:
        super().__init__(f"it takes more than {TEMPLATE_SECONDS:g} seconds")


@contextmanager
def _in_time() -> Iterator[None]:
    """Stop a template that takes too long, by an error that another thread raises in this one: the sandbox bounds a
    loop, and not loops in loops. (:func:`sys.settrace` would triple the time of every prompt.)"""
    own, lock, rendering = threading.get_ident(), threading.Lock(), True

    def stop() -> None:
        with lock:
            if rendering:
                error = ctypes.py_object(TemplateTooSlowError)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(own), error)

    timer = threading.Timer(TEMPLATE_SECONDS, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            rendering = False
        timer.cancel()


def check_prefix(tokenizer: Any, prefix: str, name: str) -> None:
    """Raise a ``ValueError`` for a template that leaves a response's prefix out, or has something behind it."""
    try:
        rendered = render(tokenizer, (Message("user", "?"), Message("assistant", prefix)), {})
    except ValueError:  # transformers', with the whole rendered chat
        rendered = ""
    if not rendered.endswith(prefix):
        raise ValueError(
            f"{name}'s chat template can't continue the response prefix {prefix!r}: take the prompts' [prefix] out, "
            "or give the tokenizer a template that writes an assistant's message as it is"
        )


class Thinking:
    """The choices of whether and for how long a model reasons: its chat template's arguments, and a budget of tokens. A
    ValueError if the template fails or could run without end, doesn't read the arguments, or knows no reasoning."""

    def __init__(self, tokenizer: Any, arguments: Mapping[str, Any] | None, budget: int | None, name: str) -> None:
        self.arguments, self.budget, self._tokenizer = check_thinking(arguments, budget), budget, tokenizer
        self.template = template = str(getattr(tokenizer, "chat_template", None) or "")
        if getattr(tokenizer, "chat_template", None) is not None:
            from jinja2 import Environment

            try:
                if any((kind, token) == ("operator", "**") for _, kind, token in Environment().lex(template)):
                    raise ValueError("it has a power, **, which nothing can stop")
                if not render(tokenizer, (Message("user", _MARK),), self.arguments):
                    raise ValueError("it makes an empty prompt")
            except Exception as error:  # noqa: BLE001 - a template of a stranger can fail in any way
                told = str(error) or type(error).__name__
                message = f"the chat template of {name} can't be used ({told}): put back the published one"
                raise ValueError(message) from None
        if unread := [argument for argument in self.arguments if argument not in template]:
            raise ValueError(
                f"chat_template_kwargs has {', '.join(unread)}, which the chat template of {name} doesn't read"
                + ("" if template else ": it has none")
            )
        if budget is not None and THOUGHT not in template:
            raise ValueError(f"thinking_budget is for models that reason: the chat template of {name} has no {THOUGHT}")

    @property
    def settings(self) -> dict[str, Any]:
        chosen = {"chat_template_kwargs": self.arguments or None, "thinking_budget": self.budget}
        return {name: value for name, value in chosen.items() if value is not None}

    def opening(self, prompt: Prompt) -> Opening:
        """Return whether the model reasons before it responds to a prompt; behind a prefix it never does."""
        return "none" if prefix_of(prompt) else self._opening

    @cached_property
    def _opening(self) -> Opening:
        # with reasoning switched off a template closes it at the beginning of the response (Qwen3); that of a model
        # which always reasons opens it there (DeepSeek-R1)
        if THOUGHT not in self.template:
            return "none"
        begins = render(self._tokenizer, (Message("user", _MARK),), self.arguments).rpartition(_MARK)[2]
        _, opened, inside = begins.rpartition(THINK)
        return "none" if THOUGHT in inside else "open" if opened else "may"


def with_arguments(tokenizer: Any, arguments: Mapping[str, Any], name: str) -> Any:
    """Return a tokenizer whose chat template sets its arguments, for models that are trained and saved with it; a
    ValueError as of :class:`Thinking`, or if one isn't true, false, a number or a text."""
    template = Thinking(tokenizer, arguments, None, name).template
    if not arguments:
        return tokenizer
    if odd := [key for key, value in arguments.items() if not isinstance(value, bool | int | float | str)]:
        raise ValueError(f"chat_template_kwargs.{odd[0]} is true, false, a number or a text, got {arguments[odd[0]]!r}")
    sets = "".join(f"{{%- set {key} = {json.dumps(value)} -%}}" for key, value in arguments.items())
    tokenizer = copy(tokenizer)
    tokenizer.chat_template = sets + template
    return tokenizer
