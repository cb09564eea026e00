"""Writing a tiny model to disk: weights, tokenizer and recipe."""

import json
from pathlib import Path

from agents.models.local.loading.card import write_card, write_chat_template
from agents.tiny.imitation import Pretrained
from agents.tiny.tokenizer import save_tokenizer


def save(made: Pretrained, folder: str | Path) -> Path:
    """Save a model in Hugging Face format with its recipe."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made.model.save_pretrained(folder)
    save_tokenizer(made.tokenizer, folder)
    write_card(folder, modes=made.recipe.modes, texts=made.recipe.texts)
    write_chat_template(folder, made.tokenizer)
    for weights in folder.glob("*.safetensors"):
        weights.chmod(0o644)  # written for the owner alone, but a package's files are for everyone
    recipe = {"recipe": made.recipe.as_data, "losses": [round(loss, 4) for loss in made.losses]}
    (folder / "recipe.json").write_text(json.dumps(recipe, indent=1) + "\n")
    return folder
