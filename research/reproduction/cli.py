"""The command ``textbench reproduce``."""

from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

from agents.common import option, part, settings, switch
from benchmark import UsageError, unknown_name
from benchmark.cli import Output
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
        "research.credit.command:ask_questions",
        ("seeds", "games"),
    ),
    "improvers": Experiment(
        "the comparison of improvers",
        "research.improve.study.settings:Comparison",
        "research.improve.study.work:compare_improvers",
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


@settings
class Settings:
    """Reproduce the paper's experiment in miniature: pretrain a small and a large base, post-train the small one with
    MS-GRPO in several arms and seeds, evaluate everything, and say of each claim of the paper whether it holds here.

    Every job's result is on disk, so the same command resumes what was stopped. It says how long it will take
    before it starts, and corrects that by what its jobs take.

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

    quick: bool = switch("the recipe's short form: of full, credit and smollm2")
    config: str | None = option(
        None, "FILE", f"a TOML file, or a recipe (default full): {', '.join(sorted(shipped_recipes()))}"
    )
    seeds: int | None = option(None, "N", "training runs per game and arm", ge=1)
    iterations: int | None = option(None, "N", "of MS-GRPO, per run", ge=1)
    games: tuple[str, ...] = option((), "NAME", "training scenarios", named="--games", words=True)
    arms: tuple[str, ...] = option((), "NAME", "only these arms of the recipe", named="--arms", words=True)
    parts: tuple[str, ...] = option((), "NAME", named="--parts", words=True)
    """only these parts of smollm2, and what they need"""
    agent: tuple[str, ...] = option((), "SPEC", "another model beside smollm2's, such as gguf:PATH")
    out: str | None = option(None, "DIR", "folder of the results (default runs/reproduce-RECIPE)")
    jobs: int | None = option(None, "N", ge=1)
    """processes, which share the cores (default: one per core; 1 for smollm2)"""
    dry_run: bool = switch("say what would be done and how long it would take")
    report: bool = switch("only write the report of what is there")
    ship: str | None = option(None, "DIR", "write the models that the package ships, by the fixed rule")
    notes: tuple[str, ...] = option((), "TEXT", "a sentence that the report begins with")
    output: Output = part(Output, ["json", "quiet"])


def run(settings: Settings) -> int:
    """Do the experiment of a recipe, or ship the models of a finished one."""
    source = settings.config or "full"
    if settings.quick:
        if source not in _QUICK:
            raise UsageError(f"--quick: {source} has no short form; those with one are {', '.join(_QUICK)}")
        source = _QUICK[source]
    kind = str(read_recipe(source).get("kind", REPRODUCTION))
    if kind not in EXPERIMENTS:
        raise unknown_name(f"kind of experiment (in {source})", kind, EXPERIMENTS)
    experiment = EXPERIMENTS[kind]
    for name in OPTIONS:
        if getattr(settings, name) and name not in experiment.takes:
            of = " and of ".join(other.called for other in EXPERIMENTS.values() if name in other.takes)
            accepted = ", --".join(sorted(experiment.takes))
            raise UsageError(f"--{name} is of {of}; a recipe of {experiment.called} takes --{accepted}")
    changes = {
        setting: getattr(settings, name) or None for name, setting in SETTINGS.items() if name in experiment.takes
    }
    asked = resolve_name(experiment.settings).read(source, changes)
    options = Options(
        source,
        Path(settings.out) if settings.out else Path("runs") / f"reproduce-{Path(source).stem}",
        settings.jobs or experiment.processes or default_processes(),
        settings.dry_run,
        settings.report,
        settings.output.json,
        settings.output.quiet,
        notes=settings.notes,
        parts=settings.parts,
        ship=Path(settings.ship) if settings.ship else None,
    )
    return int(resolve_name(experiment.command)(asked, options))
