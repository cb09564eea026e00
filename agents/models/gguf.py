"""The provider ``gguf:PATH``: models in llama.cpp's format, run in this process by transformers; and ``smollm2``."""

from pathlib import Path
from typing import Any

from agents.models.base import NotLoaded
from agents.models.hf import loader, unloaded
from agents.models.local.loading import smollm2
from agents.models.local.loading.gguf import check_file, converted, digest_of
from agents.models.provider import Provider
from textgames.extras import Packages


def folder_of(name_or_path: str) -> str:
    """Return the folder in Hugging Face format that a file was converted into: now, if it wasn't before."""
    if name_or_path == smollm2.NAME:
        return str(smollm2.folder())
    file = Path(name_or_path).expanduser()
    return str(converted(file, digest_of(file)))


def check(name_or_path: str, **options: Any) -> NotLoaded:
    """Refuse a file that isn't one, before it is fetched or converted."""
    if name_or_path != smollm2.NAME:
        check_file(Path(name_or_path).expanduser())
    return unloaded(name_or_path, **options)


PROVIDER = Provider(
    loader(folder_of),
    description="a model in GGUF format in this process; smollm2 is SmolLM2-135M-Instruct, fetched once",
    example="./model.gguf",
    takes="PATH",
    models={smollm2.NAME: smollm2.NAME},
    folder=folder_of,
    check=check,
    fetches=lambda name: smollm2.fetches() if name == smollm2.NAME else None,
    missing=Packages(("torch", "transformers", "gguf"), "smollm2"),
)
