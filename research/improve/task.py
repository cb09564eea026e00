"""What an improver is given: an agent, scenarios, a budget, and a folder in which everything is kept.

``improve(task: ImprovementTask, **options) -> AgentTable``: the agent that it hands back, the given one if it found no
better one, may name files in ``task.out``. What it does follows from the task and from what is recorded, so that the
same call resumes it.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agents import options_taken
from benchmark.play import AgentTable
from benchmark.runs import find_scenarios, num_players
from research.improve.budget import SpendingMeter
from research.improve.plays import OTHER, Play, means_in_common, play, returns_in_common
from research.improve.questions import CALLS_NAME, Questions
from textgames import TRAINING_SEEDS

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
