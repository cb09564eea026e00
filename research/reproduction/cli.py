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
  textbench reproduce --config credit-dose        learning against a known dose of true credit
  textbench reproduce --config credit-questions   staleness, group size and format penalty, by exact gradients
  textbench reproduce --config improvers          ways to make a player better, at equal budgets of tokens
  textbench reproduce --config smollm2            the experiment with a pretrained model: hours, in parts
  textbench reproduce --config smollm2 --quick    one part of it, in less than half an hour
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

from benchmark import UsageError, unknown_name
from benchmark.cli import add_number, add_output_options
from research.jobs.command import Options
from research.jobs.recipes import read_recipe, shipped_recipes
from research.jobs.schedule import default_processes


class Experiment(NamedTuple):
    """What recipes of one kind are read into and done by."""

    called: str
    settings: str  # a subclass of research.jobs.recipes.ExperimentSettings; a name, since only one of them is imported
    command: str  # settings, Options -> exit code
    takes: tuple[str, ...]  # those of OPTIONS that it takes
    processes: int = 0  # at a time, if nothing is said; 0: one per core


REPRODUCTION = "reproduction"

EXPERIMENTS = {
    REPRODUCTION: Experiment(
        "a reproduction with models that are made here",
        "research.reproduction.settings:Experiment",
        "research.reproduction.command:reproduce",
        ("seeds", "iterations", "games", "arms", "ship"),
    ),
    "credit": Experiment(
        "the study of credit",
        "research.credit.settings:Study",
        "research.credit.command:study_credit",
        ("seeds", "games", "arms"),
    ),
    "questions": Experiment(
        "the questions of credit",
        "research.credit.questions.settings:Questions",
        "research.credit.questions.command:ask_questions",
        ("seeds", "games"),
    ),
    "improvers": Experiment(
        "the comparison of improvers",
        "research.improve.study.settings:Comparison",
        "research.improve.study.command:compare_improvers",
        ("seeds", "games"),
    ),
    "pretrained": Experiment(
        "the experiment with a pretrained model",
        "research.reproduction.pretrained.settings:Pretrained",
        "research.reproduction.pretrained.command:reproduce_pretrained",
        ("seeds", "iterations", "parts", "agent", "ship"),
        processes=1,  # each takes 4 GB
    ),
}
"""By what a recipe says as its ``kind``; one that says none is a reproduction."""

SETTINGS = {"seeds": "seeds", "iterations": "iterations", "games": "games", "arms": "arms", "agent": "rivals"}
"""The options that change settings of an experiment, and which."""

OPTIONS = (*SETTINGS, "parts", "ship")
"""The options that not every experiment takes."""

_QUICK = {"full": "quick", "credit": "credit-quick", "smollm2": "smollm2-quick"}
"""The recipes that have a short form, and its name."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare what to do, where, and with how many processes."""
    parser.add_argument("--quick", action="store_true", help="the recipe's short form: of full, credit and smollm2")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"a TOML file, or a recipe (default full): {', '.join(sorted(shipped_recipes()))}",
    )
    add_number(parser, "--seeds", None, "training runs per game and arm", 1)
    add_number(parser, "--iterations", None, "of MS-GRPO, per run", 1)
    parser.add_argument("--games", metavar="NAME", action="extend", nargs="+", help="training scenarios")
    parser.add_argument("--arms", metavar="NAME", action="extend", nargs="+", help="only these arms of the recipe")
    parser.add_argument(
        "--parts", metavar="NAME", action="extend", nargs="+", help="only these parts of smollm2, and what they need"
    )
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
    """Do the experiment of a recipe, or ship the models of a finished one."""
    source = args.config or "full"
    if args.quick:
        if source not in _QUICK:
            raise UsageError(f"--quick: {source} has no short form; those with one are {', '.join(_QUICK)}")
        source = _QUICK[source]
    kind = str(read_recipe(source).get("kind", REPRODUCTION))
    if kind not in EXPERIMENTS:
        raise unknown_name(f"kind of experiment (in {source})", kind, EXPERIMENTS)
    experiment = EXPERIMENTS[kind]
    for name in OPTIONS:
        if getattr(args, name) and name not in experiment.takes:
            raise _refusal(name, experiment)
    changes = {setting: getattr(args, name) for name, setting in SETTINGS.items() if name in experiment.takes}
    settings = resolve_name(experiment.settings).read(source, changes)
    options = Options(
        source,
        Path(args.out) if args.out else Path("runs") / f"reproduce-{Path(source).stem}",
        args.jobs or experiment.processes or default_processes(),
        args.dry_run,
        args.report,
        args.json,
        args.quiet,
        notes=tuple(args.note or ()),
        parts=tuple(args.parts or ()),
        ship=Path(args.ship) if args.ship else None,
    )
    return int(resolve_name(experiment.command)(settings, options))


def _refusal(name: str, experiment: Experiment) -> UsageError:
    of = " and of ".join(other.called for other in EXPERIMENTS.values() if name in other.takes)
    return UsageError(
        f"--{name} is of {of}; a recipe of {experiment.called} takes --{', --'.join(sorted(experiment.takes))}"
    )
