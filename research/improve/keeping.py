"""One improvement, from settings to the agent's folder: ``improvement.json`` says what was asked and what came of
it."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

from agents.common import LOCK_NAME, FolderLock, check_writable, kills_interrupt, read_json, replacing, strangers
from benchmark import UsageError
from benchmark.play import AGENT_NAME, AgentTable, approve_agent_folder, innermost
from research.improve.agents import write_agent_folder
from research.improve.budget import Budget, BudgetSpentError, SpendingMeter
from research.improve.improvers import find_improver
from research.improve.task import ImprovementTask

ABOUT, SECONDS, EVALUATION = "improvement.json", "seconds.json", "evaluation"


@dataclass(frozen=True)
class Improvement:
    """What is asked for."""

    method: str  # a name of :data:`research.improve.improvers.IMPROVERS`
    options: Mapping[str, Any]  # all of its options
    agent: AgentTable  # the player's table
    scenarios: tuple[str, ...]  # names
    budget: Budget  # what may be spent
    seed: int  # of everything that is random
    out: Path  # the folder, which becomes the agent's

    def make(self, say: Callable[[str], None], *, quiet: bool = False) -> None:
        """Make the agent's folder; the same call resumes one that was stopped. A UsageError for what can't be done."""
        check_writable(self.out)
        fresh = not self.out.exists()
        if not fresh and not (self.out / ABOUT).exists() and (others := strangers(self.out, ABOUT)):
            raise UsageError(f"{self.out} isn't empty (it holds {others[0]!r}): choose another --out")
        self.out.mkdir(parents=True, exist_ok=True)
        with FolderLock(self.out, UsageError):  # two processes would spend the budget twice, and write the same files
            try:
                self._make(say, quiet)
            except UsageError:
                if fresh and not strangers(self.out, ABOUT):
                    shutil.rmtree(self.out)
                raise

    def _make(self, say: Callable[[str], None], quiet: bool) -> None:
        settings = {**asdict(self), "out": None}
        asked: dict[str, Any] = json.loads(json.dumps(settings))  # plain data, that decides the improvement
        del asked["out"]
        self._take(asked)
        if (self.out / AGENT_NAME).exists():
            approve_agent_folder(self.out, self.agent)  # this command has named them
            say(f"{self.out} holds this improvement already")
            return
        meter = SpendingMeter(self.budget, self.out / SECONDS)
        task = ImprovementTask(self.agent, self.scenarios, meter, self.seed, self.out, say, quiet)
        try:
            with kills_interrupt():
                made = find_improver(self.method)(task, **self.options)
        except BudgetSpentError as spent:
            say(str(spent))
            made = self.agent
        except UsageError:
            files = [path.name for path in self.out.rglob("*") if path.is_file()]
            if {*files} <= {ABOUT, LOCK_NAME, SECONDS}:  # nothing was begun, and the folder stays free
                (self.out / SECONDS).unlink(missing_ok=True)
                (self.out / ABOUT).unlink()
                for folder in [path for path in self.out.iterdir() if path.is_dir()]:
                    shutil.rmtree(folder)
            raise
        told = {"spent": asdict(meter.spent), "changed": made != self.agent, "budget_spent": meter.ended}
        self._write({"improvement": asked, **told})
        write_agent_folder(self.out, made)
        # options of players around the agent that this command has set, and the spec that its user has named
        approve_agent_folder(self.out, {**made, "spec": self.agent["spec"]})
        cost = meter.spent
        say(f"{self.out}: {cost.tokens:,} tokens, {cost.calls:,} calls and {cost.seconds:.0f} s were spent")
        if made == self.agent:
            say("no better agent was found: it is the same one")

    def add_scores(self, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> None:
        """Keep what the agent scored before and after, a row a scenario."""
        self._write({**self._about(), "before": before, "after": after})

    def _take(self, asked: Mapping[str, Any]) -> None:
        """Begin the folder, or find it as a call with equal settings left it.

        Until it is done, budgets may differ. One that a spent budget ended continues with a larger one, unless weights
        were trained: those are of the smaller budget, and more play would make others.
        """
        if not (self.out / ABOUT).exists():
            self._write({"improvement": asked})
            return
        about = self._about()
        before, done = about["improvement"], (self.out / AGENT_NAME).exists()
        reopened = done and about.get("budget_spent") and _is_larger(asked["budget"], before.get("budget"))
        if reopened and not any(self.out.rglob("*.safetensors")):
            (self.out / AGENT_NAME).unlink()
            shutil.rmtree(self.out / EVALUATION, ignore_errors=True)  # of the agent that it was
            done = False
        for name, value in asked.items():
            if before.get(name) != value and (done or name != "budget"):
                title, *values = innermost(name, before.get(name), value)
                old, new = ("nothing" if each is None else repr(each) for each in values)
                raise UsageError(f"{self.out} was made with {title} = {old}, now it is {new}: choose another --out")
        if before != asked:
            self._write({"improvement": asked})

    def _about(self) -> dict[str, Any]:
        file = self.out / ABOUT
        try:
            about: dict[str, Any] = read_json(file)
            about["improvement"].keys()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{file} doesn't say what was improved: {error!r}; choose another --out") from None
        return about

    def _write(self, about: Mapping[str, Any]) -> None:
        with replacing(self.out / ABOUT) as stream:
            stream.write(json.dumps(about, indent=1) + "\n")


def _is_larger(new: Mapping[str, float | None], old: Mapping[str, float | None] | None) -> bool:
    if old is None or new == old:
        return False
    limits = [[inf if one[unit] is None else float(one[unit] or 0) for unit in old] for one in (new, old)]
    return all(now >= before for now, before in zip(*limits, strict=True))
