"""The provider ``hf:PATH_OR_REPO``: causal models in Hugging Face format, run in this process by transformers."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agents.models.answers import CLOSED_BY_A_BUDGET
from agents.models.base import NotLoaded
from agents.models.local.loading.adapters import base_of, check_peft, find_place, of_a_base
from agents.models.local.loading.card import Card, read_card
from agents.models.provider import Provider, check_source, fetched_by, find_model
from textgames.extras import Packages

if TYPE_CHECKING:
    from agents.models.local.transformers import TransformersModel

MOST_BASES = 8  # adapters that may stand on each other until they count as a circle


def loader(folder_of: Callable[[str], str], context_length: int | None = None) -> Callable[..., "TransformersModel"]:
    """Return the ``make`` of a provider whose models are found by ``folder_of(name)``, such as a folder here."""

    def load_named(
        name: str,
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
        PROVIDER.check_packages(name)
        from agents.models.local.transformers import TransformersModel

        return TransformersModel.from_pretrained(
            folder_of(name),
            dtype=dtype,
            device=device,
            revision=revision,
            adapter=adapter,
            trust_remote_code=trust_remote_code,
            name=name,
            context_length=context_length,
            max_batch_tokens=max_batch_tokens,
            chat_template_kwargs=chat_template_kwargs,
            thinking_budget=thinking_budget,
        )

    return load_named


def unloaded(
    name: str, *, dtype: str = "auto", device: str = "auto", thinking_budget: int | None = None, **others: Any
) -> NotLoaded:
    """Return the stand-in for a model of this process until it is loaded; a ValueError for a wrong dtype or device."""
    if (dtype, device) != ("auto", "auto"):
        from agents.models.local.loading.load import pick_device, pick_dtype

        pick_dtype(dtype, pick_device(device))
    return NotLoaded(name, lambda reasons: None if thinking_budget is None else CLOSED_BY_A_BUDGET)


def check(path_or_repo: str, *, adapter: str | None = None, **options: Any) -> NotLoaded:
    """Refuse a model that is known to be wrong, or whose base is, before it is loaded."""
    base = base_of(find_place(path_or_repo))
    if base is not None:
        try:
            check_source(base)
        except (OSError, ValueError) as error:
            raise of_a_base(path_or_repo, error) from None
    if adapter is not None or base is not None:
        check_peft(adapter or path_or_repo)
    return unloaded(path_or_repo, **options)


def fetches(path_or_repo: str) -> str | None:
    """Return the name on the hub that a model, or the last base below an adapter, is fetched by."""
    for _ in range(MOST_BASES):
        try:
            folder = find_place(path_or_repo)
            base = base_of(folder)
            found = None if base is None else find_model(base)
        except (OSError, ValueError):  # not there, or no model's folder: loading reports it
            return None
        if not folder.is_dir():
            return path_or_repo
        if base is None or (found is not None and found[0].fetches is not fetches):
            return base and fetched_by(base)
        path_or_repo = base if found is None else found[1]
    return path_or_repo  # a circle, which fails when it is loaded


def card_of(path_or_repo: str, *, adapter: str | None = None) -> Card | None:
    """Return the card of an adapter, or else of the model below it."""
    return (None if adapter is None else read_card(adapter)) or read_card(path_or_repo)


PROVIDER = Provider(
    loader(str),
    description="a Hugging Face model in this process",
    example="Qwen/Qwen2.5-0.5B-Instruct",
    takes="PATH_OR_REPO",
    folder=str,  # as it is
    missing=Packages(("torch", "transformers"), "local"),
    check=check,
    card=card_of,
    fetches=fetches,
)
