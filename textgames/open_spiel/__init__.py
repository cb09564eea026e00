"""OpenSpiel's games as text games: ``textgames.openspiel("nim")``. Needs the extra ``openspiel``."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textgames.open_spiel.game import OpenSpiel


def openspiel(name: str, /, *, observation: str = "auto", **parameters: Any) -> "OpenSpiel":
    """Make a game of OpenSpiel: ``openspiel("kuhn_poker", players=3)``. Needs the extra ``openspiel``.

    Environments take it as it is: ``textgames.environments.parallel.TextParallelEnv(openspiel("nim"))``. By name they
    are made of the id ``OpenSpiel-v0``: ``textgames.parallel_env("OpenSpiel-v0", name="nim")``. Parameters are the
    library's own; ``observation`` and the errors are those of :class:`textgames.open_spiel.game.OpenSpiel`.
    """
    from textgames.open_spiel.game import OpenSpiel

    return OpenSpiel(name=name, parameters=parameters, observation=observation)
