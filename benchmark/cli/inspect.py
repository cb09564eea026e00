"""Commands that look into an agent: what it wants beside what is best, and what it loses to its best opponent."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from agents.analysis.exploitability import Exploitability as Found
from agents.analysis.exploitability import measure
from agents.analysis.inspection import Inspectable, InspectedStep, Inspection, inspect_episode
from agents.analysis.world_model import world_fidelity
from benchmark.cli.settings import Exploitability, Inspect, Output
from benchmark.errors import BenchmarkError, UsageError
from benchmark.play.agents.players import load_one
from benchmark.runs.plan import find_scenario
from benchmark.show.draw import print_tables
from benchmark.show.table import text_table

OF_A_WORLD = {
    "possible": "predictions that can come about",
    "probability": "true probability of what was predicted",
    "attainable": "the most that this can be",
    "distance": "distance of the predictions from the true chances",
}
MOST_COLUMNS = 10  # of actions: more don't fit a terminal


def run_inspect(settings: Inspect) -> int:
    """Print what the agent wanted at each step, or with --world-model how well it predicts what actions lead to."""
    scenario, output = find_scenario(settings.scenario, "inspect"), settings.output
    agent, samples = settings.agent, settings.samples
    policy, _ = load_one(agent, settings.options, scenario)
    try:
        if settings.world_model:
            found = world_fidelity(policy, scenario, starts=settings.starts, samples=samples)
        else:
            seed = scenario.seed(settings.episode) if settings.seed is None else settings.seed
            inspection = inspect_episode(policy, scenario, seed, samples=samples)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except RuntimeError as error:
        raise BenchmarkError(str(error)) from None
    if settings.world_model:
        figures = {name: getattr(found, name) for name in OF_A_WORLD}
        if output.json:
            about = {"agent": agent, "scenario": scenario.name, "pairs": found.pairs, "samples": found.samples}
            output.document({**about, **{name: figure._asdict() for name, figure in figures.items()}})
            return 0
        pairs = f"{found.pairs} pairs of a position and an action"
        print(f"{agent} as a model of {scenario.name}: {pairs}, {found.samples} predictions each")
        for name, figure in figures.items():
            print(f"  {OF_A_WORLD[name]:52}{figure:z.3f}")
        return 0
    more = policy.inspected(scenario) if isinstance(policy, Inspectable) else {}
    if output.json:
        output.document({**_document(inspection, agent), **more})
    else:
        _print(inspection, agent)
        for told in more.values():
            print(told["told"], *(f"wrong: {fault}" for fault in told.get("faults", ())[:1]), sep="\n")
    return 0


def _document(inspection: Inspection, agent: str) -> dict[str, Any]:
    episode = inspection.episode
    return {
        **{"agent": agent, "scenario": episode.scenario, "seed": episode.seed, "values": inspection.value_source},
        **{"returns": episode.returns, "successes": episode.successes},
        "steps": [
            {
                **{name: getattr(one.step, name) for name in ("index", "observation", "action", "valid")},
                "response": one.step.turn.response,
                "probabilities": dict(one.probabilities),
                "probabilities_source": one.source,
                "after_reasoning": None if one.after_reasoning is None else dict(one.after_reasoning),
                "action_values": dict(one.values),
                "best_actions": list(one.best),
                **{name: getattr(one, name) for name in ("invalid_probability", "best_probability", "regret")},
            }
            for one in inspection.steps
        ],
    }


def _print(inspection: Inspection, agent: str) -> None:
    episode, steps = inspection.episode, inspection.steps
    actions = list(dict.fromkeys(action for one in steps for action in one.values))
    shown = _telling(actions, steps)
    lines = [
        (f"{one.step.index}", _reasoning(one), *(_cell(one, action) for action in shown), f"{one.regret:.3f}")
        for one in steps
    ]
    source = {"scored": "exact", "sampled": "share of sampled responses"}[steps[0].source]
    values = {"exact": "exact", "search": "estimated by search"}[inspection.value_source]
    won = ", a success" if next(iter(episode.successes.values())) else ""
    regret, best, unread = (
        sum(figures) / len(steps)
        for figures in zip(*((one.regret, one.best_probability, not one.step.valid) for one in steps), strict=True)
    )
    said = f" {unread:.0%} of its responses couldn't be read, for which the protocol's moves stand." if unread else ""
    left_out = f"{len(shown)} of {len(actions):,} actions have a column: played, best or likely; --json has all."
    notes = (
        left_out if len(shown) < len(actions) else "",
        f"In a cell: how probable the action is ({source}), how probable after the reasoning that was written (exact; "
        f"local models only), and the action's value ({values}). * marks the best actions, > what was played.",
        f"Return {next(iter(episode.returns.values())):g}{won}. On average {best:.1%} on a best action, regret "
        f"{regret:.3f} per step.{said}",
    )
    title = f"{agent} on {episode.scenario}, seed {episode.seed}"
    print_tables([text_table(title, ("step", "<its reasoning", *shown, "regret"), lines, notes)])


def _telling(actions: Sequence[str], steps: Sequence[InspectedStep]) -> Sequence[str]:
    """Return the actions that have a column: all, or of very many those that were played, are best or are likely."""
    if len(actions) <= MOST_COLUMNS:
        return actions
    most = {action: max(one.probabilities.get(action, 0.0) for one in steps) for action in actions}
    likely = sorted([action for action in actions if most[action] > 0], key=most.__getitem__, reverse=True)
    ranked = [*(one.step.action for one in steps), *(one.best[0] for one in steps if one.best), *likely]
    chosen = list(dict.fromkeys(action for action in ranked if action in most))[:MOST_COLUMNS]
    return [action for action in actions if action in chosen]


def _reasoning(one: InspectedStep) -> str:
    text = one.step.turn.response.partition("<action>")[0]
    for tag in ("<think>", "</think>", "<plan>", "</plan>"):
        text = text.replace(tag, " ")
    invalid = f" [invalid: {one.step.unreadable}]" if not one.step.valid else ""
    return " ".join(text.split()) + invalid


def _cell(one: InspectedStep, action: str) -> str:
    if action not in one.values:
        return "not legal"
    after = "" if one.after_reasoning is None else f"\n{one.after_reasoning[action]:.1%}"
    mark = f"{'>' * (action == one.step.action)}{'*' * (action in one.best)}"
    return f"{mark} {one.probabilities.get(action, 0.0):.1%}{after}\n{one.values[action]:.3f}"


def run_exploitability(settings: Exploitability) -> int:
    """Measure the agent's exploitability and print it."""
    agent, name, samples = settings.agent, settings.scenario, settings.samples
    scenario = find_scenario(name, "measure")
    policy, _ = load_one(agent, settings.options, scenario)
    if getattr(policy, "model", None) is not None:
        Output().say(
            f"asking {agent} at every information set, {samples} times each unless the answer's chances can be "
            "computed (a model of this process with --mode direct, or temperature 0); this may take minutes"
        )
    try:
        found = measure(policy, scenario.game(), horizon=scenario.horizon, samples=samples, seed=settings.seed)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
    except RuntimeError as error:
        raise BenchmarkError(str(error)) from None
    if settings.output.json:
        settings.output.document({"agent": agent, "scenario": name} | asdict(found))
    else:
        print(summary(found, agent, name))
    return 0


def summary(found: Found, agent: str, scenario: str) -> str:
    """Return the result in a few lines for people."""
    told = f"{found.value:.4f}, exact"
    if found.samples is not None:
        told = f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}], from {found.samples} responses at each"
    lines = [
        f"{agent} in {scenario}: exploitability {told} ({found.information_sets} information sets)",
        f"uniform play: {found.uniform:.4f}; an equilibrium: 0",
    ]
    for player, best in found.best_responses.items():
        (other,) = (each for each in found.best_responses if each != player)
        lines.append(f"a best response as {player} gets {best:+.4f} from {agent} as {other}")
    if found.invalid > 1e-9:  # probabilities that sum to 1 but for rounding are no invalid responses
        lines.append(f"{found.invalid:.1%} of the responses were invalid and played the default action")
    return "\n".join(lines)
