"""The options of a run: one table for the command line, the configuration file, the environment and the manifest.

An option comes, in this order, from the command line, the ``--config`` file, the environment (``TEXTBENCH_EPISODES``)
and its default. Options that *count* decide what is played and can't change when a run is resumed (but for
``episodes``, which may grow); the others (how fast, how long, for how much) can.
"""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from agents.cluster.connection import ANY
from agents.common.refusals import accepted, shown
from agents.common.toml import read_toml
from agents.protocol import LEGAL_ONLY, STANDARD, check_moves, read_protocols, same_protocol
from benchmark.errors import UsageError, unknown_name
from benchmark.play.levels import read_levels

if TYPE_CHECKING:
    from pydantic import BaseModel


def without_spec(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a table ``[agents.NAME]`` has besides the agent's ``spec``."""
    return {option: value for option, value in table.items() if option != "spec"}


def option(
    default: Any,
    metavar: str,
    text: str,
    *,
    counts: bool = False,
    stored: bool = True,
    alone: str | None = None,
    read: Callable[[str], str] | None = None,
    **bounds: float,
) -> Any:
    """Return a field of :class:`RunOptions`.

    Args:
        default: its value when nobody says anything.
        metavar: what stands for the value in ``--help``; empty if it has no flag and no variable.
        text: its line there, to which a default that is a number is added.
        counts: whether it decides what is played.
        stored: whether a run's manifest has it; what only stands for other options needn't be kept.
        alone: what a flag without a value means; ``None`` if it needs one.
        read: makes the one spelling of a text of several; raises the ``ValueError`` of one that isn't accepted.
        bounds: the accepted values, by pydantic's names: ``ge``, ``gt``, ``le``.
    """
    metadata = {"text": text, "metavar": metavar, "counts": counts, "stored": stored, "alone": alone, "bounds": bounds}
    return field(default=default, metadata={**metadata, "read": read})


_AGENTS = "an agent: random, greedy, planner, openai:MODEL, hf:PATH, NAME=SPEC"


@dataclass(frozen=True)
class RunOptions:
    """The options of one run. A tuple may be given several times, and stands in the environment with commas."""

    agents: tuple[str, ...] = option((), "SPEC", _AGENTS, counts=True)
    scenarios: tuple[str, ...] = option(
        ("paper",), "NAME", "a scenario to play, or paper (default: its four) or all", counts=True
    )
    suites: tuple[str, ...] = option(
        (), "NAME", "a suite to play, besides the scenarios that are named; see textbench list suites", stored=False
    )
    twin: int | None = option(
        None,
        "K",
        "play twin K of every scenario that has twins: the same game under another text (0: the game itself)",
        counts=True,
        ge=0,
        le=2**31,
    )
    twins: int | None = option(
        None,
        "N",
        "play N twins besides every scenario that has some, on the same seeds, for the twin gap",
        counts=True,
        ge=1,
        le=100,
    )
    level: int | None = option(
        None, "L", "play level L of every scenario that has levels (0: as it is)", counts=True, ge=0, le=10**4
    )
    levels: str | None = option(
        None,
        "A-B",
        "find each agent's level among these, such as 1-10, in --episodes episodes of every game that has levels",
        counts=True,
        read=read_levels,
    )
    season: str | None = option(
        None, "DIR", "play a season: its scenarios and seeds, and its agents unless some are named", stored=False
    )
    episodes: int = option(50, "N", "episodes per scenario and agent", counts=True, ge=1, le=10**7)
    seed_offset: int = option(0, "N", "start at this episode of the scenario's seeds", counts=True, ge=0, le=2**52)
    resample: int | None = option(
        None,
        "K",
        "draw the agents' samples anew on the same starts and chances, to tell sampling from starts; any number",
        counts=True,
        ge=1,
        le=2**31,
    )
    until: float | None = option(
        None,
        "W",
        "add episodes, at most --episodes (then 1600 by default), until every score is known to this half-width "
        "(below 0 it counts as 0)",
        counts=True,
        gt=0,
        le=1000,
    )
    sets: tuple[str, ...] = option(
        (), "NAME.OPTION=VALUE", "set an option of one agent, as in --set gpt.temperature=0.2", stored=False
    )
    allow: tuple[str, ...] = option(
        (),
        "SPEC",
        "what a folder may use that it alone names: code (file.py:Agent), a server, a paid model, a download",
        stored=False,
    )
    agent_options: Mapping[str, Mapping[str, Any]] | None = option(
        None, "", "options of single agents, {agent: {option: value}}", counts=True
    )
    base_url: str | None = option(
        None, "URL", "server of openai: and litellm: agents (openai: $OPENAI_BASE_URL)", counts=True
    )
    temperature: float | None = option(
        None, "T", "softmax temperature of language models (default 0.5)", counts=True, ge=0, le=100
    )
    top_p: float | None = option(None, "P", "nucleus sampling (default 1: off)", counts=True, gt=0, le=1)
    max_tokens: int | None = option(None, "N", "longest response, in tokens (default 256)", counts=True, ge=1, le=10**6)
    mode: str | None = option(None, "MODE", "response mode (default: as it was trained, or think)", counts=True)
    history: int | None = option(
        None, "K", "last turns that the prompt repeats (default 0)", counts=True, ge=0, le=10**6
    )
    prompts: str | None = option(
        None,
        "FILE",
        "file with your own wording of the prompts (TOML), or all: several wordings, one of them drawn for every seed",
        counts=True,
    )
    protocol: str = option(
        STANDARD["protocol"],
        "NAME",
        "what an unreadable response leads to: random (default: a random legal move), default (the first one), "
        "forfeit (a loss), retry or retry:K (K more answers, 2 by default, then a loss); or legal-only",
        counts=True,
        read=same_protocol,
    )
    protocols: str | None = option(
        None,
        "NAMES",
        "play everything by several protocols, side by side on the same seeds: all, or a list such as "
        "random,retry,forfeit,unlisted (unlisted: random, and prompts don't list the moves)",
        stored=False,
        read=read_protocols,
    )
    legal_only: bool | None = option(
        None,
        "BOOL",
        "language models can write nothing but legal answers; a protocol of its own, the same as --protocol legal-only",
        stored=False,
    )
    moves: str = option(
        STANDARD["moves"],
        "NAME",
        "listed (default) or unlisted: whether prompts list the legal moves",
        counts=True,
        read=check_moves,
    )
    max_concurrency: int | None = option(
        None, "N", "episodes in flight (default 64; 256 where servers find their own pace)", ge=1, le=10**5
    )
    max_retries: int = option(5, "N", "retries of a failed request, not of a rate limit", ge=0, le=1000)
    timeout: float = option(120.0, "S", "seconds for one request, to its last byte", gt=0, le=10**6)
    run_timeout: float | None = option(
        None, "S", "seconds for the whole run; then it stops, and can be resumed", ge=0, le=10**9
    )
    max_cost: float | None = option(
        None,
        "USD",
        "stop when this much is spent (by all --protocols together); needs --prices, or a litellm: model",
        ge=0,
        le=10**9,
    )
    prices: str | None = option(None, "FILE", "file with prices per million tokens (TOML)")
    cache: str | None = option(
        None, "FILE", "file with the responses of deterministic models (temperature 0), to reuse"
    )
    ray: str | None = option(
        None, "ADDRESS", "play on a Ray cluster (without ADDRESS: the one that Ray finds)", stored=False, alone=ANY
    )
    ray_workers: int | None = option(
        None, "N", "workers on the cluster (default: as many as fit)", stored=False, ge=1, le=10**6
    )
    ray_cpus: float = option(1.0, "N", "processor cores of each worker", stored=False, gt=0, le=10**4)
    ray_gpus: float = option(0.0, "N", "GPUs of each worker, for models that it runs", stored=False, ge=0, le=10**3)
    out: str | None = option(None, "DIR", "run folder (default runs/<time>-<id>)")
    given: frozenset[str] = field(default=frozenset(), compare=False)
    """The options that somebody set, wherever; the others have their defaults."""

    @property
    def grows(self) -> bool:
        """Whether the run decides on the way which further episodes it plays."""
        return self.until is not None or self.levels is not None

    @property
    def by_agent(self) -> Mapping[str, Mapping[str, Any]]:
        """``{agent: {option: value}}`` of the agents that have options of their own."""
        return self.agent_options or {}


OPTIONS: dict[str, "Field[Any]"] = {one.name: one for one in fields(RunOptions) if one.metadata}
COUNTING = tuple(name for name, one in OPTIONS.items() if one.metadata["counts"])
OPERATING = tuple(name for name, one in OPTIONS.items() if one.metadata["stored"] and not one.metadata["counts"])

OF_ONE_AGENT = (
    *("base_url", "temperature", "top_p", "max_tokens", "mode", "prompts", "legal_only"),
    *("max_retries", "timeout", "sets", "allow"),
)
"""What commands take that ask a single agent, such as ``inspect``: everything about its model and its server."""

CLUSTER = tuple(name for name in OPTIONS if name == "ray" or name.startswith("ray_"))
"""Where a run is played. No manifest has them: the folder is the same wherever it was, and can be resumed anywhere."""

ADDED = ("until", "agent_options", "twin", "twins", "level", "levels", "resample")
"""Counting options that aren't in the settings of every manifest: if nobody gave them they are left out."""

VARIABLES = {f"TEXTBENCH_{name.upper()}": name for name, one in OPTIONS.items() if one.metadata["metavar"]}
OTHER_VARIABLES = (
    "TEXTBENCH_CACHE_DIR",
    "TEXTBENCH_UPDATE_GOLDEN",
    "TEXTBENCH_UPDATE_TRANSCRIPTS",
    "TEXTBENCH_ADAPTERS",
    "TEXTBENCH_ENGINES",
    "TEXTBENCH_ENGINES_MINUTES",
    "TEXTBENCH_LITELLM",
    "TEXTBENCH_SERVE_TOKEN",
    "TEXTBENCH_WEAK_SANDBOX",
)
"""The cache folder, what tells the tests to write expected files anew, what .ci reads, a served game's token, and what
allows programs if nothing holds them."""


def takes_many(name: str) -> bool:
    """Return whether an option is a list: ``--agent A --agent B``."""
    return get_origin(OPTIONS[name].type) is tuple


def is_switch(name: str) -> bool:
    """Return whether an option is true or false, so that its flag has no value."""
    return bool in get_args(OPTIONS[name].type)


def flag_of(name: str) -> str:
    """Return an option's flag, such as ``--max-cost``; those that are lists stand in the singular."""
    return "--" + (name.removesuffix("s") if takes_many(name) else name).replace("_", "-")


def arguments_of(options: RunOptions) -> list[str]:
    """Return the words of a command line that say what was given again; an address, which may hold a secret, isn't
    said."""
    words = []
    for name in OPTIONS:
        if name not in options.given or name == "base_url" or not OPTIONS[name].metadata["metavar"]:
            continue
        value = getattr(options, name)
        for one in value if takes_many(name) else [value]:
            words += [flag_of(name)] if is_switch(name) else [flag_of(name), str(one)]
    return words


def add_options(parser: argparse.ArgumentParser, names: Sequence[str] = tuple(OPTIONS)) -> None:
    """Add the flags of these options, and ``--config``, to a command."""
    for name in names:
        default, about = OPTIONS[name].default, OPTIONS[name].metadata
        if not about["metavar"]:  # it stands in files alone
            continue
        text = f"{about['text']} (default {default:g})" if isinstance(default, int | float) else about["text"]
        action = "append" if takes_many(name) else "store"
        if is_switch(name):
            parser.add_argument(flag_of(name), dest=name, action="store_const", const=True, help=text)
            continue
        more = {} if about["alone"] is None else {"nargs": "?", "const": about["alone"]}
        parser.add_argument(flag_of(name), dest=name, action=action, metavar=about["metavar"], help=text, **more)
    example = "max_cost = 5.0" if "max_cost" in names else "temperature = 1.0"
    parser.add_argument("--config", metavar="FILE", help=f"read options from a TOML file: {example}")


def read_options(args: argparse.Namespace, names: Sequence[str] = tuple(OPTIONS)) -> RunOptions:
    """Combine command line, configuration file, environment and defaults.

    Args:
        args: the command line; an option that it has counts, whatever it is.
        names: the options that may also stand in the file or the environment.

    Raises:
        UsageError: an unknown name in the file or the environment, or a value that isn't accepted; says where it came
            from.
    """
    for variable in os.environ:
        if variable.startswith("TEXTBENCH_") and variable not in (*VARIABLES, *OTHER_VARIABLES):
            raise unknown_name("environment variable of textbench", variable, (*VARIABLES, *OTHER_VARIABLES))
    config = _read_config(args.config, names) if getattr(args, "config", None) else {}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if isinstance(config.get("agents"), dict):
        _read_agent_tables(config, getattr(args, "agents", None), args)
    if "agent_options" in config:
        values["agent_options"], origins["agent_options"] = config["agent_options"], f"agent_options in {args.config}"
    for variable, name in VARIABLES.items():
        if getattr(args, name, None) is not None:
            values[name], origins[name] = getattr(args, name), flag_of(name)
        elif name in config:
            values[name], origins[name] = config[name], f"{name} in {args.config}"
        elif name in names and os.environ.get(variable):
            text = os.environ[variable]
            values[name], origins[name] = text.split(",") if takes_many(name) else text, variable
        if name in values and takes_many(name) and isinstance(values[name], str):
            values[name] = [values[name]]
    for name in CLUSTER:  # a variable may stand there for other runs, but who writes a flag wants something of it
        if getattr(args, name, None) is not None and "ray" not in values:
            raise UsageError(f"{flag_of(name)} is of a cluster, and this run is on none: add --ray")
    return RunOptions(**checked_options(values, origins), given=frozenset(values))


def _read_agent_tables(config: dict[str, Any], named: Sequence[str] | None, args: argparse.Namespace) -> None:
    """Read ``[agents.NAME]``, with ``spec`` and the agent's options; those of agents that aren't played don't matter.

    Args:
        config: the configuration, in which ``agents`` becomes a list as on the command line, besides ``agent_options``.
        named: what ``--agent`` says, which may be names of the file.
        args: the command line, whose names of the file become full agents.
    """
    specs: dict[str, str] = {}
    own: dict[str, Any] = {}
    for name, table in config["agents"].items():
        if not isinstance(table, dict) or not isinstance(table.get("spec", name), str):
            raise UsageError(f'[agents.{name}] in {args.config} is a table with spec = "..." and options of the agent')
        specs[name] = table.get("spec", name)
        own[name] = without_spec(table)
    if named:
        args.agents = [f"{text}={specs[text]}" if text in specs and specs[text] != text else text for text in named]
        own = {name: options for name, options in own.items() if name in named}
    config["agents"] = [f"{name}={spec}" if name != spec else name for name, spec in specs.items()]
    config["agent_options"] = {name: options for name, options in own.items() if options} or None


def checked_options(values: Mapping[str, Any], origins: Mapping[str, str]) -> dict[str, Any]:
    """Return the values as the options' types; texts of numbers become numbers.

    Args:
        values: by the options' names.
        origins: what to call each of them in an error; the name itself if it has none.

    Raises:
        UsageError: a value isn't accepted.
    """
    from pydantic import ValidationError

    def refuse(name: str, value: Any) -> UsageError:
        about = options_model().model_json_schema()["properties"][name]
        return UsageError(
            f"{origins.get(name, name)} must be {accepted(about.get('items', about))}, got {shown(value)}"
        )

    for name, value in values.items():
        if isinstance(value, bool) and not is_switch(name):  # pydantic would take true for 1
            raise refuse(name, value)
    try:
        checked = options_model()(**values)
    except ValidationError as error:
        first = error.errors()[0]
        raise refuse(str(first["loc"][0]), first["input"]) from None
    read = {name: getattr(checked, name) for name in values}
    for name, value in read.items():
        if (reader := OPTIONS[name].metadata["read"]) is not None:
            try:
                read[name] = reader(value)
            except ValueError as error:
                raise UsageError(f"{origins.get(name, name)}: {error}") from None
    if read.get("legal_only") and read.setdefault("protocol", LEGAL_ONLY) != LEGAL_ONLY:
        raise UsageError(
            f"{origins.get('legal_only', 'legal_only')} leaves nothing that can't be read, so that protocol = "
            f"{read['protocol']!r} has nothing to decide: give one of them"
        )
    return read | ({"legal_only": True} if read.get("protocol") == LEGAL_ONLY else {})


@cache
def options_model() -> "type[BaseModel]":
    """Return the options as pydantic checks and publishes them; made late, since ``--help`` can do without pydantic."""
    import pydantic

    definitions: dict[str, Any] = {
        name: (one.type, pydantic.Field(one.default, description=one.metadata["text"], **one.metadata["bounds"]))
        for name, one in OPTIONS.items()
    }
    config = pydantic.ConfigDict(extra="forbid", allow_inf_nan=False)
    return pydantic.create_model("RunOptions", __config__=config, **definitions)


def _read_config(file: str, names: Sequence[str]) -> dict[str, Any]:
    data = read_toml(Path(file), f"the configuration file {file}", UsageError)
    spelt = {name.replace("-", "_"): value for name, value in data.items()}
    for name in spelt:
        if name not in names:
            raise unknown_name(f"option of a run (in {file})", name, names)
    return spelt
