"""What research adds to the players of ``textbench``, by entry points: each is imported only when it plays."""

from typing import Any

from agents import Baseline, Wrapper


def _missing() -> str | None:
    from research.improve.programs.sandbox import missing  # an import that most commands don't need

    return missing()


def _holds() -> bool:
    from research.improve.programs.sandbox import holds

    return holds()


PLAYERS, LIBRARY = "research.improve.programs.players", "research.improve.methods.library"
READING, CHOOSING, ROUTING = (f"research.improve.around.{name}" for name in ("reading", "choosing", "routing"))
OPTIONS = ("seconds", "memory_mb", "key")
HELD: dict[str, Any] = {"takes": "FILE", "missing": _missing, "holds": _holds}

PROGRAM = Baseline(
    f"{PLAYERS}:ProgramPlayer", "act(observation, legal_actions) of a file, in a sandbox", OPTIONS, **HELD
)
RULES = Baseline(
    f"{PLAYERS}:RulesPlayer", "plans with the rules that a file has, in a sandbox", ("max_states", *OPTIONS), **HELD
)
UCB = Baseline(f"{READING}:UCBPlayer", "the largest upper confidence bound, in bandits")
BOUNDS = Baseline(f"{READING}:BoundsAdvisor", "tells advised(A, bounds) what UCB computes, in bandits")
LESSONS = Baseline(f"{LIBRARY}:LessonsPlayer", "tells advised(A, lessons:FILE) what applies", takes="FILE")

SEARCH = Wrapper(f"{CHOOSING}:SearchPolicy", "the best of an agent's proposals by a value", 1, 1)
WEBPILOT = Wrapper(f"{CHOOSING}:WebPilotPolicy", "a tree search by an agent that plans and reflects", 1, 1, True)
ADVISED = Wrapper(f"{READING}:AdvisedPolicy", "an agent that reads another's advice", 2, 0, True)
IMAGINE = Wrapper(f"{READING}:ImaginePolicy", "an agent that sees what its answer leads to", 2, 0, True)
DECOMPOSED = Wrapper(
    f"{READING}:DecomposedPolicy", "an agent that first answers the subproblems another one writes", 2, 0, True
)
WITH_PAYOFFS = Wrapper(f"{READING}:WithPayoffs", "an agent that is told other payoffs of a matrix game")
MODES = Wrapper(f"{READING}:ModesPolicy", "an agent that chooses how it answers", 2, 0, True)
MASKED = Wrapper(f"{PLAYERS}:MaskedPolicy", "an agent kept to what a program allows", holds=_holds)
ROUTER = Wrapper(f"{ROUTING}:RouterPolicy", "one of two agents for each decision", 2, 1)
CONSULT = Wrapper(
    f"{ROUTING}:ConsultPolicy", "an agent that asks two others in rounds, and answers in view of them", 3, 0, True
)
THOUGHTS = Wrapper(
    f"{ROUTING}:ThoughtsPolicy", "an agent on a graph of thoughts, by operations another one chooses", 1, 1, True
)
