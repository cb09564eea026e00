"""The models that ship as adapters (``smollm2-lake``), by the names of their folders in ``agents/adapters/weights``.

A program may register a folder of its own: ``register_provider("ours", provider_of(Path("our/adapters")))``.
"""

from pathlib import Path

from agents.models import hf
from agents.models.local.loading.adapters import SETTINGS
from agents.models.local.loading.card import read_card
from agents.models.provider import Provider
from textgames.extras import Packages


def provider_of(folder: Path) -> Provider:
    """Return a provider of the adapters in a folder, each a folder of its own there."""
    names = sorted(file.parent.name for file in folder.glob(f"*/{SETTINGS}"))

    def place(name: str) -> str:
        return str(folder / name)

    return Provider(
        hf.loader(place),
        description="smollm2 with what it has learnt, an adapter that ships with textbench",
        example=names[0] if names else "smollm2-lake",
        takes="",
        models={name: name for name in names},
        folder=place,
        missing=Packages(("torch", "transformers", "gguf", "peft"), "smollm2"),
        check=hf.unloaded,
        card=lambda name: read_card(place(name)),
        fetches=lambda name: hf.fetches(place(name)),
    )


PROVIDER = provider_of(Path(__file__).parents[1] / "adapters" / "weights")
