"""The command ``textbench improve``."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar

from agents.common import REQUIRED, option, part, place, settings
from benchmark.cli import Output
from benchmark.play import OF_ONE_AGENT, RunOptions, without_spec
from research.improve.improvers import find_improver, improvers

if TYPE_CHECKING:
    from benchmark.play import AgentTable

OF_THE_AGENT = tuple(name for name in OF_ONE_AGENT if name != "sets")  # and what its folder may use


@settings
class Settings:
    """Make a player better within a budget, and score it as it was and as it is.

    The folder that comes of it is an agent: textbench run --agent DIR. Its agent.toml has what a table [agents.NAME]
    of a configuration file has, and everything that was played or asked on the way lies beside it. Methods play
    training seeds; the scores before and after are of the scenario's own episodes, which nothing is learnt from. The
    same command resumes an improvement that was stopped, and what was played and asked is not paid for again.

    examples:
      textbench improve offline --agent tiny --scenario frozen-lake --set method=weighted
      textbench improve imitate --agent smollm2 --mode direct --scenario snake --set examples=4000 --budget-seconds 600
      textbench improve gepa --agent openai:SMALL --scenario snake --set writer=openai:LARGE --budget-tokens 2000000
    """

    daily: ClassVar[Mapping[str, Sequence[str]]] = {
        "what is improved": ("METHOD", "--agent", "--scenario", "--set", "--seed"),
        "budget": ("--budget-tokens", "--budget-calls", "--budget-seconds"),
        "models": ("--base-url", "--temperature", "--max-tokens", "--mode"),
        "output": ("--out", "--eval-episodes", "--json", "--quiet"),
    }
    method: str = place("METHOD", "the method; METHOD --help lists its options")
    agent: str = option(REQUIRED, "SPEC", "who: any agent that the method can change")
    scenarios: tuple[str, ...] = option(REQUIRED, "S", "what it is to play better", words=True)
    budget_tokens: int | None = option(None, "N", "tokens that may be spent (default: no limit)", ge=1)
    budget_calls: int | None = option(None, "N", ge=1)
    """answers of players and models that may be asked for (default: no limit)"""
    budget_seconds: float | None = option(None, "S", ge=0)
    """seconds of play, questions and training, which is not cut short (default: no limit)"""
    seed: int = option(0, "N", "of training seeds, order and everything that is random", ge=0)
    eval_episodes: int = option(50, "N", "episodes of each scenario for the scores before and after", ge=0)
    out: str | None = option(None, "DIR", "the agent's folder (default runs/METHOD-SCENARIO)")
    method_options: tuple[str, ...] = option((), "OPTION=VALUE", named="--set")
    """an option of the method"""
    options: RunOptions = part(RunOptions, OF_THE_AGENT)
    output: Output = part(Output, ["json", "quiet"])

    @staticmethod
    def more_help(words: Sequence[str]) -> str:
        """Return the options of the method that is named before ``--help``, each with its default, else the methods."""
        if not words or words[0] not in improvers():
            return "\n".join(["methods:", *(f"  {name:<12}  {one.description}" for name, one in improvers().items())])
        from textgames import explained, taken_by

        function = find_improver(words[0])
        told, lines = explained(function), [f"options of {words[0]}:"]
        for name, parameter in taken_by(function, arguments=1).named.items():
            default = "" if parameter.default is None else f" (default {parameter.default})"
            about = fill(f"{told[name].rstrip('.')}{default}".replace("``", ""), 96)
            lines += [f"  --set {name}=VALUE", *[f"      {line}" for line in about.splitlines()]]
        return "\n".join(lines)


def run(settings: Settings) -> int:
    """Improve the agent, and score it before and after."""
    from pathlib import Path

    from agents.common import read_setting
    from benchmark import UsageError
    from benchmark.cli import play_both
    from benchmark.runs import find_scenarios
    from research.improve.budget import Budget
    from research.improve.improvers import checked
    from research.improve.keeping import EVALUATION, Improvement

    output = settings.output
    options = checked(
        settings.method, dict(read_setting(text, "OPTION=VALUE", UsageError) for text in settings.method_options)
    )
    scenarios = tuple(find_scenarios(settings.scenarios))
    improvement = Improvement(
        settings.method,
        options,
        agent_of(settings.agent, settings.options),
        scenarios,
        Budget(settings.budget_tokens, settings.budget_calls, settings.budget_seconds),
        settings.seed,
        Path(settings.out or f"runs/{settings.method}-{'-'.join(scenarios)}"),
    )
    try:
        improvement.make(output.say, quiet=output.quiet)
        output.say(f"to play it: textbench run --agent {improvement.out}")
        if not settings.eval_episodes:
            return 0
        own = without_spec(improvement.agent)
        given: dict[str, Any] = {
            "agents": (f"before={improvement.agent['spec']}", f"after={improvement.out}"),
            "scenarios": improvement.scenarios,
            "episodes": settings.eval_episodes,
            "out": str(improvement.out / EVALUATION),
        }
        if own:
            given["agent_options"] = {"before": own}
        return play_both(given, ("before", "after"), output, improvement.add_scores)
    except KeyboardInterrupt:
        output.say("the same command resumes this one")
        raise


def agent_of(spec: str, given: RunOptions) -> "AgentTable":
    """Return the agent with the options that were given for it, as a table has them."""
    from dataclasses import replace

    from agents.common import url_secrets
    from benchmark import UsageError
    from benchmark.play import AgentSpec, Players, from_anywhere, with_agent_folders, with_agent_options

    values: dict[str, Any] = {name: getattr(given, name) for name in given.given & {*OF_THE_AGENT} - {"allow"}}
    options = with_agent_folders(replace(given, agents=(spec,)))
    agent = AgentSpec.parse(options.agents[0])
    own = {**options.by_agent.get(agent.name, {}), **values}
    named = replace(options, agent_options={agent.name: own} if own else None)
    checked = with_agent_options(named, {agent.name: agent.spec})
    if url_secrets(checked.by_agent.get(agent.name, {}).get("base_url") or ""):
        raise UsageError("the server's address holds a secret, and is kept in the agent's folder: set OPENAI_BASE_URL")
    Players([agent], checked).check_unmade()
    return from_anywhere({"spec": agent.spec, **checked.by_agent.get(agent.name, {})})
