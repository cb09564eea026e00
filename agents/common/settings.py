"""Settings: what a command, a run or a training takes, declared once, as the fields of a frozen dataclass.

:func:`option`, :func:`switch` and :func:`place` declare a field with its line of help and its bounds. Its flag, its
line in ``--help``, what it accepts and the sentence about a wrong value follow from that: :class:`Parser` reads a
command line, :func:`checked` values from anywhere. :func:`part` puts one class of settings into another. pydantic
checks numbers and tables; it is imported when one is given, as its import takes longer than a ``--help``.
"""

import ast
import re
import sys
from argparse import SUPPRESS, Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from inspect import cleandoc
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NoReturn, TypeVar, Union, dataclass_transform, get_args, get_origin

from agents.common.refusals import typed

REQUIRED: Any = MISSING
"""The default of a field that has to be given."""

NAMES_OF_ONE = frozenset({"--agent", "--scenario", "--config"})
"""Options of which a command that takes one refuses a second name; of other options the last one counts."""

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """A field of a class of settings, and how it stands on a command line."""

    metavar: str = ""  #: stands for its value in ``--help``; a field without one stands in files alone
    text: str = ""  #: its line of help
    named: str | None = None  #: its flag, if its name doesn't make it; empty of a place
    alone: str | None = None  #: the value of the flag without a value; ``None`` if it needs one
    choices: Callable[[], Sequence[str]] | None = None  #: returns the accepted texts that aren't in a ``Literal``
    words: bool = False  #: one flag takes several values: ``--scenario A B``
    apart: str = ""  #: the flags of an equal ``apart`` exclude each other
    needs: tuple[str, ...] = ()  #: flags without all of which this one changes nothing
    names: tuple[str, ...] | None = None  #: of a part: its settings that are taken from everywhere
    texts: Mapping[str, str] = field(default_factory=dict)  #: of a part: those of the command line alone, with help
    marks: frozenset[str] = frozenset()  #: words of the settings' owner on the field, such as ``counts``
    reads: Callable[[Any], Any] | None = None  #: returns the one spelling of a value, or raises a ValueError
    bounds: Mapping[str, Any] = field(default_factory=dict)  #: ``ge``, ``gt`` and ``le`` of a number
    name: str = ""
    type: Any = str
    default: Any = None

    @property
    def many(self) -> bool:
        return get_origin(self.type) is tuple

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types that its value may be of."""
        return get_args(self.type) if get_origin(self.type) in (Union, UnionType) else (self.type,)

    @property
    def literals(self) -> tuple[Any, ...]:
        return tuple(each for kind in self.kinds if get_origin(kind) is Literal for each in get_args(kind))

    @property
    def switch(self) -> bool:
        return bool in self.kinds

    @property
    def flag(self) -> str:
        """The flag, such as ``--max-cost``; lists stand in the singular: ``--agent``."""
        called = self.name.removesuffix("s") if self.many else self.name
        return f"--{called}".replace("_", "-") if self.named is None else self.named

    def add_to(self, parser: Any, dest: str) -> None:
        """Add the setting to a parser or a group of one."""
        number = isinstance(self.default, int | float) and not self.switch
        text, needed = f"{self.text} (default {self.default:g})" if number else self.text, self.default is REQUIRED
        if self.switch:
            parser.add_argument(self.flag, dest=dest, action="store_true", default=SUPPRESS, help=text)
            return
        choices = self.choices() if self.choices else self.literals or None
        words = {"metavar": self.metavar, "help": text, "choices": choices}
        if self.named == "":
            nargs = ("+" if needed else "*") if self.many else None if needed else "?"
            parser.add_argument(dest, nargs=nargs, **words)
            return
        words |= {"nargs": "?", "const": self.alone} if self.alone is not None else {}
        words |= {"action": "extend", "nargs": "+"} if self.words else {"action": "append"}
        parser.add_argument(self.flag, dest=dest, required=needed, default=SUPPRESS, **words)

    def value_of(self, given: Any, called: str, refusal: Callable[[str], Exception]) -> Any:
        """Return the value that is kept of a given one, such as the number of a text."""
        try:
            if self.many and isinstance(given, list | tuple) and {str, *map(type, given)} <= {*get_args(self.type)}:
                return tuple(given)
            text = isinstance(given, str | bool | None) and (type(given) in self.kinds or given in self.literals)
            if text or self.names is not None:
                return given if self.reads is None or given is None else self.reads(given)
        except ValueError as error:
            raise refusal(f"{called}: {error}") from None
        return typed(called, given, self.type, refusal, self.bounds)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def settings(cls: type[T]) -> type[T]:
    """Make a class of settings: immutable, its fields given by name."""
    return dataclass(frozen=True, kw_only=True)(cls)


def option(default: Any, metavar: str, text: str = "", *, marks: str = "", **about: Any) -> Any:
    """Declare a field with a flag; without ``text`` the docstring below it is its line of help.

    ``about`` are its bounds ``ge``, ``gt`` and ``le``, and attributes of :class:`Setting`.
    """
    bounds: dict[str, Any] = {name: about.pop(name) for name in ("ge", "gt", "le") if name in about}
    setting = Setting(metavar, text, marks=frozenset(marks.split()), bounds=bounds, **about)
    return field(default=default, metadata={"setting": setting, **bounds})  # pydantic reads the bounds for a schema


def switch(text: str = "", **about: Any) -> Any:
    """Declare a field that is true if its flag is given."""
    return option(False, "BOOL", text, **about)


def place(metavar: str, text: str = "", default: Any = REQUIRED, **about: Any) -> Any:
    """Declare a field that stands on the command line without a flag."""
    return option(default, metavar, text, named="", **about)


def part(cls: type, names: Sequence[str] | None = None, **texts: str) -> Any:
    """Declare a field that holds settings of ``cls``: ``names`` of them, or all, and ``texts`` besides."""
    taken = tuple(fields_of(cls)) if names is None else tuple(names)
    return field(default_factory=cls, metadata={"setting": Setting(names=taken, texts=texts)})


@cache
def fields_of(cls: type[Any]) -> dict[str, Setting]:
    """Return ``{name: setting}``."""
    found = {
        one.name: replace(one.metadata["setting"], name=one.name, type=one.type, default=one.default)
        for one in fields(cls)
        if "setting" in one.metadata
    }
    told = _docstrings(cls) if any(one.metavar and not one.text for one in found.values()) else {}
    return {name: replace(one, text=one.text or told.get(name, "")) for name, one in found.items()}


def _docstrings(cls: type) -> dict[str, str]:
    """Return ``{field: docstring below it}`` in one line each. Its file is parsed once; inspect would do so twice."""
    tree = ast.parse(Path(str(sys.modules[cls.__module__].__file__)).read_text("utf-8"))
    (body,) = [each.body for each in tree.body if isinstance(each, ast.ClassDef) and each.name == cls.__name__]
    return {
        one.target.id: " ".join(below.value.value.split())
        for one, below in pairwise(body)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }


def checked(
    cls: type[T], values: Mapping[str, Any], called: Mapping[str, str], refusal: Callable[[str], Exception]
) -> T:
    """Make settings of values by name; texts of numbers become numbers. Errors name a value as ``called`` does."""
    kind: Any = cls
    made = dict(values)
    for name, one in fields_of(kind).items():
        if name in made:
            made[name] = one.value_of(made[name], called.get(name, name), refusal)
    return cls(**made)


class Parser(ArgumentParser):
    """Reads a class of settings. An error is one sentence and exit code 2.

    If the class has ``daily``, ``{heading: flags and places}``, ``--help`` shows these, and ``--help all`` the rest.
    Its ``more_help(words)`` ends the help, and its ``unknown(word)`` is advice on a word that it doesn't take.
    """

    def __init__(self, cls: type, prog: str, epilog: str | None = None) -> None:
        text, form = cleandoc(cls.__doc__ or ""), RawDescriptionHelpFormatter
        super().__init__(
            prog, description=text, epilog=epilog, formatter_class=form, allow_abbrev=False, add_help=False
        )
        self.cls, self.given = cls, list[str]()
        self.daily: Mapping[str, Sequence[str]] = getattr(cls, "daily", {})
        self.add_argument("-h", "--help", action=_Help, nargs="?", metavar="all", help=SUPPRESS, default=SUPPRESS)
        self.settings: dict[str, Setting] = {}
        """By their places in what is parsed: ``options.agents`` is the setting ``agents`` of the part ``options``."""
        self.parts = {name: one for name, one in fields_of(cls).items() if one.names is not None}
        for name, one in fields_of(cls).items():
            if one.names is None:
                self.settings[name] = one
                continue
            inside = fields_of(one.type)
            self.settings |= {f"{name}.{inner}": inside[inner] for inner in one.names}
            for inner, text in one.texts.items():
                self.settings[f"{name}.{inner}"] = replace(inside[inner], text=text, default=None)
            if one.names and (file := getattr(one.type, "file", "")):
                config = Setting("FILE", f"read options from a TOML file: {file}", name="config")
                self.settings[f"{name}.config"] = config
        self.settings = {dest: one for dest, one in self.settings.items() if one.metavar}
        apart = {one.apart for one in self.settings.values()} - {""}
        groups = {name: self.add_mutually_exclusive_group() for name in apart}
        for dest, one in self.settings.items():
            one.add_to(groups.get(one.apart, self), dest)

    def read(self, words: Sequence[str], refusal: Callable[[str], Exception] = ValueError) -> Any:
        """Return the settings of a command line; exit for ``--help`` or wrong words, raise for a wrong value."""
        self.given = [*words]
        before = self.given[: self.given.index("--")] if "--" in self.given else self.given
        flags = {word.partition("=")[0] for word in before if word.startswith("--")}
        for one in self.settings.values():
            if one.flag in flags and one.needs and not flags & {*one.needs}:
                self.error(f"{one.flag} changes nothing without {' or '.join(one.needs)}")
        values: dict[str, Any] = {name: {} for name in self.parts}
        called: dict[str, str] = {}
        for dest, value in vars(self.parse_args(words)).items():
            if value in (None, []):  # a place in which nothing stands
                continue
            one, (part, _, name) = self.settings[dest], dest.rpartition(".")
            called[name] = one.flag or one.metavar
            if isinstance(value, list) and not one.many:
                other = next((each for each in value if each != value[0]), None)
                if one.flag in NAMES_OF_ONE and other is not None:
                    self.error(f"{one.flag} takes one value and was given {value[0]!r} and {other!r}: name one")
                value = value[-1]
            (values[part] if part else values)[name] = value
        for name, one in self.parts.items():
            if read := getattr(one.type, "read", None):
                values[name] = read(values[name], one.names)
            else:
                values[name] = checked(one.type, values[name], called, refusal)
        return checked(self.cls, values, called, refusal)

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

    def error(self, message: str) -> NoReturn:
        """Print what was wrong, and end with exit code 2."""
        from textgames.names import did_you_mean  # here, since --help can do without gymnasium

        known = [name for action in self._actions for name in action.option_strings]
        strange = [word for word in self.given if word.startswith("--") and word.partition("=")[0] not in known]
        if "invalid choice" in message and strange:
            message = f"unrecognized arguments: {strange[0]}"  # the value of an option that isn't one was no choice
        if message.startswith("unrecognized arguments: "):
            word = message.split(": ", 1)[1].split()[0]
            if word.startswith("-"):
                wrong, near = f"there is no option {word!r}", did_you_mean(word.partition("=")[0], known)
            else:
                takers = [f"{flag} {word}" for flag in ("--agent", "--scenario") if flag in known]
                near = f": write {' or '.join(takers)}" if takers else ""
                wrong = f"{word!r} stands where an option is wanted"
            unknown = getattr(self.cls, "unknown", lambda word: "")
            message = f"{wrong}{unknown(word) or near}"
            at = self.given.index(word) if not word.startswith("-") and word in self.given else 0
            flag = ([""] + [one.partition("=")[0] for one in self.given[:at] if one.startswith("--")])[-1]
            if flag and flag in [one.flag for one in self.settings.values() if one.many]:  # places have none
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
    """Return the settings of a command line that is no command of ``textbench``; exit if it is wrong."""
    parser = Parser(cls, prog)
    try:
        made: T = parser.read(sys.argv[1:] if words is None else words)
    except ValueError as error:
        parser.error(str(error))
    return made
