"""The action map's parser, one for all games: from a free-text response to an action's name, or the reason why not.

What counts (and nothing else does, no move is ever guessed):

* exactly one ``<action>NAME</action>`` in the response, whatever stands around it; or
* a response that is nothing but a name.

Reasoning isn't the answer: what stands before the last ``</think>`` doesn't count, and a response whose ``<think>`` is
still open at its end names no action. ``NAME`` is compared after ``strip`` and ``casefold``: ``" Up\\n"`` is ``up``,
``upset`` is not. Games whose actions can't be listed read what is inside the tag themselves.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

OPEN_TAG, CLOSE_TAG = "<action>", "</action>"
THINK, THOUGHT = "<think>", "</think>"


class UnreadableReason(StrEnum):
    """Why a response is invalid. The values are what results files and ``info["unreadable"]`` hold."""

    EMPTY = "empty"
    """Nothing but white space, in the response (behind its reasoning) or inside its action tag."""
    UNCLOSED_THINK = "unclosed_think"
    """Its ``<think>`` is never closed: all of it is reasoning, if no action is read."""
    NO_TAG = "no_tag"
    """No action tag, and the response as a whole is not a name."""
    UNCLOSED_TAG = "unclosed_tag"
    """Only half of a tag: typically a response cut off at the token limit."""
    SEVERAL_TAGS = "several_tags"
    """More than one action tag: which one is meant is not ours to say."""
    UNKNOWN_NAME = "unknown_name"
    """One well-formed tag, around something that is not the name of an action of this game."""
    ILLEGAL = "illegal"
    """A name of the game's, but not a legal action in this state."""


class Unreadable(NamedTuple):
    """The outcome of an invalid response: the reason, and the text inside the tag if there is one."""

    reason: UnreadableReason
    text: str = ""


def not_a_name(inside: str) -> Unreadable:
    """Return why the content of an action tag, or its white space, is not the name of an action."""
    return Unreadable(UnreadableReason.UNKNOWN_NAME if inside.strip() else UnreadableReason.EMPTY, inside)


class ActionNames(dict[str, str]):
    """``{name as written: action name}``; a ValueError for a name that stands there twice or can't be read."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__((name, name) for name in names)
        if len(self) != len(names):
            raise ValueError(f"a game has no action's name twice, got actions={names!r}")
        for name in names:
            if not isinstance(name, str):
                raise ValueError(f"action names are texts that a player can write, such as 'left', got {name!r}")
            if not name.isprintable() or name != name.strip().casefold() or not name or set("<>") & set(name):
                raise ValueError(f"action names are lower case, without surrounding space, '<' or '>', got {name!r}")

    def read(self, inside: str) -> str | Unreadable:
        """Return the name that a text is, in any case and with white space around it, or why it is none."""
        return self.get(inside) or self.get(inside.strip().casefold()) or not_a_name(inside)


def behind_thoughts(text: str) -> str | None:
    """Return all that follows a text's last ``</think>``; ``None`` if a ``<think>`` is open."""
    said = text.rpartition(THOUGHT)[2]
    return None if THINK in said else said


def parse_action(text: str, names: ActionNames | Sequence[str]) -> str | Unreadable:
    """Read the one action that a response names: one of ``names``, or :class:`Unreadable` with the reason.

    No string raises an error; names that no response could name raise ValueError.
    """
    if not isinstance(names, ActionNames):
        names = ActionNames(names)
    found = action_content(text)
    if isinstance(found, Unreadable):
        return found
    inside, bare = found
    name = names.read(inside)
    # the whole response is a name, or it lacks its tag
    return Unreadable(UnreadableReason.NO_TAG) if bare and isinstance(name, Unreadable) else name


def action_content(text: str) -> tuple[str, bool] | Unreadable:
    """Find the content of the one action tag of a response, or the response itself if it is one line without tags.

    Returns:
        The content, and whether it is the whole response, without a tag; or why there is none.
    """
    said = text
    if "think>" in text:  # one search for both tags, as this is called for every response of a batch
        said = text.rpartition(THOUGHT)[2]  # see `behind_thoughts`
        if THINK in said:
            return Unreadable(UnreadableReason.UNCLOSED_THINK)
    before, opened, rest = said.partition(OPEN_TAG)
    if not opened:
        stripped = said.strip()
        if not stripped:
            return Unreadable(UnreadableReason.EMPTY)
        if CLOSE_TAG in said:
            return Unreadable(UnreadableReason.UNCLOSED_TAG)
        # several lines or other tags are talk, whatever they say
        if "<" in stripped or ">" in stripped or "\n" in stripped:
            return Unreadable(UnreadableReason.NO_TAG)
        return stripped, True
    inside, closed, after = rest.partition(CLOSE_TAG)
    if not closed:
        return Unreadable(UnreadableReason.SEVERAL_TAGS if OPEN_TAG in rest else UnreadableReason.UNCLOSED_TAG)
    if OPEN_TAG in inside or CLOSE_TAG in before or (after and (OPEN_TAG in after or CLOSE_TAG in after)):
        return Unreadable(UnreadableReason.SEVERAL_TAGS)
    return inside, False
