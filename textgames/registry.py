"""Registering games, with Gymnasium and with PettingZoo, and making their environments by name."""

import importlib
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import pettingzoo

from textgames.environments.rules import ENVIRONMENT_SETTINGS, ONE_SEAT_SETTINGS, game_settings, load_game, make_game
from textgames.importing import from_here
from textgames.names import did_you_mean
from textgames.tsmg import TSMG

if TYPE_CHECKING:
    from textgames.environments.aec import TextAECEnv
    from textgames.environments.parallel import TextParallelEnv

_IDS: list[str] = []


def register(id: str, game: str | type[TSMG[Any]], **settings: Any) -> None:
    """Register a game: after this one line every form of environment can be made by name.

    Args:
        id: the environment's id, ``"MyGame-v0"``.
        game: the game's class, or ``"module:Class"`` so that its module is only imported when it is first made.
        **settings: settings that differ from the game's own defaults, and the environment's: ``max_steps``,
            ``format_penalty``, ``invalid_action``; for a game of several players ``opponents``, who play inside the
            Gymnasium environment (``"random"``).

    A class that is defined again under its name, by a cell of a notebook or a reloaded module, replaces the one before.
    A ValueError if the id is taken by another game or none that Gymnasium accepts, the game is no game, or one of its
    settings is called like one of its environments'.
    """
    if not isinstance(id, str):
        raise ValueError(f"an id is a text such as 'MyGame-v0', got {id!r}")
    named = isinstance(game, str) and ":" in game
    if not (named or isinstance(game, TSMG) or (isinstance(game, type) and issubclass(game, TSMG))):
        raise ValueError(f"a game is a class of textgames.TSMG, or 'module:Class' of one, got {game!r}")
    kwargs = {"game": game, **settings}
    if isinstance(game, type):
        game_settings(game)
    if id in gym.registry:
        before = gym.registry[id].kwargs
        _shared_game.cache_clear()  # "module:Class" may be another class by now, too
        if id in _IDS and before == kwargs:
            return  # the same line run again
        if id not in _IDS or not _defined_again(game, before["game"]):
            raise ValueError(f"the id {id!r} is already registered; choose another one, such as the next version of it")
        for registry in (gym.registry, pettingzoo.parallel_registry, pettingzoo.aec_registry):
            registry.pop(id, None)
    try:
        gym.register(
            id=id,
            entry_point="textgames.environments.solo:TextGameEnv",
            vector_entry_point="textgames.environments.vector:TextVectorEnv",
            kwargs=kwargs,
            # the environment refuses wrong calls itself; wrappers that check them again would double its time
            order_enforce=False,
            disable_env_checker=True,
        )
    except gym.error.Error as error:
        raise ValueError(f"an id is a text such as 'MyGame-v0', got {id!r}: {error}") from error
    everybody = _without_seat(kwargs)
    pettingzoo.register("parallel", id, entry_point="textgames.environments.parallel:TextParallelEnv", kwargs=everybody)
    pettingzoo.register("aec", id, entry_point="textgames.environments.aec:TextAECEnv", kwargs=everybody)
    if id not in _IDS:
        _IDS.append(id)


def _defined_again(game: str | type[TSMG[Any]], before: str | type[TSMG[Any]]) -> bool:
    if isinstance(before, str):
        try:
            load_game(before)
        except (ImportError, AttributeError):
            return True
    if isinstance(game, str) or isinstance(before, str):
        return False
    one, other = (each if isinstance(each, type) else type(each) for each in (game, before))
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def registered_ids() -> tuple[str, ...]:
    """Return the ids of all games that were registered here, in order."""
    return tuple(_IDS)


def settings_of(id: str) -> dict[str, Any]:
    """Return what an id was registered with: ``"game"`` and the settings that differ from the defaults.

    The id may be ``"my_module:MyGame-v0"``, which imports the module that registers it, as in Gymnasium; an ImportError
    if that fails, and a ValueError that names the nearest id if there is none.
    """
    if not isinstance(id, str):
        raise ValueError(f"an id is a text such as 'TextSnake-v0', got {id!r}: textgames.register(id, Game) makes one")
    module, separator, plain = id.rpartition(":")
    if separator:
        try:
            with from_here():
                importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"the game {id!r} can't be imported: {error}", name=error.name) from error
        except Exception as error:
            raise ImportError(f"the game {id!r} can't be imported: {type(error).__name__}: {error}") from error
        id = plain
    if id not in _IDS:
        raise ValueError(
            f"no game is registered as {id!r}; there are {', '.join(_IDS)}{did_you_mean(id, _IDS)} "
            "(a game of your own: textgames.register(id, GameClass))"
        )
    return dict(gym.registry[id].kwargs)


def parallel_env(id: str, **kwargs: Any) -> "TextParallelEnv":
    """Make the PettingZoo ParallelEnv of an id: ``parallel_env("TextSnake-v0", num_players=2)``."""
    from textgames.environments.parallel import TextParallelEnv

    return TextParallelEnv(**{**_without_seat(settings_of(id)), **kwargs})


def aec_env(id: str, **kwargs: Any) -> "TextAECEnv":
    """Make the PettingZoo AECEnv of an id, in which the players are asked one after the other."""
    from textgames.environments.aec import TextAECEnv

    return TextAECEnv(**{**_without_seat(settings_of(id)), **kwargs})


def _without_seat(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in ONE_SEAT_SETTINGS}


def game_of(id: str, **kwargs: Any) -> TSMG[Any]:
    """Build the game of an id, without an environment around it; environment settings in ``kwargs`` are left out."""
    settings = {**settings_of(id), **kwargs}
    game = settings.pop("game")
    return make_game(game, {name: value for name, value in settings.items() if name not in ENVIRONMENT_SETTINGS})


def shared_game(id: str, kwargs: Mapping[str, Any]) -> TSMG[Any]:
    """Return the game that :func:`game_of` builds, one object for equal settings: a game keeps no episode."""
    try:
        return _shared_game(id, **kwargs)
    except TypeError:  # a setting that is a list is no key; what was wrong otherwise is said again
        return game_of(id, **kwargs)


@lru_cache(maxsize=256, typed=True)  # typed, since 1 and True are equal and mean different settings
def _shared_game(id: str, **kwargs: Any) -> TSMG[Any]:
    return game_of(id, **kwargs)
