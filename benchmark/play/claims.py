"""What a run's settings name that only its user can allow: code, servers, variables with secrets, files.

``manifest | options -> Claim, ...``. A run that is made has them from its user's own command, and they are remembered
with its folder. A run that is gone on with has them from a file, which may be anybody's.
"""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.common.approvals import Claim, approve, open_claims, refusal
from agents.common.redaction import public_url
from agents.load import BASELINES, registered_agents
from agents.models.provider import find_model
from agents.programs.sandbox import holds
from agents.wrappers import innermost
from benchmark.errors import UsageError
from benchmark.play.agents.objects import AgentSpec, is_object
from benchmark.play.agents.options import read_sets
from benchmark.play.options import RunOptions, arguments_of
from benchmark.runs.folder import resume_command

HARMLESS = (
    *("temperature", "top_p", "max_tokens", "stop", "mode", "history", "prompts", "system", "seed", "send_seed"),
    *("timeout", "max_retries", "patience", "route", "omit", "max_tokens_field", "reasoning_effort"),
    *("reasoning_tokens", "dtype", "device", "revision", "adapter", "max_batch_tokens", "chat"),
    *("chat_template_kwargs", "thinking_budget", "legal_only", "seconds", "memory_mb", "max_states"),
)
"""Options of models that neither run code nor decide where anything is sent. Every other one has to be allowed."""


def claims_of(options: RunOptions, env_ids: Iterable[str]) -> list[Claim]:
    """All claims of that kind that a run's options and its games make."""
    specs = [AgentSpec.parse(text) for text in options.agents]
    claims = [Claim("--allow", spec.spec, f"the code {spec.spec}") for spec in specs if names_code(spec.spec)]
    # some of LiteLLM's models are named by their address
    claims += [Claim("--allow", spec.spec, f"the server in {spec.spec}") for spec in specs if "://" in spec.spec]
    modules = dict.fromkeys(filter(None, (env_id.rpartition(":")[0] for env_id in env_ids)))
    claims += [Claim("--import", module, f"the module {module}") for module in modules]
    if options.base_url is not None and public_url(options.base_url) not in _servers_of_environment():
        url = public_url(options.base_url)
        claims.append(Claim("--base-url", url, f"the server {url}"))
    if options.cache is not None:
        claims.append(Claim("--cache", options.cache, f"the response cache {options.cache}"))
    code = {spec.name for spec in specs if names_code(spec.spec)}  # which may do with its options what it likes
    return claims + [claim for name, own in options.by_agent.items() if name not in code for claim in _own(name, own)]


def _own(name: str, options: Mapping[str, Any]) -> Iterator[Claim]:
    for option, value in options.items():
        if option in HARMLESS or not value:
            continue
        if option == "base_url":
            value = public_url(value)
            if value in _servers_of_environment():
                continue
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
        yield Claim("--set", f"{name}.{option}={text}", f"the {option} {text} of {name}")


def names_code(spec: str) -> bool:
    """Whether an agent's spec is code to import that no installed package has registered: ``file.py:Agent``.

    Programs that run in a sandbox are none where it holds them.
    """
    return not is_object(spec) and any(map(_is_code, innermost(spec)))


def _is_code(spec: str) -> bool:
    if (baseline := BASELINES.get(spec.partition(":")[0])) is not None and baseline.takes:
        return not holds()
    if spec in BASELINES or spec in registered_agents():
        return False
    try:
        return ":" in spec and find_model(spec) is None
    except ValueError:  # a provider without a model, which is said when it is made
        return False


def _servers_of_environment() -> set[str]:
    named = (os.environ.get(name, "").strip() for name in ("OPENAI_BASE_URL", "TEXTBENCH_BASE_URL"))
    return {public_url(url) for url in named if url}


def check_claims(
    folder: Path,
    options: RunOptions,
    env_ids: Iterable[str],
    given: RunOptions,
    allowed: Iterable[str],
    ask: Callable[[str], bool],
) -> None:
    """Refuse to go on with a folder that names what its user hasn't.

    Args:
        folder: the run's.
        options: with which it would be played: its manifest's, and ``given`` before them.
        env_ids: of its games.
        given: what this command line says.
        allowed: the agents' code that it allows.
        ask: puts a question to the user; false where there is nobody to ask.

    Raises:
        UsageError: with the command that allows all of it.
    """
    said = [Claim("--allow", text, "") for text in allowed]
    own = read_sets(given.sets, [AgentSpec.parse(text).name for text in options.agents])
    for name, values in own.items():
        said += _own(name, values)
    said += claims_of(RunOptions(base_url=given.base_url, cache=given.cache), ())
    claims = claims_of(options, env_ids)
    said += [claim for claim in claims if claim.flag == "--import" and claim.value in sys.modules]
    missing = open_claims(folder, claims, said)
    if missing and not ask(f"{folder} names {', '.join(claim.meaning for claim in missing)}. Do you trust it?"):
        command = " ".join([resume_command(folder), *map(shlex.quote, arguments_of(given))])
        raise UsageError(refusal(folder, missing, command))
    approve(folder, claims)
