"""What research adds to the players of ``textbench``, by entry points: each is imported only when it plays."""

from agents import Baseline, Wrapper


def _missing() -> str | None:
    from research.improve.programs.sandbox import missing  # an import that most commands don't need

    return missing()


def _holds() -> bool:
    from research.improve.programs.sandbox import holds

    return holds()


PROGRAM = Baseline(
    "research.improve.programs.players:ProgramPlayer",
    "act(observation, legal_actions) of a file, in a sandbox",
    ("seconds", "memory_mb", "key"),
    takes="FILE",
    missing=_missing,
    holds=_holds,
)
RULES = Baseline(
    "research.improve.programs.players:RulesPlayer",
    "plans with the rules that a file has, in a sandbox",
    ("max_states", "seconds", "memory_mb", "key"),
    takes="FILE",
    missing=_missing,
    holds=_holds,
)
UCB = Baseline("research.improve.around.reading:UCBPlayer", "the largest upper confidence bound, in bandits")
BOUNDS = Baseline(
    "research.improve.around.reading:BoundsAdvisor", "tells advised(A, bounds) what UCB computes, in bandits"
)
LESSONS = Baseline(
    "research.improve.methods.library:LessonsPlayer",
    "tells advised(A, lessons:FILE) what applies",
    takes="FILE",
)

SEARCH = Wrapper("research.improve.around.choosing:SearchPolicy", "the best of an agent's proposals by a value", 1, 1)
WEBPILOT = Wrapper(
    "research.improve.around.choosing:WebPilotPolicy", "a tree search by an agent that plans and reflects", 1, 1, True
)
ADVISED = Wrapper(
    "research.improve.around.reading:AdvisedPolicy", "an agent that reads another's advice", 2, tells_more=True
)
IMAGINE = Wrapper(
    "research.improve.around.reading:ImaginePolicy", "an agent that sees what its answer leads to", 2, tells_more=True
)
MASKED = Wrapper(
    "research.improve.programs.players:MaskedPolicy", "an agent kept to what a program allows", holds=_holds
)
ROUTER = Wrapper("research.improve.around.routing:RouterPolicy", "one of two agents for each decision", 2, 1)
CONSULT = Wrapper(
    "research.improve.around.routing:ConsultPolicy",
    "an agent that asks two others in rounds, and answers in view of them",
    3,
    tells_more=True,
)
DECOMPOSED = Wrapper(
    "research.improve.around.reading:DecomposedPolicy",
    "an agent that first answers the subproblems another one writes",
    2,
    tells_more=True,
)
WITH_PAYOFFS = Wrapper(
    "research.improve.around.reading:WithPayoffs", "an agent that is told other payoffs of a matrix game"
)
MODES = Wrapper(
    "research.improve.around.reading:ModesPolicy", "an agent that chooses how it answers", 2, tells_more=True
)
THOUGHTS = Wrapper(
    "research.improve.around.routing:ThoughtsPolicy",
    "an agent on a graph of thoughts, by operations another one chooses",
    1,
    1,
    tells_more=True,
)
