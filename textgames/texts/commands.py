"""Actions that can't be listed: commands with typed, bounded fields, and what one player says to others.

::

    REVEAL = Command("reveal {x} {y}", x=range(8), y=range(8))
    REVEAL.read(" Reveal 3  4 ")     # "reveal 3 4"
    REVEAL.values("reveal 3 4")      # {"x": 3, "y": 4}

A game keeps its commands together in :class:`Commands` and hands its ``read_action``, ``sample_action`` and
``action_help`` on to them.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from numpy.random import Generator

from textgames.texts.actions import Unreadable, UnreadableReason, not_a_name

Value = int | str

MESSAGE_LENGTH = 300
"""The most characters of a message, unless a game says otherwise."""


class Field(Protocol):
    """A field of a command: what it takes, and how it is read."""

    pattern: str
    """The regular expression of what may be written, before it is checked; without groups."""
    help: str
    """What may be written, in a few words: ``"0 to 7"``."""

    def read(self, text: str) -> Value | None:
        """Return the value that a text gives; ``None`` if it is out of bounds."""

    def sample(self, rng: Generator) -> Value:
        """Return a value that the field takes, drawn at random."""


class Number:
    """A whole number of a range."""

    pattern = r"[+-]?\d{1,9}"

    def __init__(self, numbers: range) -> None:
        if not numbers:
            raise ValueError(f"a field needs at least one number, got {numbers}")
        self.numbers = numbers
        step = "" if numbers.step == 1 else f" in steps of {numbers.step}"
        self.help = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}{step}"

    def read(self, text: str) -> int | None:
        return int(text) if int(text) in self.numbers else None

    def sample(self, rng: Generator) -> int:
        return self.numbers[int(rng.integers(len(self.numbers)))]


class Word:
    """One word of a list, compared without regard to case; ``help`` is what to call them if there are many."""

    pattern = r"\S+"

    def __init__(self, words: Iterable[str], help: str = "") -> None:
        self.words = tuple(words)
        self._known = frozenset(self.words)
        for word in self.words:
            if not word or word != word.casefold() or word.split() != [word]:
                raise ValueError(f"the words of a field are lower case and without white space, got {word!r}")
        if not self.words:
            raise ValueError("a field needs at least one word")
        self.help = help or "|".join(self.words)

    def read(self, text: str) -> str | None:
        word = text.casefold()
        return word if word in self._known else None

    def sample(self, rng: Generator) -> str:
        return self.words[int(rng.integers(len(self.words)))]


class Message:
    """Free text for other players, kept to one clean line by :func:`quote`; the last field of its command.

    What is beyond ``max_length`` characters is cut off, and ``samples`` are what random players say.
    """

    pattern = r".*"

    def __init__(
        self,
        max_length: int = MESSAGE_LENGTH,
        speakers: Collection[str] = (),
        samples: Sequence[str] = ("hello", "I have nothing to say."),
    ) -> None:
        self.max_length, self.speakers, self.samples = max_length, tuple(speakers), tuple(samples)
        self.help = f"your message in one line, at most {max_length} characters"

    def read(self, text: str) -> str | None:
        return quote(text, self.max_length, self.speakers) or None

    def sample(self, rng: Generator) -> str:
        return quote(self.samples[int(rng.integers(len(self.samples)))], self.max_length, self.speakers)


_FIELD = re.compile(r"\{(\w+)\}")


class Command:
    """One form of action: words in lower case and fields such as ``{x}``, separated by white space.

    Each field of the template is given by its name: a ``range`` of whole numbers, a list of words, or a :class:`Field`
    such as :class:`Message`; a ValueError if one is missing or left over.
    """

    def __init__(self, template: str, **fields: "range | list[str] | tuple[str, ...] | Field") -> None:
        self.template = " ".join(template.split())
        names = _FIELD.findall(self.template)
        if sorted(names) != sorted(fields) or self.template != self.template.casefold():
            raise ValueError(
                f"the command {template!r} in lower case needs each of its fields {names} once, got {sorted(fields)}"
            )
        self.fields: dict[str, Field] = {name: _field(fields[name]) for name in names}
        pattern = r"\s+".join(
            f"(?P<{found[1]}>{self.fields[found[1]].pattern})" if (found := _FIELD.fullmatch(word)) else re.escape(word)
            for word in self.template.split()
        )
        self._pattern = re.compile(pattern, re.IGNORECASE | re.DOTALL)

    @property
    def help(self) -> str:
        """The form and what its fields may be: ``"reveal {x} {y} (x 0 to 7; y 0 to 7)"``."""
        told = "; ".join(f"{name} {field.help}" for name, field in self.fields.items())
        return f"{self.template} ({told})" if told else self.template

    def read(self, inside: str) -> str | Unreadable:
        """Return the action that a text names, ``"reveal 3 4"``; illegal if only a field is out of bounds."""
        found = self._pattern.fullmatch(inside.strip())
        if found is None:
            return not_a_name(inside)
        values = {name: field.read(found[name]) for name, field in self.fields.items()}
        if any(value is None for value in values.values()):
            return Unreadable(UnreadableReason.ILLEGAL, inside)
        return self.write(**{name: value for name, value in values.items() if value is not None})

    def write(self, **values: Value) -> str:
        return _FIELD.sub(lambda found: str(values[found[1]]), self.template)

    def values(self, action: str) -> dict[str, Value] | None:
        """Return ``{field: value}`` of an action that :meth:`read` returned; ``None`` for another command's."""
        found = self._pattern.fullmatch(action)
        if found is None or self.read(action) != action:
            return None
        return {
            name: int(found[name]) if isinstance(field, Number) else found[name] for name, field in self.fields.items()
        }

    def sample(self, rng: Generator) -> str:
        return self.write(**{name: field.sample(rng) for name, field in self.fields.items()})

    def __repr__(self) -> str:
        return f"Command({self.template!r})"


class Commands:
    """Several commands, of which an action is one."""

    def __init__(self, *commands: Command) -> None:
        self.commands = commands

    @property
    def help(self) -> str:
        return " or ".join(command.help for command in self.commands)

    def read(self, inside: str) -> str | Unreadable:
        """Read the text as the first command that it is a form of; see :meth:`Command.read`."""
        unreadable = not_a_name(inside)
        for command in self.commands:
            action = command.read(inside)
            if not isinstance(action, Unreadable):
                return action
            if action.reason is UnreadableReason.ILLEGAL:
                unreadable = action
        return unreadable

    def parse(self, action: str) -> tuple[Command, Mapping[str, Value]]:
        """Return the command and the values of an action that :meth:`read` returned, or raise ValueError."""
        for command in self.commands:
            values = command.values(action)
            if values is not None:
                return command, values
        raise ValueError(f"{action!r} is not an action of this game; accepted: {self.help}")

    def sample(self, rng: Generator) -> str:
        return self.commands[int(rng.integers(len(self.commands)))].sample(rng)


def _field(given: "range | list[str] | tuple[str, ...] | Field") -> Field:
    if isinstance(given, range):
        return Number(given)
    return Word(given) if isinstance(given, list | tuple) else given


# a message is read up to this many times its greatest length, so that the longest response costs next to nothing
_READ_AT_MOST = 10

_TAG = re.compile(r"<[^<>]*>")
_AROUND = r"[\s\])}*_`']*"
_COLONS = ":\u02d0\u0589\u05c3\u2236\ua789"  # the colon, and what looks like one in other scripts
_ASIDE = rf"(?:[(\[{{]\s?[^\s()\[\]{{}}]+\s?[)\]}}]{_AROUND})?"
_SPEAKER = r"(?:player|agent|speaker)[ _-]*\d+|system|user|assistant|moderator|narrator|game"


def quote(message: str, max_length: int = MESSAGE_LENGTH, speakers: Collection[str] = ()) -> str:
    """Return what a player said, as it may be shown to others: one line that can't be taken for anything but a
    quotation.

    Tags and angle brackets, control and invisible characters are taken out, and so are ``"player_1:"``, ``"system
    says:"`` and the like, with which a message would speak for another; ``speakers`` are more such names. Double
    quotation marks become single ones, and any run of white space becomes one space. Invisible characters of Unicode's
    category Cf leave no space behind, as a reader does not see that they part a name. What is beyond ``max_length`` is
    cut off.
    """
    # collapsed and cut before it is remembered, so that nothing long is kept either
    return _quoted(" ".join(message.split())[: _READ_AT_MOST * max_length], max_length, tuple(speakers))


@lru_cache(maxsize=1024)  # what was said is read, and then checked once more by the rules
def _quoted(message: str, max_length: int, speakers: tuple[str, ...]) -> str:
    if not message.isprintable():  # before it is normalised, or what they held apart would be composed the next time
        message = "".join(char for char in message if unicodedata.category(char) != "Cf")
    text = unicodedata.normalize("NFKC", message)
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    text = " ".join(text.split())[: _READ_AT_MOST * max_length]
    forged = _forged(speakers)
    before = None
    while before != text:  # what is taken out may have held apart the halves of another tag or name
        before = text
        text = forged.sub(" ", _TAG.sub(" ", text))
        text = " ".join(text.replace("<", " ").replace(">", " ").replace('"', "'").split())
    return text[:max_length].rstrip()


@lru_cache(maxsize=256)
def _forged(speakers: tuple[str, ...]) -> re.Pattern[str]:
    """Return what would speak for another: a name, perhaps in brackets or bold, perhaps "says", and a colon.

    One word in brackets may stand beside it: "player_1 (wolf) says:". No two repetitions of the pattern can match the
    same characters, so it takes time in proportion to the text.
    """
    names = "|".join([_SPEAKER, *map(re.escape, sorted(speakers, key=len, reverse=True))])
    says = rf"(?:(?:says?|said|speaks){_AROUND}{_ASIDE})?"
    return re.compile(rf"(?<!\w)(?:{names}){_AROUND}{_ASIDE}{says}[{_COLONS}]+", re.IGNORECASE)
