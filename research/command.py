"""The command ``textbench lab reproduce`` behind its arguments, which :mod:`benchmark.cli.reproduce` declares.

A recipe says which experiment it is of: a reproduction with models that are made here, the study of credit, the
comparison of improvers, or the experiment with a pretrained model.
"""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from research.jobs.command import Options


def run(args: Namespace) -> int:
    """Reproduce, or ship the models of a finished reproduction."""
    from research.jobs.schedule import default_processes
    from research.reproduce.command import reproduce
    from research.reproduce.settings import read_experiment

    source = args.config or "full"
    if args.quick:
        if source not in _QUICK:
            raise UsageError(f"--quick: {source} has no short form; those with one are {', '.join(_QUICK)}")
        source = _QUICK[source]
    counts = {"seeds": args.seeds, "iterations": args.iterations}
    kind = _kind_of(source)
    if kind == "pretrained":
        return _pretrained(source, counts, args.jobs or 1, args)
    for name in ("parts", "agent"):
        if getattr(args, name):
            raise UsageError(f"--{name} is of the experiment with a pretrained model: --config smollm2")
    processes = args.jobs or default_processes()
    changes = {**counts, "games": args.games, "arms": args.arms}
    others = {"credit": _study, "questions": _questions, "improvers": _comparison}
    if kind in others:
        return others[kind](source, changes, processes, args)
    experiment = read_experiment(source, changes)
    options = _options(source, processes, args)
    if args.ship:
        from research.reproduce.jobs import ReproductionFolder
        from research.reproduce.shipping import ship

        folder = ReproductionFolder(options.out)
        folder.claim(experiment)
        for place in ship(experiment, folder, Path(args.ship), args.note or ()):
            print(place)
        return 0
    return reproduce(experiment, options)


def _kind_of(source: str) -> str:
    """Which experiment a recipe is of, by its name or by what it says of itself; nothing of a reproduction."""
    from research.credit import settings as credit
    from research.credit.questions import settings as questions
    from research.improvers import settings as improvers
    from research.jobs.recipes import is_recipe_of
    from research.pretrained import settings as pretrained
    from research.reproduce import settings as reproduction

    known = [(each.KIND, each.RECIPES) for each in (credit, questions, improvers, pretrained)]
    kind = next((kind for kind, shipped in known if is_recipe_of(kind, source, shipped)), "")
    names = [*reproduction.RECIPES, *(name for _, shipped in known for name in shipped)]
    if not kind and source not in names and not Path(source).exists():
        raise unknown_name("recipe or TOML file", source, names)
    return kind


_QUICK = {"full": "quick", "credit": "credit-quick", "smollm2": "smollm2-quick"}
"""The recipes that have a short form, and its name."""


def _options(source: str, processes: int, args: Namespace) -> "Options":
    from research.jobs.command import Options

    out = Path(args.out) if args.out else Path("runs") / f"reproduce-{Path(source).stem}"
    return Options(out, processes, args.dry_run, args.report, args.json, args.quiet, notes=tuple(args.note or ()))


def _study(source: str, changes: dict[str, Any], processes: int, args: Namespace) -> int:
    """The study of credit, which is no reproduction and shares its machinery."""
    from research.credit.command import study_credit
    from research.credit.settings import read_study

    if args.ship:
        raise UsageError("--ship is of a reproduction: the study of credit makes no models that the package ships")
    if changes.pop("iterations") is not None:
        raise UsageError("--iterations: runs of this study end at a budget of tokens, games.NAME.tokens of the recipe")
    return study_credit(read_study(source, changes), _options(source, processes, args))


def _comparison(source: str, changes: dict[str, Any], processes: int, args: Namespace) -> int:
    """The comparison of improvers, whose methods are all of its recipe."""
    from research.improvers.command import compare_improvers
    from research.improvers.settings import read_comparison

    changes = _games_and_seeds(changes, args, "the comparison of improvers: it takes")
    return compare_improvers(read_comparison(source, changes), _options(source, processes, args))


def _questions(source: str, changes: dict[str, Any], processes: int, args: Namespace) -> int:
    """What else an exact gradient decides, on the machinery of the study of credit."""
    from research.credit.questions.command import ask_questions
    from research.credit.questions.settings import read_questions

    changes = _games_and_seeds(changes, args, "the questions: they take")
    return ask_questions(read_questions(source, changes), _options(source, processes, args))


def _games_and_seeds(changes: dict[str, Any], args: Namespace, of: str) -> dict[str, Any]:
    """The changes of an experiment that takes no others."""
    for name in ("ship", "iterations", "arms"):
        if getattr(args, name) is not None:
            raise UsageError(f"--{name} isn't of {of} --games and --seeds")
    return {name: changes[name] for name in ("seeds", "games")}


def _pretrained(source: str, changes: dict[str, Any], processes: int, args: Namespace) -> int:
    """The experiment with a pretrained model, one job at a time where nothing is said: each takes 4 GB."""
    from research.pretrained.command import reproduce_pretrained
    from research.pretrained.settings import read_pretrained

    for name in ("games", "arms"):
        if getattr(args, name):
            raise UsageError(f"--{name} is of a reproduction with models that are made here; here there is --parts")
    experiment = read_pretrained(source, {**changes, "rivals": args.agent})
    options = _options(source, processes, args)
    if args.ship:
        from research.pretrained.jobs import PretrainedFolder
        from research.pretrained.shipping import ship

        folder = PretrainedFolder(options.out)
        folder.claim(experiment)
        for place in ship(experiment, folder, Path(args.ship)):
            print(place)
        return 0
    return reproduce_pretrained(experiment, options, source, args.parts or ())
