"""The provider ``gguf:PATH``: models in llama.cpp's format, run in this process by transformers; and ``smollm2``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.models.base import NotLoaded
from agents.models.hf import unloaded
from agents.models.local.loading import smollm2
from agents.models.local.loading.gguf import check_file, converted, digest_of
from agents.models.provider import Provider
from textgames.extras import Packages

if TYPE_CHECKING:
    from agents.models.local.transformers import TransformersModel


def folder_of(name_or_path: str) -> str:
    """Return the folder in Hugging Face format that a file was converted into: now, if it wasn't before.

    Raises:
        ValueError, OSError: there is no such file, it can't be fetched, or not be converted.
        ModuleNotFoundError: a package is missing; the message has the command.
    """
    if name_or_path == smollm2.NAME:
        return str(smollm2.folder())
    file = Path(name_or_path).expanduser()
    return str(converted(file, digest_of(file)))


def load(
    name_or_path: str,
    *,
    dtype: str = "auto",
    device: str = "auto",
    adapter: str | None = None,
    max_batch_tokens: int | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    thinking_budget: int | None = None,
) -> "TransformersModel":
    """Load a model; the options are those of ``TransformersModel.from_pretrained``, which needs torch.

    ``dtype`` ``"auto"`` is bfloat16 on a GPU and on processors that multiply it by instructions of their own
    (AVX512-BF16, AMX, ARM's), elsewhere float32.
    """
    from agents.models.local.transformers import TransformersModel

    return TransformersModel.from_pretrained(
        folder_of(name_or_path),
        dtype=dtype,
        device=device,
        adapter=adapter,
        max_batch_tokens=max_batch_tokens,
        name=name_or_path,
        chat_template_kwargs=chat_template_kwargs,
        thinking_budget=thinking_budget,
    )


def check(name_or_path: str, **options: Any) -> NotLoaded:
    """Refuse a file that isn't one, before it is fetched or converted."""
    if name_or_path != smollm2.NAME:
        check_file(Path(name_or_path).expanduser())
    return unloaded(name_or_path, **options)


PROVIDER = Provider(
    load,
    description="a model in GGUF format in this process; smollm2 is SmolLM2-135M-Instruct, fetched once",
    example="./model.gguf",
    takes="PATH",
    models={smollm2.NAME: smollm2.NAME},
    folder=folder_of,
    check=check,
    fetches=lambda name: smollm2.fetches() if name == smollm2.NAME else None,
    missing=Packages(("torch", "transformers", "gguf"), "smollm2"),
)
