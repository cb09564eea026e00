"""A run, played; or with ``--dry-run`` what it would play."""

import os
from collections.abc import Sequence
from math import ceil
from typing import Any

from agents.loop.rollout import DEFAULT_CONCURRENCY
from agents.protocol import answers_at_most
from benchmark.cli import output
from benchmark.cli.settings import Output, Run
from benchmark.play.agents.choice import PlannedRun
from benchmark.play.cost.estimate import (
    LETTERS_PER_TOKEN,
    TOKENS_PER_SECOND,
    Estimate,
    Total,
    estimate,
    paid_prices,
    total_of,
)
from benchmark.play.cost.forecast import forecast
from benchmark.play.options import RunOptions, levels_in
from benchmark.play.session import by_protocol, check_unplayed, play_all
from benchmark.runs.plan import Plan
from benchmark.runs.tournament import line_up
from benchmark.score.comparison import too_few_starts
from benchmark.score.protocols import side_by_side
from benchmark.score.stopping import looks
from benchmark.seasons import plan_played
from benchmark.show.draw import print_tables
from benchmark.show.table import Table, text_table

MOST_ROWS = 24  # of a dry run's table: at most so many tables of agents are listed one by one
AT_MOST = "decisions at most"


def run(settings: Run) -> int:
    """Play the run, or with --dry-run only say what would be played."""
    told = settings.output
    if told.quiet:  # read by huggingface_hub and transformers, for what they fetch and we convert
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    runs = [plan_played(options, told.say) for options in by_protocol(settings.options)]
    if not settings.dry_run:
        ending = play_all(runs, quiet=told.quiet, ask=output.ask_at_terminal)
        return output.report(ending, told, ending.path.parent if len(runs) > 1 else None)
    for each in runs:
        check_unplayed(each)
    planned = runs[0] if len(runs) == 1 else runs[0]._replace(plan=side_by_side([run.plan for run in runs]))
    (_forecast if planned.options.until is not None else _dry_run)(planned, told)
    return 0


def _forecast(planned: PlannedRun, told: Output) -> None:
    options, specs = planned.options, {name: spec.spec for name, spec in planned.players.specs.items()}
    numbers, prices = looks(options.episodes), paid_prices(specs, options)
    needs = forecast(planned.plan, specs, options)
    parts = {agent: [need for need in needs if need.agent == agent] for agent in prices}
    taken = {  # from the fewest prompts alone to the most that there may be
        agent: (
            (sum(one.prompt_tokens[0] for one in own), 0),
            (sum(one.prompt_tokens[1] for one in own), sum(one.completion_tokens[1] for one in own)),
        )
        for agent, own in parts.items()
    }
    total = total_of(taken, prices, options)
    if told.json:
        about: dict[str, Any] = {"dry_run": True, "until": options.until, "looks": numbers}
        about |= {"total": total._asdict()} if prices else {}
        told.document(about | {"matchups": [need._asdict() for need in needs]})
        return
    lines = [
        (
            *(need.scenario, need.agent, _between(need.episodes) + ("" if need.enough else ", or more")),
            *map(_between, (need.decisions, need.prompt_tokens, need.completion_tokens)),
        )
        for need in needs
    ]
    episodes = _between([sum(need.episodes[end] for need in needs) for end in (0, 1)])
    enough = all(need.enough for need in needs)
    aim = "for every score to be known" if enough else "the most that are allowed, after which not every score is known"
    notes = (
        f"{episodes} episodes, {aim} to {options.until:g}; nothing was played",
        f"looks after {', '.join(map(str, numbers))} episodes, and stops where the interval is narrow",
        f"estimated: the least and the most that a scripted player needs, by its first {numbers[0]} episodes",
        f"prompt tokens: {LETTERS_PER_TOKEN} letters each; completion tokens: if every response were as long as it may",
        *([_total_note(total, options)] if prices else []),
    )
    columns = ("<scenario", "<agent", "episodes", "decisions", "prompt tokens", "completion tokens at most")
    print_tables([text_table("would be played", columns, lines, notes)])


def _between(ends: Sequence[int]) -> str:
    return f"{ends[0]:,}" if ends[0] == ends[1] else f"{ends[0]:,} to {ends[1]:,}"


def _dry_run(planned: PlannedRun, told: Output) -> None:
    plan, options = planned.plan, planned.options
    if options.levels is not None:
        plan = plan.with_episodes(ceil(options.episodes / len(levels_in(options.levels))), options.seed_offset)
    rows: list[dict[str, Any]] = []
    for matchup, seeds in plan.seeds.items():
        most = _requests_at_most(plan, matchup.scenario) * len(matchup.agents) * len(seeds)
        row: dict[str, Any] = {"scenario": matchup.scenario, "agents": list(matchup.agents), "episodes": len(seeds)}
        rows.append(row | {"first_seed": seeds[0], "last_seed": seeds[-1], "requests_at_most": most})
    requests, agents = sum(row["requests_at_most"] for row in rows), _per_agent(plan)
    estimates = estimate(plan, {name: spec.spec for name, spec in planned.players.specs.items()}, options)
    taken = {  # from the prompts alone to the most that there may be
        one.agent: ((one.prompt_tokens, 0), (one.prompt_tokens_at_most, one.completion_tokens_at_most))
        for one in estimates
    }
    total = total_of(taken, {one.agent: one.price for one in estimates}, options) if estimates else None
    if told.json:
        about: dict[str, Any] = {"dry_run": True, "episodes": plan.total}
        about |= {"requests_at_most": requests, "agents": agents}
        about |= {"estimates": [one._asdict() for one in estimates], "total": total._asdict()} if total else {}
        told.document(about | {"matchups": rows})
        return
    spread = "spread evenly here, a run puts them where they tell most; " if options.levels is not None else ""
    notes = [f"{plan.total} episodes, at most {requests:,} decisions; {spread}nothing was played"]
    notes += [] if options.levels is not None else [too_few_starts(plan)]
    lines = [
        (
            *(row["scenario"], row.get("players") or line_up(row["agents"]), f"{row['episodes']:,}"),
            *(f"{row['first_seed']}..{row['last_seed']}", f"{row['requests_at_most']:,}"),
        )
        for row in (rows if len(rows) <= MOST_ROWS else _by_scenario(rows))
    ]
    tables = [text_table("would be played", ("<scenario", "<agents", "episodes", "seeds", AT_MOST), lines, notes)]
    if len(agents) > 1:
        numbers = ("scenarios", "episodes", "requests_at_most")
        shares = [(row["agent"], *(f"{row[name]:,}" for name in numbers)) for row in agents]
        tables.insert(0, text_table("each agent", ("<agent", "scenarios", "episodes", AT_MOST), shares))
    print_tables([*tables, *([_money_table(estimates, _total_note(total, options))] if total else [])])


def _total_note(total: Total, options: RunOptions) -> str:
    """Describe the dollars and hours of all agents together, and how they are estimated."""
    least, most = total.cost or (0.0, 0.0)
    money = "their price isn't known" if total.cost is None else f"{least:.2f} to {most:.2f} USD"
    many = options.max_concurrency or DEFAULT_CONCURRENCY
    return (
        f"all agents together: {money}, up to {total.hours[1]:.1f} hours, with {many} answers at a time of "
        f"{TOKENS_PER_SECOND} tokens a second"
    )


def _money_table(estimates: Sequence[Estimate], total: str) -> Table:
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
    notes = (
        "estimated: decisions and prompts are the random player's, "
        f"{LETTERS_PER_TOKEN} letters of prompts a token, without pictures",
        "at most: as many decisions and answers as there may be, as long as they may be, to the longest prompt seen",
        f"prices: {', '.join(filter(None, sources)) or 'not known; --prices FILE tells them'}",
        total,
    )
    spent = ("at most", "completion tokens at most", "prompts USD", "at most USD")
    return text_table("tokens and money", ("<agent", "decisions", "prompt tokens", *spent), lines, notes)


def _requests_at_most(plan: Plan, scenario: str) -> int:
    return plan.scenarios[scenario].horizon * answers_at_most(plan.scenarios[scenario].protocol)


def _per_agent(plan: Plan) -> list[dict[str, Any]]:
    """Return the part of every agent: the episodes that it sits in, and its own decisions."""
    rows = []
    for agent in plan.agents:
        seats = [(matchup, len(seeds)) for matchup, seeds in plan.seeds.items() if agent in matchup.agents]
        most = sum(_requests_at_most(plan, one.scenario) * one.agents.count(agent) * count for one, count in seats)
        row = {"agent": agent, "scenarios": len(plan.scenarios_of(agent)), "episodes": sum(count for _, count in seats)}
        rows.append(row | {"requests_at_most": most})
    return rows


def _by_scenario(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sum the rows of each scenario: of many tables, who sits at which is too much to read."""
    found = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        group = [row for row in rows if row["scenario"] == scenario]
        seats, agents = len(group[0]["agents"]), len({agent for row in group for agent in row["agents"]})
        tables = f", {len(group)} table{'' if len(group) == 1 else 's'} of {seats}" if seats > 1 else ""
        found.append(
            {
                "scenario": scenario,
                "players": f"{agents} agent{'' if agents == 1 else 's'}{tables}",
                "first_seed": min(row["first_seed"] for row in group),
                "last_seed": max(row["last_seed"] for row in group),
                **{name: sum(row[name] for row in group) for name in ("episodes", "requests_at_most")},
            }
        )
    return found
