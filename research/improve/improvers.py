"""Ways to make a player better: ``improve(task, **options) -> agent``, kept like a run.

An improver is a function in the module of ``methods`` that it is like, whose parameters after the task are its options,
and a line here; other packages add theirs under the entry-point group ``textbench.improvers``. What it may use is
:class:`research.improve.task.ImprovementTask`.
"""

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any, NamedTuple

from benchmark import UsageError, unknown_name
from textgames import loaded

ENTRY_POINT_GROUP = "textbench.improvers"


class Improver(NamedTuple):
    """One way to make a player better."""

    path: str  # ``"module:function"``; it is only imported to improve
    description: str  # what it does, in one line


def _own(place: str, description: str) -> Improver:
    """Return the improver of ``module:function`` below ``methods``."""
    return Improver(f"research.improve.methods.{place}", description)


IMPROVERS = {
    "imitate": _own("imitating:imitate", "imitate a cheap expert, such as planner"),
    "offline": _own("imitating:offline", "learn from play that is there, the best of it"),
    "gepa": _own("evolving:gepa", "let a language model rewrite the prompts (GEPA)"),
    "evolve": _own("evolving:evolve", "let prompts, sampling and players around it evolve"),
    "library": _own("library:improve", "collect lessons from failures that help"),
    "preferences": _own("preferences:improve", "prefer its better answers (step DPO)"),
    "co-evolve": _own("co_evolve:improve", "train with a judge that learns along"),
    "value": _own("predicting:by_value", "learn what actions are worth, and search by it"),
    "internalise": _own("reinforcing:internalise", "learn a document by heart (TriMPI)"),
    "mixed": _own("reinforcing:mixed", "prefer where it is easy, reinforce where it is hard (mixed)"),
    "nash": _own("nash:improve", "play itself towards an equilibrium, small games"),
    "lspo": _own("lspo:improve", "tune what is said in Werewolf (LSPO)"),
    "world-model": _own("predicting:by_world", "learn what actions lead to, and read it before it answers"),
    "program": _own("program:improve", "let a language model write a program that plays"),
    "code-model": _own("code_model:improve", "let a language model write the rules that a planner plays by"),
}

MAY_BE_NONE = ("rank", "refine", "rounds", "shown", "tries")
"""Options that may be 0; of all other whole numbers 0 would leave nothing to learn from."""


def improvers() -> dict[str, Improver]:
    """Return ``{name: improver}``, those of other packages first."""
    return loaded(ENTRY_POINT_GROUP, lambda entry, wrong: Improver(entry.value, wrong)) | IMPROVERS


def find_improver(name: str) -> Callable[..., dict[str, Any]]:
    """Import the function of an improver; a UsageError if none has that name, or it can't be imported."""
    known = improvers()
    if name not in known:
        raise unknown_name("improver", name, known)
    try:
        function: Callable[..., dict[str, Any]] = resolve_name(known[name].path)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the improver {name} ({known[name].path}) can't be imported: {error}") from error
    return function


def checked(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of an improver, the given ones and other defaults; a UsageError for what isn't accepted."""
    from agents import type_of
    from benchmark.play import typed_option
    from textgames import taken_by

    function = find_improver(name)
    known = taken_by(function, arguments=1).named
    for option in given:
        if option not in known:
            raise unknown_name(f"option of {name}", option, known)
    own = {
        option: typed_option(f"the option {option} of {name}", value, type_of(function, option))
        for option, value in given.items()
    }
    for option, value in own.items():
        least = 0 if option in MAY_BE_NONE else 1
        if isinstance(value, int) and not isinstance(value, bool) and value < least:
            raise UsageError(f"the option {option} of {name} must be at least {least}, got {value}")
    return {option: own.get(option, known[option].default) for option in known}
