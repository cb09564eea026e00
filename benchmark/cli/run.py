"""Play agents on scenarios into a run folder, and print how well they did.

With nothing: random, blind, greedy, planner and the embedded models on the paper's four scenarios, 50 episodes each.

examples:
  textbench run
  textbench run --agent planner --agent openai:gpt-4o-mini --scenario snake --episodes 20
  textbench run --agent base=hf:./checkpoint --out runs/base --json
  textbench run --suite exploration --suite strategy --agent random --agent planner
  textbench run --agent openai:gpt-4o-mini --until 0.05 --dry-run
"""

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

from agents.common.arguments import Parser
from benchmark.cli.arguments import add_output_options
from benchmark.play.options import add_options, read_options

if TYPE_CHECKING:
    from benchmark.play.agents.players import Players
    from benchmark.play.cost.estimate import Estimate, Total
    from benchmark.play.options import RunOptions
    from benchmark.runs.plan import Plan
    from benchmark.show.table import Column, Table
    from textgames.scenarios import Scenario


MOST_ROWS = 24  # of a dry run's table: at most so many tables of agents are listed one by one


DAILY = {
    "what is played": ("--agent", "--scenario", "--suite", "--episodes"),
    "models": ("--base-url", "--temperature", "--max-tokens", "--max-concurrency"),
    "budget": ("--max-cost", "--dry-run"),
    "output": ("--out", "--config", "--json", "--quiet"),
}
"""The options that ``textbench run --help`` shows, by heading."""


def add_arguments(parser: Parser) -> None:
    """Declare the options of a run."""
    parser.daily = DAILY
    add_options(parser)
    add_output_options(parser, "json", "stats", "quiet", json="print one JSON document instead of tables")
    parser.add_argument("--dry-run", action="store_true", help="say what would be played, and play nothing")


def run(args: Namespace) -> int:
    """Play the run, or with --dry-run only say what would be played."""
    from benchmark.cli.output import Output, ask_at_terminal, report
    from benchmark.play.session import by_protocol, check_unplayed, play_all
    from benchmark.score.protocols import side_by_side
    from benchmark.seasons import plan_played

    output = Output(args.json, args.quiet, args.stats)
    if args.quiet:  # read by huggingface_hub and transformers, for what they fetch and we convert
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    runs = [plan_played(options, output.say) for options in by_protocol(read_options(args))]
    if not args.dry_run:
        ending = play_all(runs, quiet=output.quiet, ask=ask_at_terminal)
        return report(ending, output, ending.path.parent if len(runs) > 1 else None)
    planned = runs[0]
    for each in runs:
        check_unplayed(each)
    plan = planned.plan if len(runs) == 1 else side_by_side([run.plan for run in runs])
    if planned.options.until is not None:
        return _forecast(plan, planned.players, planned.options, args.json)
    return _dry_run(plan, planned.players, planned.options, args.json)


def _between(ends: Sequence[int]) -> str:
    return f"{ends[0]:,}" if ends[0] == ends[1] else f"{ends[0]:,} to {ends[1]:,}"


def _forecast(plan: "Plan", players: "Players", options: "RunOptions", as_json: bool) -> int:
    """Say what ``--until`` is expected to take, and how that is estimated."""
    import json

    from benchmark.play.cost.estimate import LETTERS_PER_TOKEN, paid_prices, total_of
    from benchmark.play.cost.forecast import forecast
    from benchmark.score.stopping import looks
    from benchmark.show.draw import print_tables
    from benchmark.show.table import text_table

    numbers = looks(options.episodes)
    specs = {name: spec.spec for name, spec in players.specs.items()}
    needs = forecast(plan, specs, options)
    prices = paid_prices(specs, options)

    def tokens(agent: str, end: int) -> tuple[float, float]:
        own = [need for need in needs if need.agent == agent]
        return sum(need.prompt_tokens[end] for need in own), sum(need.completion_tokens[end] for need in own)

    known = {agent: price for agent, price in prices.items() if price is not None}
    total = total_of({agent: (tokens(agent, 0), tokens(agent, 1)) for agent in prices}, known, options)
    if as_json:
        rule = {"until": options.until, "looks": numbers}
        told = {"total": total._asdict()} if prices else {}
        print(json.dumps({"dry_run": True, **rule, **told, "matchups": [need._asdict() for need in needs]}))
        return 0
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
    return 0


def _dry_run(plan: "Plan", players: "Players", options: "RunOptions", as_json: bool) -> int:
    import json

    from benchmark.play.cost.estimate import estimate, total_estimate
    from benchmark.play.levels import levels_in
    from benchmark.score.comparison import too_few_starts

    if options.levels is not None:
        plan = plan.with_episodes(ceil(options.episodes / len(levels_in(options.levels))), options.seed_offset)
    rows: list[dict[str, Any]] = []
    for matchup, seeds in plan.seeds.items():
        most = len(seeds) * _requests_at_most(plan.scenarios[matchup.scenario]) * len(matchup.agents)
        row: dict[str, Any] = {"scenario": matchup.scenario, "agents": list(matchup.agents), "episodes": len(seeds)}
        rows.append(row | {"first_seed": seeds[0], "last_seed": seeds[-1], "requests_at_most": most})
    requests = sum(row["requests_at_most"] for row in rows)
    agents = _per_agent(plan)
    estimates = estimate(plan, {name: spec.spec for name, spec in players.specs.items()}, options)
    total = total_estimate(estimates, options) if estimates else None
    if as_json:
        totals = {"dry_run": True, "episodes": plan.total, "requests_at_most": requests}
        told = {"estimates": [one._asdict() for one in estimates], "total": total._asdict()} if total else {}
        print(json.dumps({**totals, "agents": agents, **told, "matchups": rows}))
        return 0
    from benchmark.runs.tournament import line_up
    from benchmark.show import AGENT, SCENARIO, Column, Figure, Table, value
    from benchmark.show.draw import print_tables

    spread = "spread evenly here, a run puts them where they tell most; " if options.levels is not None else ""
    planned = f"{plan.total} episodes, at most {requests:,} decisions; {spread}nothing was played"
    few = "" if options.levels is not None else too_few_starts(plan)
    episodes, most_of = value("episodes", form=","), value("requests_at_most", "decisions at most", ",")
    columns: tuple[Column[Any], ...] = (
        replace(SCENARIO, left=True),
        Column("agents", "agents", lambda row: Figure(row.get("players") or line_up(row["agents"])), left=True),
        episodes,
        Column("seeds", "seeds", lambda row: Figure(f"{row['first_seed']}..{row['last_seed']}")),
        most_of,
    )
    shown = rows if len(rows) <= MOST_ROWS else _by_scenario(rows)
    tables = [Table("", "would be played", columns, (planned, few), rows=shown)]
    if len(agents) > 1:
        tables.insert(0, Table("", "each agent", (AGENT, value("scenarios"), episodes, most_of), rows=agents))
    print_tables([*tables, *([_money_table(estimates, _total_note(total, options))] if total else [])])
    return 0


def _total_note(total: "Total", options: "RunOptions") -> str:
    """Say what all agents take together in dollars and hours, and how that is estimated."""
    from agents.loop.rollout import DEFAULT_CONCURRENCY
    from benchmark.play.cost.estimate import TOKENS_PER_SECOND

    least, most = total.cost or (0.0, 0.0)
    money = "their price isn't known" if total.cost is None else f"{least:.2f} to {most:.2f} USD"
    many = options.max_concurrency or DEFAULT_CONCURRENCY
    return (
        f"all agents together: {money}, up to {total.hours[1]:.1f} hours, with {many} answers at a time of "
        f"{TOKENS_PER_SECOND} tokens a second"
    )


def _money_table(estimates: "Sequence[Estimate]", total: str) -> "Table":
    """Show what the agents would take whose tokens cost money."""
    from benchmark.play.cost.estimate import LETTERS_PER_TOKEN
    from benchmark.show import AGENT, Column, Figure, Table, value

    def dollars(key: str, title: str) -> "Column[Any]":
        return Column(key, title, lambda row: Figure("?" if row[key] is None else f"{row[key]:.4f}"))

    columns = (
        AGENT,
        *(value(key, key.replace("_", " "), ",") for key in ("decisions", "prompt_tokens")),
        value("prompt_tokens_at_most", "at most", ","),
        value("completion_tokens_at_most", "completion tokens at most", ","),
        dollars("cost_of_prompts", "prompts USD"),
        dollars("cost_at_most", "at most USD"),
    )
    sources = dict.fromkeys((one.price or {}).get("source", "--prices" if one.price else "") for one in estimates)
    notes = (
        f"estimated: decisions and prompts are the random player's, {LETTERS_PER_TOKEN} letters of prompts a token",
        "at most: as many decisions and answers as there may be, as long as they may be, to the longest prompt seen",
        f"prices: {', '.join(filter(None, sources)) or 'not known; --prices FILE tells them'}",
        total,
    )
    return Table("", "tokens and money", columns, notes, rows=[one._asdict() for one in estimates])


def _requests_at_most(scenario: "Scenario") -> int:
    """Return the most requests that the player of one seat makes in one episode."""
    from agents.protocol import answers_at_most

    return scenario.horizon * answers_at_most(scenario.protocol)


def _per_agent(plan: "Plan") -> list[dict[str, Any]]:
    """Return what every agent has to play: the episodes that it sits in, and its own decisions."""
    rows = []
    for agent in plan.agents:
        seats = [(matchup, seeds) for matchup, seeds in plan.seeds.items() if agent in matchup.agents]
        most = sum(
            _requests_at_most(plan.scenarios[matchup.scenario]) * matchup.agents.count(agent) * len(seeds)
            for matchup, seeds in seats
        )
        episodes = sum(len(seeds) for _, seeds in seats)
        count = len(plan.scenarios_of(agent))
        rows.append({"agent": agent, "scenarios": count, "episodes": episodes, "requests_at_most": most})
    return rows


def _by_scenario(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sum the rows of each scenario: of many tables, who sits at which is too much to read."""
    found = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        group = [row for row in rows if row["scenario"] == scenario]
        seats = len(group[0]["agents"])
        agents = len({agent for row in group for agent in row["agents"]})
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
