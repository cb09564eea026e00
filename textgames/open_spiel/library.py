"""Loading games of the library, with errors for people."""

from functools import cache
from typing import Any

from textgames.extras import install_command
from textgames.names import did_you_mean
from textgames.settings import MOST, check_whole

Key = tuple[str, tuple[tuple[str, Any], ...]]
"""A game of the library: its name, and its parameters in order of their names."""


def library() -> Any:
    """Return the module ``pyspiel``, or raise ModuleNotFoundError with the command that installs it."""
    try:
        import pyspiel
    except ModuleNotFoundError:
        sentence = f"OpenSpiel's games need the package open_spiel: {install_command('openspiel')}"
        raise ModuleNotFoundError(sentence, name="pyspiel") from None
    return pyspiel


@cache
def load(name: str, parameters: tuple[tuple[str, Any], ...]) -> Any:
    """Return the library's game; a ValueError if there is none with these parameters, or it can't be played here."""
    pyspiel = library()
    known = {kind.short_name: kind for kind in pyspiel.registered_games()}
    if name not in known:
        raise ValueError(
            f"OpenSpiel has no game {name!r}{did_you_mean(name, known)}; it has {', '.join(sorted(known))}"
        )
    accepted = sorted(known[name].parameter_specification)
    for parameter, value in parameters:
        if isinstance(value, int) and not isinstance(value, bool):  # the library itself takes any, and all the memory
            check_whole(parameter, value, -MOST)
        if parameter not in accepted:
            near = did_you_mean(parameter, accepted)
            raise ValueError(
                f"OpenSpiel's {name} has no parameter {parameter!r}{near}; it has {', '.join(accepted) or 'none'}"
            )
    try:
        game = pyspiel.load_game(name, dict(parameters))
    except (pyspiel.SpielError, TypeError) as error:
        raise ValueError(f"OpenSpiel can't load {name} with {dict(parameters)}: {error}") from None
    kind = game.get_type()
    if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(f"{name} draws its chances inside the library, from no seed of ours, so it can't be repeated")
    if kind.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
        raise ValueError(f"{name} is a mean-field game: it has no players that could be asked one by one")
    if not (kind.provides_observation_string or kind.provides_information_state_string):
        raise ValueError(f"{name} has no text that a player could read")
    return game
