"""Where models come from: a provider is one :class:`Provider` in a file of its own, and one registered name.

The spec ``NAME:MODEL`` is a model of the provider ``NAME``. The options of a provider are the parameters of the class
or function that makes its models, so they are written, typed and explained in one place. A provider's module imports
what it is about (torch, an API client) only when it makes a model, because lists of agents read all of these modules.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from agents.models.base import AsyncLanguageModel, LanguageModel

ENTRY_POINT_GROUP = "textbench.providers"
"""Packages add providers under this group of entry points: ``mine = "my_package:MINE"``."""


@dataclass(frozen=True)
class Provider:
    """How to make the models of one provider.

    Attributes:
        make: ``make(model, **options) -> model``, a class or a function. Its further parameters are the provider's
            options, explained in its docstring.
        description: what its models are, in one line.
        example: a model that ``NAME:`` could be followed by.
        takes: what stands for the model's name in lists.
        models: ``{spec: model}`` of models that are known without ``NAME:``; a second spec of one is an alias.
        missing: says what has to be done before its models can run here; ``None`` when they can.
        trained_mode: ``trained_mode(model, **options)``, the response mode that a model was trained in, or ``None``.
    """

    make: Callable[..., LanguageModel | AsyncLanguageModel]
    description: str
    example: str
    takes: str = "MODEL"
    models: Mapping[str, str] = field(default_factory=dict)
    missing: Callable[[], str | None] = lambda: None
    trained_mode: Callable[..., str | None] = lambda model: None

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options that :attr:`make` takes."""
        return options_of(self.make, arguments=1)


_PROVIDERS: dict[str, Provider | str] = {
    "embedded": "agents.models.embedded:PROVIDER",
    "hf": "agents.models.hf:PROVIDER",
    "openai": "agents.models.openai:PROVIDER",
    "vllm": "agents.models.vllm:PROVIDER",
}


def register_provider(name: str, provider: Provider | str) -> None:
    """Let ``name:MODEL`` be a model of a provider.

    Args:
        name: one word.
        provider: the provider, or ``"module:ATTRIBUTE"`` of it, which is imported when somebody asks for it.

    Raises:
        ValueError: the name is another provider's, or can't stand before a colon.
    """
    if not name.isidentifier():
        raise ValueError(f"a provider's name is one word, as in NAME:MODEL, got {name!r}")
    if _PROVIDERS.setdefault(name, provider) != provider:
        raise ValueError(f"there is a provider {name!r} already; choose another name")


def providers() -> dict[str, Provider]:
    """All providers by name: those of this project, then registered ones, then those of installed packages."""
    found = {name: _imported(provider) for name, provider in _PROVIDERS.items()}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        found.setdefault(entry.name, _of_package(entry))
    return found


def _imported(provider: Provider | str) -> Provider:
    if isinstance(provider, Provider):
        return provider
    module, _, attribute = provider.partition(":")
    imported: Provider = getattr(import_module(module), attribute)
    return imported


def _of_package(entry: EntryPoint) -> Provider:
    """An installed package's provider. One that is broken must not keep the others from playing: it says so itself."""
    try:
        provider = entry.load()
        if isinstance(provider, Provider):
            return provider
        wrong = f"{entry.value} is a {type(provider).__name__} and no agents.models.provider.Provider"
    except (ImportError, AttributeError) as error:
        wrong = f"{entry.value} can't be imported: {error}"

    def refuse(model: str) -> LanguageModel:
        raise ValueError(f"the registered provider {entry.name!r} doesn't work: {wrong}")

    return Provider(refuse, f"from {entry.value}", "MODEL", missing=lambda: wrong)


def find_model(spec: str) -> tuple[Provider, str] | None:
    """The provider that a spec names and its model's name; ``None`` for a spec that isn't a model's.

    Raises:
        ValueError: the provider's name alone.
    """
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


def options_of(make: Callable[..., Any], *, arguments: int = 0) -> tuple[str, ...]:
    """The options of a class or function that makes a model or a player: its named parameters.

    Args:
        make: the class or function.
        arguments: how many of its first parameters aren't options.
    """
    try:
        parameters = list(inspect.signature(make).parameters.values())[arguments:]
    except ValueError:  # some built-in types have no signature
        return ()
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(one.name for one in parameters if one.kind in by_name)
