"""Agents as a Python program gives them: specs, policies that it has made, or a mix, named or not.

``"planner" | policy | {"mine": policy, "base": "hf:..."} | a list of these -> GivenAgents``. A manifest must tell who
played, and a resume must notice when it is another agent: a policy stands there with its class, its ``settings``, and,
if the class is the user's own, a digest of its source code, which may have been edited between two cells of a notebook.
"""

import hashlib
import inspect
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from agents.common.refusals import shown
from agents.turn import Policy
from benchmark.errors import UsageError
from benchmark.play.options import without_spec

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
