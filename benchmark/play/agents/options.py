"""The agents of a run as they are given: specs, policies that a Python program has made, and options of single agents.

``"planner" | policy | {"mine": policy, "base": "hf:..."} | a list of these -> GivenAgents``. A manifest must tell who
played, and a resume must notice when it is another agent: a policy stands there with its class, its ``settings``, and,
if the class is the user's own, a digest of its source code, which may have been edited between two cells of a notebook.

Options of an agent, ``--set NAME.option=value`` or a table ``[agents.NAME]`` of a configuration file, are those that
its class or function takes (``load_agent``'s), and go before those of the whole run. Most decide the responses and
stand in the manifest's settings; those in :data:`CHANGEABLE` may change when a run is resumed. No secret is ever among
them: keys and headers are named by environment variables.
"""

import hashlib
import inspect
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from agents.common.redaction import LOOKS_LIKE_A_KEY, SECRET_PARAMETER, VARIABLE, public_url, url_secrets
from agents.common.refusals import shown, typed
from agents.common.toml import read_setting
from agents.load import options_taken, runs_program
from agents.prompt_texts import prompt_path
from agents.protocol import LEGAL_ONLY, STANDARD
from agents.turn import Policy
from benchmark.errors import UsageError, unknown_name
from benchmark.play.options import RunOptions, without_spec
from benchmark.runs.manifest import MANIFEST_NAME, read_manifest
from benchmark.runs.provenance import file_digest

OBJECT = "python"  # what stands before the colon in the spec of a policy that a Python program has made
NAME = r"[\w.+@-]+"  # what an agent may be called: a pattern
_NAMED = re.compile(rf"^(?P<name>{NAME})=(?P<spec>.+)$", re.DOTALL)
OWN_PACKAGES = ("textgames", "agents", "benchmark")  # their version stands in the manifest

AgentTable = dict[str, Any]
"""``{"spec": ..., option: value}``, as a table ``[agents.NAME]`` of a configuration file has it."""

Agent = str | Policy | Mapping[str, Any]
"""A spec, a policy, or a table as ``[agents.NAME]`` of a configuration file has it: ``spec``, and options."""

Agents = str | Policy | Mapping[str, Agent] | Iterable[str | Policy]
"""The agents that :func:`benchmark.evaluate` takes."""


class AgentSpec(NamedTuple):
    """An agent as ``--agent`` names it."""

    name: str  # what results call it: what stands before ``=``, else the spec itself
    spec: str  # what :func:`agents.load_agent` takes

    @classmethod
    def parse(cls, text: str) -> "AgentSpec":
        """Read what ``--agent`` was given: ``"base=hf:./checkpoint"`` has a name of its own, ``"planner"`` none."""
        match = _NAMED.match(text)
        return cls(match["name"], match["spec"]) if match else cls(text, text)


class GivenAgents(NamedTuple):
    """The agents of a Python program as a run takes them."""

    specs: tuple[str, ...]  # as ``--agent`` would have them
    policies: dict[str, Policy]  # ``{name: policy}`` of those that needn't be made
    options: dict[str, dict[str, Any]]  # ``{name: {option: value}}`` of those that have their own


def given_agents(agents: Agents) -> GivenAgents:
    """Separate specs, policies and options."""
    if isinstance(agents, list | dict) and not agents:
        raise UsageError("agents is an empty list; name at least one, or leave it out for the default agents")
    named: list[tuple[Any, Any]]
    if isinstance(agents, Mapping):
        named = [*agents.items()]
        for name in agents:
            if not isinstance(name, str) or not re.fullmatch(NAME, name):
                raise UsageError(f"an agent's name is made of letters, digits and any of .+@-_, got {shown(name)}")
    elif isinstance(agents, str | Policy):
        named = [(None, agents)]
    elif isinstance(agents, Iterable):
        named = [(None, one) for one in agents]
    else:
        raise _refused(agents)
    specs: list[str] = []
    policies: dict[str, Policy] = {}
    options: dict[str, dict[str, Any]] = {}
    for name, one in named:
        if isinstance(one, Mapping) and name is not None and isinstance(one.get("spec"), str):
            options[name] = without_spec(one)
            one = one["spec"]
        if isinstance(one, str):
            specs.append(one if name in (None, one) else f"{name}={one}")
            continue
        if not isinstance(one, Policy) or isinstance(one, type):
            raise _refused(one)
        if name is None:  # its own, with a hyphen for every character that an agent's name can't have
            name = re.sub(r"[^\w.+@-]+", "-", str(one.name)).strip("-") or type(one).__name__
        if name in policies:
            raise UsageError(f'two agents are named {name!r}; name them: {{"first": ..., "second": ...}}')
        specs.append(f"{name}={OBJECT}:{type(one).__module__}.{type(one).__qualname__}")
        policies[name] = one
    return GivenAgents(tuple(specs), policies, options)


def is_object(spec: str) -> bool:
    """Report whether a spec stands for a policy that only the program has that made it."""
    return spec.startswith(f"{OBJECT}:")


def code_of(policy: Policy) -> dict[str, str]:
    """Return ``{class: digest of its source}`` of the policy and its model, if the classes are the user's own."""
    digests = {}
    for kind in (type(policy), type(getattr(policy, "model", policy))):
        if kind.__module__.partition(".")[0] not in OWN_PACKAGES and (source := _source(kind)):
            digests[kind.__qualname__] = hashlib.sha256(source.encode()).hexdigest()[:16]
    return digests


def _source(kind: type) -> str:
    """Return the source code of a class, or of its methods if it stands in a notebook; empty if there is none."""
    for parts in ([kind], filter(inspect.isfunction, vars(kind).values())):
        with suppress(OSError, TypeError):
            return "".join(map(inspect.getsource, parts))
    return ""  # typed into an interpreter, or not written in Python


def _refused(one: object) -> UsageError:
    what = f"the class {one.__name__}, which is to be called" if isinstance(one, type) else shown(one)
    return UsageError(
        'an agent is a spec ("planner", "openai:MODEL") or a policy (an object with a name and act(requests)); in a '
        'mapping {"name": agent} also {"spec": "openai:MODEL", "temperature": 0.2}, with options of its own; '
        f"got {what}"
    )


AgentOptions = dict[str, dict[str, Any]]
"""``{agent: {option: value}}``."""

OBJECTS = ("decoding", "prompt_map", "texts", "name", "tools")  # that only a Python program, or the protocol, gives
CHANGEABLE = ("timeout", "max_retries", "patience", "key_variable")
"""What may change when a run is resumed: it doesn't decide the responses."""


def read_sets(texts: Iterable[str], agents: Sequence[str]) -> AgentOptions:
    """Read ``--set NAME.option=value``, or ``NAME.option.key=value`` for a part of a table; later ones count."""
    form = f"NAME.option=value, where NAME is an agent of the run: {', '.join(agents)}"
    found: AgentOptions = {}
    for text in texts:
        place, value = read_setting(text, form, UsageError)
        # an agent's name may have dots: the longest one that fits is meant
        name = max((one for one in agents if place.startswith(f"{one}.")), key=len, default=None)
        if name is None or place.endswith("."):
            raise UsageError(f"--set takes {form}; got {shown(text)}")
        *path, last = place[len(name) + 1 :].split(".")
        table = found.setdefault(name, {})
        for key in path:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise UsageError(f"--set {shown(text)}: {key} is no table, it has a value already")
        table[last] = value
    return found


def together(*parts: Mapping[str, Mapping[str, Any]] | None) -> AgentOptions:
    """Return the options of all parts; if an option is in several, the last part's, and tables are joined."""
    joined: AgentOptions = {}
    for part in parts:
        for name, options in (part or {}).items():
            mine = joined.setdefault(name, {})
            for option, value in options.items():
                before = mine.get(option)
                mine[option] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return joined


def with_agent_options(options: RunOptions, specs: Mapping[str, str]) -> RunOptions:
    """Return a run's options with those of its agents, ``{agent: spec}``, read and checked; none may be a secret."""
    given = together(options.agent_options, read_sets(options.sets, tuple(specs)))
    for name, own in given.items():
        if name not in specs:
            raise unknown_name("agent of this run", name, specs)
        given[name] = checked = _checked(name, specs[name], own)
        if checked.get("prompts"):
            checked["prompts"] = str(prompt_path(checked["prompts"]))
    for name in specs if options.extra_body else ():
        _refuse_secret(name, "extra_body", options.extra_body)
    prompts = str(prompt_path(options.prompts)) if options.prompts else options.prompts
    own_options = {name: own for name, own in given.items() if own} or None
    return _of_one_protocol(replace(options, prompts=prompts, agent_options=own_options, sets=()), specs)


def with_keys(options: RunOptions, specs: Mapping[str, str], key_of: Callable[[str], str] | None = None) -> RunOptions:
    """Give every agent that runs a program the key of its randomness, as an option that the manifest keeps.

    ``key_of`` decides the key by the agent's name; without it, keys are those of the run's folder, or drawn at random.
    """
    takers = [name for name, spec in specs.items() if not is_object(spec) and runs_program(spec)]
    if not takers:
        return options
    if key_of is not None:
        keys = {name: {"key": key_of(name)} for name in takers}
        return replace(options, agent_options=together(options.agent_options, keys))
    out = Path(options.out) if options.out else None
    kept = read_manifest(out)["settings"] if out is not None and (out / MANIFEST_NAME).is_file() else {}
    earlier = kept.get("agent_options") or {}
    keys = {name: {"key": earlier.get(name, {}).get("key") or secrets.token_hex(16)} for name in takers}
    return replace(options, agent_options=together(keys, options.agent_options))


def _of_one_protocol(options: RunOptions, specs: Mapping[str, str]) -> RunOptions:
    """Return the options of a run whose language models all play legal-only, if their own options say so."""
    if not any("legal_only" in own for own in options.by_agent.values()):
        return options
    models = [name for name, spec in specs.items() if not is_object(spec) and "legal_only" in options_taken(spec)[0]]
    held = {name: bool(options.by_agent.get(name, {}).get("legal_only", options.legal_only)) for name in models}
    if len(set(held.values())) > 1:
        free = ", ".join(name for name, legal in held.items() if not legal)
        raise UsageError(
            f"a run has one protocol, and legal_only is another one than that of {free}: play these in a run of their "
            "own; textbench leaderboard shows several runs side by side"
        )
    if not all(held.values()):
        return options
    if options.protocol not in (LEGAL_ONLY, STANDARD["protocol"]):
        raise UsageError(f"legal_only leaves nothing that can't be read, so leave out protocol = {options.protocol!r}")
    return replace(options, legal_only=True, protocol=LEGAL_ONLY)


def _checked(name: str, spec: str, own: Mapping[str, Any]) -> dict[str, Any]:
    if is_object(spec):
        raise UsageError(f"the agent {name!r} is an object of your program: give its options to its class")
    taken, takes_others = options_of(spec)
    known = taken.keys() - set(OBJECTS)
    checked = {}
    for option, value in own.items():
        _refuse_secret(name, option, value)
        if option not in known and not takes_others:
            raise unknown_name(f"option of the agent {name!r} ({spec})", option, known - {"api_key"})
        checked[option] = typed_option(f"the option {option} of the agent {name!r}", value, taken.get(option, Any))
    return checked


def options_of(spec: str, place: str = "") -> tuple[Mapping[str, Any], bool]:
    """Return what :func:`agents.load.options_taken` does; a UsageError about the spec begins with ``place``."""
    try:
        return options_taken(spec)
    except (ValueError, ImportError) as error:
        raise UsageError(place + " ".join(str(error).split())) from None


def typed_option(place: str, value: Any, hint: Any) -> Any:
    """Return a value as the type ``hint`` that an option takes, which errors call ``place``.

    Lists may be written with commas, numbers as texts.
    """
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    origins = [get_origin(kind) for kind in kinds]
    collections = [one for one in origins if isinstance(one, type) and issubclass(one, Iterable)]
    lists = [one for one in collections if not issubclass(one, Mapping)]
    if isinstance(value, str) and lists and str not in kinds:
        value = value.split(",")
    kept = typed(place, value, list[str] | None if lists else hint, UsageError)
    try:
        json.dumps(kept, allow_nan=False, skipkeys=True, default=str)
    except ValueError:  # and no file of the run could hold it
        raise UsageError(f"{place} must be a number, neither infinite nor NaN, got {shown(value)}") from None
    return str(kept) if isinstance(kept, Path) else kept


def _refuse_secret(name: str, option: str, value: Any) -> None:
    """Refuse what would be a secret in a file of the run."""
    advice = "put it into an environment variable, and name that: --set '{}=$MY_VARIABLE'"
    if option == "api_key":
        raise UsageError(f"a key isn't given itself; {advice.format(f'{name}.key_variable').replace('$', '')}")
    if option == "headers" and isinstance(value, Mapping):
        for header, text in value.items():
            if SECRET_PARAMETER.search(header) and not VARIABLE.search(str(text)):
                how = advice.format(f"{name}.headers.{header}")
                raise UsageError(f"the header {header} of the agent {name!r} looks like a secret; {how}")
    if option in ("headers", "extra_body") and LOOKS_LIKE_A_KEY.search(json.dumps(value, default=str)):
        raise UsageError(f"the option {option} of the agent {name!r} holds what looks like a key, and is kept in files")


def secrets_of(options: RunOptions) -> list[str]:
    """Return the secrets that a run's options name: in addresses, in variables with keys, in variables of headers."""
    secrets = url_secrets(options.base_url or "")
    for own in options.by_agent.values():
        secrets += url_secrets(own.get("base_url") or "")
        texts = [str(text) for text in (own.get("headers") or {}).values()]
        variables = [match[1] or match[2] for text in texts for match in VARIABLE.finditer(text)]
        secrets += [os.environ.get(variable, "") for variable in (*variables, own.get("key_variable") or "")]
    return [secret for secret in secrets if secret]


def own_prompts(options: RunOptions) -> list[str]:
    """Return the files of prompts that single agents have."""
    return [own["prompts"] for own in options.by_agent.values() if own.get("prompts")]


def prompt_files(options: RunOptions) -> dict[str, Path]:
    """Return ``{name in the run's folder: file}`` of the prompts that single agents have."""
    return {_kept_as(file_digest(file)): Path(file) for file in own_prompts(options)}


def _kept_as(digest: str) -> str:
    return f"prompts-{digest[:16]}.toml"


def stored(options: Mapping[str, Mapping[str, Any]] | None) -> tuple[AgentOptions | None, AgentOptions | None]:
    """Return the options as a manifest holds them, without secrets: those that decide responses, and the others."""
    counting: AgentOptions = {}
    changeable: AgentOptions = {}
    for name, own in (options or {}).items():
        for option, value in own.items():
            if option == "base_url" and value is not None:
                value = public_url(value)
            if option == "prompts" and value is not None:
                value = f"sha256 {file_digest(value)}"
            (changeable if option in CHANGEABLE else counting).setdefault(name, {})[option] = value
    return counting or None, changeable or None


def resumed(path: Path, counting: AgentOptions | None, changeable: AgentOptions | None) -> AgentOptions:
    """Return the options that a run's manifest holds, with the files of prompts that lie in its folder ``path``."""
    options = together(counting, changeable)
    for name, own in options.items():
        if own.get("prompts"):
            digest = str(own["prompts"]).removeprefix("sha256 ")
            if not re.fullmatch(r"[0-9a-f]{16}", digest):  # a name made of it must not leave the folder
                raise UsageError(f"{path} has prompts of the agent {name!r} with the digest {shown(digest)}")
            own["prompts"] = str(path / _kept_as(digest))
    return options
