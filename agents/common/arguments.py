"""Command lines of all packages: a parser whose errors are one sentence, and numbers with their ends."""

import re
import sys
from argparse import SUPPRESS, Action, ArgumentParser, ArgumentTypeError, Namespace
from argparse import _AppendAction as Repeated
from argparse import _StoreAction as Single
from collections.abc import Callable, Mapping, Sequence
from math import inf, nan
from typing import Any, NoReturn

NAMES_OF_ONE = frozenset({"--agent", "--scenario", "--config"})
"""Options of which some commands take several, so that a second value here would be lost without a word."""


class Parser(ArgumentParser):
    """A parser with one-sentence errors that name what may have been meant, exit code 2; options aren't abbreviated.

    If a command sets ``daily``, ``{heading: flags and names of places}``, ``--help`` shows these alone, ``--help all``
    all.
    """

    daily: Mapping[str, Sequence[str]] = {}

    def __init__(self, **told: Any):
        add_help = told.pop("add_help", True)
        super().__init__(**{"allow_abbrev": False, "add_help": False, **told})
        if add_help:
            self.add_argument("-h", "--help", action=_Help, nargs="?", metavar="all", help=SUPPRESS)
        self.register("action", None, _Named)  # None is what argparse calls an option that says no action
        self.given: Sequence[str] = ()
        self.named: dict[str, Any] = {}
        self.renamed: dict[str, str] = {}  # what options were called, and what they are called
        self._companions: dict[str, tuple[str, ...]] = {}

    def only_with(self, others: Sequence[str], *flags: str) -> None:
        """Refuse each of ``flags`` if none of ``others`` is given, as it would change nothing."""
        self._companions |= dict.fromkeys(flags, tuple(others))

    def format_help(self) -> str:
        """Format the help, with the options under the headings of ``daily`` if there are any."""
        if not self.daily:
            return super().format_help()
        formatter = self._get_formatter()
        names = {name: one for one in self._actions for name in one.option_strings or (str(one.metavar),)}
        more = sum(action.help is not SUPPRESS for action in self._actions) - sum(map(len, self.daily.values()))
        places = [f"[{one.metavar}]" if one.nargs else str(one.metavar) for one in self._get_positional_actions()]
        formatter.add_usage(" ".join(["%(prog)s [options]", *places]), self._actions, [])
        formatter.add_text(self.description)
        for heading, shown in self.daily.items():
            formatter.start_section(heading)
            formatter.add_arguments([names[name] for name in shown])
            formatter.end_section()
        formatter.add_text(f"{more} more options: {self.prog} --help all")
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Namespace, list[str]]:  # type: ignore[override]
        """Check the words that were given, then parse them as argparse does."""
        self.given, self.named = [*(sys.argv[1:] if args is None else args)], {}
        words = self.given[: self.given.index("--")] if "--" in self.given else self.given
        flags = {word.partition("=")[0] for word in words if word.startswith("--")}
        for flag in flags & self.renamed.keys():
            self.error(f"{flag} is called {self.renamed[flag]}")
        for flag in flags & self._companions.keys():
            if not flags & {*self._companions[flag]}:
                self.error(f"{flag} changes nothing without {' or '.join(self._companions[flag])}")
        return super().parse_known_args(self.given, namespace)

    def _option_before(self, word: str) -> str | None:
        """Return the option that may be repeated, after whose value a word stands that no option takes: ``--agent a
        WORD``."""
        if word.startswith("-") or word not in self.given:
            return None
        before = [one.partition("=")[0] for one in self.given[: self.given.index(word)] if one.startswith("--")]
        lists = [action for action in self._actions if isinstance(action, Repeated)]
        several = [name for action in lists for name in action.option_strings]
        return before[-1] if before and before[-1] in several else None

    def error(self, message: str) -> NoReturn:
        """Say what was wrong, and end with exit code 2."""
        from textgames.names import did_you_mean  # here, since --help can do without gymnasium

        known = [name for action in self._actions for name in action.option_strings]
        strange = [word for word in self.given if word.startswith("--") and word.partition("=")[0] not in known]
        if "invalid choice" in message and strange and self._subparsers is None:
            message = f"unrecognized arguments: {strange[0]}"  # the value of an option that isn't one was no choice
        if message.startswith("unrecognized arguments: "):
            flag = message.split(": ", 1)[1].split()[0]
            message = f"there is no option {flag!r}{did_you_mean(flag.partition('=')[0], known)}"
            if not flag.startswith("-"):
                message = f"{flag!r} stands where an option is wanted"
                takers = [name for name in ("--agent", "--scenario") if name in known]
                message += f": write {' or '.join(f'{name} {flag}' for name in takers)}" if takers else ""
            if (option := self._option_before(flag)) is not None:
                message = f"{option} takes one value, and {flag!r} is another; repeat it: {option} ... {option} {flag}"
        elif wrong := re.fullmatch(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message):
            names = wrong[3].replace("'", "")
            near = did_you_mean(wrong[2], names.split(", "))
            subject = f"{wrong[1]} can't be {wrong[2]!r}" if wrong[1].startswith("-") else f"there is no {wrong[2]!r}"
            message = f"{subject}{near}; accepted: {names}"
        message = re.sub(r"^argument (\S+): not allowed with argument (\S+)$", r"\2 and \1 exclude each other", message)
        # "argument --samples: must be a whole number", as all other sentences begin
        message = re.sub(r"^argument (\S+): must ", r"\1 must ", message)
        message = re.sub(r"^argument (\S+): expected one argument$", r"\1 takes a value, and none is given", message)
        name = "textbench" if self.prog.startswith("textbench") else "error"
        self.exit(2, f"{name}: {message} (see {self.prog} --help)\n")


class _Help(Action):
    """Prints the help: the daily options, or ``all``."""

    def __call__(self, parser: Any, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        if values not in (None, "all"):
            parser.error(f"{option_string} takes nothing or all, got {values!r}")
        if values == "all":
            parser.daily = {}
        parser.print_help()
        parser.exit()


class _Named(Single):
    """Keeps a value, and refuses another one for one of :data:`NAMES_OF_ONE`."""

    def __call__(self, parser: Any, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        if not NAMES_OF_ONE.isdisjoint(self.option_strings):
            first = parser.named.setdefault(self.dest, values)
            if values != first:
                parser.error(f"{option_string} takes one value and was given {first!r} and {values!r}: name one")
        super().__call__(parser, namespace, values, option_string)


def whole_number(least: int, most: float = inf) -> Callable[[str], int]:
    """Make the ``type`` of an argument that is a whole number from ``least`` to ``most``."""
    accepted = f"of at least {least}" if most == inf else f"from {least} to {most}"

    def number(text: str) -> int:
        if not (text.isdecimal() and least <= int(text) <= most):
            raise ArgumentTypeError(f"must be a whole number {accepted}, got {text!r}")
        return int(text)

    return number


def real_number(least: float, most: float = inf, *, above: bool = False) -> Callable[[str], float]:
    """Make the ``type`` of an argument that is a finite number from ``least`` to ``most``, or any ``above``
    ``least``."""
    accepted = f"from {least:g} to {most:g}" if most != inf else f"of at least {least:g}"
    accepted = f"above {least:g}" if above else accepted

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not least <= value <= most or value == inf or (above and value == least):
            raise ArgumentTypeError(f"must be a number {accepted}, got {text!r}")
        return value

    return number
