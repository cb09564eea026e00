"""A lenient reading of responses, which tells a wrong form from a wrong decision. It is never executed or ranked.

A response that the game reads is that action. Else the last sentence or line that names an action counts, if it names
one alone, which is legal:

* case, markup and punctuation are ignored: ``**Right**.`` is ``right``; but ``upset`` isn't ``up``, nor is ``up-to``;
* several names in it are none: neither ``right, right, down`` nor ``50 out of 100`` says which one is meant;
* of names that overlap the longer one counts: ``take 1 from a`` isn't ``1``;
* a name behind "not", "never", "instead of" or "rather than" is passed over: ``left, not right`` is ``left``;
* reasoning isn't the answer, and if there is an action tag, what stands behind the last one is;
* an action tag around a name that isn't legal stays illegal: its form is right.

Where actions can't be listed, up to :data:`MOST_WORDS` words that the game reads as an action are a name. What may be
speech is taken from an action tag alone.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from textgames.texts.actions import CLOSE_TAG, OPEN_TAG, Unreadable, UnreadableReason, behind_thoughts

if TYPE_CHECKING:
    from textgames.tsmg import TSMG, Action, Player

MOST_WORDS = 8

_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_END = re.compile(r"\n|(?<=[.!?])[*_`'\")\]]{0,3}\s")  # of a sentence or line; markup may stand behind the stop
_TAG = re.compile(r"<(/?)([^<>]*)>")
_DENIALS = ["not"], ["never"], ["instead", "of"], ["rather", "than"]
_NO_NAME = Unreadable(UnreadableReason.UNKNOWN_NAME)


def read_leniently(game: "TSMG[Any]", text: str, state: Any, player: "Player") -> "Action | None":
    """Return the legal action that a response names in whatever form; ``None`` if it names none.

    It takes time in proportion to the length of the response, and never raises for a string.
    """
    found = game.read(text, state, player)
    if not isinstance(found, Unreadable):
        return found
    if found.reason is UnreadableReason.ILLEGAL:
        return None
    text = text.casefold()
    answer = behind_thoughts(text)
    _, opened, inside = (text if answer is None else answer).rpartition(OPEN_TAG)
    if opened:  # also behind a <think> that is still open
        answer = inside.partition(CLOSE_TAG)[0]
    legal = game.legal_actions(state, player)
    if answer is None:
        return None
    if not legal and not game.bare_responses:
        said = game.read_action(answer, state, player) if opened else _NO_NAME
        return None if isinstance(said, Unreadable) else said
    forms = {**dict.fromkeys(_by_form(tuple(game.actions))), **_by_form(tuple(legal))}

    def named(words: Sequence[str]) -> "Action | Unreadable | None":
        form = " ".join(words)
        return forms.get(form, _NO_NAME) if legal else game.read_action(form, state, player)

    longest = max((form.count(" ") + 1 for form in forms), default=0) if legal else MOST_WORDS
    for sentence in reversed(_END.split(_without_markup(answer))):
        words, meant = _WORD.findall(sentence), set[str | None]()
        end = len(words)
        while end:
            for start in range(max(0, end - longest), end):  # longer names first
                if not isinstance(action := named(words[start:end]), Unreadable):
                    if not any(words[max(0, start - len(denial)) : start] == denial for denial in _DENIALS):
                        meant.add(action)
                    end = start
                    break
            else:
                end -= 1
        if meant:
            return meant.pop() if len(meant) == 1 else None
    return None


def _without_markup(text: str) -> str:
    """Return a text without its tags; one that is never closed, such as ``<right>``, is no markup."""
    closed = {name for slash, name in _TAG.findall(text) if slash}
    return _TAG.sub(lambda tag: " " if tag[1] or tag[2] in closed else tag[0], text)


@lru_cache(maxsize=1024)
def _by_form(names: Sequence[str]) -> Mapping[str, str | None]:
    """Return ``{form of a name: the name}``; ``None`` for several names that differ by case or punctuation alone."""
    found: dict[str, str | None] = {}
    for name in names:
        form = " ".join(_WORD.findall(name.casefold()))
        found[form] = None if form in found else name
    found.pop("", None)
    return found
