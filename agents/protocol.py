"""The protocol of an episode: what an unreadable response leads to, and whether prompts list the legal moves.

A run has one protocol, and results of two are never ranked together: with ``default`` an agent that answers nothing
plays the first action all the time, with ``random`` it is the random player.
"""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from textgames.environments.rules import InvalidAction

LEGAL_ONLY, TOOLS = "legal-only", "tools"

INVALID = ("random", "default", "forfeit", "retry")

PROTOCOLS = (*INVALID, LEGAL_ONLY, TOOLS)
"""The protocols; ``retry`` may say how often, ``retry:3``.

``random``: a uniformly random legal action of the episode's own stream is executed (evaluation). ``default``: the first
legal action (the paper's, and training). ``forfeit``: the player's episode ends as a loss. ``retry``: the player is
told what was wrong and answers again, and forfeits when its last answer can't be read either. ``legal-only``: language
models can write nothing but legal answers; decisions that don't list their actions are as in ``random``. ``tools``:
language models act by calling a tool (:mod:`agents.models.tools`); other answers are unreadable, and as in ``random``.
"""

OF_MODELS = {"legal_only": LEGAL_ONLY, "tools": TOOLS}
"""``{attribute of a language model's player: the protocol that it plays by if it is true}``."""

UNLISTED = "unlisted"
OBSERVE = ("text", "image", "both")
"""Form in which a player sees a state: the observation's text, a picture of what it may see, or both. A protocol that
shows pictures has it behind its name: ``random+image``."""

MOVES = ("listed", UNLISTED)
"""Whether prompts list the legal moves of the state."""

STANDARD = {"protocol": "random", "moves": "listed"}
"""The protocol and moves of an evaluation by default."""

SIDE_BY_SIDE = ("random", "retry", "forfeit", UNLISTED)
"""What ``--protocols all`` plays; :data:`UNLISTED` is the standard protocol with prompts that don't list the moves."""

RETRIES, MOST_RETRIES = 2, 20


class Protocol(NamedTuple):
    """Treatment of an unreadable response: the environment's ``invalid_action``, after so many more answers; and
    what is observed, one of :data:`OBSERVE`."""

    invalid_action: "InvalidAction"
    retries: int = 0
    observe: str = "text"


def read_protocol(name: str) -> Protocol:
    """Read the name of a protocol; a ValueError if there is none of that name, or not as many retries."""
    rule, plus, observe = name.partition("+")
    kind, separator, count = rule.partition(":")
    if kind not in PROTOCOLS or (separator and kind != "retry"):
        raise ValueError(
            f"protocol must be one of {', '.join(PROTOCOLS)} or retry:K, got {name!r}{_near(rule, PROTOCOLS)}"
        )
    if plus and (observe not in OBSERVE[1:] or kind not in INVALID):
        raise ValueError(f"+image and +both go with the protocols {', '.join(INVALID)}, got {name!r}")
    observe = observe or OBSERVE[0]
    if kind in (LEGAL_ONLY, TOOLS):
        return Protocol("random")
    if kind != "retry":
        return Protocol(kind, 0, observe)  # type: ignore[arg-type]  # the names are those of InvalidAction
    if not separator:
        return Protocol("forfeit", RETRIES, observe)
    if not (count.isascii() and count.isdigit() and 1 <= int(count[:9]) <= MOST_RETRIES):
        raise ValueError(f"retry:K gives 1 to {MOST_RETRIES} more answers, got {name!r}")
    return Protocol("forfeit", int(count), observe)


def read_protocols(names: str) -> str:
    """Return the one spelling of several protocols with commas; ``all`` stands for :data:`SIDE_BY_SIDE`."""
    asked = SIDE_BY_SIDE if names == "all" else [name.strip() for name in names.split(",")]
    known = (*PROTOCOLS, UNLISTED)
    for name in asked:
        if name.partition("+")[0].partition(":")[0] not in known:
            raise ValueError(
                f"protocols are all, or several of {', '.join(known)} and retry:K with commas, got {name!r}"
                f"{_near(name, known)}"
            )
    found = list(dict.fromkeys(name if name == UNLISTED else same_protocol(name) for name in asked))
    if len(found) < 2:
        raise ValueError(f"several protocols stand side by side: all, or such as random,retry,forfeit; got {names!r}")
    return ",".join(found)


def same_protocol(name: str) -> str:
    """Return the one spelling of a protocol, by which runs are compared: ``retry`` for ``retry:2``."""
    retries = read_protocol(name).retries
    rule, plus, observe = name.partition("+")
    return (rule if not retries else "retry" if retries == RETRIES else f"retry:{retries}") + plus + observe


def observing(name: str, observe: str) -> str:
    """Return the name of a protocol with what it shows; a ValueError if it says otherwise, or shows text alone."""
    rule, plus, shown = name.partition("+")
    if plus and shown != observe:
        raise ValueError(f"observe = {observe} contradicts the protocol {name!r}, which has its own: leave one out")
    return same_protocol(rule if observe == OBSERVE[0] else f"{rule}+{observe}")


def check_moves(name: str) -> str:
    """Return the word for the moves of prompts, or raise a ``ValueError`` for one that isn't known."""
    if name not in MOVES:
        raise ValueError(f"moves must be {' or '.join(MOVES)}, got {name!r}{_near(name, MOVES)}")
    return name


def answers_at_most(name: str) -> int:
    """Return how many answers a decision may take by a protocol."""
    return 1 + read_protocol(name).retries


def _near(name: str, known: tuple[str, ...]) -> str:
    from textgames.names import did_you_mean  # the help of commands starts up without the games

    return did_you_mean(name, known)
