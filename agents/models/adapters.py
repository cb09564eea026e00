"""The models that ship as adapters (``smollm2-lake``): the folders in ``agents/adapters/weights``, by their names.

An adapter is what was learnt, the warm start inside it; its base is a model that has a name, and is fetched once. So a
version ships those whose folders it has, and a program may register a folder of its own adapters in the same way::

    register_provider("ours", provider_of(Path("our/adapters")))
"""

from pathlib import Path
from typing import TYPE_CHECKING

from agents.models import hf
from agents.models.hf import unloaded
from agents.models.local.loading.adapters import SETTINGS
from agents.models.local.loading.card import read_card
from agents.models.provider import Provider
from textgames.extras import Packages

if TYPE_CHECKING:
    from agents.models.local.transformers import TransformersModel

FOLDER = Path(__file__).parents[1] / "adapters" / "weights"


def provider_of(folder: Path) -> Provider:
    """Return a provider of the adapters in a folder, each a folder of its own there, by their folders' names."""
    names = sorted(file.parent.name for file in folder.glob(f"*/{SETTINGS}"))

    def make(
        name: str, *, dtype: str = "auto", device: str = "auto", max_batch_tokens: int | None = None
    ) -> "TransformersModel":
        """Load an adapter with its base; the options are those of ``TransformersModel.from_pretrained``."""
        from agents.models.local.transformers import TransformersModel

        return TransformersModel.from_pretrained(
            folder / name, dtype=dtype, device=device, max_batch_tokens=max_batch_tokens, name=name
        )

    return Provider(
        make,
        description="smollm2 with what it has learnt, an adapter that ships with textbench",
        example=names[0] if names else "smollm2-lake",
        takes="",
        models={name: name for name in names},
        folder=lambda name: str(folder / name),
        missing=Packages(("torch", "transformers", "gguf", "peft"), "smollm2"),
        check=unloaded,
        card=lambda name: read_card(str(folder / name)),
        fetches=lambda name: hf.fetches(str(folder / name)),
    )


PROVIDER = provider_of(FOLDER)
