"""Reproduce the paper's experiment in miniature: pretrain a small and a large base, post-train the small one with
MS-GRPO in several arms and seeds, evaluate everything, and say of each claim of the paper whether it holds here.

Every job's result is on disk, so the same command goes on where it was stopped. It says how long it will take before it
starts, and corrects that by what its jobs take.

examples:
  textbench reproduce --quick                     the first claim, in a few minutes
  textbench reproduce --dry-run                   what the full one would do, and for how long
  textbench reproduce --seeds 2 --games frozen-lake --out runs/lake
  textbench reproduce --config stability          what each setting of MS-GRPO changes
  textbench reproduce --config credit             methods of credit measured and compared by training
  textbench reproduce --config smollm2            the experiment with a pretrained model: hours, in parts
  textbench reproduce --config smollm2 --quick    one part of it, in less than half an hour
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.cli.arguments import add_number, add_output_options
from benchmark.errors import UsageError

if TYPE_CHECKING:
    from benchmark.reproduce.command import Options


def add_arguments(parser: ArgumentParser) -> None:
    """Declare what to do, where, and with how many processes."""
    parser.add_argument("--quick", action="store_true", help="the recipe's short form: of full, credit and smollm2")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="a recipe: full (default), quick, stability, few-drawn, tiny-lake, tiny-snake, credit, smollm2, or a TOML "
        "file",
    )
    add_number(parser, "--seeds", None, "training runs per game and arm", 1)
    add_number(parser, "--iterations", None, "of MS-GRPO, per run", 1)
    parser.add_argument("--games", metavar="NAME", nargs="+", help="training scenarios")
    parser.add_argument("--arms", metavar="NAME", nargs="+", help="only these arms of the recipe")
    parser.add_argument("--parts", metavar="NAME", nargs="+", help="only these parts of smollm2, and what they need")
    parser.add_argument(
        "--agent", metavar="SPEC", action="append", help="another model beside smollm2's, such as gguf:PATH"
    )
    parser.add_argument("--out", metavar="DIR", help="folder of the results (default runs/reproduce-RECIPE)")
    add_number(parser, "--jobs", None, "processes, which share the cores (default: one per core; 1 for smollm2)", 1)
    parser.add_argument("--dry-run", action="store_true", help="say what would be done and how long it would take")
    parser.add_argument("--report", action="store_true", help="only write the report of what is there")
    parser.add_argument("--ship", metavar="DIR", help="write the models that the package ships, by the fixed rule")
    parser.add_argument("--note", metavar="TEXT", action="append", help="a sentence that the report begins with")
    add_output_options(parser, "json", "quiet")


def run(args: Namespace) -> int:
    """Reproduce, or ship the models of a finished reproduction."""
    from benchmark.credit.study.settings import is_study
    from benchmark.reproduce.command import reproduce
    from benchmark.reproduce.pretrained.settings import is_pretrained
    from benchmark.reproduce.settings import read_experiment
    from benchmark.reproduce.timing import default_processes

    source = args.config or "full"
    if args.quick:
        if source not in _QUICK:
            raise UsageError(f"--quick: {source} has no short form; those with one are {', '.join(_QUICK)}")
        source = _QUICK[source]
    counts = {"seeds": args.seeds, "iterations": args.iterations}
    if is_pretrained(source):
        return _pretrained(source, counts, args.jobs or 1, args)
    for name in ("parts", "agent"):
        if getattr(args, name):
            raise UsageError(f"--{name} is of the experiment with a pretrained model: --config smollm2")
    processes = args.jobs or default_processes()
    changes = {**counts, "games": args.games, "arms": args.arms}
    if is_study(source):
        return _study(source, changes, processes, args)
    experiment = read_experiment(source, changes)
    options = _options(source, processes, args)
    if args.ship:
        from benchmark.reproduce.jobs import Folder
        from benchmark.reproduce.shipping import ship

        folder = Folder(options.out)
        folder.claim(experiment)
        for place in ship(experiment, folder, Path(args.ship), args.note or ()):
            print(place)
        return 0
    return reproduce(experiment, options)


_QUICK = {"full": "quick", "credit": "credit-quick", "smollm2": "smollm2-quick"}
"""The recipes that have a short form, and its name."""


def _options(source: str, processes: int, args: Namespace) -> "Options":
    from benchmark.reproduce.command import Options

    out = Path(args.out) if args.out else Path("runs") / f"reproduce-{Path(source).stem}"
    return Options(out, processes, args.dry_run, args.report, args.json, args.quiet, notes=tuple(args.note or ()))


def _study(source: str, changes: dict[str, Any], processes: int, args: Namespace) -> int:
    """The study of credit, which is no reproduction and shares its machinery."""
    from benchmark.credit.study.command import study_credit
    from benchmark.credit.study.settings import read_study

    if args.ship:
        raise UsageError("--ship is of a reproduction: the study of credit makes no models that the package ships")
    if changes.pop("iterations") is not None:
        raise UsageError("--iterations: runs of this study end at a budget of tokens, games.NAME.tokens of the recipe")
    return study_credit(read_study(source, changes), _options(source, processes, args))


def _pretrained(source: str, changes: dict[str, Any], processes: int, args: Namespace) -> int:
    """The experiment with a pretrained model, one job at a time where nothing is said: each takes 4 GB."""
    from benchmark.reproduce.pretrained.command import reproduce_pretrained
    from benchmark.reproduce.pretrained.settings import read_pretrained

    for name in ("games", "arms"):
        if getattr(args, name):
            raise UsageError(f"--{name} is of a reproduction with models that are made here; here there is --parts")
    experiment = read_pretrained(source, {**changes, "rivals": args.agent})
    options = _options(source, processes, args)
    if args.ship:
        from benchmark.reproduce.pretrained.jobs import PretrainedFolder
        from benchmark.reproduce.pretrained.shipping import ship

        folder = PretrainedFolder(options.out)
        folder.claim_for(experiment)
        for place in ship(experiment, folder, Path(args.ship)):
            print(place)
        return 0
    return reproduce_pretrained(experiment, options, source, args.parts or ())
