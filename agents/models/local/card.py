"""How a trained model wants to be asked, in files beside its weights: its response mode, and a chat template.

``textbench.json`` is ours: the trainer writes it and ``hf:`` reads it. ``chat_template.jinja`` is read by transformers,
vLLM and every other chat server, which then give the model the very text that this package gives it.
"""

import json
import warnings
from pathlib import Path
from typing import Any

CARD_NAME = "textbench.json"
TEMPLATE_NAME = "chat_template.jinja"
PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}{% if not loop.last %}{{ '\\n\\n' }}{% endif %}{% endfor %}"
)
"""The text of :func:`agents.prompt.as_text`, as a chat template: the contents, joined by blank lines."""


def write_card(folder: Path, *, mode: str) -> None:
    """Write ``textbench.json`` into a model's folder; ``mode`` is the response mode that the model was trained in."""
    (folder / CARD_NAME).write_text(json.dumps({"mode": mode}, indent=1) + "\n", encoding="utf-8")


def trained_mode(path_or_repo: str) -> str | None:
    """The response mode in the card of a model's folder; ``None`` for a model without one, or from a hub.

    Raises:
        ValueError: the card isn't one.
    """
    file = Path(path_or_repo).expanduser() / CARD_NAME
    try:
        mode = json.loads(file.read_text(encoding="utf-8"))["mode"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} should hold {{'mode': 'think'}} or another response mode: {error!r}") from None
    return str(mode)


def write_chat_template(folder: Path, tokenizer: Any) -> None:
    """Write ``chat_template.jinja`` into a model's folder, unless its tokenizer has brought a template of its own.

    A server doesn't let a tokenizer add special tokens to what a template renders, so the template writes those that a
    text begins with. Tokenizers that treat the beginning of a text like the beginning of a word may give other tokens
    even so: they get a warning and no template.
    """
    if getattr(tokenizer, "chat_template", None) is not None:
        return  # saved with the tokenizer
    sample = "Where is it?\n\nLeft."
    whole, bare = (tokenizer(sample, add_special_tokens=added)["input_ids"] for added in (True, False))
    added = next((at for at in range(len(whole) - len(bare) + 1) if whole[at : at + len(bare)] == bare), 0)
    begin = "".join(tokenizer.convert_ids_to_tokens(whole[:added]))
    if tokenizer(begin + sample, add_special_tokens=False)["input_ids"] != whole[: added + len(bare)]:
        warnings.warn(
            f"no chat template gives this {type(tokenizer).__name__} the tokens of a plain text: hf:{folder} plays as "
            "it was trained, but a chat server needs a template of your own",
            stacklevel=2,
        )
        return
    template = "{{ " + json.dumps(begin) + " }}" + PLAIN_TEMPLATE if begin else PLAIN_TEMPLATE
    (folder / TEMPLATE_NAME).write_text(template, encoding="utf-8")
