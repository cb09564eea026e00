"""The command ``textbench reproduce`` behind its arguments, which :mod:`research.reproduce.cli` declares.

A recipe says which experiment it is of, as its ``kind``: :data:`EXPERIMENTS` has them.
"""

from argparse import Namespace
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

from benchmark.errors import UsageError, unknown_name
from research.jobs.command import Options
from research.jobs.recipes import read_recipe
from research.jobs.schedule import default_processes


class Experiment(NamedTuple):
    """What recipes of one kind are read into and done by."""

    called: str
    settings: str  # a subclass of research.jobs.recipes.ExperimentSettings; a name, since only one of them is imported
    command: str  # settings, Options -> exit code
    takes: tuple[str, ...]  # those of OPTIONS that it takes
    processes: int = 0  # at a time, where nothing is said; 0: one per core


REPRODUCTION = "reproduction"

EXPERIMENTS = {
    REPRODUCTION: Experiment(
        "a reproduction with models that are made here",
        "research.reproduce.settings:Experiment",
        "research.reproduce.command:reproduce",
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
        "research.pretrained.settings:Pretrained",
        "research.pretrained.command:reproduce_pretrained",
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
