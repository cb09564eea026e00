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

from agents.common.arguments import real_number
from benchmark.cli.arguments import add_number, add_output_options

if TYPE_CHECKING:
    from agents.msgrpo.configuration.config import MSGRPOConfig
    from benchmark.cli.output import Output


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the model that learns, the game, and the teacher that it imitates."""
    parser.add_argument(
        "--model", default="smollm2", metavar="M", help="smollm2 (default), a folder, a name on the hub, gguf:PATH"
    )
    parser.add_argument(
        "--scenario", action="extend", nargs="+", required=True, metavar="S", help="scenarios to learn, in equal parts"
    )
    parser.add_argument(
        "--teacher",
        nargs="+",
        default=["planner"],
        metavar="T",
        help="who is imitated, several in equal parts: planner (default), greedy, random, or another agent",
    )
    add_number(parser, "--examples", 2000, "decisions to learn from", 1)
    parser.add_argument(
        "--explore",
        type=real_number(0, 1),
        default=0.5,
        metavar="P",
        help="share of moves that the random player takes, after which the teacher still says what it would do "
        "(default 0.5)",
    )
    parser.add_argument("--mode", default="direct", metavar="MODE", help="response mode: direct (default) or think")
    parser.add_argument("--prompts", metavar="FILE", help="another wording of the prompts (TOML)")
    parser.add_argument("--legal-only", action="store_true", help="evaluate with legal answers alone")
    weights = parser.add_mutually_exclusive_group()
    add_number(weights, "--rank", None, "rank of the LoRA adapter (default 16)", 1, metavar="R")
    weights.add_argument("--full", action="store_true", help="train all weights")
    add_number(parser, "--seed", 0, "of layouts, order and adapter")
    parser.add_argument(
        "--set",
        dest="sets",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another setting of textbench train",
    )
    add_number(parser, "--eval-episodes", 50, "episodes of the evaluation")
    parser.add_argument("--out", metavar="DIR", help="the model's folder (default runs/warmup-SCENARIO)")
    add_output_options(parser, "json", "quiet", json="print the evaluation as one JSON document")


def run(args: Namespace) -> int:
    """Train the model on the teacher's moves, and score it as it was before and as it is after."""
    from agents.msgrpo.__main__ import check_packages
    from benchmark.cli.output import Output
    from benchmark.errors import BenchmarkError, UsageError

    try:
        check_packages(args.model, adapter=not args.full)
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from error
    from agents.msgrpo.errors import ConfigError, DivergenceError, UnusableModelError
    from agents.msgrpo.warmup.start import Teaching, warm_start

    output = Output(args.json, args.quiet)
    try:
        config = _config(args)
        made = warm_start(config, Teaching(tuple(args.teacher), args.examples, args.explore), output.say)
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
    return _evaluated(args, config, output) if args.eval_episodes else 0


def _config(args: Namespace) -> "MSGRPOConfig":
    """Return the trainer's settings, as the options say and then ``--set``."""
    from agents.msgrpo.warmup.start import warmup_config
    from benchmark.runs.plan import find_scenarios

    scenarios = tuple(find_scenarios(args.scenario))
    settings: dict[str, Any] = {
        "lora_rank": 0 if args.full else args.rank or 16,
        "response_mode": args.mode,
        "prompt_file": args.prompts or "",
        "legal_only": args.legal_only,
        "seed": args.seed,
        "out": args.out or str(Path("runs") / f"warmup-{'-'.join(scenarios)}"),
    }
    model = args.model.removeprefix("hf:")
    return warmup_config(model, scenarios, args.examples, **settings).with_overrides(args.sets)


def _evaluated(args: Namespace, config: "MSGRPOConfig", output: "Output") -> int:
    """Play the scenarios' own episodes, which nothing is trained on, with the model as it was and as it is."""
    from agents.load import check_spec
    from agents.msgrpo.warmup.start import add_scores
    from benchmark.cli.before_after import play_both

    base = config.model
    try:
        check_spec(base)
    except ValueError:
        base = f"hf:{base}"
    values: dict[str, Any] = {
        "agents": (f"base={base}", f"warm=hf:{config.out}"),
        "scenarios": config.scenarios,
        "episodes": args.eval_episodes,
        "mode": config.response_mode,
        "max_tokens": config.max_response_tokens,
        "out": str(Path(config.out) / "evaluation"),
    }
    if config.legal_only:
        values["legal_only"] = True
    if config.prompt_file:
        values["prompts"] = config.prompt_file
    return play_both(values, ("base", "warm"), output, lambda *scores: add_scores(Path(config.out), *scores))
