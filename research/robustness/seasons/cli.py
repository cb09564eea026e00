"""The command ``textbench season``: a tournament whose seeds were unknown when the agents were registered."""

import json
import sys
from dataclasses import replace
from pathlib import Path

from agents.common import REQUIRED, option, part, place, read_text, reason_of, settings
from benchmark import UsageError
from benchmark.cli import Output, check_entries, exit_code, verdict_rows
from benchmark.entries import name_problem, option_problem, same_to_a_reader, shipped_problem
from benchmark.play import OF_ONE_AGENT, OPTIONS, RunOptions, plan_run
from benchmark.runs import MANIFEST_NAME
from research.robustness.seasons.programs import programs_of
from research.robustness.seasons.season import Season, new_season, register, reveal

AGENT_OPTIONS = tuple(name for name in OF_ONE_AGENT if name != "legal_only")
"""What describes an agent; by which protocol it plays, the season decides."""


@settings
class New:
    """Open a season and keep its secret.

    The organiser opens a season, which publishes the hash of a secret. Players register their agents. The organiser
    reveals the secret, and the seeds follow from it and from the registrations. Then all play and submit, and anyone
    can check. All of it is files in one folder; see docs/research/seasons.md.

    examples:
      textbench season new autumn --scenario frozen-lake --scenario snake --episodes 100
      textbench season commit autumn --agent planner
      textbench season reveal autumn
      textbench run --season autumn --agent planner --out runs/autumn
      textbench submit runs/autumn --season autumn --out autumn/entries
      textbench season check autumn
    """

    folder: str = place("DIR", "the folder that is published")
    scenarios: tuple[str, ...] = option(REQUIRED, "NAME", "what is played; repeatable")
    episodes: int = option(100, "N", "episodes of every scenario", ge=1, le=10**7)
    rules: RunOptions = part(RunOptions, (), **{name: OPTIONS[name].text for name in ("protocol", "moves")})
    secret: str | None = option(None, "FILE", "where you keep the secret (default DIR.secret)")


@settings
class Commit:
    """Register an agent."""

    folder: str = place("DIR", "the season")
    agent: str = option(REQUIRED, "SPEC", "the agent, or NAME=SPEC")
    author: str = option("", "NAME", "who registers it")
    options: RunOptions = part(RunOptions, AGENT_OPTIONS)


@settings
class Reveal:
    """Publish the secret: agents are fixed and the seeds are known."""

    folder: str = place("DIR", "the season")
    secret: str | None = option(None, "FILE", "where it is kept (default DIR.secret)")


@settings
class Check:
    """Check the season, every entry in DIR/entries, and whether one is missing."""

    folder: str = place("DIR", "the season")
    output: Output = part(Output, ["json"])


STEPS = {"new": New, "commit": Commit, "reveal": Reveal, "check": Check}


def run(step: New | Commit | Reveal | Check) -> int:
    """Take the step of the season that was named."""
    path = Path(step.folder)
    if isinstance(step, New):
        secret = _secret_file(path, step.secret)
        about = {"name": path.resolve().name, "scenarios": [*step.scenarios], "episodes": step.episodes}
        new_season(path, secret, about | {name: getattr(step.rules, name) for name in ("protocol", "moves")})
        print(f"{path} is open. Publish it, and keep {secret} to yourself until it is closed.")
        print(f"Players register: textbench season commit {path} --agent SPEC")
        return 0
    season = Season.open(path)
    if isinstance(step, Commit):
        return _commit(season, step)
    if isinstance(step, Reveal):
        return _reveal(season, _secret_file(path, step.secret))
    return _check(season, as_json=step.output.json)


def _secret_file(path: Path, named: str | None) -> Path:
    return Path(named) if named else path.resolve().with_name(f"{path.resolve().name}.secret")


def _commit(season: Season, step: Commit) -> int:
    options = step.options
    rules = {name: season.about[name] for name in ("protocol", "moves")}
    played = {"agents": (step.agent,), "scenarios": tuple(season.about["scenarios"]), "episodes": 1, **rules}
    planned = plan_run(replace(options, **played, given=options.given | {*played}), lambda sentence: None)
    (card,) = planned.players.check(planned.plan)
    own = planned.options.by_agent.get(card["name"], {})
    name, spec = card["name"], card["spec"]
    if problem := option_problem(spec, own, options.prompts) or name_problem(name) or shipped_problem(name, spec):
        raise UsageError(f"{problem}: its entry would be refused")
    for other in (one["card"]["name"] for one in season.agents.values()):
        if name != other and same_to_a_reader(name, other):
            raise UsageError(f"the agent's name is {name!r}, which can't be told from {other!r}, who is registered")
    file = register(season, card, step.author, own, programs_of(spec, own))
    print(f"{file} registers {card['name']!r}. Publish it before the secret is revealed.")
    return 0


def _reveal(season: Season, secret: Path) -> int:
    try:
        text = read_text(secret).strip()
    except (OSError, ValueError) as error:
        why = reason_of(error)
        raise UsageError(f"the secret {secret} can't be read: {why}; say where it is: --secret FILE") from None
    season = reveal(season, text)
    many = "1 agent" if len(season.agents) == 1 else f"{len(season.agents)} agents"
    print(f"{season.path} is closed with {many}; its first episode is {season.seed_offset:,}.")
    print(f"Publish {season.path}. Everybody plays: textbench run --season {season.path} --agent NAME=SPEC")
    return 0


def _check(season: Season, *, as_json: bool) -> int:
    told = f"registered: {', '.join(one['card']['name'] for one in season.agents.values()) or 'nobody yet'}"
    if season.revealed is None:
        state = "the registrations fit; lock and seeds can be checked when the secret is revealed"
    else:
        state = f"the lock, the registrations and the seeds fit, from episode {season.seed_offset:,} on"
    print(f"{season.path}: {state} ({told})", file=sys.stderr)
    entries = sorted(file.parent for file in (season.path / "entries").glob(f"*/{MANIFEST_NAME}"))
    verdicts = check_entries(entries, season, quiet=as_json)
    withdrawn = season.withdrawn(entries)
    if as_json:
        print(json.dumps({"entries": verdict_rows(verdicts), "withdrawn": withdrawn}))
    else:
        for one in withdrawn:
            whose = f" (by {one['author']})" if one["author"] else ""
            print(f"{one['agent']}{whose}: withdrawn, it is registered and has no entry")
    return 1 if withdrawn else exit_code(verdicts)
