"""Make a player better within a budget, and score it as it was and as it is.

The folder that comes of it is an agent: textbench run --agent DIR. Its agent.toml has what a table [agents.NAME] of a
configuration file has, and everything that was played or asked on the way lies beside it. Methods play training seeds;
the scores before and after are of the scenario's own episodes, which nothing is learnt from. The same command goes on
where it was stopped, and what was played and asked is not paid for again.

examples:
  textbench improve offline --agent tiny --scenario frozen-lake --set method=weighted
  textbench improve imitate --agent smollm2 --mode direct --scenario snake --set examples=4000 --budget-seconds 600
  textbench improve gepa --agent openai:SMALL --scenario snake --set writer=openai:LARGE --budget-tokens 2000000
"""

from argparse import Action, Namespace
from textwrap import fill
from typing import TYPE_CHECKING, Any

from agents.common import Parser, real_number
from benchmark.cli import add_number, add_output_options
from benchmark.play import OF_ONE_AGENT, add_options, read_options, without_spec
from research.improve.improvers import find_improver, improvers

if TYPE_CHECKING:
    from benchmark.cli import Output
    from benchmark.play import AgentTable
    from research.improve.keeping import Improvement

OF_THE_AGENT = tuple(name for name in OF_ONE_AGENT if name != "sets")  # and what its folder may use


def add_arguments(parser: Parser) -> None:
    """Declare the method, the agent, what it is to play better, and the budget."""
    parser.daily = {
        "what is improved": ("METHOD", "--agent", "--scenario", "--set", "--seed"),
        "budget": ("--budget-tokens", "--budget-calls", "--budget-seconds"),
        "models": ("--base-url", "--temperature", "--max-tokens", "--mode"),
        "output": ("--out", "--eval-episodes", "--json", "--quiet"),
    }
    methods = "; ".join(f"{name}: {one.description}" for name, one in improvers().items())
    parser.add_argument("method", metavar="METHOD", help=methods, action=_Method)
    parser.add_argument("--agent", required=True, metavar="SPEC", help="who: any agent that the method can change")
    parser.add_argument(
        "--scenario", action="extend", nargs="+", required=True, metavar="S", help="what it is to play better"
    )
    add_number(parser, "--budget-tokens", None, "tokens that may be spent (default: no limit)", 1)
    add_number(
        parser, "--budget-calls", None, "answers of players and models that may be asked for (default: no limit)", 1
    )
    parser.add_argument(
        "--budget-seconds",
        type=real_number(0),
        metavar="S",
        help="seconds of play, questions and training, which is not cut short (default: no limit)",
    )
    add_number(parser, "--seed", 0, "of training seeds, order and everything that is random")
    add_number(parser, "--eval-episodes", 50, "episodes of each scenario for the scores before and after")
    parser.add_argument("--out", metavar="DIR", help="the agent's folder (default runs/METHOD-SCENARIO)")
    parser.add_argument(
        "--set",
        dest="method_options",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="the method's own; METHOD --help lists them",
    )
    add_options(parser, OF_THE_AGENT)
    add_output_options(parser, "json", "quiet", json="print the evaluation as one JSON document")


class _Method(Action):
    """Keep the method, and put its options at the end of a help that follows it."""

    def __call__(self, parser: Any, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, values)
        if values in improvers() and {"-h", "--help"} & {*parser.given}:
            parser.epilog = f"{_options_of(values)}\n\n{parser.epilog or ''}"


def _options_of(name: str) -> str:
    from textgames import explained, taken_by

    function = find_improver(name)
    told, lines = explained(function), []
    for option, parameter in taken_by(function, arguments=1).named.items():
        default = "" if parameter.default is None else f" (default {parameter.default})"
        about = fill(f"{told[option].rstrip('.')}{default}".replace("``", ""), 96)
        lines += [f"  --set {option}=VALUE", *[f"      {line}" for line in about.splitlines()]]
    return "\n".join([f"options of {name}:", *lines])


def run(args: Namespace) -> int:
    """Improve the agent, and score it before and after."""
    from pathlib import Path

    from agents.common import read_setting
    from benchmark import UsageError
    from benchmark.cli import Output
    from benchmark.runs import find_scenarios
    from research.improve.budget import Budget
    from research.improve.improvers import checked
    from research.improve.keeping import Improvement

    output = Output(args.json, args.quiet)
    options = checked(args.method, dict(read_setting(text, "OPTION=VALUE", UsageError) for text in args.method_options))
    scenarios = tuple(find_scenarios(args.scenario))
    improvement = Improvement(
        args.method,
        options,
        _agent(args),
        scenarios,
        Budget(args.budget_tokens, args.budget_calls, args.budget_seconds),
        args.seed,
        Path(args.out or f"runs/{args.method}-{'-'.join(scenarios)}"),
    )
    try:
        improvement.make(output.say, quiet=output.quiet)
        output.say(f"to play it: textbench run --agent {improvement.out}")
        return _evaluated(args, improvement, output) if args.eval_episodes else 0
    except KeyboardInterrupt:
        output.say("the same command goes on where this one was stopped")
        raise


def _agent(args: Namespace) -> "AgentTable":
    """Return the agent with the options that were given for it, as a table has them."""
    from dataclasses import replace

    from agents.common import url_secrets
    from benchmark import UsageError
    from benchmark.play import AgentSpec, Players, from_anywhere, with_agent_folders, with_agent_options

    given = read_options(args, names=OF_THE_AGENT)
    values: dict[str, Any] = {name: getattr(given, name) for name in given.given & {*OF_THE_AGENT} - {"allow"}}
    options = with_agent_folders(replace(given, agents=(args.agent,)))
    agent = AgentSpec.parse(options.agents[0])
    own = {**options.by_agent.get(agent.name, {}), **values}
    named = replace(options, agent_options={agent.name: own} if own else None)
    checked = with_agent_options(named, {agent.name: agent.spec})
    if url_secrets(checked.by_agent.get(agent.name, {}).get("base_url") or ""):
        raise UsageError("the server's address holds a secret, and is kept in the agent's folder: set OPENAI_BASE_URL")
    Players([agent], checked).check_unmade()
    return from_anywhere({"spec": agent.spec, **checked.by_agent.get(agent.name, {})})


def _evaluated(args: Namespace, improvement: "Improvement", output: "Output") -> int:
    from benchmark.cli import play_both
    from research.improve.keeping import EVALUATION

    own = without_spec(improvement.agent)
    values = {
        "agents": (f"before={improvement.agent['spec']}", f"after={improvement.out}"),
        "agent_options": {"before": own} if own else None,
        "scenarios": improvement.scenarios,
        "episodes": args.eval_episodes,
        "out": str(improvement.out / EVALUATION),
    }
    given = {name: value for name, value in values.items() if value is not None}
    return play_both(given, ("before", "after"), output, improvement.add_scores)
