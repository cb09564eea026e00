"""Leaderboard entries: one agent's episodes on the scenarios, self-contained, so that they can be replayed anywhere.

``run folder -> submit -> leaderboards/[SUITE/]NAME/{manifest.json, episodes.jsonl}``. An entry has the form of a run
folder: the agent's card, the versions, the settings, the seeds, and every response; lines are in the order of
(scenario, agents, seed).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from agents.common.files import member, replacing
from agents.common.redaction import Redactor
from agents.common.refusals import shown
from benchmark.errors import UsageError, storing, unknown_name
from benchmark.runs.folder import EPISODES_NAME, RunFolder, folder_name, resume_command, write_atomically
from benchmark.runs.manifest import ENTRY_KIND, MANIFEST_NAME
from benchmark.runs.plan import Matchup, Plan
from benchmark.runs.record import Key, sealed_line, to_line
from textgames.scenarios import SUITES

BOARDS = ("paper", "planning", "exploration")
"""The suites with a leaderboard. One player acts in all of their scenarios, so an entry needs no opponents. The entries
of ``paper`` are in ``leaderboards/``, those of another suite in a folder of its name in there."""

MIN_EPISODES = 50  # of every scenario, from its first seed on
LONGEST_NAME = 100  # characters of an agent's name
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
"""Names that Windows keeps for devices, with any ending: no checkout there can hold a folder of that name."""


class Terms(NamedTuple):
    """The episodes that an entry must have: of the open leaderboard, or of a season (:mod:`benchmark.seasons`)."""

    scenarios: tuple[str, ...]  # all of them
    episodes: int  # of every scenario
    seed_offset: int = 0  # the first of them
    settings: Mapping[str, Any] = {}  # what else of the run is given
    exact: bool = False  # neither more episodes than these, nor other scenarios
    season: str = ""  # its folder, for advice
    mark: Mapping[str, str] | None = None  # the season in the manifest
    suite: str = "paper"  # of BOARDS


def open_terms(board: str = "paper") -> Terms:
    """Return the terms of a leaderboard that may be entered at any time; a name outside BOARDS means the paper's."""
    suite = board if board in BOARDS else "paper"
    return Terms(SUITES[suite], MIN_EPISODES, suite=suite)


def submit(
    source: Path,
    out: Path,
    agent: str | None = None,
    author: str = "",
    note: str = "",
    redactor: Redactor | None = None,
    terms: Terms | None = None,
) -> Path:
    """Make a leaderboard entry of a run as a folder in ``out``, and return that folder.

    ``agent`` may be left out if the run has one; ``author`` and ``note`` are told to readers.

    Raises:
        UsageError: no such agent, or the run isn't complete enough; with what is missing and the command for it.
        StorageError: the folder can't be written.
    """
    folder, terms = RunFolder.open(source), terms or open_terms()
    names = [card["name"] for card in folder.manifest["agents"]]
    if agent is None and len(names) != 1:
        raise UsageError(f"an entry is of one agent, this run has {len(names)}: choose with --agent {'|'.join(names)}")
    name = str(names[0]) if agent is None else agent
    if name not in names:
        raise unknown_name("agent in this run", name, names)
    if problem := name_problem(name):
        raise UsageError(problem)
    plan, index = Plan.from_manifest(folder.manifest), folder.index()
    _check_complete(folder, plan, index, name, terms)
    wanted = plan.scenarios if terms.exact else terms.scenarios  # exact terms refuse a run that has others
    seeds = {one: found for one, found in plan.seeds.items() if name in one.agents and one.scenario in wanted}
    manifest = {
        **{key: value for key, value in folder.manifest.items() if key not in ("operation", "season")},
        **({} if terms.mark is None else {"season": dict(terms.mark)}),
        **{"kind": ENTRY_KIND, "agent": name, "author": author, "note": note},
        "agents": [card for card in folder.manifest["agents"] if card["name"] == name],
        "prices": {key: price for key, price in folder.manifest.get("prices", {}).items() if key == name},
        **Plan({matchup.scenario: plan.scenarios[matchup.scenario] for matchup in seeds}, seeds).to_json(),
    }
    redactor = redactor or Redactor.from_environment()
    with storing(out / folder_name(name)):
        entry = member(out, folder_name(name))
        entry.mkdir(parents=True, exist_ok=True)
    order = sorted((key, offset) for key, (offset, _) in index.items() if (key.scenario, key.agents) in seeds)
    file = entry / EPISODES_NAME
    with storing(file), replacing(file, "wb") as target:
        for record in folder.records_at(offset for _, offset in order):  # one record at a time in memory
            target.write(sealed_line(redactor.scrub_bytes(to_line(record))))
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    write_atomically(entry / MANIFEST_NAME, redactor.scrub(text))
    return entry


def name_problem(name: str) -> str | None:
    """Return why an agent's name can't be an entry's, which becomes a folder on any computer; ``None`` if it can."""
    advice = "play it under another name: textbench run --agent NAME=SPEC"
    if not (name.isascii() and name.isprintable() and name.strip() == name and 0 < len(name) <= LONGEST_NAME):
        accepted = f"accepted are 1 to {LONGEST_NAME} letters, digits and signs of ASCII"
        return f"the agent's name is {shown(name)}, {accepted}; {advice}"
    if not name[0].isalnum():
        return f"the agent's name is {name!r}, a name begins with a letter or a digit; {advice}"
    if folder_name(name).casefold() in BOARDS:
        return f"the agent's name is {name!r}, which is a suite's, whose folder holds entries; {advice}"
    if folder_name(name).partition(".")[0].casefold() in DEVICES or folder_name(name).endswith("."):
        return f"the agent's name is {name!r}, which can't be a folder's on Windows; {advice}"
    return None


def _check_complete(
    folder: RunFolder, plan: Plan, index: Mapping[Key, tuple[int, bool]], agent: str, terms: Terms
) -> None:
    short: dict[str, int] = {}  # {scenario: the episodes that there are}
    grows = not terms.season  # whether more episodes of this run are all it takes
    for scenario in terms.scenarios:
        seeds = plan.seeds.get(Matchup(scenario, (agent,)), ())
        first = (plan.scenarios[scenario].first_seed if scenario in plan.scenarios else 0) + terms.seed_offset
        from_first = list(seeds) == list(range(first, first + len(seeds)))
        if len(seeds) < terms.episodes or not from_first:
            short[scenario] = len(seeds)
            grows = grows and from_first and len(seeds) > 0
    if short:
        scenario, count = next(iter(short.items()))
        whose = f" of {terms.season}" if terms.season else " or more"
        spec = next(card["spec"] for card in folder.manifest["agents"] if card["name"] == agent)
        anew = f"textbench run --agent {quote(agent if spec == agent else f'{agent}={spec}')}"
        server = folder.manifest["settings"].get("base_url")
        anew += f" --base-url {quote(server)}" if server else ""
        anew += f" --season {terms.season}" if terms.season else ""
        anew += f" --suite {terms.suite}" if terms.suite != "paper" else ""
        command = f"{resume_command(folder.path)} --episodes {terms.episodes}" if grows else anew
        raise UsageError(
            f"an entry needs the first {terms.episodes} episodes{whose} of {scenario!r}, this run has {count} of "
            f"{agent!r}; play them: {command}"
        )
    for key in plan.episodes():
        if agent in key.agents and key.scenario in terms.scenarios and not index.get(key, (0, False))[1]:
            raise UsageError(f"{key} isn't scored, so there can be no entry; play it: {resume_command(folder.path)}")
