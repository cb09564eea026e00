"""Hold a tournament whose seeds couldn't be known when the agents were registered.

The organiser opens a season, which publishes the hash of a secret. Players register their agents. The organiser reveals
the secret, and the seeds follow from it and from the registrations. Then all play and submit, and anyone can check. All
of it is files in one folder; see docs/research/seasons.md.

examples:
  textbench season new autumn --scenario frozen-lake --scenario snake --episodes 100
  textbench season commit autumn --agent planner
  textbench season reveal autumn
  textbench run --season autumn --agent planner --out runs/autumn
  textbench submit runs/autumn --season autumn --out autumn/entries
  textbench season check autumn
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from agents.common import read_text, reason_of
from benchmark import UsageError
from benchmark.cli import add_number, add_output_options, check_entries, exit_code, verdict_rows
from benchmark.entries import name_problem, option_problem, same_to_a_reader, shipped_problem
from benchmark.play import OF_ONE_AGENT, OPTIONS, add_options, checked_options, plan_run, read_options
from benchmark.runs import MANIFEST_NAME
from research.robustness.seasons.programs import programs_of
from research.robustness.seasons.season import Season, new_season, register, reveal

AGENT_OPTIONS = tuple(name for name in OF_ONE_AGENT if name != "legal_only")
"""What describes an agent; by which protocol it plays, the season decides."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the four steps of a season as commands of their own."""
    steps = parser.add_subparsers(dest="step", required=True, metavar="new|commit|reveal|check")
    new = steps.add_parser("new", help="open a season and keep its secret")
    new.add_argument("folder", metavar="DIR", help="the folder that is published")
    new.add_argument("--scenario", action="append", required=True, metavar="NAME", help="what is played; repeatable")
    add_number(new, "--episodes", 100, "episodes of every scenario", 1, 10**7)
    for name in ("protocol", "moves"):
        about = OPTIONS[name]
        new.add_argument(f"--{name}", default=about.default, metavar="NAME", help=about.metadata["text"])
    new.add_argument("--secret", metavar="FILE", help="where you keep the secret (default DIR.secret)")
    commit = steps.add_parser("commit", help="register an agent")
    commit.add_argument("folder", metavar="DIR", help="the season")
    commit.add_argument("--agent", required=True, metavar="SPEC", help="the agent, or NAME=SPEC")
    commit.add_argument("--author", default="", metavar="NAME", help="who registers it")
    add_options(commit, AGENT_OPTIONS)
    reveal = steps.add_parser("reveal", help="publish the secret: agents are fixed and the seeds are known")
    reveal.add_argument("folder", metavar="DIR", help="the season")
    reveal.add_argument("--secret", metavar="FILE", help="where it is kept (default DIR.secret)")
    check = steps.add_parser("check", help="check the season, every entry in DIR/entries, and whether one is missing")
    check.add_argument("folder", metavar="DIR", help="the season")
    add_output_options(check, "json")


def run(args: Namespace) -> int:
    """Take the step of the season that was named."""
    path = Path(args.folder)
    if args.step == "new":
        return _new(path, args)
    season = Season.open(path)
    if args.step == "commit":
        return _commit(season, args)
    if args.step == "reveal":
        return _reveal(season, _secret_file(path, args))
    return _check(season, args)


def _secret_file(path: Path, args: Namespace) -> Path:
    return Path(args.secret) if args.secret else path.resolve().with_name(f"{path.resolve().name}.secret")


def _new(path: Path, args: Namespace) -> int:

    rules = {name: getattr(args, name) for name in ("protocol", "moves")}
    rules = {name: value for name, value in checked_options(rules, {}).items() if name in rules}
    settings = {"name": path.resolve().name, "scenarios": args.scenario, "episodes": args.episodes}
    secret = _secret_file(path, args)
    new_season(path, secret, settings | rules)
    print(f"{path} is open. Publish it, and keep {secret} to yourself until it is closed.")
    print(f"Players register: textbench season commit {path} --agent SPEC")
    return 0


def _commit(season: Season, args: Namespace) -> int:

    options = read_options(args, names=AGENT_OPTIONS)
    rules = {name: season.about[name] for name in ("protocol", "moves")}
    played = {"agents": (args.agent,), "scenarios": tuple(season.about["scenarios"]), "episodes": 1, **rules}
    planned = plan_run(replace(options, **played, given=options.given | {*played}), lambda sentence: None)
    (card,) = planned.players.check(planned.plan)
    own = planned.options.by_agent.get(card["name"], {})
    name, spec = card["name"], card["spec"]
    if problem := option_problem(spec, own, options.prompts) or name_problem(name) or shipped_problem(name, spec):
        raise UsageError(f"{problem}: its entry would be refused")
    for other in (one["card"]["name"] for one in season.agents.values()):
        if name != other and same_to_a_reader(name, other):
            raise UsageError(f"the agent's name is {name!r}, which can't be told from {other!r}, who is registered")
    file = register(season, card, args.author, own, programs_of(spec, own))
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


def _check(season: Season, args: Namespace) -> int:

    told = f"registered: {', '.join(one['card']['name'] for one in season.agents.values()) or 'nobody yet'}"
    if season.revealed is None:
        state = "the registrations fit; lock and seeds can be checked when the secret is revealed"
    else:
        state = f"the lock, the registrations and the seeds fit, from episode {season.seed_offset:,} on"
    print(f"{season.path}: {state} ({told})", file=sys.stderr)
    entries = sorted(file.parent for file in (season.path / "entries").glob(f"*/{MANIFEST_NAME}"))
    verdicts = check_entries(entries, season, quiet=args.json)
    withdrawn = season.withdrawn(entries)
    if args.json:
        print(json.dumps({"entries": verdict_rows(verdicts), "withdrawn": withdrawn}))
    else:
        for one in withdrawn:
            whose = f" (by {one['author']})" if one["author"] else ""
            print(f"{one['agent']}{whose}: withdrawn, it is registered and has no entry")
    return 1 if withdrawn else exit_code(verdicts)
