"""The models that ship: very small ones (``tiny``, and what MS-GRPO made), and adapters (``smollm2-lake``).

Their specs are just their names. A program may register adapters of its own:
``register_provider("ours", provider_of(Path("our/adapters")))``.
"""

from collections.abc import Mapping
from pathlib import Path

from agents.models import hf
from agents.models.local.loading.adapters import SETTINGS
from agents.models.local.loading.card import read_card
from agents.models.provider import Provider
from textgames.extras import Packages

_PAPER = ("frozen-lake", "frozen-lake-slippery", "snake", "snake-poison")
READS: Mapping[str, tuple[str, ...]] = {
    "tiny": _PAPER,
    "tiny-msgrpo-frozen-lake": _PAPER,
    "tiny-msgrpo-snake": _PAPER,
    "tiny-lake": ("frozen-lake",),
    "tiny-snake": ("snake",),
}
"""``{name: the scenarios that the model has learnt to read}``; in others it hardly answers in form."""

EMBEDDED = tuple(READS)

CONTEXT_LENGTH = 16_384
"""Tokens that they read. They were trained on prompts of some hundred; those of other games are long, since nearly
every letter of an unknown text is a token to their tokenizer."""

FOLDER = Path(__file__).parents[1] / "tiny" / "weights"


def embedded_agents() -> tuple[str, ...]:
    """Return the specs of the models that ship with the package."""
    return EMBEDDED


def folder_of(name: str) -> str:
    """Return the folder of a model's weights; a ValueError for another name."""
    if name not in EMBEDDED:
        raise ValueError(
            f"there is no embedded model {name!r} ({', '.join(EMBEDDED)} are); play your own with hf:PATH_OR_REPO"
        )
    return str(FOLDER / name)


PROVIDER = Provider(
    hf.loader(folder_of, CONTEXT_LENGTH),
    description="a very small language model that ships with textbench",
    example="tiny",
    takes="",
    # the post-trained model, without saying on what, is the one of the paper's headline game
    models={**{name: name for name in EMBEDDED}, "tiny-msgrpo": "tiny-msgrpo-frozen-lake"},
    folder=folder_of,
    missing=hf.PROVIDER.missing,
    check=lambda name, **options: hf.check(folder_of(name), **options),
    card=lambda name: read_card(str(FOLDER / name)),
    reads=READS.get,
)


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


ADAPTERS = provider_of(Path(__file__).parents[1] / "adapters" / "weights")
