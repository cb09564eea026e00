"""What an improver is given: an agent, scenarios, a budget, and a folder in which everything is kept; and its play.

``improve(task: ImprovementTask, **options) -> AgentTable``: the agent that it hands back, the given one if it found no
better one, may name files in ``task.out``. What it does follows from the task and from what is recorded, so that the
same call resumes it. Play on training seeds is ``agent, seeds -> plan -> Session -> Play`` in a run folder, whose name
has a digest of what is played, so that a second call finds it done.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents import Episode, Turn, options_taken, prompt_path
from benchmark import BenchmarkError
from benchmark.play import AgentTable, Limits, PlannedRun, RunOptions, Stopped, open_session, plan_run, without_spec
from benchmark.runs import (
    MANIFEST_NAME,
    Plan,
    RunFolder,
    data_digest,
    file_digest,
    find_scenarios,
    num_players,
    paid_tokens,
)
from research.improve.agents import CALLS_NAME, Questions
from research.improve.budget import Budget, SpendingMeter, Spent
from textgames import TRAINING_SEEDS, Scenario

PLAYER, OTHER = "agent", "other"
"""What the player is called in these folders, and who meets it there."""


class Play(NamedTuple):
    """Episodes of an agent on training seeds."""

    folder: Path  # the run folder
    scenarios: dict[str, Scenario]  # by name
    records: tuple[Episode, ...]  # of every scored episode, in the order of scenarios and seeds
    who: str = PLAYER  # whose returns are told

    @property
    def returns(self) -> dict[tuple[str, int], float]:
        """``{(scenario, seed): return}``, the mean over its seats if it has several."""
        found: dict[tuple[str, int], list[float]] = {}
        for record in self.records:
            own = [record.returns[player] for player, agent in record.agents.items() if agent == self.who]
            found.setdefault((record.scenario, record.seed), []).extend(own)
        return {place: float(np.mean(own)) for place, own in found.items()}

    @property
    def mean(self) -> float:
        """The mean return over scenarios and seeds."""
        return float(np.mean([*self.returns.values()]))


def means_in_common(plays: Sequence[Play]) -> list[float]:
    """Return the mean return of each play over the scenarios and seeds that all have scored; 0 without any.

    A provider's error leaves an episode unscored, and a player that missed a hard one would look better for it.
    """
    return [float(own.mean()) if len(own) else 0.0 for own in returns_in_common(plays)]


def returns_in_common(plays: Sequence[Play]) -> list[NDArray[np.float64]]:
    """Return the returns of each play at the scenarios and seeds that all have scored, in one order."""
    returns = [each.returns for each in plays]
    shared = sorted(set.intersection(*map(set, returns)))
    return [np.array([own[place] for place in shared], dtype=np.float64) for own in returns]


def play(
    folder: Path,
    agent: AgentTable,
    scenarios: Sequence[str],
    seeds: Sequence[int],
    meter: SpendingMeter,
    say: Callable[[str], None],
    *,
    against: AgentTable | None = None,
    resample: int | None = None,
    quiet: bool = False,
) -> Play:
    """Play an agent's episodes, the same seeds in every scenario, and charge what they cost.

    What is played is added to the name of the run ``folder``. With another agent ``against`` it each has every seat
    of a game for several once on every seed; without one the agent has all seats. A BudgetSpentError before it, or in
    it with the turn that is above what is left; a BenchmarkError if the episodes can't be played.
    """
    meter.check()
    seeds = sorted(set(seeds))
    # texts are known by what they say, wherever they lie
    agents = {PLAYER: agent} if against is None else {PLAYER: agent, OTHER: against}
    who = [
        {name: file_digest(str(prompt_path(value))) if name == "prompts" else value for name, value in one.items()}
        for one in agents.values()
    ]
    told = who[0] if against is None else who
    folder = folder.with_name(f"{folder.name}-{data_digest([told, scenarios, seeds, resample])[:8]}")
    own = {name: options for name, table in agents.items() if (options := without_spec(table))}
    values: dict[str, Any] = {
        "agents": tuple(f"{name}={table['spec']}" for name, table in agents.items()),
        "agent_options": own or None,
        "scenarios": tuple(scenarios),
        "episodes": len(seeds),
        "resample": resample,
        "out": str(folder),
    }
    planned = plan_run(RunOptions.of({name: value for name, value in values.items() if value is not None}), say)
    # a plan of training seeds is the only thing in it that no option could say
    tables = [one for one in planned.plan.seeds if {*one.agents} == agents.keys() or one.agents == (PLAYER,)]
    planned = planned._replace(plan=Plan(planned.plan.scenarios, dict.fromkeys(tables, seeds)))
    there = RunFolder.open(folder) if (folder / MANIFEST_NAME).exists() else None
    # an episode that a provider broke off isn't played again, unless all were
    if (
        there is None
        or len(there.index()) < Plan.from_manifest(there.manifest).total
        or all(record.error is not None for record in there.records())
    ):
        _continue(folder, planned, meter, quiet)
    found = RunFolder.open(folder)
    meter.charge(_cost(found) + meter.unrecorded(folder.name), folder.name)
    if len(found.index()) < planned.plan.total:
        meter.check()
        meter.end(f"the budget was spent in {folder}")
    records = [*found.records()]
    scored = [record for record in records if record.error is None]
    if not scored:
        raise BenchmarkError(
            f"none of the episodes in {folder} could be played to its end, the last for: {records[-1].error}; when "
            "that is mended the same command plays them again"
        )
    scored.sort(key=lambda record: (record.scenario, record.seed))
    return Play(folder, dict(planned.plan.scenarios), tuple(scored))


class _Turns:
    """Counts what a play's turns cost, starts no more than what is left reaches for, and stops it above that."""

    def __init__(self, left: Budget) -> None:
        self.spent = Spent()
        self._left, self._lock = left, Lock()  # steps are counted if they are played

    def count(self, turn: Turn) -> None:
        paid = turn.paid
        with self._lock:
            self.spent += Spent(paid.prompt_tokens + paid.completion_tokens, 1)
        for unit in ("tokens", "calls"):
            limit = getattr(self._left, unit)
            if limit is not None and getattr(self.spent, unit) > limit:
                raise Stopped(f"the budget is spent: its {unit}")

    def may_start(self, in_flight: int, finished: int) -> bool:
        """Return whether what is left reaches for those in flight and another one, by the mean of those that finished.

        What is in flight when all is spent is paid for and lost: until one has finished, an episode is alone.
        """
        if in_flight == 0:
            return True
        limits, spent = asdict(self._left), asdict(self.spent)
        return finished > 0 and all(
            limit is None or spent[unit] * (finished + in_flight + 1) <= limit * finished
            for unit, limit in limits.items()
        )


def _continue(folder: Path, planned: PlannedRun, meter: SpendingMeter, quiet: bool) -> None:
    recorded = _recorded(folder)
    left = meter.left(folder.name, recorded)
    if left.is_spent:
        return
    turns = _Turns(left)
    counted = None if left.tokens is None and left.calls is None else turns
    with meter.timed(folder.name):
        session = open_session(planned._replace(options=replace(planned.options, run_timeout=left.seconds)))
        ending = session.play(quiet=quiet, limits=Limits(counted))
    now = _recorded(folder)
    if ending.stopped is not None:  # a second call has to find spent what went into unfinished episodes
        tokens, calls = (getattr(turns.spent + recorded, unit) - getattr(now, unit) for unit in ("tokens", "calls"))
        meter.keep(folder.name, Spent(max(0, tokens), max(0, calls)))
    if ending.error is not None:
        raise ending.error
    if ending.stopped is not None and not meter.left(folder.name, now).is_spent:
        raise BenchmarkError(f"{ending.stopped}; {ending.done} of {ending.total} episodes are kept in {folder}")


def _recorded(folder: Path) -> Spent:
    return _cost(RunFolder.open(folder)) if (folder / MANIFEST_NAME).exists() else Spent()


def _cost(folder: RunFolder) -> Spent:
    """Return the tokens and calls of all of a folder's records, superseded ones included."""
    cost = Spent()
    for *_, record in folder.lines():
        tokens = sum(prompt + completion for prompt, completion, _ in paid_tokens(record).values())
        cost += Spent(tokens, sum(len(step.turns) for step in record.steps))
    return cost


OF_SERVERS = ("base_url", "timeout", "max_retries", "patience")
"""Options of an agent that hold for a writer, too: if it is asked, and how patiently."""

_STREAM = 0x1A9E0  # keeps the order of the seeds apart from everything else that is drawn with a task's seed


@dataclass(frozen=True)
class ImprovementTask:
    """One player to make better."""

    agent: AgentTable  # who it is: ``spec`` and options, as a table ``[agents.NAME]`` has them
    scenarios: tuple[str, ...]  # what it is to play better
    # the budget, and what of it is spent. Play and questions are charged by themselves; what else takes time, an
    # improver puts into ``meter.timed`` and charges
    meter: SpendingMeter
    seed: int  # of everything that is random
    out: Path  # the folder
    say: Callable[[str], None]  # takes a line for the user
    quiet: bool = False  # show no progress of play

    def seeds(self, count: int, after: int = 0) -> list[int]:
        """Return ``count`` training seeds after the first ``after``, in an order that the task's seed decides."""
        order = np.random.default_rng([_STREAM, self.seed]).permutation(len(TRAINING_SEEDS))
        return [TRAINING_SEEDS[place] for place in order[after : after + count].tolist()]

    def play(
        self,
        agent: AgentTable,
        seeds: Sequence[int],
        label: str = "play",
        *,
        against: AgentTable | None = None,
        resample: int | None = None,
    ) -> Play:
        """Return the episodes of an agent on training seeds of all scenarios, in a run folder below ``out/plays``."""
        folder = self.out / "plays" / label
        what = folder, agent, self.scenarios, seeds, self.meter, self.say
        return play(*what, against=against, resample=resample, quiet=self.quiet)

    def both(self, before: AgentTable, after: AgentTable, seeds: Sequence[int]) -> tuple[Play, Play]:
        """Play two agents on the same seeds; in games for several players they play each other."""
        if all(num_players(scenario) == 1 for scenario in find_scenarios(self.scenarios).values()):
            return self.play(before, seeds, "before"), self.play(after, seeds, "after")
        met = self.play(after, seeds, "met", against=before)
        return met._replace(who=OTHER), met

    def is_better(self, after: Play, before: Play) -> bool:
        """Return whether an agent did better than another on the same seeds, and tell the user what both got."""
        number = len(returns_in_common([before, after])[0])
        first, second = means_in_common([before, after])
        self.say(f"mean return on {number} training episodes: {first:.3f} before, {second:.3f} after")
        return second > first

    def questions(self, writer: str | None = None) -> Questions:
        """Return a ``writer``'s language model, asked at the server of the task's own agent, or that of this agent."""
        asked: AgentTable = self.agent if writer is None else {"spec": writer}
        with suppress(ValueError):  # of no known agent, which is said below, or of a folder
            taken = {} if writer is None else options_taken(writer)[0]
            asked = {**asked, **{name: self.agent[name] for name in OF_SERVERS if name in self.agent and name in taken}}
        questions = Questions(asked, self.out / CALLS_NAME, self.meter)
        self.say(f"{asked['spec']} writes{' for itself, as no writer is named' if writer is None else ''}")
        return questions
