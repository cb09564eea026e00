"""Commands that play a run: new, resumed, or with ``--dry-run`` what it would play."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.loop.rollout import DEFAULT_CONCURRENCY
from agents.protocol import answers_at_most
from benchmark.cli import output
from benchmark.cli.settings import Output, Resume, Run
from benchmark.play.agents.choice import PlannedRun
from benchmark.play.cost.estimate import LETTERS_PER_TOKEN, TOKENS_PER_SECOND, Estimate, estimate
from benchmark.play.options import RunOptions
from benchmark.play.session import by_protocol, play_all, reopen_session
from benchmark.play.until import longest_plan, plans_until
from benchmark.score.comparison import too_few_starts
from benchmark.score.protocols import side_by_side
from benchmark.score.stopping import looks
from benchmark.seasons import plan_played
from benchmark.show.draw import print_tables
from benchmark.show.table import Table, text_table

AT_MOST = "decisions at most"
SUMMED = ("episodes_at_least", "episodes", "requests_at_most")


def run_run(settings: Run) -> int:
    """Play the run, or with --dry-run only say what would be played."""
    told = settings.output
    if told.quiet:  # read by huggingface_hub and transformers, for what they fetch and we convert
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    runs = [plan_played(options, told.say) for options in by_protocol(settings.options)]
    if not settings.dry_run:
        ending = play_all(runs, quiet=told.quiet, ask=output.ask_at_terminal)
        return output.report(ending, told, ending.path.parent if len(runs) > 1 else None)
    for each in runs:
        each.players.check_unmade()
    planned = runs[0] if len(runs) == 1 else runs[0]._replace(plan=side_by_side([run.plan for run in runs]))
    _dry_run(planned, told)
    return 0


def _dry_run(planned: PlannedRun, told: Output) -> None:
    plan, options = planned.plan, planned.options
    least, enough = plan, True
    if options.levels is not None:
        least = plan = longest_plan(plan, options)
    elif options.until is not None:
        least, plan, enough = plans_until(plan, options)
    rows: list[dict[str, Any]] = []
    for matchup, seeds in plan.seeds.items():
        scenario, few = plan.scenarios[matchup.scenario], least.seeds[matchup]
        most = scenario.horizon * answers_at_most(scenario.protocol) * len(matchup.agents) * len(seeds)
        row: dict[str, Any] = {"scenario": matchup.scenario, "agents": list(matchup.agents), "episodes": len(seeds)}
        row["episodes_at_least"] = len(few)
        rows.append(row | {"first_seed": seeds[0], "last_seed": seeds[-1], "requests_at_most": most})
    requests, agents = sum(row["requests_at_most"] for row in rows), _per_agent(rows)
    specs = {name: spec.spec for name, spec in planned.players.specs.items()}
    estimates, fewest = estimate(plan, specs, options), estimate(least, specs, options) if least is not plan else ()
    total = _total(fewest or estimates, estimates, options) if estimates else None
    if told.json:
        about: dict[str, Any] = {"dry_run": True, "episodes": plan.total}
        about |= {"until": options.until, "looks": looks(options.episodes)} if options.until is not None else {}
        about |= {"requests_at_most": requests, "agents": agents}
        about |= {"estimates": [one._asdict() for one in estimates], "total": total} if total else {}
        told.document(about | {"matchups": rows})
        return
    spread = "spread evenly here, a run puts them where they tell most; " if options.levels is not None else ""
    episodes = f"{_between(least.total, plan.total)} episodes, at most {requests:,} decisions"
    notes = [f"{episodes}; {spread}nothing was played"]
    if options.until is not None:
        aim = "for every score to be known" if enough else "and with the most that are allowed not every score is known"
        notes += [
            f"episodes: the least and the most that a scripted player needs {aim} to {options.until:g}; "
            f"looks after {', '.join(map(str, looks(options.episodes)))}"
        ]
    elif not spread:
        notes.append(too_few_starts(plan))
    lines = []
    for name in plan.scenarios:
        own = [row for row in rows if row["scenario"] == name]
        few, many, most = (sum(row[key] for row in own) for key in SUMMED)
        span = f"{min(row['first_seed'] for row in own)}..{max(row['last_seed'] for row in own)}"
        players = str(len({agent for row in own for agent in row["agents"]}))
        lines.append((name, players, str(len(own)), _between(few, many), span, f"{most:,}"))
    titles = ("<scenario", "agents", "tables", "episodes", "seeds", AT_MOST)
    tables = [text_table("would be played", titles, lines, notes)]
    if len(agents) > 1:
        numbers = ("scenarios", "episodes", "requests_at_most")
        shares = [(row["agent"], *(f"{row[name]:,}" for name in numbers)) for row in agents]
        tables.insert(0, text_table("each agent", ("<agent", "scenarios", "episodes", AT_MOST), shares))
    print_tables([*tables, *([_money_table(estimates, total, options)] if total else [])])


def _between(least: int, most: int) -> str:
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _total(least: Sequence[Estimate], most: Sequence[Estimate], options: RunOptions) -> dict[str, Any]:
    """Return dollars, from the prompts of short episodes to the most of everything, and hours of all agents."""
    known = [one for one in most if one.price is not None]
    ends = sum(one.cost_at_least or 0.0 for one in least), sum(one.cost_at_most or 0.0 for one in most)
    pace = TOKENS_PER_SECOND * (options.max_concurrency or DEFAULT_CONCURRENCY) * 3600
    hours = sum(one.completion_tokens_at_most for one in most) / pace
    return {"cost": ends if len(known) == len(most) else None, "hours": (0.0, hours)}


def _money_table(estimates: Sequence[Estimate], total: Mapping[str, Any], options: RunOptions) -> Table:
    def dollars(cost: float | None) -> str:
        return "?" if cost is None else f"{cost:.4f}"

    lines = [
        (
            *(one.agent, f"{one.decisions:,}", f"{one.prompt_tokens:,}", f"{one.prompt_tokens_at_most:,}"),
            *(f"{one.completion_tokens_at_most:,}", dollars(one.cost_of_prompts), dollars(one.cost_at_most)),
        )
        for one in estimates
    ]
    sources = dict.fromkeys((one.price or {}).get("source", "--prices" if one.price else "") for one in estimates)
    least, most = total["cost"] or (0.0, 0.0)
    money = "their price isn't known" if total["cost"] is None else f"{least:.2f} to {most:.2f} USD"
    notes = (
        "estimated: decisions and prompts are the random player's, "
        f"{LETTERS_PER_TOKEN} letters of prompts a token, without pictures and tools",
        "at most: as many decisions and answers as there may be, as long as they may be, to the longest prompt seen",
        f"prices: {', '.join(filter(None, sources)) or 'not known; --prices FILE tells them'}",
        f"all agents together: {money}, up to {total['hours'][1]:.1f} hours, with "
        f"{options.max_concurrency or DEFAULT_CONCURRENCY} answers at a time of {TOKENS_PER_SECOND} tokens a second",
    )
    spent = ("at most", "completion tokens at most", "prompts USD", "at most USD")
    return text_table("tokens and money", ("<agent", "decisions", "prompt tokens", *spent), lines, notes)


def _per_agent(matchups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the part of every agent: the episodes that it sits in, and its own decisions."""
    rows = []
    for agent in dict.fromkeys(agent for row in matchups for agent in row["agents"]):
        own = [row for row in matchups if agent in row["agents"]]
        most = sum(row["requests_at_most"] * row["agents"].count(agent) // len(row["agents"]) for row in own)
        scenarios, episodes = len({row["scenario"] for row in own}), sum(row["episodes"] for row in own)
        rows.append({"agent": agent, "scenarios": scenarios, "episodes": episodes, "requests_at_most": most})
    return rows


def run_resume(settings: Resume) -> int:
    """Play the episodes that the folder lacks."""
    told, ask = settings.output, output.ask_at_terminal
    session = reopen_session(Path(settings.folder), settings.options, told.say, repair=settings.repair, ask=ask)
    return output.report(session.play(quiet=told.quiet), told)
