"""How a trained model wants to be asked, in files beside its weights: ``textbench.json`` and a chat template.

``textbench.json`` has the response mode and the whole texts of the prompts of its training, as the default prompts may
change. ``chat_template.jinja`` is read by transformers, vLLM and every other chat server.
"""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agents.common.reading import read_json
from agents.prompt import PromptMap
from agents.prompt_texts import CARD_NAME, CARD_PROMPTS, PromptTexts

TEMPLATE_NAME = "chat_template.jinja"
PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}{% if not loop.last and not (loop.revindex == 2 and "
    "messages[-1]['role'] == 'assistant') %}{{ '\\n\\n' }}{% endif %}{% endfor %}"
)
"""The text of :func:`agents.prompt.as_text`, as a chat template: the contents, joined by blank lines."""
PLAIN_TEMPLATES = (  # the second is in folders that were written before responses had prefixes
    PLAIN_TEMPLATE,
    "{% for message in messages %}{{ message['content'] }}{% if not loop.last %}{{ '\\n\\n' }}{% endif %}{% endfor %}",
)
BEFORE_THE_CLOCK = "without-clock"  # the prompts of models whose card names none
LOADED_FROM = "textbench_loaded_from"
"""The attribute of a loaded model that has its folder: an adapter's, if transformers tells the base model's."""


class Card(NamedTuple):
    """How a model was asked when it was trained: response modes, of which it is played in the first, the wording of its
    prompts, and perhaps the scenarios."""

    modes: tuple[str, ...]
    texts: PromptTexts
    scenarios: tuple[str, ...] = ()

    @property
    def mode(self) -> str:
        return self.modes[0]

    def contradiction(self, prompt_map: PromptMap) -> str:
        """Return the part of a prompt map that differs from the card: ``"mode"``, ``"texts"``, or nothing."""
        if prompt_map.mode not in self.modes:
            return "mode"
        mode = prompt_map.mode
        return "" if prompt_map.texts.read_in(mode) == self.texts.read_in(mode) else "texts"


def write_card(folder: Path, *, modes: Sequence[str], texts: PromptTexts, scenarios: Sequence[str] = ()) -> None:
    """Write ``textbench.json`` into a model's folder; the first of ``modes`` is the one that it is played in."""
    several = {"modes": list(modes)} if len(modes) > 1 else {}
    trained = {"scenarios": list(scenarios)} if scenarios else {}
    data = {"mode": modes[0], **several, **trained, CARD_PROMPTS: texts.as_data()}
    (folder / CARD_NAME).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def read_card(path_or_repo: str) -> Card | None:
    """Return the card of a model's folder; ``None`` without one, or for a hub; a ValueError if it is no card."""
    file = Path(path_or_repo).expanduser() / CARD_NAME
    try:
        data = read_json(file)
        modes = tuple(map(str, data.get("modes") or [data["mode"]]))
        scenarios = tuple(map(str, data.get("scenarios", ())))
        prompts = data.get(CARD_PROMPTS)
        texts = PromptTexts.from_file(BEFORE_THE_CLOCK) if prompts is None else PromptTexts.from_data(prompts)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} should hold {{'mode': 'think'}} or another response mode, and the texts of prompts: {error!r}"
        ) from None
    return Card(modes, texts, scenarios)


def card_of(model: Any) -> Card | None:
    """Return the card of the folder that a model of transformers was loaded from, if it was loaded and has one."""
    source = getattr(model, LOADED_FROM, "") or getattr(model, "name_or_path", "")
    return read_card(source) if source else None


def write_chat_template(folder: Path, tokenizer: Any) -> None:
    """Write ``chat_template.jinja`` into a model's folder, unless its tokenizer has brought a template of its own.

    It writes the special tokens that a text begins with, as a server adds none. A tokenizer that gives other tokens
    even so, as some do at the beginning of a text, gets a warning and no template.
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
