"""The command ``textbench``: see :data:`COMMANDS` and :data:`LAB`.

A command's settings are a class in :mod:`benchmark.cli.settings`. Its work is the function ``run_NAME`` of the file of
its name, or of that in :data:`_SHARED`; the file is imported when the command runs, so that ``--help`` answers at once.
The function returns the exit code: 0 done, 1 incomplete or failed, 2 wrong usage, 130 interrupted. Results go to
stdout, progress and errors to stderr.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import lazy_loader  # type: ignore[import-untyped]

from benchmark.errors import BenchmarkError, UsageError, unknown_name
from benchmark.foreign import foreign_agents

if TYPE_CHECKING:
    from benchmark.cli.entries import check_entries, exit_code, verdict_rows
    from benchmark.cli.settings import Output
    from benchmark.cli.warmup import play_both

__all__ = ["Command", "Output", "check_entries", "exit_code", "main", "play_both", "verdict_rows"]

__getattr__, _, _ = lazy_loader.attach(  # what commands of other packages share with ours
    __name__,
    submod_attrs={
        "entries": ["check_entries", "exit_code", "verdict_rows"],
        "settings": ["Output"],
        "warmup": ["play_both"],
    },
)

COMMANDS = {
    "list": "list scenarios and agents",
    "play": "play a scenario yourself",
    "run": "play agents on scenarios into a leaderboard",
    "resume": "resume an interrupted run",
    "leaderboard": "show scores of runs and entries, in the terminal or as a page",
    "compare": "compare agents on the same seeds",
    "replay": "step through an episode",
    "view": "show the leaderboard page in a browser",
    "train": "fine-tune a model with MS-GRPO",
    "submit": "make a leaderboard entry of a run",
    "validate": "replay every episode of an entry and check it",
    "doctor": "report what is installed and which agents can run",
}
"""What a user's day takes, with a line of help."""

LAB = {
    "plan": "play a pilot, and say how many episodes, dollars and hours a difference takes",
    "warmup": "let a model imitate a player before it is fine-tuned",
    "inspect": "compare a model's action probabilities with the solver at each step",
    "exploitability": "compute what an agent loses to its worst opponent in a small game",
    "serve": "serve a game to trainers, as an OpenEnv environment",
    "report": "write a report on runs: verdict, tables, costs, costliest decisions",
    "merge": "merge runs of several machines into one",
    "rescore": "read stored answers again by another reading",
    "export": "write results as CSV, Parquet or plots, or as data to train on",
    "schema": "print the JSON Schema of a manifest, an episode or a configuration",
}
"""The commands of research and upkeep, likewise. ``textbench lab`` lists them; ``textbench NAME`` and
``textbench lab NAME`` are the same, and everything that we print or write says ``textbench NAME``."""

_SHARED = {
    **dict.fromkeys(("leaderboard", "compare", "replay", "view", "rescore", "merge"), "results"),
    **dict.fromkeys(("list", "doctor"), "catalogue"),
    **dict.fromkeys(("submit", "validate"), "entries"),
    **dict.fromkeys(("export", "report", "schema"), "files"),
    **dict.fromkeys(("resume", "plan"), "run"),
    "exploitability": "inspect",
}
"""``{command: file}`` of those that share one."""


class Command(NamedTuple):
    """A command that another package adds, under the group :data:`ENTRY_POINT_GROUP` of entry points."""

    # has ``run(settings) -> exit code``, and the class ``Settings`` of what it takes, whose docstring is the help; or
    # ``STEPS``, ``{name: class}``, of a command in several steps such as ``textbench season new``
    module: str
    description: str  # what it does, in one line


ENTRY_POINT_GROUP = "textbench.commands"
"""Packages add commands under this group: ``[project.entry-points."textbench.commands"]``, ``mine = "my_package:MINE"``
with ``MINE = Command("my_package.command", "what it does")``."""

TRAIN = "train"  # reads its own arguments, ``--help`` included: python -m agents.msgrpo

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, by default that of the process's own arguments, and return its exit code."""
    if (wrong := foreign_agents()) is not None:  # else the command dies in an import
        print(f"textbench: {wrong}", file=sys.stderr)
        return 2
    from agents.common.terminal import plain_streams

    with plain_streams():
        # not list(...): once imported, the command of that name is an attribute of this package
        code = _run([*(sys.argv[1:] if argv is None else argv)])
        try:
            print(end="", flush=True)
        except OSError:  # it has been reported, or is a pipe without a reader: Python would try again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return code


def _run(arguments: list[str]) -> int:
    try:
        code = _dispatch(arguments)
        print(end="", flush=True)  # or Python writes the rest at exit, and complains in its own way
        return code
    except SystemExit as stop:  # --help, or a usage error that has been printed
        return int(stop.code or 0)
    except BenchmarkError as error:
        _say(str(error), arguments)
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted", arguments)
        return INTERRUPTED
    except BrokenPipeError:  # textbench ... | head
        return 0
    except OSError as error:  # a name that is too long, a full disk, a folder that may not be looked into
        from agents.common.files import refusal

        _say(refusal(error), arguments)
        return 2


def console_main() -> NoReturn:
    """Run the process ``textbench``: :func:`main`, then an end in which Ctrl-C has nothing left to stop."""
    code = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a finalizer that it meets would print a traceback
    sys.exit(code)


def lab_commands() -> dict[str, str]:
    """Return ``{name: description}`` of the lab's commands, those of installed packages among them."""
    return LAB | {name: command.description for name, command in _added().items() if name not in COMMANDS | LAB}


def _added() -> dict[str, Command]:
    """Return the commands of installed packages; one that can't be imported fails when it is called."""
    from textgames.plugins import loaded

    return loaded(ENTRY_POINT_GROUP, lambda entry, wrong: Command(entry.module, wrong))


def settings_of(name: str) -> type | Mapping[str, type]:
    """Return the class of what a command takes, or those of its steps."""
    if name in COMMANDS | LAB:
        return resolve_name(f"benchmark.cli.settings:{name.capitalize()}")  # type: ignore[no-any-return]
    command = _added()[name]
    try:
        module: Any = import_module(command.module)
    except ImportError as error:
        raise UsageError(f"the command {name!r} ({command.module}) can't be imported: {error}") from error
    return getattr(module, "STEPS", None) or module.Settings  # type: ignore[no-any-return]


def _dispatch(arguments: list[str]) -> int:
    in_lab = arguments[:1] == ["lab"]
    name, *rest = arguments[in_lab:] or [""]
    if name in ("", "-h", "--help", "help"):
        print(_overview(in_lab))
        return 0 if name or in_lab else 2  # "textbench lab" lists, as the overview says
    if name == "--version":
        from benchmark.runs.provenance import code_version

        code = code_version()
        changed = ", with uncommitted changes" if code["dirty"] else ""
        print(f"textbench {code['version']}" + (f" ({code['commit'][:12]}{changed})" if code["commit"] else ""))
        return 0
    lab = LAB if name in LAB else {} if name in COMMANDS and not in_lab else lab_commands()
    if name not in lab and (in_lab or name not in COMMANDS):
        from textgames.plugins import research_advice

        sort = "option before the command" if name.startswith("-") else "command of the lab" if in_lab else "command"
        wrong = unknown_name(sort, name, lab if in_lab else COMMANDS | lab)
        raise UsageError(f"{wrong}{research_advice()}")
    if name == TRAIN:
        from agents.msgrpo.__main__ import main as train

        return train(rest)
    from agents.common.settings import Parser

    kind, prog = settings_of(name), f"textbench {'lab ' if in_lab else ''}{name}"
    if not isinstance(kind, type):
        step, *rest = rest or ["--help"]
        if step in ("-h", "--help"):
            steps = _lines({each: str(cls.__doc__).partition("\n")[0] for each, cls in kind.items()})
            print(f"usage: {prog} STEP [options]        {prog} STEP --help\n\n{steps}")
            return 0
        if step not in kind:
            raise unknown_name(f"step of {name}", step, kind)
        kind, prog = kind[step], f"{prog} {step}"
    also = f"textbench lab lists this command beside others of its kind; textbench lab {name} is the same."
    settings = Parser(kind, prog, also if name in lab else None).read(rest, UsageError)
    for module in getattr(settings, "imports", ()):  # of the commands that read folders
        from benchmark.runs.plan import import_games

        import_games(module, f"--import {module}")
    if name in COMMANDS | LAB:
        run: Callable[[Any], int] = resolve_name(f"benchmark.cli.{_SHARED.get(name, name)}:run_{name}")
    else:
        run = import_module(_added()[name].module).run
    return run(settings)


def _overview(in_lab: bool) -> str:
    if in_lab:
        return f"""textbench lab: research and upkeep

usage: textbench COMMAND [options]        textbench COMMAND --help        (or textbench lab COMMAND)

{_lines(lab_commands())}"""
    return f"""textbench: text games for language models, an honest benchmark

usage: textbench COMMAND [options]        textbench COMMAND --help

{_lines(COMMANDS)}

textbench run        plays the embedded agents on the paper's scenarios; needs no key and no network
textbench lab        lists the commands of research and upkeep, among them warmup and serve
textbench --version  the version"""


def _lines(commands: Mapping[str, str]) -> str:
    width = max(map(len, commands))
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in commands.items())


def _say(message: str, arguments: Sequence[str]) -> None:
    from agents.common.redaction import Redactor

    urls = [word.partition("=")[2] if word.startswith("--") else word for word in arguments if "://" in word]
    print(f"textbench: {Redactor.from_environment(urls).scrub(message)}", file=sys.stderr)
