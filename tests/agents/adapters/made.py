"""Adapters of chance on the tiny model that ships, which answer otherwise than it."""

import json
import warnings
from pathlib import Path
from typing import Any

import torch

from agents.models.local.loading.card import write_card
from agents.models.local.loading.load import load_model
from agents.prompt_texts import PromptTexts


def make_adapter(
    folder: Path, *, base: str = "tiny", rank: int = 6, scenarios: tuple[str, ...] = (), **settings: Any
) -> Path:
    """An adapter over all maps of a base, with the card of one that was trained with the base's prompts."""
    import peft

    settings = {"lora_alpha": 2 * rank, "target_modules": "all-linear", **settings}
    config = peft.LoraConfig(r=rank, task_type="CAUSAL_LM", **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft asks transformers by retired names, and the hub for a base named tiny
        bare = load_model(base, dtype="float32", device="cpu")[0]
        torch.manual_seed(1)  # before the adapter is made, as one of its factors begins by chance
        model = peft.get_peft_model(bare, config)
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(weight, std=0.02)
        model.save_pretrained(str(folder), save_embedding_layers=False)
    write_card(folder, modes=["think"], texts=PromptTexts.from_file("without-clock"), scenarios=scenarios)
    return folder


def logits(folder: str | Path, count: int = 40) -> torch.Tensor:
    """Next-token log-probabilities ``(count, vocabulary)`` of a fixed text, under the model in a folder."""
    model, _ = load_model(str(folder), dtype="float32", device="cpu")
    ids = torch.randint(0, model.config.vocab_size, (1, count), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        scores: torch.Tensor = model(ids).logits[0].log_softmax(-1)
    return scores


def settings_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "adapter_config.json").read_text())
    return found
