"""Commands that say what there is: scenarios, agents, and what is installed."""

import platform
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from time import perf_counter
from typing import Any

from agents.common.redaction import Redactor
from agents.episode import EpisodeTask
from agents.loop.live import LiveEpisode
from agents.models.gguf import PROVIDER
from benchmark.cli.settings import Doctor, List
from benchmark.foreign import overwritten_sdk
from benchmark.play.agents.catalogue import agent_kinds, scenario_facts
from benchmark.play.agents.options import secrets_of
from benchmark.play.agents.players import load_one, missing_models
from benchmark.play.options import RunOptions
from benchmark.runs.provenance import code_version, package_versions
from benchmark.score.cache import cache_folder
from benchmark.show.draw import print_tables
from benchmark.show.notes import by_suite
from benchmark.show.table import Table, text_table
from textgames.scenarios import ABOUT_SUITES, SCENARIOS, SUITES


def run_list(settings: List) -> int:
    """Print the lists that were asked for."""
    facts: dict[str, Callable[[], Any]] = {
        "suites": lambda: {
            name: {"about": ABOUT_SUITES[name], "scenarios": list(names)} for name, names in SUITES.items()
        },
        "scenarios": scenario_facts,
        "agents": lambda: [agent._asdict() for agent in agent_kinds()],
    }
    found = {name: facts[name]() for name in ((settings.what,) if settings.what else facts)}
    if settings.output.json:
        settings.output.document(found)
    else:
        print_tables([table for name, one in found.items() for table in _tables(name, one)])
    return 0


def _tables(name: str, facts: Any) -> Iterator[Table]:
    if name == "agents":
        rows = [(kind["spec"], kind["text"], kind["missing"] or "") for kind in facts]
        yield text_table(name, ("<agent", "<what it is", "<missing"), rows, ("textbench run --agent SPEC",))
    elif name == "suites":
        rows = [(name, str(len(suite["scenarios"])), suite["about"]) for name, suite in facts.items()]
        note = "textbench run --suite NAME; paper is what a run plays by default"
        yield text_table(name, ("<suite", "scenarios", "<what it tests"), rows, [note])
    else:  # a table for every suite, with the scenarios that no suite before it has
        columns = ("<scenario", "<environment", "players", "horizon", "first seed", "<yardstick", "<settings")
        notes = ("textbench run --scenario NAME", "yardstick: what is known of the best possible play, and how")
        *_, last = suites = by_suite(facts)
        for suite in suites:
            lines = []
            for scenario in suites[suite]:
                one = facts[scenario]
                numbers = (str(one["players"]), str(one["horizon"]), str(one["first_seed"]))
                kwargs = ", ".join(f"{key}={value}" for key, value in one["kwargs"].items())
                lines.append((scenario, one["env_id"], *numbers, one["yardstick"] or "-", kwargs))
            yield text_table(f"scenarios: {suite}", columns, lines, notes if suite == last else ())


def run_doctor(settings: Doctor) -> int:
    """Report the installed packages, and the agents that can run."""
    answer = ask(settings.agent, settings.options) if settings.agent else None
    document: dict[str, Any] = {
        "textbench": code_version(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": package_versions(),
        "device": _device(),
        "smollm2": _smollm2(),
        "cache": str(cache_folder()),
        "warnings": [warning] if (warning := overwritten_sdk()) else [],
        "agents": [kind._asdict() for kind in agent_kinds()],
        **({"question": answer} if answer else {}),
    }
    if settings.output.json:
        settings.output.document(document)
    else:
        _print(document)
    return 0 if answer is None or answer["error"] is None else 1


def ask(spec: str, options: RunOptions) -> dict[str, Any]:
    """Ask an agent for the first action of an episode: one request."""
    if "max_retries" not in options.given:  # a question isn't worth waiting for a server that isn't there
        options = replace(options, max_retries=0)
    policy, options = load_one(spec, options)
    scenario = SCENARIOS["frozen-lake"]
    episode = LiveEpisode(EpisodeTask.of(scenario, scenario.first_seed), policy)
    ((player, request),) = episode.requests().items()
    started = perf_counter()
    (turn,) = policy.act([request])
    seconds = perf_counter() - started
    scrub = Redactor.from_environment(secrets=secrets_of(options)).scrub
    steps = episode.play({player: turn})  # none if the provider failed
    return {
        "agent": spec,
        "error": None if turn.error is None else scrub(turn.error),
        "response": scrub(turn.response),
        "action": next((step.action for step in steps if step.valid), None),
        "finish_reason": turn.finish_reason,
        "tokens": [turn.usage.prompt_tokens, turn.usage.completion_tokens],
        "seconds": round(seconds, 3),
    }


def _device() -> str:
    if find_spec("torch") is None:
        return "no torch"
    import torch

    if torch.cuda.is_available():
        return f"CUDA: {torch.cuda.get_device_name(0)}"
    return f"CPU, {torch.get_num_threads()} threads"


def _smollm2() -> str:
    """Return whether the pretrained model is here, and in which type it would run."""
    from agents.models.local.loading.smollm2 import status

    if PROVIDER.missing() is not None:
        return "can't run here"
    from agents.models.local.loading.load import fast_dtype, pick_device

    return f"{status()}; runs in {str(fast_dtype(pick_device('auto'))).removeprefix('torch.')}"


def _print(document: dict[str, Any]) -> None:
    code = document["textbench"]
    commit = f"commit {code['commit'][:12]}{', uncommitted changes' if code['dirty'] else ''}" if code["commit"] else ""
    rows = [
        ("textbench", code["version"], commit),
        ("python", document["python"], document["platform"]),
        *((name, version, "") for name, version in document["packages"].items()),
        ("device", document["device"], missing_models() or ""),
        ("smollm2", document["smollm2"], ""),
        ("cache", document["cache"], ""),
    ]
    lines = [
        (kind["spec"], "can run" if kind["missing"] is None else "missing", kind["missing"] or kind["text"])
        for kind in document["agents"]
    ]
    tables = [
        text_table("installed", ("<what", "<version", "<"), rows, document["warnings"]),
        text_table("agents", ("<agent", "<", "<what it is, or what it needs"), lines),
    ]
    if answer := document.get("question"):
        read = answer["action"] or "none that counts: the response names no legal action"
        fields = [("action", read), ("response", answer["response"]), ("finish reason", answer["finish_reason"])]
        fields.append(("tokens", f"{answer['tokens'][0]} + {answer['tokens'][1]}"))
        fields = fields if answer["error"] is None else [("error", answer["error"])]
        fields.append(("seconds", str(answer["seconds"])))
        tables.append(text_table(f"one question to {answer['agent']}", ("<", "<"), fields))
    print_tables(tables)
