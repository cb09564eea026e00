"""The options of a run: one table for the command line, the configuration file, the environment and the manifest.

Options that *count* decide what is played and can't change when a run is resumed (but for ``episodes``, which may
grow); the others (how fast, how long, for how much) can.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from agents.cluster.connection import ANY
from agents.common.settings import checked, fields_of, option, settings
from agents.protocol import LEGAL_ONLY, STANDARD, check_moves, observing, read_protocols, same_protocol
from benchmark.errors import UsageError, unknown_name


def without_spec(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a table ``[agents.NAME]`` has besides the agent's ``spec``."""
    return {option: value for option, value in table.items() if option != "spec"}


def read_levels(text: str) -> str:
    """Return a range of levels in its one spelling, ``"1-10"``; a ValueError if it is none."""
    first, dash, last = text.replace(" ", "").partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and 1 <= int(first) < int(last)):
        raise ValueError(f"levels are two numbers from 1 with a dash between, the easier one first: 1-10, got {text!r}")
    return f"{int(first)}-{int(last)}"


def levels_in(text: str) -> range:
    """Return the levels of such a range."""
    first, last = map(int, text.split("-"))
    return range(first, last + 1)


def read_effort(text: str) -> str:
    """Return an effort of reasoning if it is one word, as servers differ in theirs; else raise a ValueError."""
    if not re.fullmatch(r"[a-z]+", text):
        raise ValueError(
            f"an effort of reasoning is a word of the server's, such as minimal, low or high; got {text!r}"
        )
    return text


def read_table(text: str) -> dict[str, Any]:
    """Return the table that a JSON text is; a ValueError if it is none."""
    from agents.common.toml import read_value  # here, since --help can do without it

    if not isinstance(found := read_value(text), dict):
        raise ValueError(f"a table is written as JSON, such as '{{\"top_k\": 20}}', got {text!r}")
    return found


@settings
class RunOptions:
    """The options of one run. A tuple may be given several times, and stands in the environment with commas.

    Their marks: ``counts``, decides what is played; ``added``, counts and is left out of a manifest if it isn't given;
    ``unstored``, is in no manifest; ``agent``, is taken by commands that ask a single agent; ``cluster``, says where a
    run is played, so that its folder can be resumed anywhere.
    """

    file: ClassVar[str] = "temperature = 1.0"

    agents: tuple[str, ...] = option((), "SPEC", marks="counts")
    """an agent: random, greedy, planner, openai:MODEL, hf:PATH, NAME=SPEC"""
    scenarios: tuple[str, ...] = option(("paper",), "NAME", marks="counts")
    """a scenario to play, or paper (default: its four) or all"""
    suites: tuple[str, ...] = option((), "NAME", marks="unstored")
    """a suite to play, besides the scenarios that are named; see textbench list suites"""
    settings: tuple[str, ...] = option((), "NAME=VALUE", marks="unstored")
    """another setting of the game, as in --setting size=6 (or --scenario 'frozen-lake(size=6)'); scored apart"""
    twin: int | None = option(None, "K", ge=0, le=2**31, marks="counts added")
    """play twin K of every scenario that has twins: the same game under another text (0: the game itself)"""
    twins: int | None = option(None, "N", ge=1, le=100, marks="counts added")
    """play N twins besides every scenario that has some, on the same seeds, for the twin gap"""
    level: int | None = option(None, "L", ge=0, le=10**4, marks="counts added")
    """play level L of every scenario that has levels (0: as it is)"""
    levels: str | None = option(None, "A-B", marks="counts added", reads=read_levels)
    """find each agent's level among these, such as 1-10, in --episodes episodes of every game that has levels"""
    season: str | None = option(None, "DIR", marks="unstored")
    """play a season: its scenarios and seeds, and its agents unless some are named"""
    episodes: int = option(50, "N", ge=1, le=10**7, marks="counts")
    """episodes per scenario and agent"""
    seed_offset: int = option(0, "N", ge=0, le=2**52, marks="counts")
    """start at this episode of the scenario's seeds"""
    resample: int | None = option(None, "K", ge=1, le=2**31, marks="counts added")
    """draw the agents' samples anew on the same starts and chances, to tell sampling from starts; any number"""
    samples: int | None = option(None, "N", ge=2, le=100, marks="unstored")
    """play every start N times, each time with samples of their own (--resample 1, 2, ...), for pass@k and best of k"""
    until: float | None = option(None, "W", gt=0, le=1000, marks="counts added")
    """add episodes, at most --episodes (then 1600 by default), until every score is known to this half-width (below 0
    it counts as 0)"""
    sets: tuple[str, ...] = option((), "NAME.OPTION=VALUE", marks="agent unstored")
    """set an option of one agent, as in --set gpt.temperature=0.2"""
    allow: tuple[str, ...] = option((), "SPEC", marks="agent unstored")
    """what a folder may use that it alone names: code (file.py:Agent), a server, a paid model, a download"""
    agent_options: Mapping[str, Mapping[str, Any]] | None = option(None, "", marks="counts added")
    """options of single agents, {agent: {option: value}}"""
    base_url: str | None = option(None, "URL", marks="counts agent")
    """server of openai: and litellm: agents (openai: $OPENAI_BASE_URL)"""
    temperature: float | None = option(None, "T", ge=0, le=100, marks="counts agent")
    """softmax temperature of language models (default 0.5)"""
    top_p: float | None = option(None, "P", gt=0, le=1, marks="counts agent")
    """nucleus sampling (default 1: off)"""
    max_tokens: int | None = option(None, "N", ge=1, le=10**6, marks="counts agent")
    """longest response, in tokens (default 256)"""
    reasoning_effort: str | None = option(None, "WORD", marks="counts agent added", reads=read_effort)
    """how much a reasoning model reasons, in the server's words: minimal, low, medium, high (none: not at all)"""
    reasoning_tokens: int | None = option(None, "N", ge=0, le=10**7, marks="counts agent added")
    """tokens for reasoning besides --max-tokens (default with an effort: 25,000)"""
    thinking_budget: int | None = option(None, "N", ge=1, le=10**7, marks="counts agent added")
    """most tokens of reasoning, if the server closes it: vLLM, llama.cpp, litellm: (Anthropic, Gemini); and hf:"""
    max_tokens_field: str | None = option(None, "NAME", marks="counts agent added")
    """the server's name of the limit: max_tokens, max_completion_tokens or auto (default: learnt from a refusal)"""
    chat_template_kwargs: Mapping[str, Any] | str | None = option(
        None, "JSON", marks="counts agent added", reads=read_table
    )
    """arguments of an open model's chat template: '{"enable_thinking": false}'"""
    extra_body: Mapping[str, Any] | str | None = option(None, "JSON", marks="counts agent added", reads=read_table)
    """further fields of every request to a server: '{"top_k": 20}'"""
    mode: str | None = option(None, "MODE", marks="counts agent")
    """response mode (default: as it was trained, or think)"""
    history: int | None = option(None, "K", ge=0, le=10**6, marks="counts")
    """last turns that the prompt repeats (default 0)"""
    prompts: str | None = option(None, "FILE", marks="counts agent")
    """file with your own wording of the prompts (TOML), or all: several wordings, one of them drawn for every seed"""
    protocol: str = option(STANDARD["protocol"], "NAME", marks="counts", reads=same_protocol)
    """what an unreadable response leads to: random (default: a random legal move), default (the first one), forfeit (a
    loss), retry or retry:K (K more answers, 2 by default, then a loss); or legal-only; or tools (models call a tool)"""
    protocols: str | None = option(None, "NAMES", marks="unstored", reads=read_protocols)
    """play everything by several protocols, side by side on the same seeds: all, or a list such as
    random,retry,forfeit,unlisted (unlisted: random, and prompts don't list the moves)"""
    legal_only: bool | None = option(None, "BOOL", marks="agent unstored")
    """language models can write nothing but legal answers; a protocol of its own, the same as --protocol legal-only"""
    observe: Literal["text", "image", "both"] | None = option(None, "FORM", marks="unstored")
    """what agents are shown: text (default), image (a picture of what the player may see, for models behind servers
    that take images) or both; a protocol of its own, the same as --protocol random+image"""
    moves: str = option(STANDARD["moves"], "NAME", marks="counts", reads=check_moves)
    """listed (default) or unlisted: whether prompts list the legal moves"""
    max_concurrency: int | None = option(None, "N", ge=1, le=10**5)
    """episodes in flight (default 64; 256 where servers find their own pace)"""
    max_retries: int = option(5, "N", ge=0, le=1000, marks="agent")
    """retries of a failed request, not of a rate limit"""
    timeout: float = option(120.0, "S", gt=0, le=10**6, marks="agent")
    """seconds for one request, to its last byte"""
    run_timeout: float | None = option(None, "S", ge=0, le=10**9)
    """seconds for the whole run; then it stops, and can be resumed"""
    max_cost: float | None = option(None, "USD", ge=0, le=10**9)
    """stop when this much is spent (by all --protocols together); needs --prices, or a litellm: model"""
    prices: str | None = option(None, "FILE")
    """file with prices per million tokens (TOML)"""
    cache: str | None = option(None, "FILE")
    """file with the responses of deterministic models (temperature 0), to reuse"""
    ray: str | None = option(None, "ADDRESS", alone=ANY, marks="unstored cluster")
    """play on a Ray cluster (without ADDRESS: the one that Ray finds)"""
    ray_workers: int | None = option(None, "N", ge=1, le=10**6, marks="unstored cluster")
    """workers on the cluster (default: as many as fit)"""
    ray_cpus: float = option(1.0, "N", gt=0, le=10**4, marks="unstored cluster")
    """processor cores of each worker"""
    ray_gpus: float = option(0.0, "N", ge=0, le=10**3, marks="unstored cluster")
    """GPUs of each worker, for models that it runs"""
    out: str | None = option(None, "DIR")
    """run folder (default runs/<time>-<id>)"""
    given: frozenset[str] = field(default=frozenset(), compare=False)
    """The options that were set, in whatever way; the others have their defaults."""

    @property
    def grows(self) -> bool:
        """Whether the run decides on the way which further episodes it plays."""
        return self.until is not None or self.levels is not None

    @property
    def by_agent(self) -> Mapping[str, Mapping[str, Any]]:
        """``{agent: {option: value}}`` of the agents that have options of their own."""
        return self.agent_options or {}

    def by_protocol(self, name: str) -> "RunOptions":
        """Return the options by another protocol, which shows what these do; a UsageError if it can't."""
        try:
            return replace(self, protocol=name if self.observe is None else observing(name, self.observe))
        except ValueError as error:
            raise UsageError(str(error)) from None

    @classmethod
    def of(cls, values: Mapping[str, Any], called: Mapping[str, str] | None = None) -> "RunOptions":
        """Make the options of what is given by their names; texts of numbers become numbers.

        A value that isn't accepted is a UsageError, in which the option is ``called`` by that name, else by its own.
        """
        called, given = called or {}, dict(values)
        if given.get("legal_only"):
            given.setdefault("protocol", LEGAL_ONLY)
        made = checked(cls, given | {"given": frozenset(values)}, called, UsageError)
        if made.legal_only and made.protocol != LEGAL_ONLY:
            raise UsageError(
                f"{called.get('legal_only', 'legal_only')} leaves nothing that can't be read, so that protocol = "
                f"{made.protocol!r} has nothing to decide: give one of them"
            )
        if made.observe is not None:
            made = made.by_protocol(made.protocol)
        return replace(made, legal_only=True) if made.protocol == LEGAL_ONLY else made

    @classmethod
    def read(cls, words: Mapping[str, Any], names: Sequence[str]) -> "RunOptions":
        """Combine command line, configuration file, environment and defaults.

        ``words`` are of the command line, in which ``config`` names the file; ``names`` are the options that may also
        stand in the file or the environment. A UsageError names the source of an unknown name or a value that isn't
        accepted.
        """
        for variable in os.environ:
            if variable.startswith("TEXTBENCH_") and variable not in (*VARIABLES, *OTHER_VARIABLES):
                raise unknown_name("environment variable of textbench", variable, (*VARIABLES, *OTHER_VARIABLES))
        file, given = str(words.get("config") or ""), {name: value for name, value in words.items() if name != "config"}
        config: dict[str, Any] = {}
        if file:
            from agents.common.toml import read_toml  # here, since --help can do without it

            data = read_toml(Path(file), f"the configuration file {file}", UsageError)
            config = {name.replace("-", "_"): value for name, value in data.items()}
            if strange := [name for name in config if name not in names]:
                raise unknown_name(f"option of a run (in {file})", strange[0], names)
        if isinstance(config.get("agents"), dict):
            _read_agent_tables(file, config, given)
        values, called = dict(config), {name: f"{name} in {file}" for name in config}
        for variable, name in VARIABLES.items():
            if name in given:
                values[name], called[name] = given[name], OPTIONS[name].flag
            elif name not in config and name in names and (text := os.environ.get(variable)):
                values[name], called[name] = _LISTED.split(text) if OPTIONS[name].many else text, variable
            if OPTIONS[name].many and isinstance(values.get(name), str):
                values[name] = [values[name]]
        for name in CLUSTER:  # a variable may stand there for other runs, but a flag is given for this one
            if name in given and "ray" not in values:
                raise UsageError(f"{OPTIONS[name].flag} is of a cluster, and this run is on none: add --ray")
        return cls.of(values, called)


OPTIONS = fields_of(RunOptions)


_LISTED = re.compile(r",(?![^()]*\))")  # a comma outside of parentheses


def marked(mark: str) -> tuple[str, ...]:
    """Return the names of the options that have a mark."""
    return tuple(name for name, one in OPTIONS.items() if mark in one.marks)


COUNTING = marked("counts")
OPERATING = tuple(name for name in OPTIONS if name not in (*COUNTING, *marked("unstored")))
OF_ONE_AGENT, CLUSTER, ADDED = marked("agent"), marked("cluster"), marked("added")

VARIABLES = {f"TEXTBENCH_{name.upper()}": name for name, one in OPTIONS.items() if one.metavar}
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


def flag_of(name: str) -> str:
    """Return an option's flag, such as ``--max-cost``."""
    return OPTIONS[name].flag


def arguments_of(options: RunOptions) -> list[str]:
    """Return the words of a command line that give these options again; an address may hold a secret, and is left
    out."""
    words = []
    for name, one in OPTIONS.items():
        if name in options.given and name != "base_url" and one.metavar:
            value = getattr(options, name)
            for each in value if one.many else [value]:
                text = json.dumps(each) if isinstance(each, Mapping) else str(each)
                words += [one.flag] if one.switch else [one.flag, text]
    return words


def _read_agent_tables(file: str, config: dict[str, Any], given: dict[str, Any]) -> None:
    """Read ``[agents.NAME]``, with ``spec`` and the agent's options; those of agents that aren't played don't matter.

    The ``agents`` in ``config`` become a list as on the command line, besides ``agent_options``; names of the file that
    are ``given`` on the command line become whole agents.
    """
    specs: dict[str, str] = {}
    own: dict[str, Any] = {}
    for name, table in config["agents"].items():
        if not isinstance(table, dict) or not isinstance(table.get("spec", name), str):
            raise UsageError(f'[agents.{name}] in {file} is a table with spec = "..." and options of the agent')
        specs[name] = table.get("spec", name)
        own[name] = without_spec(table)
    if named := given.get("agents"):
        given["agents"] = [f"{text}={specs[text]}" if specs.get(text, text) != text else text for text in named]
        own = {name: options for name, options in own.items() if name in named}
    config["agents"] = [f"{name}={spec}" if name != spec else name for name, spec in specs.items()]
    config["agent_options"] = {name: options for name, options in own.items() if options} or None
