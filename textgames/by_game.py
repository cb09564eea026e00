"""What is registered of games by their classes: yardsticks, search players, vocabularies of twins, ladders."""

from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from textgames.tsmg import TSMG

Entry = TypeVar("Entry")


class ByGame(Generic[Entry]):
    """An entry for each class of games; both may also be ``"module:Class"``, imported when they are first used."""

    def __init__(self, entries: Mapping[str, Entry | str] | None = None) -> None:
        self.entries = dict(entries or {})

    def register(self, game: type[TSMG[Any]] | str, entry: Entry | str) -> None:
        """Give a game its entry; a TypeError if the game is no class, or the entry nothing that can be called."""
        if not (":" in game if isinstance(game, str) else isinstance(game, type)):
            raise TypeError(f"a game is given by its class, or as 'module:Class', got {game!r}")
        if not (":" in entry if isinstance(entry, str) else callable(entry) or isinstance(entry, Path)):
            raise TypeError(
                f"an entry for {game!r} must be a class or function, or 'module:name' of one, got {entry!r}"
            )
        self.entries[game if isinstance(game, str) else f"{game.__module__}:{game.__qualname__}"] = entry

    def of(self, game: TSMG[Any]) -> Entry | None:
        """Return the entry of a game's class, as :meth:`find` has it; a TypeError for what isn't a game."""
        if not isinstance(game, TSMG):
            raise TypeError(
                f"expected a game, got {game!r}: make one by textgames.game_of(id), or take an "
                "environment's, env.unwrapped.game"
            )
        return self.find(type(game))

    def find(self, game: type[TSMG[Any]]) -> Entry | None:
        """Return the entry of a class or its nearest base class; an ImportError if it can't be imported."""
        for cls in game.__mro__:
            # by the module that defines the class, or by the package that it is imported from
            for module in (cls.__module__, cls.__module__.rpartition(".")[0]):
                if (entry := self.entries.get(f"{module}:{cls.__qualname__}")) is not None:
                    try:
                        return _loaded(entry)
                    except ImportError as error:
                        reason = f"{entry!r}, registered for {cls.__name__}, can't be imported: {error}"
                        raise ImportError(reason) from None
        return None

    def __iter__(self) -> Iterator[Entry]:
        return map(_loaded, self.entries.values())


def table_of(folder: str, file: str | Path) -> Path:
    """Return where a game's table lies: one that ships in this folder, by its name, or a file; else a ValueError."""
    shipped = Path(str(files("textgames").joinpath(f"{folder}/{file}.toml")))
    path = shipped if isinstance(file, str) and shipped.is_file() else Path(file).absolute()
    if not path.is_file():
        raise ValueError(f"there is no file {str(file)!r} (looked for as {path}), nor does a table of this name ship")
    return path


def _loaded(entry: Entry | str) -> Entry:
    loaded: Entry = resolve_name(entry) if isinstance(entry, str) else entry
    return loaded
