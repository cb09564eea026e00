"""The provider ``hf:PATH_OR_REPO``: causal models in Hugging Face format, run in this process by transformers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agents.models.local.loading.card import Card, read_card
from agents.models.provider import Provider
from textgames.extras import Packages

if TYPE_CHECKING:
    from agents.models.local.transformers import TransformersModel


def load(
    path_or_repo: str,
    *,
    dtype: str = "auto",
    device: str = "auto",
    revision: str | None = None,
    adapter: str | None = None,
    trust_remote_code: bool = False,
    max_batch_tokens: int | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    thinking_budget: int | None = None,
) -> "TransformersModel":
    """Load a model; the options are those of ``TransformersModel.from_pretrained``, which needs torch."""
    from agents.models.local.transformers import TransformersModel

    return TransformersModel.from_pretrained(
        path_or_repo,
        dtype=dtype,
        device=device,
        revision=revision,
        adapter=adapter,
        trust_remote_code=trust_remote_code,
        max_batch_tokens=max_batch_tokens,
        chat_template_kwargs=chat_template_kwargs,
        thinking_budget=thinking_budget,
    )


def card_of(path_or_repo: str, *, adapter: str | None = None) -> Card | None:
    """How the weights were asked when they were trained; an adapter's card goes before that of the model below it."""
    return (None if adapter is None else read_card(adapter)) or read_card(path_or_repo)


PROVIDER = Provider(
    load,
    description="a Hugging Face model in this process",
    example="Qwen/Qwen2.5-0.5B-Instruct",
    takes="PATH_OR_REPO",
    folder=str,  # as it is
    missing=Packages(("torch", "transformers"), "local"),
    card=card_of,
)
