"""The protocol of an episode: what an unreadable response leads to, and whether prompts list the legal moves.

Scores of different protocols say different things: with ``default`` an agent that answers nothing plays the first
action all the time, which is good in some games; with ``random`` it is exactly the random player. So a run has one
protocol, and results of two are never ranked together.
"""

from typing import NamedTuple

from textgames.environments.rules import InvalidAction
from textgames.names import did_you_mean

PROTOCOLS = ("random", "default", "forfeit", "retry")
"""The protocols; ``retry`` may say how often, ``retry:3``.

``random``: a uniformly random legal action of the episode's own stream is executed (evaluation). ``default``: the first
legal action (the paper's, and training). ``forfeit``: the player's episode ends as a loss. ``retry``: the player is told
what was wrong and answers again, and forfeits when its last answer can't be read either.
"""

MOVES = ("listed", "unlisted")
"""Whether prompts list the legal moves of the state."""

RETRIES, MOST_RETRIES = 2, 20


class Protocol(NamedTuple):
    """What becomes of an unreadable response.

    Attributes:
        invalid_action: what the environment does with it, when there are no more answers.
        retries: how many more answers there may be before that.
    """

    invalid_action: InvalidAction
    retries: int = 0


def read_protocol(name: str) -> Protocol:
    """The protocol of a name.

    Raises:
        ValueError: there is none of that name, or not as many retries.
    """
    kind, separator, count = name.partition(":")
    if kind not in PROTOCOLS or (separator and kind != "retry"):
        near = did_you_mean(name, PROTOCOLS)
        raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)} or retry:K, got {name!r}{near}")
    if kind != "retry":
        return Protocol(kind)  # type: ignore[arg-type]  # the names are those of InvalidAction
    if not separator:
        return Protocol("forfeit", RETRIES)
    if not (count.isascii() and count.isdigit() and 1 <= int(count[:9]) <= MOST_RETRIES):
        raise ValueError(f"retry:K gives 1 to {MOST_RETRIES} more answers, got {name!r}")
    return Protocol("forfeit", int(count))


def check_moves(name: str) -> None:
    """Raise the ``ValueError`` of a word for the moves of prompts that isn't known."""
    if name not in MOVES:
        raise ValueError(f"moves must be {' or '.join(MOVES)}, got {name!r}{did_you_mean(name, MOVES)}")


def same_protocol(name: str) -> str:
    """One spelling of each protocol, for comparing: ``retry`` for ``retry:2``."""
    return "retry" if name == f"retry:{RETRIES}" else name
