"""Compare a model's action probabilities with the solver's action values at each step of an episode.

The probabilities are estimated from fresh responses. They are exact for local models that answer without reasoning;
for the others, the exact probabilities after the reasoning of this episode are shown too. A step's regret is the return
that the policy loses there in expectation.

examples:
  textbench inspect                                   tiny on frozen-lake's first episode
  textbench inspect tiny-msgrpo-snake --scenario snake --episode 3
  textbench inspect hf:./checkpoint --samples 64 --json
  textbench inspect smollm2 --world-model --prompts world --mode direct
                                                      how true is what it says will be shown next
"""

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agents.common.arguments import Parser
from benchmark.cli.arguments import add_number, add_output_options
from benchmark.play.options import OF_ONE_AGENT, add_options, read_options

if TYPE_CHECKING:
    from agents.analysis.inspection import InspectedStep, Inspection
    from textgames.scenarios import Scenario


def add_arguments(parser: Parser) -> None:
    """Declare the agent that is inspected, and the episode that it plays."""
    parser.daily = {
        "what is inspected": ("SPEC", "--scenario", "--episode", "--seed", "--samples", "--world-model", "--starts"),
        "models": ("--base-url", "--temperature", "--max-tokens", "--mode", "--set"),
        "output": ("--json",),
    }
    parser.add_argument("agent", nargs="?", default="tiny", metavar="SPEC", help="the agent (default tiny)")
    parser.add_argument("--scenario", default="frozen-lake", metavar="NAME", help="default frozen-lake")
    which = parser.add_mutually_exclusive_group()
    add_number(which, "--episode", 0, "number of the episode", metavar="K")
    add_number(which, "--seed", None, "the episode's seed, in place of its number")
    add_number(parser, "--samples", 32, "fresh responses per step", 1)
    parser.add_argument(
        "--world-model",
        action="store_true",
        help="ask it what every action leads to, and compare with the true chances",
    )
    add_number(parser, "--starts", 20, "with --world-model: episodes whose positions it is asked about", 2)
    parser.only_with(["--world-model"], "--starts")
    add_options(parser, OF_ONE_AGENT)
    add_output_options(parser, "json")


def run(args: Namespace) -> int:
    """Play the episode, and print what the agent wanted at each step beside what the actions are worth."""
    import json

    from agents.analysis.inspection import Inspectable, inspect_episode
    from benchmark.errors import BenchmarkError, UsageError
    from benchmark.play.agents.players import load_one
    from benchmark.runs.plan import find_scenario

    scenario = find_scenario(args.scenario, "inspect")
    if args.world_model:
        return _world_model(args, scenario)
    seed = scenario.seed(args.episode) if args.seed is None else args.seed
    policy, _ = load_one(args.agent, read_options(args, names=OF_ONE_AGENT), scenario)
    try:
        inspection = inspect_episode(policy, scenario, seed, samples=args.samples)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except RuntimeError as error:
        raise BenchmarkError(str(error)) from None
    more = policy.inspected(scenario) if isinstance(policy, Inspectable) else {}
    if args.json:
        print(json.dumps({**to_json(inspection, args.agent), **more}, indent=1))
    else:
        print_inspection(inspection, args.agent)
        for told in more.values():
            print(told["told"], *(f"wrong: {fault}" for fault in told.get("faults", ())[:1]), sep="\n")
    return 0


def _world_model(args: Namespace, scenario: "Scenario") -> int:
    """Print how well the agent predicts what actions lead to."""
    import json

    from agents.analysis.world_model import world_fidelity
    from benchmark.errors import BenchmarkError, UsageError
    from benchmark.play.agents.players import load_one

    policy, _ = load_one(args.agent, read_options(args, names=OF_ONE_AGENT), scenario)
    try:
        found = world_fidelity(policy, scenario, starts=args.starts, samples=args.samples)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except RuntimeError as error:
        raise BenchmarkError(str(error)) from None
    if args.json:
        figures = {name: getattr(found, name)._asdict() for name in _OF_A_WORLD}
        about = {"agent": args.agent, "scenario": scenario.name, "pairs": found.pairs, "samples": found.samples}
        print(json.dumps({**about, **figures}, indent=1))
        return 0
    print(
        f"{args.agent} as a model of {scenario.name}: {found.pairs} pairs of a position and an action, "
        f"{found.samples} predictions each"
    )
    for name, text in _OF_A_WORLD.items():
        print(f"  {text:52}{getattr(found, name):z.3f}")
    return 0


_OF_A_WORLD = {
    "possible": "predictions that can come about",
    "probability": "true probability of what was predicted",
    "attainable": "the most that this can be",
    "distance": "distance of the predictions from the true chances",
}


def to_json(inspection: "Inspection", agent: str) -> dict[str, Any]:
    """Return the inspection as plain data."""
    episode = inspection.episode
    return {
        "agent": agent,
        "scenario": episode.scenario,
        "seed": episode.seed,
        "values": inspection.value_source,
        "returns": episode.returns,
        "successes": episode.successes,
        "steps": [
            {
                "index": one.step.index,
                "observation": one.step.observation,
                "response": one.step.turn.response,
                "action": one.step.action,
                "valid": one.step.valid,
                "probabilities": dict(one.probabilities),
                "probabilities_source": one.source,
                "after_reasoning": None if one.after_reasoning is None else dict(one.after_reasoning),
                "invalid_probability": one.invalid_probability,
                "action_values": dict(one.values),
                "best_actions": list(one.best),
                "best_probability": one.best_probability,
                "regret": one.regret,
            }
            for one in inspection.steps
        ],
    }


def _telling(actions: Sequence[str], steps: "Sequence[InspectedStep]") -> Sequence[str]:
    """Return the actions that have a column: all, or of very many those that were played, are best or are likely."""
    if len(actions) <= _COLUMNS:
        return actions
    played = [one.step.action for one in steps]
    best = [one.best[0] for one in steps if one.best]
    most = {action: max(one.probabilities.get(action, 0.0) for one in steps) for action in actions}
    likely = sorted([action for action in actions if most[action] > 0], key=most.__getitem__, reverse=True)
    ranked = dict.fromkeys(action for action in (*played, *best, *likely) if action in actions)
    chosen = set(list(ranked)[:_COLUMNS])
    return [action for action in actions if action in chosen]


def print_inspection(inspection: "Inspection", agent: str) -> None:
    """The inspection as a table."""
    from rich.table import Table

    from benchmark.show.draw import stdout_console

    episode, steps = inspection.episode, inspection.steps
    console = stdout_console()
    actions = list(dict.fromkeys(action for one in steps for action in one.values))
    shown = _telling(actions, steps)
    table = Table(title=f"{agent} on {episode.scenario}, seed {episode.seed}", title_justify="left")
    table.add_column("step", justify="right")
    table.add_column("its reasoning", overflow="fold")
    for action in shown:
        table.add_column(action, justify="right", no_wrap=True)
    table.add_column("regret", justify="right")
    for one in steps:
        table.add_row(str(one.step.index), _reasoning(one), *(_cell(one, a) for a in shown), f"{one.regret:.3f}")
    console.print(table)
    if len(shown) < len(actions):
        console.print(
            f"{len(shown)} of {len(actions):,} actions have a column: played, best or likely; --json has all."
        )
    won = ", a success" if next(iter(episode.successes.values())) else ""
    regret = sum(one.regret for one in steps) / len(steps)
    best = sum(one.best_probability for one in steps) / len(steps)
    unread = sum(not one.step.valid for one in steps) / len(steps)
    said = f" {unread:.0%} of its responses couldn't be read, for which the protocol's moves stand." if unread else ""
    for line in (
        f"In a cell: how probable the action is ({_SOURCES[steps[0].source]}), how probable after the reasoning that "
        "was written (exact; local models only), and the action's value "
        f"({_VALUES[inspection.value_source]}). * marks the best actions, > what was played.",
        f"Return {next(iter(episode.returns.values())):g}{won}. On average {best:.1%} on a best action, regret "
        f"{regret:.3f} per step.{said}",
    ):
        console.print(line)


_COLUMNS = 10  # of actions: more don't fit a terminal

_SOURCES = {"scored": "exact", "sampled": "share of sampled responses"}
_VALUES = {"exact": "exact", "search": "estimated by search"}


def _reasoning(one: "InspectedStep") -> Any:
    from rich.text import Text

    text = one.step.turn.response.partition("<action>")[0]
    for tag in ("<think>", "</think>", "<plan>", "</plan>"):
        text = text.replace(tag, " ")
    invalid = f" [invalid: {one.step.unreadable}]" if not one.step.valid else ""
    return Text(" ".join(text.split()) + invalid)


def _cell(one: "InspectedStep", action: str) -> Any:
    from rich.text import Text

    if action not in one.values:
        return Text("not legal")
    best, played = action in one.best, action == one.step.action
    mark = f"{'>' if played else ''}{'*' if best else ''}"
    style = "green" if best and played else "red" if played else "bold" if best else ""
    after = "" if one.after_reasoning is None else f"\n{one.after_reasoning[action]:.1%}"
    return Text(f"{mark} {one.probabilities.get(action, 0.0):.1%}{after}\n{one.values[action]:.3f}", style=style)
