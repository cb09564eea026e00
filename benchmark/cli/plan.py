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
from benchmark.play.session import play_all
from benchmark.results import read_results
from benchmark.runs.folder import RunFolder, resume_command
from benchmark.runs.plan import num_players
from benchmark.score.comparison import board_family
from benchmark.score.differences import LEVEL, POWER, fewest_pairs, power_of
from benchmark.score.references import References
from benchmark.show.draw import print_tables
from benchmark.show.table import text_table


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
        _print(document)
    return 0


def _print(plan: Mapping[str, Any]) -> None:
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
