"""A pilot, played, and what it tells of the run that it begins."""

from collections.abc import Mapping
from dataclasses import replace
from shlex import quote
from typing import Any

from agents.loop.rollout import DEFAULT_CONCURRENCY
from benchmark.cli import output
from benchmark.cli.settings import Plan
from benchmark.errors import BenchmarkError, UsageError
from benchmark.play.agents.choice import plan_run
from benchmark.play.cost.pilot import Usage, contrasts
from benchmark.play.cost.prices import is_paid
from benchmark.play.session import Ending, play_all
from benchmark.results import read_results
from benchmark.runs.folder import RunFolder, resume_command
from benchmark.runs.plan import num_players
from benchmark.score.differences import LEVEL, POWER, fewest_pairs
from benchmark.score.references import References
from benchmark.show.draw import print_tables
from benchmark.show.table import text_table


def run(settings: Plan) -> int:
    """Play the pilot, unless its folder has it, and print the plan."""
    told, budget, pilot = settings.output, settings.budget, settings.pilot
    options = replace(settings.options, episodes=pilot, max_cost=budget)
    planned = plan_run(options, told.say)
    if len(agents := planned.plan.agents) < 2:
        raise UsageError(
            f"--detect is about a difference of two agents, and there is one, {agents[0]}: add another --agent, or let "
            f"textbench run --until {settings.detect:g} find how well it plays"
        )
    if several := [name for name, one in planned.plan.scenarios.items() if num_players(one) > 1]:
        raise UsageError(f"a plan is for scenarios of one player, {several[0]!r} has several: leave it out")
    ending = play_all([planned], quiet=told.quiet, ask=output.ask_at_terminal)
    if ending.stopped is not None:
        return _stopped(ending, budget)
    path, folder = ending.path, RunFolder.open(ending.path)
    results, usage = read_results(path, quiet=told.quiet).columns, Usage.of(folder)
    found = contrasts(results, References(results, told.say), settings.detect)
    if not found:
        raise BenchmarkError(
            f"no two agents have two scored episodes on equal seeds in {path}; the unscored ones are played again by "
            f"{resume_command(path)}"
        )
    level = found[0].level
    deciding = [one for one in found if one.scenario is None] or found
    needed = max((one.needed.value for one in deciding if one.needed), default=fewest_pairs(level))
    bought = None if budget is None else usage.affordable(budget)
    episodes = max(pilot, needed if bought is None else min(needed, bought))
    prices = folder.manifest.get("prices", {})
    unpriced = [name for name, spec in planned.players.specs.items() if is_paid(spec.spec) and name not in prices]
    limit = "" if budget is None else f" --max-cost {budget:g}"
    document: dict[str, Any] = {
        "run": str(path),
        "pilot": pilot,
        "detect": settings.detect,
        "budget": budget,
        "level": level,
        "episodes": episodes,
        "episodes_needed": needed,
        "spent": None if unpriced else float(usage.starts.sum()),
        "cost": None if unpriced else usage.dollars(episodes)._asdict(),
        "unpriced": unpriced,
        "hours": usage.hours(episodes, options.max_concurrency or DEFAULT_CONCURRENCY),
        "agents": usage.agents,
        "pairs": [one.document(episodes) for one in found],
        "command": f"{resume_command(path)} --episodes {episodes}{limit}" if episodes > pilot else None,
    }
    if told.json:
        told.document(document)
    else:
        _print(document)
    return 0


def _stopped(ending: Ending, budget: float | None) -> int:
    """Report why the pilot isn't whole, and how it is completed."""
    if ending.for_money:
        why = f"the pilot costs more than --budget {budget:g}: name a larger one, or fewer scenarios or agents"
    else:
        why = f"the pilot isn't whole: {ending.stopped}"
    kept = f"{ending.done} of {ending.total} episodes are kept; the same command with --out {quote(str(ending.path))}"
    output.note(f"{why}. {kept} plays the rest")
    return output.INTERRUPTED if isinstance(ending.error, KeyboardInterrupt) else output.INCOMPLETE


def _print(plan: Mapping[str, Any]) -> None:
    episodes, cost, pairs = plan["episodes"], plan["cost"], plan["pairs"]
    used = [
        (name, *(f"{one[key]:{form}}" for key, form in zip(one, (",.0f", ",.0f", ".4f", ".1f"), strict=True)))
        for name, one in plan["agents"].items()
    ]
    lines = []
    for row in pairs:
        number, texts = row["episodes_needed"], ("?", "?")
        if number is not None:
            texts = f"{number['value']:,} [{number['low']:,}, {number['high']:,}]", f"{row['power']:.2f}"
        spread = f"{row['size']:.3g}", f"{row['variance'] ** 0.5:.3g}"
        lines.append((row["scenario"] or "overall", row["a"], row["b"], *spread, *texts))
    notes = [
        f"episodes needed: of each agent and scenario, for a power of {POWER:g} at level 0.05 after correction for "
        f"{round(LEVEL / plan['level'])} comparisons; [..] is what {plan['pilot']} pairs leave open"
    ]
    if equal := [row for row in pairs if row["power"] is None]:
        notes.append(
            f"?: all differences of {len(equal)} of {len(pairs)} rows are equal in the pilot, so that no number can be "
            f"told, but that it is {fewest_pairs(plan['level'])} at least; a larger --pilot may show some"
        )
    if episodes < (needed := plan["episodes_needed"]):
        notes.append(f"the budget of {plan['budget']:g} USD buys {episodes} episodes of each; it takes {needed}")
    money = f"an unknown sum, as {', '.join(plan['unpriced'])} has no price (--prices FILE tells it)"
    if cost is not None:
        money = f"{cost['value']:.2f} USD ({cost['low']:.2f} to {cost['high']:.2f}; {plan['spent']:.2f} are spent)"
        money = money if plan["spent"] else "no money"
    least, most = plan["hours"]
    notes.append(f"{episodes} episodes of each take {money}, and {least:.2g} to {most:.2g} more hours")
    titles = ("<scenario", "<a", "<b", "difference", "SD of a pair", "episodes needed", f"power at {episodes}")
    print_tables(
        [
            text_table("an episode", ("<agent", "prompt tokens", "completion tokens", "USD", "seconds"), used),
            text_table(f"to detect a difference of {plan['detect']:g}", titles, lines, notes),
        ]
    )
    print(f"{plan['command'] or 'the pilot is as long as it takes: textbench compare'}")
