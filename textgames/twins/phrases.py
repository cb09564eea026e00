"""A text in other words, and back: phrases with slots, a pair for everything that a game says.

A phrase is a pair of templates with the same slots: ``"Holes: {at:cell*}"`` and ``"Broken floor at {at}"``. A text is
read as a sequence of phrases, each of which ends where a line or a sentence does; a sentence that no phrase covers is
refused, so nothing of the original is left over by accident. As a phrase has its slots on both sides and every kind of
slot is one to one, the other text holds exactly what the first one does: :meth:`Phrasebook.back` gives the original
again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class UnknownTextError(ValueError):
    """A text that the phrases don't cover."""


class Kind(NamedTuple):
    """What may stand in a slot: a pattern on either side, and the way from one to the other."""

    own: str  # a regular expression without groups that are kept, of what the original says
    twin: str  # the same of what the twin says
    to_twin: Callable[[str], str]  # what the twin says for it
    to_own: Callable[[str], str]  # the inverse of ``to_twin``


NUMBER = Kind(r"[-+]?\d+(?:\.\d+)?", r"[-+]?\d+(?:\.\d+)?", str, str)


def words(pairs: Mapping[str, str]) -> Kind:
    """Translate words for words, ``{own: twin}``; a ValueError if two of them have become one."""
    back = {twin: own for own, twin in pairs.items()}
    if len(back) != len(pairs):
        raise ValueError(f"a vocabulary gives two words the same name: {dict(pairs)!r}")
    # the longest first: "red" would be found in "red wine"
    own, twin = [
        "(?:" + "|".join(re.escape(word) for word in sorted(known, key=len, reverse=True)) + ")"
        for known in (pairs, back)
    ]
    return Kind(own, twin, pairs.__getitem__, back.__getitem__)


def several(kind: Kind, between: str, none: tuple[str, str] = ("", ""), order: Sequence[str] = ()) -> Kind:
    """Return some of a kind with ``between`` between them, or a word for none: ``(own, twin)``; empty if there is none.

    If the original always lists them in one ``order`` of its own, the twin does so in another one: by the alphabet.
    """

    def over(
        element: str, to: Callable[[str], str], empty: tuple[str, str], place: Callable[[str], Any]
    ) -> Callable[[str], str]:
        every = re.compile(element)

        def say(text: str) -> str:
            said = list(map(to, every.findall(text)))
            return empty[1] if text == empty[0] else between.join(sorted(said, key=place) if order else said)

        return say

    def pattern(element: str, empty: str) -> str:
        some = f"{element}(?:{between}{element})*"
        return f"(?:{re.escape(empty)}|{some})" if empty else some

    return Kind(
        pattern(kind.own, none[0]),
        pattern(kind.twin, none[1]),
        over(kind.own, kind.to_twin, none, by_alphabet),
        over(kind.twin, kind.to_own, (none[1], none[0]), {own: at for at, own in enumerate(order)}.get),
    )


def amounts(factor: int, start: int) -> Kind:
    """Return whole numbers ``n`` in another unit, as ``factor * n + start``."""

    def to_own(text: str) -> str:
        own, rest = divmod(int(text) - start, factor)
        if rest:
            raise UnknownTextError(f"{text} is none of {start}, {start + factor}, {start + 2 * factor}, ...")
        return str(own)

    return Kind(r"-?\d+", r"-?\d+", lambda text: str(factor * int(text) + start), to_own)


def by_alphabet(name: str) -> list[tuple[int, int, str]]:
    """Return the place of a name among others; numbers are sorted by their size."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


def tally(stroke: str) -> Kind:
    """Return a number with as many strokes behind it, ``"3 |||"``, told as that many other strokes and the number."""

    def to_twin(text: str) -> str:
        count = int(text.split()[0])
        return f"{stroke * count}{' ' * bool(count)}({count})"

    def to_own(text: str) -> str:
        count = int(text[text.index("(") + 1 : -1])
        return f"{count} {'|' * count}".rstrip()

    return Kind(r"\d+(?: \|+)?", rf"(?:(?:{re.escape(stroke)})+ )?\(\d+\)", to_twin, to_own)


_SLOT = re.compile(r"\{(\w+)(?::(\w+[*+]?))?\}")


class Template:
    """A text with slots, ``"{name:kind}"``, to be found in a text and to be filled.

    A slot that names no kind has the one of ``kinds_of``, ``{slot: its kind}`` of the other side, as ``slots`` here.
    """

    def __init__(self, text: str, kinds_of: Mapping[str, str] | None = None) -> None:
        parts = _SLOT.split(text)
        self._literals = parts[::3]
        kinds = kinds_of or {}
        self._names = parts[1::3]
        self.slots = {name: kind or kinds.get(name, name) for name, kind in zip(self._names, parts[2::3], strict=True)}

    @property
    def repeats(self) -> bool:
        """Whether a slot stands in it twice; such a text can be filled, but not read."""
        return len(self.slots) < len(self._names)

    def pattern(self, patterns: Mapping[str, str], *, keep: bool = True) -> str:
        """Return a regular expression of the text, ``{kind: pattern}`` in its slots; groups if they are kept."""
        found = re.escape(self._literals[0])
        for name, literal in zip(self._names, self._literals[1:], strict=True):
            group = f"?P<{name}>" if keep else "?:"
            found += f"({group}{patterns[self.slots[name]]}){re.escape(literal)}"
        return found

    def fill(self, values: Mapping[str, str]) -> str:
        filled = [self._literals[0]]
        for name, literal in zip(self._names, self._literals[1:], strict=True):
            filled += (values[name], literal)
        return "".join(filled)


class Phrase:
    """A pair of templates: what the original says, and what the twin says in its place.

    The slots of the original's template name their kinds; the twin's has the same ones, and may leave some out with
    ``both_ways=False``. A ValueError if they differ, or a kind doesn't exist.
    """

    def __init__(self, own: str, twin: str, kinds: Mapping[str, Kind], *, both_ways: bool = True) -> None:
        self._own = Template(own)
        self._twin = Template(twin, self._own.slots)
        missing = set(self._own.slots) - set(self._twin.slots) if both_ways else set()
        unknown = set(self._twin.slots) - set(self._own.slots) or set(self._own.slots.values()) - set(kinds)
        if missing or unknown:
            raise ValueError(f"the slots of {own!r} and {twin!r} don't fit: {', '.join(sorted(missing | unknown))}")
        self._kinds = {name: kinds[kind] for name, kind in self._own.slots.items()}
        own_patterns = {name: kind.own for name, kind in kinds.items()}
        twin_patterns = {name: kind.twin for name, kind in kinds.items()}
        if self._own.repeats or (both_ways and self._twin.repeats):
            raise ValueError(f"a slot stands twice in {own!r} or {twin!r}")
        self.own = self._own.pattern(own_patterns)
        self.twin = self._twin.pattern(twin_patterns) if both_ways else ""
        self.kind = Kind(
            self._own.pattern(own_patterns, keep=False),
            self._twin.pattern(twin_patterns, keep=False) if both_ways else "",
            self.to_twin,
            self.to_own,
        )
        """The phrase as a kind, to be a part of others."""

    def to_twin(self, text: str) -> str:
        return self.say_twin(_whole(self.own, text))

    def to_own(self, text: str) -> str:
        return self.say_own(_whole(self.twin, text))

    def say_twin(self, found: "re.Match[str]") -> str:
        return self._twin.fill({name: self._kinds[name].to_twin(found[name]) for name in self._twin.slots})

    def say_own(self, found: "re.Match[str]") -> str:
        return self._own.fill({name: self._kinds[name].to_own(found[name]) for name in self._own.slots})


def _whole(pattern: str, text: str) -> "re.Match[str]":
    found = re.fullmatch(pattern, text)
    if found is None:
        raise UnknownTextError(f"nothing is said like {text!r}")
    return found


_END = r"(?=[ \n]|\Z)"
_GAP = re.compile(r"[ \n]*")
_Reader = tuple["re.Pattern[str]", Callable[["re.Match[str]"], str]]


class Phrasebook:
    """All phrases of one kind of text.

    If several fit, the longest is meant; without ``both_ways``, texts can't be put back.
    """

    def __init__(self, phrases: Sequence[Phrase], *, both_ways: bool = True) -> None:
        self._own: list[_Reader] = [(re.compile(each.own + _END), each.say_twin) for each in phrases]
        self._twin: list[_Reader] = []
        if both_ways:
            self._twin = [(re.compile(each.twin + _END), each.say_own) for each in phrases]

    def translate(self, text: str) -> list[str]:
        """Return the lines of the twin's text, or raise UnknownTextError for a sentence that is none of the phrases."""
        return _read(text, self._own)

    def back(self, text: str) -> list[str]:
        """Return the lines of the original of a twin's text; errors as of :meth:`translate`."""
        return _read(text, self._twin)


def _read(text: str, readers: Sequence[_Reader]) -> list[str]:
    lines, at = [""], 0
    while at < len(text):
        best: tuple[re.Match[str], Callable[[re.Match[str]], str]] | None = None
        for pattern, say in readers:
            found = pattern.match(text, at)
            if found is not None and found.end() > at and (best is None or found.end() > best[0].end()):
                best = found, say
        if best is None:
            shown = text[at:].partition("\n")[0]
            raise UnknownTextError(f"no phrase of the vocabulary says {shown!r}")
        lines[-1] += best[1](best[0])
        gap = _GAP.match(text, best[0].end())
        assert gap is not None  # it may be empty
        if "\n" in gap[0]:
            lines.append("")
        else:
            lines[-1] += gap[0]
        at = gap.end()
    return lines
