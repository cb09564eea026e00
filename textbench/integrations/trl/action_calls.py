"""Tool calls for models that have never seen one: what they write as an action is read as a call of ``act``.

TRL's ``environment_factory`` takes models whose chat template knows tools and whose answers transformers can parse. A
model that answers in the games' own form, ``<action>left</action>``, has neither; here it gets both.
"""

from typing import Any

_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{% for call in message['tool_calls'] or [] %}"
    "{% if call['function']['name'] == 'act' %}<action>{{ call['function']['arguments']['action'] }}</action>"
    "{% else %}{{ call['function'] | tojson }}{% endif %}{% endfor %}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}"
    "{% if not loop.last %}{{ '\\n\\n' }}{% endif %}{% endfor %}"
)
_FIELDS: dict[str, Any] = {
    "reasoning_content": {"open": "<think>", "close": "</think>", "content": "text"},
    "tool_calls": {
        "open_pattern": "<action>(?=.*</action>)",  # a tag that is cut off names no action
        "close_pattern": "</action>.*",  # and nothing counts that is behind an action
        "repeats": True,
        "content": "text",
        "transform": {"type": "function", "function": {"name": "act", "arguments": {"action": "{content}"}}},
    },
    "content": {"content": "text"},
}


def read_actions_as_calls(tokenizer: Any) -> Any:
    """Give a tokenizer a chat template and a response template in which an action tag is a call of ``act``.

    As in ``textbench run`` a response ends at its first action: what is behind it isn't read. A tag that is cut off is
    no call, so with it the model leaves the episode. Messages are joined by blank lines, as models without a chat
    template read them, and an answer ends with the end-of-sequence token. The tokenizer is changed, and returned for
    ``GRPOTrainer(processing_class=...)``.
    """
    tokenizer.chat_template = _TEMPLATE
    # an answer begins where the prompt ends: what stands before, an example of an action perhaps, is no part of it
    tokenizer.response_template = {"defaults": {"role": "assistant"}, "start_anchor_pattern": r"\Z", "fields": _FIELDS}
    return tokenizer
