"""Give a model a warm start: it imitates a player, and learns the form of answers and as much as that player knows.

The teacher plays the scenario's training seeds, and the model learns its answers in the form of the response mode:
random teaches the form alone, planner the game. Then the model is evaluated as it was and as it is now, as textbench
run does it: a normalized score of 0 is the best play that doesn't read. The folder plays as hf:DIR and is trained
further with model = "DIR"; it knows its prompts. The same command goes on where it was stopped.

examples:
  textbench warmup --model smollm2 --scenario frozen-lake
  textbench warmup --model smollm2 --scenario frozen-lake snake --teacher random planner --examples 4000
  textbench warmup --model hf:./base --scenario frozen-lake --mode think --full --set learning_rate=5e-5
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.msgrpo.config import MSGRPOConfig


def add_arguments(parser: ArgumentParser) -> None:
    """Who learns what from whom."""
    parser.add_argument(
        "--model", default="smollm2", metavar="M", help="smollm2 (default), a folder, a name on the hub, gguf:PATH"
    )
    parser.add_argument("--scenario", nargs="+", required=True, metavar="S", help="scenarios to learn, in equal parts")
    parser.add_argument(
        "--teacher",
        nargs="+",
        default=["planner"],
        metavar="T",
        help="who is imitated, several in equal parts: planner (default), greedy, random, or another agent",
    )
    parser.add_argument("--examples", default="2000", metavar="N", help="decisions to learn from (default 2000)")
    parser.add_argument(
        "--explore",
        default="0.5",
        metavar="P",
        help="share of moves that the random player takes, after which the teacher still says what it would do "
        "(default 0.5)",
    )
    parser.add_argument("--mode", default="direct", metavar="MODE", help="response mode: direct (default) or think")
    parser.add_argument("--prompts", metavar="FILE", help="another wording of the prompts (TOML)")
    weights = parser.add_mutually_exclusive_group()
    weights.add_argument("--rank", metavar="R", help="rank of the LoRA adapter (default 16)")
    weights.add_argument("--full", action="store_true", help="train all weights")
    parser.add_argument("--seed", default="0", metavar="N", help="of layouts, order and adapter (default 0)")
    parser.add_argument(
        "--set",
        dest="sets",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another setting of textbench train",
    )
    parser.add_argument("--eval-episodes", default="50", metavar="N", help="episodes of the evaluation (default 50)")
    parser.add_argument("--out", metavar="DIR", help="the model's folder (default runs/warmup-SCENARIO)")
    parser.add_argument("--json", action="store_true", help="print the evaluation as one JSON document")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: Namespace) -> int:
    """Learn, then evaluate before and after."""
    from benchmark.cli.output import Output
    from benchmark.cli.sources import real_number, whole_number
    from benchmark.errors import BenchmarkError, UsageError
    from textgames.extras import missing_packages

    missing = missing_packages("torch", "transformers", extra="train")
    if missing is not None:
        raise UsageError(f"a warm start needs {missing}")
    from agents.msgrpo.errors import ConfigError, DivergenceError, UnusableModelError
    from agents.msgrpo.warmup.start import Teaching, warm_start

    examples = whole_number("--examples", args.examples, 1)
    episodes = whole_number("--eval-episodes", args.eval_episodes, 0)
    explore = real_number("--explore", args.explore)
    if explore > 1:
        raise UsageError(f"--explore is a share from 0 to 1, got {args.explore!r}")
    output = Output(args.json, args.quiet)
    try:
        config = _config(args, examples)
        made = warm_start(config, Teaching(tuple(args.teacher), examples, explore), output.say)
    except (ConfigError, UnusableModelError, ModuleNotFoundError) as error:
        raise UsageError(str(error)) from error
    except DivergenceError as error:
        raise BenchmarkError(str(error)) from error
    except KeyboardInterrupt:
        output.say("the same command goes on where this one was stopped")
        raise
    output.say(
        f"{config.out}: loss on held-out decisions {made['held_out_before']:.3f} -> {made['held_out']:.3f} nats a "
        f"token, in {made['seconds']:.0f} s"
    )
    output.say(f"to train it further: model = {config.out!r}; to play it: textbench run --agent hf:{config.out}")
    return _evaluated(args, config, episodes, output) if episodes else 0


def _config(args: Namespace, examples: int) -> "MSGRPOConfig":
    """The trainer's settings, as the options say and then ``--set``."""
    from agents.msgrpo.warmup.start import warmup_config
    from benchmark.cli.sources import whole_number
    from benchmark.runs.plan import find_scenarios

    scenarios = tuple(find_scenarios(args.scenario))
    rank = 0 if args.full else 16 if args.rank is None else whole_number("--rank", args.rank, 1)
    settings: dict[str, Any] = {
        "lora_rank": rank,
        "response_mode": args.mode,
        "prompt_file": args.prompts or "",
        "seed": whole_number("--seed", args.seed, 0),
        "out": args.out or str(Path("runs") / f"warmup-{'-'.join(scenarios)}"),
    }
    model = args.model.removeprefix("hf:")
    return warmup_config(model, scenarios, examples, **settings).with_overrides(args.sets)


def _evaluated(args: Namespace, config: "MSGRPOConfig", episodes: int, output: Any) -> int:
    """Play the scenarios' own episodes, which nothing is trained on, with the model as it was and as it is."""
    from agents.load import check_spec
    from benchmark.cli.output import report
    from benchmark.play.agents.choice import plan_run
    from benchmark.play.options import RunOptions, checked_options
    from benchmark.play.session import open_session

    base = config.model
    try:
        check_spec(base)
    except ValueError:
        base = f"hf:{base}"
    values: dict[str, Any] = {
        "agents": (f"base={base}", f"warm=hf:{config.out}"),
        "scenarios": config.scenarios,
        "episodes": episodes,
        "mode": config.response_mode,
        "max_tokens": config.max_response_tokens,
        "out": str(Path(config.out) / "evaluation"),
    }
    if config.legal_only:
        values["legal_only"] = True
    if config.prompt_file:
        values["prompts"] = config.prompt_file
    options = RunOptions(**checked_options(values, {}), given=frozenset(values))
    return report(open_session(plan_run(options, output.say)).play(quiet=output.quiet), output)
