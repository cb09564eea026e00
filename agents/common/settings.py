"""Settings: what a command, a run or a training takes, declared once, as the fields of a pydantic dataclass.

:func:`option`, :func:`switch` and :func:`place` declare a field with its line of help and its bounds. Its flag, its
line in ``--help``, what it accepts and the sentence about a wrong value follow from that: :class:`Parser` reads a
command line, :func:`checked` values from anywhere. :func:`part` puts one class of settings into another.
"""

import re
import sys
from argparse import SUPPRESS, Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import cleandoc, get_annotations
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar, cast, dataclass_transform, get_args, get_origin

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic import dataclasses as pydantic
from pydantic_core import PydanticUndefined

from agents.common.refusals import accepted, shown

REQUIRED: Any = PydanticUndefined
"""The default of a field that has to be given."""

NAMES_OF_ONE = frozenset({"--agent", "--scenario", "--config"})
"""Some commands take several of these. If one takes a single one, a second name is refused, and of other options the
last one counts."""

T = TypeVar("T")


@dataclass(frozen=True)
class Flag:
    """How a field stands on a command line.

    Attributes:
        metavar: stands for its value in ``--help``; a field without one stands in files alone.
        text: its line of help.
        flag: ``--in``, if its name doesn't make it; empty of a place.
        alone: the value of the flag without a value; ``None`` if it needs one.
        choices: returns the accepted texts, of a field whose type isn't a ``Literal`` of them.
        words: whether one flag takes several values: ``--scenario A B``.
        apart: the flags of an equal ``apart`` exclude each other.
        needs: flags without all of which this one changes nothing.
        heading: of the flag in ``--help``.
        names, texts: of a part: which of its settings are taken from everywhere, and which from the command line alone.
        marks: what the owner of the settings says of a field, such as ``counts``.
    """

    metavar: str
    text: str
    flag: str | None = None
    alone: str | None = None
    choices: Callable[[], Sequence[str]] | None = None
    words: bool = False
    apart: str = ""
    needs: tuple[str, ...] = ()
    heading: str = ""
    names: tuple[str, ...] | None = None
    texts: Mapping[str, str] | None = None
    marks: frozenset[str] = frozenset()


class Setting(NamedTuple):
    """A field of a class of settings."""

    name: str
    type: Any
    default: Any
    about: Flag

    @property
    def many(self) -> bool:
        return get_origin(self.type) is tuple

    @property
    def switch(self) -> bool:
        return bool in (self.type, *get_args(self.type))

    @property
    def literals(self) -> tuple[str, ...]:
        """The accepted texts, if its type lists them."""
        kinds = (self.type, *get_args(self.type))
        return next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())

    @property
    def flag(self) -> str:
        """The flag, such as ``--max-cost``; lists stand in the singular: ``--agent``."""
        named = self.name.removesuffix("s") if self.many else self.name
        return f"--{named}".replace("_", "-") if self.about.flag is None else self.about.flag

    @property
    def help(self) -> str:
        number = isinstance(self.default, int | float) and not self.switch
        return f"{self.about.text} (default {self.default:g})" if number else self.about.text


@dataclass_transform(kw_only_default=True, frozen_default=True)
def settings(cls: type[T]) -> type[T]:
    """Make a class of settings: immutable, checked when made, its fields given by name."""
    config = ConfigDict(extra="forbid", allow_inf_nan=False)
    made: Any = pydantic.dataclass(frozen=True, kw_only=True, config=config)(cls)
    return cast(type[T], made)


def option(
    default: Any,
    metavar: str,
    text: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    marks: str = "",
    **about: Any,
) -> Any:
    """Declare a field with a flag; ``about`` are attributes of :class:`Flag`."""
    bounds: dict[str, Any] = {"ge": ge, "gt": gt, "le": le}
    field = Field(default, description=text, **{name: one for name, one in bounds.items() if one is not None})
    field.metadata.append(Flag(metavar, text, marks=frozenset(marks.split()), **about))
    return field


def switch(text: str, **about: Any) -> Any:
    """Declare a field that is true if its flag is given."""
    return option(False, "BOOL", text, **about)


def place(metavar: str, text: str, default: Any = REQUIRED, **about: Any) -> Any:
    """Declare a field that stands on the command line without a flag."""
    return option(default, metavar, text, flag="", **about)


def part(cls: type, names: Sequence[str] | None = None, **texts: str) -> Any:
    """Declare a field that holds other settings.

    Args:
        cls: their class.
        names: those that are taken; all if it isn't given.
        texts: more of them, which stand on the command line alone, with their lines of help.
    """
    field = Field(default_factory=cls)
    taken = tuple(fields_of(cls)) if names is None else tuple(names)
    field.metadata.append(Flag("", "", names=taken, texts=texts))
    return field


@cache
def fields_of(cls: type) -> dict[str, Setting]:
    """Return ``{name: setting}`` of a class: its own, and then those of the classes above it."""
    fields: Mapping[str, Any] = cls.__pydantic_fields__  # type: ignore[attr-defined]
    names = dict.fromkeys(name for base in cls.__mro__ for name in get_annotations(base))
    found = {}
    for name in names:
        for about in fields[name].metadata if name in fields else ():
            if isinstance(about, Flag):
                found[name] = Setting(name, fields[name].annotation, fields[name].default, about)
    return found


@cache
def schema_of(cls: type) -> dict[str, Any]:
    """Return the JSON Schema of a class of settings."""
    return TypeAdapter(cls).json_schema()


def checked(
    cls: type[T], values: Mapping[str, Any], called: Mapping[str, str], refusal: Callable[[str], Exception]
) -> T:
    """Make settings of values, among which texts of numbers become numbers.

    Args:
        cls: the class of settings.
        values: by name.
        called: what to call each of them in an error; by its name if it has none.
        refusal: makes the error of a value that isn't accepted.
    """

    kind: Any = cls  # mypy takes no class for hashable

    def refuse(name: str, value: Any) -> Exception:
        about = schema_of(kind)["properties"][name]
        return refusal(f"{called.get(name, name)} must be {accepted(about.get('items', about))}, got {shown(value)}")

    for name, setting in fields_of(kind).items():
        if isinstance(values.get(name), bool) and not setting.switch:  # pydantic would take true for 1
            raise refuse(name, values[name])
    try:
        return cls(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        if first["type"] == "value_error":
            raise refusal(": ".join(filter(None, [called.get(name, name), str(first["ctx"]["error"])]))) from None
        raise refuse(name, first["input"]) from None


class Parser(ArgumentParser):
    """Reads a class of settings. Errors are one sentence with the name that may have been meant, and exit code 2.

    If the class has ``daily``, ``{heading: flags and places}``, ``--help`` shows these, and ``--help all`` the rest.
    Its ``renamed`` are flags that had other names; its ``more_help(words)`` ends the help, and its ``unknown(word)`` is
    advice on a word that it doesn't take.
    """

    def __init__(self, cls: type, prog: str, epilog: str | None = None) -> None:
        super().__init__(
            prog=prog,
            description=cleandoc(cls.__doc__ or ""),
            epilog=epilog,
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )
        self.cls, self.given = cls, list[str]()
        self.daily: Mapping[str, Sequence[str]] = getattr(cls, "daily", {})
        self.add_argument("-h", "--help", action=_Help, nargs="?", metavar="all", help=SUPPRESS, default=SUPPRESS)
        self.settings: dict[str, Setting] = {}
        """By their places in what is parsed: ``options.agents`` is the setting ``agents`` of the part ``options``."""
        self.parts: dict[str, type] = {}
        groups: dict[str, Any] = {}
        for name, one in fields_of(cls).items():
            if one.about.names is None:
                self._add(name, one, groups)
                continue
            self.parts[name] = one.type
            inside = fields_of(one.type)
            for inner in [*one.about.names, *(texts := one.about.texts or {})]:
                text = texts.get(inner, inside[inner].about.text)
                own = inside[inner]._replace(about=replace(inside[inner].about, text=text))
                self._add(f"{name}.{inner}", own._replace(default=None) if inner in texts else own, groups)
            if (file := getattr(one.type, "file", "")) and one.about.names:
                example = option(None, "FILE", f"read options from a TOML file: {file}")
                self._add(f"{name}.config", Setting("config", str, None, example.metadata[-1]), groups)

    def _add(self, dest: str, one: Setting, groups: dict[str, Any]) -> None:
        about = one.about
        if not about.metavar:
            return
        self.settings[dest] = one
        target: Any = self
        if about.heading:
            target = groups.setdefault(about.heading, None) or self.add_argument_group(about.heading)
            groups[about.heading] = target
        if about.apart:
            target = groups.setdefault(about.apart, None) or self.add_mutually_exclusive_group()
            groups[about.apart] = target
        words: dict[str, Any] = {"help": one.help, "default": SUPPRESS}
        if one.switch:
            target.add_argument(one.flag, dest=dest, action="store_true", **words)
            return
        words |= {"metavar": about.metavar}
        if choices := about.choices() if about.choices else one.literals:
            words["choices"] = choices
        if about.flag == "":
            needed = one.default is REQUIRED
            nargs = ("+" if needed else "*") if one.many else None if needed else "?"
            self.add_argument(dest, nargs=nargs, **words | {"default": None})
            return
        words |= {"nargs": "?", "const": about.alone} if about.alone is not None else {}
        words |= {"nargs": "+"} if about.words else {}
        action = "extend" if about.words else "append"
        target.add_argument(one.flag, dest=dest, action=action, required=one.default is REQUIRED, **words)

    def read(self, words: Sequence[str], refusal: Callable[[str], Exception] = ValueError) -> Any:
        """Return the settings that a command line gives.

        Raises:
            SystemExit: help was asked for, or the words don't fit; told on the terminal.
            ValueError: or what ``refusal`` makes: a value isn't accepted.
        """
        self.given = [*words]
        before = self.given[: self.given.index("--")] if "--" in self.given else self.given
        flags = {word.partition("=")[0] for word in before if word.startswith("--")}
        for flag in flags & (renamed := getattr(self.cls, "renamed", {})).keys():
            self.error(f"{flag} is called {renamed[flag]}")
        for one in self.settings.values():
            if one.flag in flags and one.about.needs and not flags & {*one.about.needs}:
                self.error(f"{one.flag} changes nothing without {' or '.join(one.about.needs)}")
        found = vars(self.parse_args(words))
        values: dict[str, Any] = {name: {} for name in self.parts}
        called: dict[str, str] = {}
        for dest, value in ((dest, value) for dest, value in found.items() if value not in (None, [])):
            part, _, name = dest.rpartition(".")
            (values[part] if part else values)[name] = self._of_one(self.settings[dest], value)
            called[name] = self.settings[dest].flag or self.settings[dest].about.metavar
        for name, cls in self.parts.items():
            if read := getattr(cls, "read", None):
                values[name] = read(values[name], fields_of(self.cls)[name].about.names)
            else:
                values[name] = checked(cls, values[name], called, refusal)
        return checked(self.cls, values, called, refusal)

    def _of_one(self, one: Setting, value: Any) -> Any:
        if one.many or not isinstance(value, list):
            return value
        if one.flag in NAMES_OF_ONE and value.count(value[0]) < len(value):
            second = next(each for each in value if each != value[0])
            self.error(f"{one.flag} takes one value and was given {value[0]!r} and {second!r}: name one")
        return value[-1]

    def format_help(self) -> str:
        """Return the help, with the settings under the headings of ``daily`` if there are any."""
        if more := getattr(self.cls, "more_help", None):
            self.epilog = "\n\n".join(filter(None, [more(self.given), self.epilog]))
        if not self.daily:
            return super().format_help()
        formatter = self._get_formatter()
        names = {name: one for one in self._actions for name in one.option_strings or (str(one.metavar),)}
        rest = sum(action.help is not SUPPRESS for action in self._actions) - sum(map(len, self.daily.values()))
        places = [f"[{one.metavar}]" if one.nargs else str(one.metavar) for one in self._get_positional_actions()]
        formatter.add_usage(" ".join(["%(prog)s [options]", *places]), self._actions, [])
        formatter.add_text(self.description)
        for heading, flags in self.daily.items():
            formatter.start_section(heading)
            formatter.add_arguments([names[name] for name in flags])
            formatter.end_section()
        formatter.add_text(f"{rest} more options: {self.prog} --help all")
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _value_too_many(self, word: str) -> str:
        """Return the option that may be repeated and behind whose value a word stands that belongs to no option."""
        at = self.given.index(word) if not word.startswith("-") and word in self.given else 0
        before = [one.partition("=")[0] for one in self.given[:at] if one.startswith("--")]
        several = [one.flag for one in self.settings.values() if one.many]
        return before[-1] if before and before[-1] in several else ""

    def error(self, message: str) -> NoReturn:
        """Print what was wrong, and end with exit code 2."""
        from textgames.names import did_you_mean  # here, since --help can do without gymnasium

        known = [name for action in self._actions for name in action.option_strings]
        strange = [word for word in self.given if word.startswith("--") and word.partition("=")[0] not in known]
        if "invalid choice" in message and strange:
            message = f"unrecognized arguments: {strange[0]}"  # the value of an option that isn't one was no choice
        if message.startswith("unrecognized arguments: "):
            word = message.split(": ", 1)[1].split()[0]
            takers = (
                [] if word.startswith("-") else [f"{one} {word}" for one in ("--agent", "--scenario") if one in known]
            )
            near = f": write {' or '.join(takers)}" if takers else did_you_mean(word.partition("=")[0], known)
            advice = (self.cls.unknown(word) if hasattr(self.cls, "unknown") else "") or near
            wrong = (
                f"there is no option {word!r}" if word.startswith("-") else f"{word!r} stands where an option is wanted"
            )
            message = f"{wrong}{advice}"
            if flag := self._value_too_many(word):
                message = f"{flag} takes one value, and {word!r} is another; repeat it: {flag} ... {flag} {word}"
        elif choice := re.fullmatch(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message):
            flag, given, names = choice[1], choice[2], choice[3].replace("'", "")
            wrong = f"{flag} can't be {given!r}" if flag.startswith("-") else f"there is no {given!r}"
            message = f"{wrong}{did_you_mean(given, names.split(', '))}; accepted: {names}"
        message = re.sub(r"^argument (\S+): not allowed with argument (\S+)$", r"\2 and \1 exclude each other", message)
        message = re.sub(r"^argument (\S+): expected one argument$", r"\1 takes a value, and none is given", message)
        name = "textbench" if self.prog.startswith("textbench") else "error"
        self.exit(2, f"{name}: {message} (see {self.prog} --help)\n")


class _Help(Action):
    """Prints the help: the options of every day, or ``all``."""

    def __call__(self, parser: Any, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        if values not in (None, "all"):
            parser.error(f"{option_string} takes nothing or all, got {values!r}")
        if values == "all":
            parser.daily = {}
        parser.print_help()
        parser.exit()


def read_words(cls: type[T], words: Sequence[str] | None, prog: str) -> T:
    """Return the settings of a command line that is no command of ``textbench``; a wrong one ends the process."""
    parser = Parser(cls, prog)
    try:
        made: T = parser.read(sys.argv[1:] if words is None else words)
    except ValueError as error:
        parser.error(str(error))
    return made
