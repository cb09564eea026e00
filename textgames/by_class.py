"""Tables of what is registered for games, by ``"module:Class"``, so that no game is imported before it is used."""

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def class_key(cls: type | str) -> str:
    """What a table has a class under, which may be given as it stands there."""
    return cls if isinstance(cls, str) else f"{cls.__module__}:{cls.__qualname__}"


def by_class(table: Mapping[str, T], cls: type) -> T | None:
    """What a table has for a class, or else for the nearest base class of it that it has."""
    for base in cls.__mro__:
        # by the module that defines the class, or by the package that it is imported from
        for module in (base.__module__, base.__module__.rpartition(".")[0]):
            if (found := table.get(f"{module}:{base.__qualname__}")) is not None:
                return found
    return None
