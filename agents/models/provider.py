"""Where models come from: a provider is one :class:`Provider` in a file of its own, and one registered name.

The spec ``NAME:MODEL`` is a model of the provider ``NAME``. A provider's module imports its heavy packages (torch, an
API client) only when it makes a model, because lists of agents read all of these modules.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import EntryPoint
from pkgutil import resolve_name
from typing import Any, cast

from agents.models.base import AsyncLanguageModel, LanguageModel, NotLoaded
from agents.models.local.loading.card import Card
from textgames.extras import Packages
from textgames.plugins import installed
from textgames.settings import taken_by

ENTRY_POINT_GROUP = "textbench.providers"
"""Packages add providers under this group of entry points: ``mine = "my_package:MINE"``."""


@dataclass(frozen=True)
class Provider:
    """How to make the models of one provider.

    Attributes:
        make: ``make(model, **options) -> model``, a class or a function. Its further parameters are the provider's
            options, explained in its docstring.
        description: its models, in one line.
        example: a model that ``NAME:`` could be followed by.
        takes: the placeholder of the model's name in lists; empty if all of its models are in ``models``.
        models: ``{spec: model}`` of models that are known without ``NAME:``; a second spec of one is an alias.
        folder: ``folder(model)``, the weights in Hugging Face format, made first if they have to be; training and
            adapters load them from there. ``None`` if models have no such folder.
        missing: what has to be done before its models can run here; ``None`` when they can. If it is
            :class:`~textgames.extras.Packages`, that is reported before anything is fetched or loaded.
        check: ``check(model, **options)`` refuses what ``make`` would, as far as that is known without loading weights
            or asking a server. It returns the model if making it does neither, else one that is not loaded.
        card: ``card(model, **options)``, how a model was asked when it was trained, or ``None`` if it isn't known.
        reads: ``reads(model)``, the scenarios that a model has learnt to read; ``None`` for models that read any.
        fetches: ``fetches(model)``, what a hub or an index would be asked for before a model plays, or ``None``.
        paid: whether tokens may cost money: a limit on money then needs a price.
        price: ``price(model, **options)``, the list price if it is known here: ``input``, ``output`` and perhaps
            ``cached_input`` in US dollars per million tokens, and ``source``; else ``None``.
    """

    make: Callable[..., LanguageModel | AsyncLanguageModel]
    description: str
    example: str
    takes: str = "MODEL"
    models: Mapping[str, str] = field(default_factory=dict)
    folder: Callable[[str], str] | None = None
    missing: Callable[[], str | None] = lambda: None
    check: Callable[..., LanguageModel | AsyncLanguageModel] = NotLoaded
    card: Callable[..., Card | None] = lambda model: None
    reads: Callable[[str], tuple[str, ...] | None] = lambda model: None
    fetches: Callable[[str], str | None] = lambda model: None
    paid: bool = False
    price: Callable[..., Mapping[str, Any] | None] = lambda model: None

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The names of the options that :attr:`make` takes."""
        return tuple(taken_by(self.make, arguments=1).named)

    def check_packages(self, spec: str) -> None:
        """Raise a ModuleNotFoundError with the one command that installs what a model needs and isn't installed."""
        if isinstance(self.missing, Packages) and (missing := self.missing()) is not None:
            raise ModuleNotFoundError(f"{spec} needs {missing}")


_PROVIDERS: dict[str, Provider | str] = {
    "adapters": "agents.models.embedded:ADAPTERS",
    **{name: f"agents.models.{name}:PROVIDER" for name in ("embedded", "gguf", "hf", "litellm", "openai", "vllm")},
}


def register_provider(name: str, provider: Provider | str) -> None:
    """Let ``name:MODEL`` be a model of a provider; ``"module:ATTRIBUTE"`` is imported when it is first asked for. A
    ValueError if the name is another provider's, or can't stand before a colon."""
    if not name.isidentifier():
        raise ValueError(f"a provider's name is one word, as in NAME:MODEL, got {name!r}")
    if _PROVIDERS.setdefault(name, provider) != provider:
        raise ValueError(f"there is a provider {name!r} already; choose another name")


def providers() -> dict[str, Provider]:
    """Return all providers by name: those of this project, then registered ones, then those of installed packages."""
    found = {name: resolve_name(one) if isinstance(one, str) else one for name, one in _PROVIDERS.items()}
    for name, entry in installed(ENTRY_POINT_GROUP).items():
        found.setdefault(name, _of_package(entry))
    return found


def _of_package(entry: EntryPoint) -> Provider:
    """Return an installed package's provider. A broken one raises when it is asked for, and the others still work."""
    try:
        provider = entry.load()
        wrong = "" if isinstance(provider, Provider) else f"it is a {type(provider).__name__} and no Provider"
    except (ImportError, AttributeError) as error:
        wrong = f"it can't be imported: {error}"
    if not wrong:
        return cast(Provider, provider)

    def refuse(model: str) -> LanguageModel:
        raise ValueError(f"the registered provider {entry.name!r} ({entry.value}) doesn't work: {wrong}")

    return Provider(refuse, f"from {entry.value}", "MODEL", missing=lambda: wrong, check=refuse)


def find_model(spec: str) -> tuple[Provider, str] | None:
    """Return the provider that a spec names and its model's name; ``None`` if it names no provider, a ValueError if no
    model."""
    name, separator, model = spec.partition(":")
    known = providers()
    for provider in known.values():
        if spec in provider.models:
            return provider, provider.models[spec]
    if not separator or name not in known:
        return None
    if not model:
        raise ValueError(f"{spec!r} names no model; write {name}:{known[name].example}")
    return known[name], model


def model_folder(source: str) -> str:
    """Return the folder, in Hugging Face format, of a model's spec, fetched or converted first; any other source as it
    is.

    Specs name the same models here as for ``--agent``, so an adapter's ``base_model_name_or_path`` may be one of them
    and holds on every machine. A ValueError or OSError if it can't be had, a ModuleNotFoundError for a package.
    """
    provider, model = find_model(source) or (None, "")
    return source if provider is None or provider.folder is None else provider.folder(model)


def fetched_by(source: str) -> str | None:
    """Return what a model, or the base below an adapter, would fetch before it can play; ``None`` when it is here."""
    name, separator, model = source.partition(":")
    if separator and not model and name in providers():
        return None  # a provider without a model, which is an error when it is made
    provider, model = find_model(source) or (providers()["hf"], source)
    return provider.fetches(model)


def check_source(source: str) -> None:
    """Refuse a model that :func:`model_folder` would, in the same words, without fetching or converting anything."""
    provider, name = find_model(source) or (providers()["hf"], source)
    provider.check_packages(source)
    call_with(provider.check, {}, name)


def call_with(make: Callable[..., Any], options: Mapping[str, Any], *arguments: Any) -> Any:
    """Call a class or function with those of the options that are its own; a TypeError names what is missing."""
    own = taken_by(make, arguments=len(arguments))
    options = {name: value for name, value in options.items() if own.others or name in own.named}
    try:
        inspect.signature(make).bind(*arguments, **options)
    except TypeError as error:
        raise TypeError(f"can't be made from options alone: {error}; give those arguments defaults") from None
    return make(*arguments, **options)
