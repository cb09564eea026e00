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

from benchmark.cli.arguments import add_number, add_output_options


def add_arguments(parser: ArgumentParser) -> None:
    """Declare what to do, where, and with how many processes."""
    recipes = sorted(file.stem for file in Path(__file__).parents[1].glob("*/recipes/*.toml"))
    parser.add_argument("--quick", action="store_true", help="the recipe's short form: of full, credit and smollm2")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"a TOML file, or a recipe (default full): {', '.join(recipes)}",
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
    """Reproduce, or ship the models of a finished reproduction."""
    from research.command import run

    return run(args)
