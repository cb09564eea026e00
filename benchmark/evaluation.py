"""Evaluating agents from Python: :func:`evaluate`."""

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.turn import Policy
from benchmark.errors import UsageError, unknown_name
from benchmark.play.agents.options import Agents, given_agents
from benchmark.play.options import OPTIONS, RunOptions
from benchmark.play.progress import teller
from benchmark.play.session import by_protocol, play_all
from benchmark.results import Results
from benchmark.runs.manifest import MANIFEST_NAME
from benchmark.score.results import read_columns
from benchmark.seasons import plan_played
from textgames.scenarios import Scenario, known_scenario


def evaluate(
    agents: Agents = (),
    *,
    suite: str | Sequence[str] | None = None,
    scenarios: str | Sequence[str] | None = None,
    episodes: int | None = None,
    out: str | Path | None = None,
    quiet: bool = False,
    **options: Any,
) -> Results:
    """Play agents on scenarios and return the results: ``textbench run`` for a program or a notebook.

    Progress is shown on standard error, in a notebook in the cell; nothing is printed to standard output. It may be
    called inside a running event loop.

    Args:
        agents: a spec as ``--agent`` takes it (``"planner"``, ``"openai:MODEL"``, ``"hf:FOLDER"``), a policy (any
            object with a ``name`` and ``act(requests)``, see :class:`agents.turn.Policy`), a list of these, or ``{name:
            spec or policy}``; in a mapping, ``{"spec": "openai:MODEL", "temperature": 0.2}`` is an agent with options
            of its own. With nothing, those that ``textbench run`` plays. A policy of your own should have ``settings``,
            the plain data that decide its responses: they stand in the results, and a run is resumed only with equal
            ones.
        suite: a suite, or several, to play.
        scenarios: a scenario, or several, to play besides; the paper's four if neither is given.
        episodes: per scenario and agent; 50 by default.
        out: the run folder, which every command reads; the same call with the same folder resumes it, and plays nothing
            if nothing is missing. ``None``: a temporary folder, which is removed with the results.
        quiet: nothing on standard error.
        **options: every other option of ``textbench run`` by its name with underscores, such as ``temperature``,
            ``base_url``, ``max_concurrency``, ``max_cost``, ``seed_offset`` or ``until``; ``TEXTBENCH_*`` aren't read.

    Returns:
        The results of the folder, those of earlier calls included. ``results.stopped`` names the limit that ended the
        run, if one did.

    Raises:
        UsageError: a name that doesn't exist, a value that isn't accepted, a missing key or package, another run's
            folder, in the words of the command line; before the first episode.
        StorageError: the disk refused; what was finished is kept.
        KeyboardInterrupt: Ctrl-C, or a notebook's stop button; its message names the folder of the finished episodes.
        Exception: whatever a policy of your own raises; what was finished is kept in ``out``.
    """
    given = given_agents(agents)
    own = options.pop("agent_options", None) or {}
    if not isinstance(own, Mapping):
        raise UsageError(f"agent_options are {{agent: {{option: value}}}}, got {own!r}")
    own = {**own, **given.options} or None
    if isinstance(scenarios, Sequence) and not scenarios:  # a list that was filtered
        raise UsageError("scenarios is empty; leave it out to play the paper's four, or name some")
    if suite is not None and options.get("suites") is not None:
        raise UsageError("suite and suites are one option, and both are given: put all suites into one of them")
    named = {"agents": given.specs, "suites": suite, "scenarios": scenarios, "episodes": episodes, "out": out}
    checked = _checked({**named, "agent_options": own, **options})
    if out is not None:
        return _played(checked, given.policies, quiet)
    folder = Path(tempfile.mkdtemp(prefix="textbench-"))
    try:
        results = _played(replace(checked, out=str(folder)), given.policies, quiet)
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt) or not any(folder.rglob(MANIFEST_NAME)):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    results.goes_with(folder)
    return results


def _played(options: RunOptions, policies: Mapping[str, Policy], quiet: bool) -> Results:
    runs = [plan_played(one, teller(quiet), policies) for one in by_protocol(options)]
    ending = play_all(runs, quiet=quiet)
    path = ending.path if len(runs) == 1 else ending.path.parent
    kept = f"{ending.done} of {ending.total} episodes are kept"
    if isinstance(ending.error, KeyboardInterrupt):
        raise KeyboardInterrupt(
            f"{kept} in {path}: benchmark.read_results({str(path)!r}) opens them, and the same call with "
            f"out={str(path)!r} goes on"
        ) from None
    if ending.error is not None:
        raise ending.error
    stopped = ending.stopped or ending.too_wide_message or None
    if stopped is not None:
        teller(quiet)(f"{stopped}; {kept}")
    return Results(read_columns([path]), stopped=stopped, quiet=quiet)


def _checked(given: Mapping[str, Any]) -> RunOptions:
    """Return the options as a run takes them; what is ``None`` or empty wasn't given."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in OPTIONS:
            raise unknown_name("option of a run", name, OPTIONS)
        many = OPTIONS[name].many
        if value is None or (many and not value):
            continue
        if many:  # a name alone, or several
            several = [value] if isinstance(value, str | Scenario) or not isinstance(value, Iterable) else value
            values[name] = tuple(_name_of(one) if isinstance(one, Scenario) else one for one in several)
        else:
            values[name] = str(value) if isinstance(value, Path) else value
    return RunOptions.of(values)


def _name_of(scenario: Scenario) -> str:
    """Return a scenario's name; raises a UsageError if it isn't the scenario of that name any more."""
    if known_scenario(scenario.name) != scenario:
        raise UsageError(
            f"{scenario.name!r} has been changed, and scenarios are played by their names: register the game with "
            "these settings, and name it by its id, as in my_module:MyGame-v0"
        )
    return scenario.name
