"""Commands that play a run: new, resumed, begun by a pilot that plans it, or with ``--dry-run`` what it would play."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from agents.loop.rollout import DEFAULT_CONCURRENCY
from agents.protocol import answers_at_most
from benchmark.cli import output
from benchmark.cli.settings import Output, Plan, Resume, Run
from benchmark.errors import BenchmarkError, UsageError
from benchmark.play.agents.choice import PlannedRun, plan_run
from benchmark.play.cost.estimate import LETTERS_PER_TOKEN, TOKENS_PER_SECOND, Estimate, estimate
from benchmark.play.cost.pilot import Usage, contrasts
from benchmark.play.cost.prices import is_paid
from benchmark.play.options import RunOptions
from benchmark.play.session import by_protocol, play_all, reopen_session
from benchmark.play.until import longest_plan, plans_until
from benchmark.results import read_results
from benchmark.runs.folder import RunFolder, resume_command
from benchmark.runs.plan import num_players
from benchmark.score.comparison import board_family, too_few_starts
from benchmark.score.differences import LEVEL, POWER, fewest_pairs, power_of
from benchmark.score.protocols import side_by_side
from benchmark.score.references import References
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


def run_plan(settings: Plan) -> int:
    """Play the pilot, unless its folder has it, and print the plan."""
    told, pilot, detect, given = settings.output, settings.pilot, settings.detect, settings.options
    if "episodes" in given.given and given.episodes < pilot:
        raise UsageError(f"--episodes {given.episodes} is less than the pilot plays: --pilot {given.episodes}, or less")
    budget = given.max_cost if settings.budget is None else settings.budget
    options = replace(given, episodes=pilot, max_cost=budget)
    planned = plan_run(options, told.say)
    if len(agents := planned.plan.agents) < 2:
        raise UsageError(
            f"--detect is about a difference of two agents, and there is one, {agents[0]}: add another --agent, or let "
            f"textbench run --until {detect:g} find how well it plays"
        )
    if several := [name for name, one in planned.plan.scenarios.items() if num_players(one) > 1]:
        raise UsageError(f"a plan is for scenarios of one player, {several[0]!r} has several: leave it out")
    try:
        ending = play_all([planned], quiet=told.quiet, ask=output.ask_at_terminal)
    except UsageError as error:  # such as a price that is needed to keep the limit, which has another name here
        flag = "--max-cost" if settings.budget is None else "--budget"
        raise UsageError(str(error).replace("--max-cost", flag)) from None
    path = ending.path
    if ending.stopped is not None:
        why = f"the pilot isn't whole: {ending.stopped}"
        if ending.for_money:
            why = f"the pilot costs more than --budget {budget:g}: name a larger one, or fewer scenarios or agents"
        kept = f"{ending.done} of {ending.total} episodes are kept"
        stop = BenchmarkError(f"{why}; {kept}, and the same command with --out {quote(str(path))} plays the rest")
        stop.exit_code = output.INTERRUPTED if isinstance(ending.error, KeyboardInterrupt) else output.INCOMPLETE
        raise stop
    folder = RunFolder.open(path)
    results, usage = read_results(path, quiet=told.quiet).columns, Usage.of(folder)
    level = LEVEL / board_family(results)  # of the first step of Holm's correction for all that compare shows
    pairs = contrasts(results, References(results, told.say), detect, level)
    if not pairs:
        again = f"play the unscored ones again: {resume_command(path)}"
        raise BenchmarkError(f"no two agents have two scored episodes on equal seeds in {path}; {again}")
    deciding = [one for one in pairs if one["scenario"] is None] or pairs
    known = [one["episodes_needed"]["value"] for one in deciding if one["episodes_needed"]]
    needed, each = max(known, default=fewest_pairs(level)), float(usage.starts.mean())
    bought = needed if budget is None or not each else int(budget / each * (1 + 1e-9))
    allowed = given.episodes if "episodes" in given.given else needed
    episodes = max(pilot, min(needed, bought, allowed))
    for one in pairs:
        power = power_of(episodes, one["difference"], one["variance"], level, one["further"])
        one["power"] = power if one["episodes_needed"] else None
    prices, specs = folder.manifest.get("prices", {}), planned.players.specs
    unpriced = [name for name, spec in specs.items() if is_paid(spec.spec) and name not in prices]
    limit = "" if budget is None else f" --max-cost {budget:g}"
    document: dict[str, Any] = {
        **{"run": str(path), "pilot": pilot, "detect": detect, "budget": budget, "level": level},
        **{"episodes": episodes, "episodes_needed": needed, "unpriced": unpriced},
        "spent": None if unpriced else float(usage.starts.sum()),
        "cost": None if unpriced else usage.dollars(episodes)._asdict(),
        "hours": usage.hours(episodes, options.max_concurrency or DEFAULT_CONCURRENCY),
        "agents": usage.agents,
        "pairs": pairs,
        "command": f"{resume_command(path)} --episodes {episodes}{limit}" if episodes > pilot else None,
    }
    if told.json:
        told.document(document)
    else:
        _print_plan(document)
    return 0


def _print_plan(plan: Mapping[str, Any]) -> None:
    episodes, cost, pairs, lines = plan["episodes"], plan["cost"], plan["pairs"], []
    for one in pairs:
        texts = ("?", "?")
        if number := one["episodes_needed"]:
            texts = f"{number['value']:,} [{number['low']:,}, {number['high']:,}]", f"{one['power']:.2f}"
        spread = f"{one['difference']:.3g}", f"{one['variance'] ** 0.5:.3g}"
        lines.append((one["scenario"] or "overall", one["a"], one["b"], *spread, *texts))
    notes = [
        f"episodes needed: of each agent and scenario, for a power of {POWER:g} at level 0.05 after correction for "
        f"{round(LEVEL / plan['level'])} comparisons; [..] is what {plan['pilot']} pairs leave open",
        "difference, SD: of overall scores; in the row of a scenario of its returns",
    ]
    if equal := [one for one in pairs if one["power"] is None]:
        notes.append(
            f"?: all differences of {len(equal)} of {len(pairs)} rows are equal in the pilot, so that no number can be "
            f"told, but that it is {fewest_pairs(plan['level'])} at least; a larger --pilot may show some"
        )
    if episodes < (needed := plan["episodes_needed"]):
        notes.append(f"the budget or --episodes allows {episodes} episodes of each; it takes {needed}")
    money = f"an unknown sum, as {', '.join(plan['unpriced'])} has no price (--prices FILE tells it)"
    if cost is not None:
        money = f"{cost['value']:.2f} USD ({cost['low']:.2f} to {cost['high']:.2f}; {plan['spent']:.2f} are spent)"
        money = money if plan["spent"] else "no money"
    least, most = plan["hours"]
    notes.append(f"{episodes} episodes of each take {money}, and {least:.2f} to {most:.2f} more hours")
    titles = ("<scenario", "<a", "<b", "difference", "SD of a pair", "episodes needed", f"power at {episodes}")
    forms = (",.0f", ",.0f", ".4f", ".1f")
    used = [
        (name, *(f"{one:{form}}" for one, form in zip(own.values(), forms, strict=True)))
        for name, own in plan["agents"].items()
    ]
    print_tables(
        [
            text_table("an episode", ("<agent", "prompt tokens", "completion tokens", "USD", "seconds"), used),
            text_table(f"to detect a difference of {plan['detect']:g}", titles, lines, notes),
        ]
    )
    whole = "no more is allowed" if episodes < needed else "the pilot is as long as it takes"
    print(plan["command"] or f"{whole}: textbench compare {quote(plan['run'])}")
