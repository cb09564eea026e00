"""Very small language models made from scratch: tokenizer, noisy demonstrator, pretraining.

They read the same prompts and write the same ``think``/``plan``/``action`` responses as any big model, weigh 0.2 to 1
million parameters, and are saved as plain Hugging Face models (``LlamaForCausalLM`` and ``PreTrainedTokenizerFast``).

From Python (needs the ``local`` extra)::

    from agents.tiny import Recipe, pretrain, save
    from agents.models.local.transformers import TransformersModel

    made = pretrain(Recipe.quick(seed=0))              # Frozen Lake, 0.2M parameters, about a minute on one core
    made = pretrain(Recipe.quick(seed=0, modes=("direct",)))        # answers of three tokens
    model = TransformersModel(made.model, made.tokenizer, name="tiny-quick")    # live: train made.model as it is
    save(made, "runs/tiny-quick")                      # then load_agent("hf:runs/tiny-quick")

``Recipe()`` without changes reads both games and all their variants. Trainings start from such models: those whose
``model`` is ``tiny-quick`` or ``tiny-legal`` make one first. In a clone, ``python -m research.tiny --out DIR`` makes
one, plays with it and writes its card, and :mod:`research.tiny.statements` tells how much of a reasoning is true.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.tiny.demonstrator import Demonstrator, StyleShares
    from agents.tiny.imitation import Pretrained, pretrain
    from agents.tiny.recipe import Recipe
    from agents.tiny.saving import save

_MODULE_OF = {
    "Demonstrator": "demonstrator",
    "Pretrained": "imitation",
    "Recipe": "recipe",
    "StyleShares": "demonstrator",
    "pretrain": "imitation",
    "save": "saving",
}

__all__ = ["Demonstrator", "Pretrained", "Recipe", "StyleShares", "pretrain", "save"]


def __getattr__(name: str) -> Any:
    # the statements are checked by people without torch too, so modules are loaded when they are needed
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
