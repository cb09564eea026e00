"""Agents as a Python program gives them: specs, policies that it has made, or a mix, named or not.

``"planner" | policy | {"mine": policy, "base": "hf:..."} | a list of these -> specs, {name: policy}``.

A manifest must say who played, and a resume must notice when it is somebody else. Of a policy it says the class, its
``settings`` (or those of its model, decoding and prompts), and, where the class is the user's own, a digest of its
source code, so that a class that was edited between two cells of a notebook isn't taken for the old one.
"""

import hashlib
import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

from agents.turn import Policy
from benchmark.errors import UsageError, shown

OBJECT = "python"  # what stands before the colon in the spec of a policy that a Python program has made
NAME = r"[\w.+@-]+"  # what an agent may be called: a pattern

OWN_PACKAGES = ("textgames", "agents", "benchmark")  # their version stands in the manifest

Agents = str | Policy | Mapping[str, str | Policy] | Iterable[str | Policy]
"""What :func:`benchmark.evaluate` takes for its agents."""


def given_agents(agents: Agents) -> tuple[tuple[str, ...], dict[str, Policy]]:
    """The agents as ``--agent`` would have them, and the policies among them by name.

    Raises:
        UsageError: something that is neither a spec nor a policy, or a name that no agent can have.
    """
    if isinstance(agents, str | Policy):
        agents = (agents,)
    pairs: list[tuple[str | None, Any]]
    if isinstance(agents, Mapping):
        pairs = [(_checked_name(name), one) for name, one in agents.items()]
    elif isinstance(agents, Iterable):
        pairs = [(None, one) for one in agents]
    else:
        raise _refused(agents)
    texts: list[str] = []
    policies: dict[str, Policy] = {}
    for name, one in pairs:
        if isinstance(one, str):
            texts.append(one if name is None else f"{name}={one}")
        elif isinstance(one, Policy) and not isinstance(one, type):
            name = _name_of(one) if name is None else name
            if name in policies:
                raise UsageError(f'two agents are named {name!r}; name them: {{"first": ..., "second": ...}}')
            policies[name] = one
            texts.append(f"{name}={spec_of(one)}")
        else:
            raise _refused(one)
    return tuple(texts), policies


def spec_of(policy: Policy) -> str:
    """What stands for a policy where others have their spec: ``"python:my_module.Mine"``."""
    return f"{OBJECT}:{type(policy).__module__}.{type(policy).__qualname__}"


def is_object(spec: str) -> bool:
    """Whether a spec stands for a policy that only the program has that made it."""
    return spec.startswith(f"{OBJECT}:")


def code_of(policy: Policy) -> dict[str, str]:
    """``{class: digest of its source}`` of the policy and its model, where the classes are the user's own."""
    digests = {}
    for kind in (type(policy), type(getattr(policy, "model", policy))):
        if kind.__module__.partition(".")[0] not in OWN_PACKAGES and (source := _source(kind)):
            digests[kind.__qualname__] = hashlib.sha256(source.encode()).hexdigest()[:16]
    return digests


def _source(kind: type) -> str:
    """The source code of a class, or of its methods where it stands in a notebook; empty where nobody has it."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        methods = [one for one in vars(kind).values() if inspect.isfunction(one)]
    try:
        return "".join(map(inspect.getsource, methods))
    except (OSError, TypeError):  # typed into an interpreter, or not written in Python
        return ""


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        raise UsageError(f"an agent's name is made of letters, digits and any of .+@-_, got {shown(name)}")
    return name


def _name_of(policy: Policy) -> str:
    """The policy's own name, with a hyphen for every character that an agent's name can't have."""
    return re.sub(r"[^\w.+@-]+", "-", str(policy.name)).strip("-") or type(policy).__name__


def _refused(one: object) -> UsageError:
    what = f"the class {one.__name__}, which is to be called" if isinstance(one, type) else shown(one)
    return UsageError(
        'an agent is a spec ("planner", "openai:MODEL"), a policy (an object with a name and act(requests)), or a '
        f'mapping {{"name": spec or policy}}, got {what}'
    )
