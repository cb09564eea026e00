"""A tokenizer's chat template: the text that it makes of a prompt."""

from collections.abc import Mapping
from typing import Any

from agents.turn import Message, Prompt, prefix_of


def render(tokenizer: Any, prompt: Prompt, arguments: Mapping[str, Any]) -> str:
    """The text of a prompt, up to where the model goes on: behind the response's prefix, where there is one.

    ``arguments`` are the template's own, such as ``{"enable_thinking": False}``.
    """
    messages = [{"role": message.role, "content": message.content} for message in prompt]
    end = "continue_final_message" if prefix_of(prompt) else "add_generation_prompt"
    return str(tokenizer.apply_chat_template(messages, tokenize=False, **{**arguments, end: True}))


def check_prefix(tokenizer: Any, prefix: str, name: str) -> None:
    """Raise a ``ValueError`` for a template that leaves a response's prefix out, or has something behind it."""
    try:
        rendered = render(tokenizer, (Message("user", "?"), Message("assistant", prefix)), {})
    except ValueError:  # transformers', with the whole rendered chat
        rendered = ""
    if not rendered.endswith(prefix):
        raise ValueError(
            f"{name}'s chat template can't go on from the response prefix {prefix!r}: take the prompts' [prefix] out, "
            "or give the tokenizer a template that writes an assistant's message as it is"
        )
