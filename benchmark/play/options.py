"""The options of a run: one table for the command line, the configuration file and the environment.

An option comes, in this order, from the command line, the ``--config`` file, the environment (``TEXTBENCH_EPISODES``)
and its default. Options that *count* decide what is played and can't change when a run is resumed; the others (how
fast, how long, for how much) can.
"""

import argparse
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmark.errors import UsageError, unknown_name


class Option(NamedTuple):
    """One option.

    Attributes:
        name: as in the configuration file; with hyphens it is the flag's.
        kind: what a value is: ``str``, ``int`` or ``float``.
        default: its value when nobody says anything.
        help: one line for ``--help``.
        metavar: what stands for the value there.
        counts: whether it decides what is played.
        many: it may be given several times; a list in the file, separated by commas in the environment.
        least: the smallest value that makes sense.
        choices: the accepted values, where they are few.
    """

    name: str
    kind: type
    default: Any
    help: str
    metavar: str
    counts: bool = False
    many: bool = False
    least: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """``--max-cost``; lists are singular on the command line: ``--agent A --agent B``."""
        return "--" + (self.name.removesuffix("s") if self.many else self.name).replace("_", "-")


OPTIONS = (
    Option(
        "agents", str, (), "an agent: random, greedy, planner, openai:MODEL, hf:PATH, NAME=SPEC", "SPEC", True, True
    ),
    Option("scenarios", str, ("paper",), "a scenario to play, or paper (default: its four) or all", "NAME", True, True),
    Option("episodes", int, 50, "episodes per scenario and agent (default 50)", "N", True, least=1),
    Option("seed_offset", int, 0, "start at this episode of the scenario's seeds (default 0)", "N", True, least=0),
    Option("base_url", str, None, "server of openai: agents (default $OPENAI_BASE_URL)", "URL", True),
    Option("temperature", float, None, "softmax temperature of language models (default 0.5)", "T", True, least=0),
    Option("top_p", float, None, "nucleus sampling (default 1: off)", "P", True, least=0),
    Option("max_tokens", int, None, "longest response, in tokens (default 256)", "N", True, least=1),
    Option("mode", str, None, "response template: think (default) or direct", "MODE", True),
    Option("history", int, None, "last turns that the prompt repeats (default 0)", "K", True, least=0),
    Option("prompts", str, None, "file with your own wording of the prompts (TOML)", "FILE", True),
    Option("max_concurrency", int, 64, "episodes in flight (default 64)", "N", least=1),
    Option("max_retries", int, 5, "retries of a failed request: 429, 5xx, time-outs (default 5)", "N", least=0),
    Option("timeout", float, 120.0, "seconds for one request (default 120)", "S", least=0),
    Option("run_timeout", float, None, "seconds for the whole run; then it stops, and can be resumed", "S", least=0),
    Option("max_cost", float, None, "stop when this much has been spent; needs --prices", "USD", least=0),
    Option("prices", str, None, "file with prices per million tokens (TOML)", "FILE"),
    Option("cache", str, None, "file with the responses of deterministic models (temperature 0), to reuse", "FILE"),
    Option("out", str, None, "run folder (default runs/<time>-<id>)", "DIR"),
)
COUNTING = tuple(option.name for option in OPTIONS if option.counts)
OPERATING = tuple(option.name for option in OPTIONS if not option.counts)


@dataclass(frozen=True)
class RunOptions:
    """The options of one run, checked; the meaning of each is its help in :data:`OPTIONS`."""

    agents: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ("paper",)
    episodes: int = 50
    seed_offset: int = 0
    base_url: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    mode: str | None = None
    history: int | None = None
    prompts: str | None = None
    max_concurrency: int = 64
    max_retries: int = 5
    timeout: float = 120.0
    run_timeout: float | None = None
    max_cost: float | None = None
    prices: str | None = None
    cache: str | None = None
    out: str | None = None
    given: frozenset[str] = field(default=frozenset(), compare=False)
    """The options that somebody set, wherever; the others have their defaults."""


def add_options(parser: argparse.ArgumentParser, names: Sequence[str] = COUNTING + OPERATING) -> None:
    """Add the flags of these options, and ``--config``, to a command."""
    for option in OPTIONS:
        if option.name in names:
            action = "append" if option.many else "store"
            parser.add_argument(option.flag, dest=option.name, action=action, metavar=option.metavar, help=option.help)
    parser.add_argument("--config", metavar="FILE", help="read options from a TOML file: max_cost = 5.0")


def read_options(
    args: argparse.Namespace, environ: Mapping[str, str] | None = None, names: Sequence[str] = COUNTING + OPERATING
) -> RunOptions:
    """Combine command line, configuration file, environment and defaults.

    Raises:
        UsageError: an unknown name in the file, or a value that isn't accepted; says where it came from.
    """
    variables = os.environ if environ is None else environ
    config = _read_config(args.config, names) if getattr(args, "config", None) else {}
    values: dict[str, Any] = {}
    for option in OPTIONS:
        if option.name not in names:
            continue
        variable = f"TEXTBENCH_{option.name.upper()}"
        if getattr(args, option.name, None) is not None:
            values[option.name] = _convert(option, getattr(args, option.name), option.flag)
        elif option.name in config:
            values[option.name] = _convert(option, config[option.name], f"{option.name} in {args.config}")
        elif variables.get(variable):
            text = variables[variable]
            values[option.name] = _convert(option, text.split(",") if option.many else text, variable)
    return RunOptions(**values, given=frozenset(values))


def _read_config(file: str, names: Sequence[str]) -> dict[str, Any]:
    try:
        data = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"can't read the configuration file {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the configuration file {file} isn't TOML: {error}") from None
    spelt = {name.replace("-", "_"): value for name, value in data.items()}
    for name in spelt:
        if name not in names:
            raise unknown_name(f"option of a run (in {file})", name, names)
    return spelt


def _convert(option: Option, value: Any, where: str) -> Any:
    if not option.many:
        return _convert_one(option, value, where)
    values = value if isinstance(value, list) else [value]
    return tuple(_convert_one(option, item, where) for item in values)


def _convert_one(option: Option, value: Any, where: str) -> Any:
    wanted = {str: "a text", int: "a whole number", float: "a number"}[option.kind]
    least = "" if option.least is None else f" of at least {option.least:g}"
    wrong = UsageError(f"{where} must be {wanted}{least}, got {value!r}")
    if isinstance(value, bool) or (option.kind is str and not isinstance(value, str)):
        raise wrong
    if option.kind is int and isinstance(value, float):
        raise wrong
    try:
        converted = option.kind(value)
    except (TypeError, ValueError):
        raise wrong from None
    if option.kind is not str and not (converted == converted and abs(converted) < float("inf")):
        raise wrong
    if option.least is not None and converted < option.least:
        raise wrong
    return converted
