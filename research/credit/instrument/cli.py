"""Measure methods of credit assignment against the true advantage of the policy that played.

In a small game whose chances are known, the true advantage of every action follows from the policy's probabilities by
dynamic programming. A method is given batches of episodes as in training; the table says how much the advantages that
it assigns are like the true ones, and how good the policy gradient is that they make (for models of this process).

The names oracle (the true advantage) and noise (random numbers) are always among the methods.

examples:
  textbench credit tiny --game frozen-lake
  textbench credit tiny --game frozen-lake-slippery --method all --json
  textbench credit tiny --game frozen-lake --method msgrpo --method gigpo --picture credit.svg
  textbench credit tiny --game frozen-lake --method msgrpo --draws aaw --draws uniform --m 8 --m 32
  textbench credit random --game kuhn-poker          fidelity alone: there is no model to take a gradient of
  textbench credit hf:./checkpoint --game sokoban --max-steps 8 --batches 4
"""

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agents.common import Parser, real_number, whole_number
from benchmark.cli import add_number, add_output_options
from benchmark.play import OF_ONE_AGENT, add_options, read_options

if TYPE_CHECKING:
    from agents import Policy
    from research.credit.instrument.instrument import Instrument
    from textgames import Scenario

SMALL_MODEL = 5_000_000  # parameters


def add_arguments(parser: Parser) -> None:
    """Declare the policy and the game that are measured, the methods, and how the table is shown."""
    parser.add_argument("agent", metavar="AGENT", help="the policy that plays, such as tiny or hf:PATH")
    parser.add_argument("--game", default="frozen-lake", metavar="SCENARIO", help="default frozen-lake")
    parser.add_argument(
        "--method", action="append", default=[], metavar="NAME", help="a method, or all (default: a handful)"
    )
    add_number(parser, "--groups", 8, "starts, each a group of episodes", 1)
    add_number(parser, "--group-size", 16, "episodes of a group", 2)
    add_number(parser, "--batches", 8, "batches from the same starts", 1)
    parser.renamed["--horizon"] = "--max-steps"
    add_number(parser, "--max-steps", None, "rounds of an episode (default: the scenario's)", 1)
    parser.add_argument("--temperature", default="1.25", metavar="T", help="default 1.25, as in training")
    add_number(parser, "--samples", 64, "responses to each prompt, where needed", 2)
    penalty = "what an invalid response costs (default 1, as in training)"
    parser.add_argument("--format-penalty", type=real_number(0), default=1.0, metavar="X", help=penalty)
    parser.add_argument(
        "--draws", action="append", default=[], metavar="RULE", help="a draw rule to look at: aaw, uniform, off, ..."
    )
    drawn = "episodes that a rule draws (default: half of a batch)"
    parser.add_argument("--m", type=whole_number(1), action="append", default=[], metavar="M", help=drawn)
    add_number(parser, "--max-states", 20_000, "the most states of the game", 1)
    add_options(parser, [name for name in OF_ONE_AGENT if name != "temperature"])
    add_number(parser, "--seed", 0, "of starts, episodes and sampling")
    parser.add_argument("--no-gradient", action="store_true", help="fidelity alone, which is faster")
    parser.add_argument("--checklist", action="store_true", help="what papers should report, filled in")
    parser.add_argument("--picture", metavar="FILE", help="draw where on the board methods are wrong, as an SVG")
    add_output_options(parser, "json", "quiet")


def run(args: Namespace) -> int:
    """Measure the methods' credit, and print or draw what was found."""
    import json

    from agents.msgrpo import DRAWS, ConfigError, RolloutError
    from agents.msgrpo.credit import METHODS
    from benchmark import BenchmarkError, UsageError
    from textgames import install_command

    try:
        from benchmark.show import stdout_console
        from research.credit.instrument.instrument import default_methods, methods_of
        from research.credit.instrument.show.checklist import as_text, checklist
        from research.credit.instrument.show.tables import print_report
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "transformers"):
            raise
        raise UsageError(f"credit needs {error.name}, which is not installed: {install_command('local')}") from None

    names = tuple(args.method) or default_methods()
    if "all" in names:
        names = METHODS.names
    if args.draws and args.no_gradient:
        raise UsageError("--draws looks at the gradients of what a rule draws: leave out --no-gradient")
    batch = args.groups * args.group_size
    if args.m and max(args.m) > batch:
        raise UsageError(f"--m {max(args.m)}: a batch has {args.groups} groups of {args.group_size}, {batch} episodes")
    if args.m and not args.draws:
        raise UsageError("--m says how many episodes a draw rule draws: name one with --draws, such as --draws aaw")
    try:
        for rule in args.draws:
            DRAWS.check(rule)
        instrument = _instrument(args, names)
        report = instrument.measure(methods_of(names, instrument.setting), draws=args.draws, sizes=args.m)
    except (ConfigError, ValueError) as error:
        raise UsageError(f"{args.game}: {error}" if not isinstance(error, ConfigError) else str(error)) from None
    except (RolloutError, RuntimeError) as error:
        raise BenchmarkError(str(error)) from None
    if args.picture is not None:
        _draw(instrument, args.picture)
    items = checklist(report) if args.checklist else []
    if args.json:
        added = {"checklist": [item._asdict() for item in items]} if items else {}
        print(json.dumps(report.to_json() | added, indent=1))
        return 0
    print_report(report, stdout_console())
    if items:
        print("\n" + as_text(items))
    return 0


def _instrument(args: Namespace, names: tuple[str, ...]) -> "Instrument":
    """Return all that the measurement needs; what is wrong is reported before anything is played."""
    from benchmark import UsageError
    from benchmark.runs import check_file_place, find_scenario
    from research.credit.instrument.batches import Setting
    from research.credit.instrument.gradients.scores import why_no_gradient
    from research.credit.instrument.instrument import Instrument, methods_of
    from research.credit.instrument.show.pictures import check_drawable

    scenario = find_scenario(args.game, "measure")
    shared = {name: getattr(args, name) for name in ("groups", "group_size", "max_steps", "format_penalty", "seed")}
    setting = Setting(scenario, **shared)
    methods_of(names, setting)
    if args.picture is not None:
        check_drawable(setting.game())
        check_file_place(args.picture)
    policy = _policy(args, scenario)
    if args.draws and (why := why_no_gradient(policy)) is not None:
        raise UsageError(f"--draws looks at the gradients of what a rule draws, and there are none: {why}")
    return Instrument(
        policy,
        setting,
        batches=args.batches,
        samples=args.samples,
        max_states=args.max_states,
        gradient=not args.no_gradient,
        progress=_progress(args.quiet),
    )


def _draw(instrument: "Instrument", file: str) -> None:
    from pathlib import Path

    from benchmark import storing
    from research.credit.instrument.instrument import ORACLE
    from research.credit.instrument.show.pictures import board_picture

    names = [name for name in instrument.credited if name != ORACLE]
    picture = board_picture(instrument, names)
    with storing(file):
        Path(file).write_text(picture, encoding="utf-8")


def _policy(args: Namespace, scenario: "Scenario") -> "Policy":
    from dataclasses import replace

    from benchmark.play import load_one

    options = read_options(args, names=OF_ONE_AGENT)
    # the temperature has a value that nobody gave
    policy, _ = load_one(args.agent, replace(options, given=options.given - {"temperature"}), scenario)
    _take_one_thread(policy)
    return policy


def _take_one_thread(policy: "Policy") -> None:
    """Give a small model one thread: waiting for others costs more than they save."""
    from agents.analysis import has_local_model

    if not has_local_model(policy):
        return
    import torch

    local: Any = policy
    if sum(p.numel() for p in local.model.model.parameters()) < SMALL_MODEL:
        torch.set_num_threads(1)


def _progress(quiet: bool) -> Callable[[str, int, int], None] | None:
    """Show progress on stderr: in a terminal a line that is rewritten, in a log a line now and then."""
    import sys
    import time

    if quiet:
        return None
    live, last = sys.stderr.isatty(), [0.0]

    def tell(what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if live:
            end = "\n" if done == total else ""
            print(f"\r{what}: {done:,} of {total:,}", end=end, file=sys.stderr, flush=True)
        elif now - last[0] > 10:
            last[0] = now
            print(f"{what}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    return tell
