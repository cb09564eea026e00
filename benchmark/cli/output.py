"""What the commands tell: results on stdout, everything else on stderr, and how a run ended as an exit code."""

import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from benchmark.play.options import RunOptions
    from benchmark.play.session import Ending
    from benchmark.runs.unreadable import Unreadable
    from benchmark.score.document import ScoreView

COMPLETE, INCOMPLETE, INTERRUPTED = 0, 1, 130
MOST_EXPLAINED = 3  # agents whose unreadable answers are explained where a run ends


@dataclass(frozen=True)
class Output:
    """What the user wants to see of a command: lines for people, or one JSON document."""

    json: bool = False  # one JSON document on stdout instead of tables
    quiet: bool = False  # nothing on stderr but errors
    stats: bool = False  # every table with every figure instead of the few lines that a run ends in

    def say(self, message: str) -> None:
        from benchmark.play.progress import teller

        teller(self.quiet)(message)

    def document(self, document: Mapping[str, Any]) -> None:
        """Print the one JSON document."""
        print(json.dumps(document, indent=1))


def report(
    ending: "Ending",
    output: Output,
    beside: "Path | None" = None,
    keep: "Callable[[Sequence[ScoreView]], None]" = lambda scores: None,
) -> int:
    """Print the leaderboard of a run and how to go on with it; returns the exit code.

    ``beside`` is the folder of several runs, of which this is the last one that was played: all of them are shown.
    ``keep`` is given the scores of a run that is complete.
    """
    from agents.common.redaction import Redactor
    from benchmark.errors import StorageError
    from benchmark.play.agents.options import secrets_of
    from benchmark.play.claims import modules_of
    from benchmark.results import read_results
    from benchmark.runs.folder import resume_command
    from benchmark.show.notes import SHORT_FIRST

    path, stopped, error = beside or ending.path, ending.stopped, ending.error
    again = resume_command(path) if beside is None else f"the same command with --out {quote(str(beside))}"
    complete = error is None
    if error is None:
        results = read_results(path, quiet=output.quiet)
        leaderboard, complete = results.leaderboard(), results.complete
        if complete:
            keep(leaderboard.scores)
        unreadable = _unreadable(ending, leaderboard.scores)
        if output.json:
            about = {"run": str(path), "complete": complete, "stopped": stopped}
            about["partial"] = None if complete else SHORT_FIRST
            about["unreadable"] = [one.document() for one in unreadable]
            output.document(about | leaderboard.document)
        else:
            leaderboard.print(stats=output.stats)
            for one in unreadable[:MOST_EXPLAINED]:
                output.say(f"{one.agent}: {one.share:.0%} of {one.answers} answers can't be read: {one.reason}")
            own = "".join(f" --import {quote(module)}" for module in modules_of(ending.options.scenarios))
            output.say(f"the episodes: textbench replay {quote(str(ending.path))}{own}")
            if not output.stats:
                output.say(f"all figures: textbench leaderboard {quote(str(path))} --stats{own}")
            if results.unscored and stopped is None:
                output.say(f"{_why_unscored(leaderboard.scores)}; play them again with: {again}")
    elif not isinstance(error, KeyboardInterrupt | StorageError):
        # a player's own code: its author needs the traceback, its user the rest
        scrub = Redactor.from_environment(secrets=secrets_of(ending.options)).scrub
        print(scrub("".join(traceback.format_exception(error))), file=sys.stderr)
    if ending.too_wide and stopped is None:
        output.say(ending.too_wide_message)
        output.say(f"play more: {again} --episodes {2 * ending.options.episodes}")
        return INCOMPLETE
    if stopped is None:
        return COMPLETE if complete else INCOMPLETE
    print(f"textbench: {stopped}; {ending.done} of {ending.total} episodes are kept. Go on with:", file=sys.stderr)
    more = _on_cluster(ending.options) if beside is None else ""
    if ending.for_money:  # the folder keeps the limit, with which nothing more would be played
        limit = 2 * (ending.options.max_cost or 0.5)
        more += f" --max-cost {limit:g}" if beside is None else " and a larger --max-cost"
    print(f"  {again}{more}", file=sys.stderr, flush=True)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else INCOMPLETE


def _unreadable(ending: "Ending", scores: "Sequence[ScoreView]") -> "list[Unreadable]":
    """Return the agents too many of whose answers can't be read, with the reason."""
    from benchmark.runs.folder import RunFolder
    from benchmark.runs.unreadable import MOST_SHARE, unreadable_answers

    suspects = [row["agent"] for row in scores if row["invalid_rate"] and row["invalid_rate"]["value"] > MOST_SHARE]
    if not suspects:
        return []
    return unreadable_answers(RunFolder.open(ending.path).records(), dict.fromkeys(suspects))


def _why_unscored(scores: "Sequence[ScoreView]") -> str:
    """Return how many episodes are unscored, and the reason of most: all that there is to say of a server that isn't
    there."""
    reasons: Counter[str] = Counter()
    for row in scores:
        reasons.update(row["errors"])
    (reason, times), *others = reasons.most_common()
    count = sum(reasons.values())
    told = f"{reason} ({times} of them)" if others else reason
    return f"{count} episode{' is' if count == 1 else 's are'} unscored: {told}"


def _on_cluster(options: "RunOptions") -> str:
    """Return what a resume has to say to go on where the run was: the folder doesn't know of the cluster."""
    from benchmark.play.options import CLUSTER, OPTIONS, flag_of

    told = [name for name in CLUSTER if name in options.given and options.ray is not None]
    alone = {name: OPTIONS[name].metadata["alone"] for name in told}
    values = {name: str(getattr(options, name)) for name in told}
    return "".join(
        f" {flag_of(name)}" + ("" if value == alone[name] else f" {quote(value)}") for name, value in values.items()
    )


def ask_at_terminal(question: str) -> bool:
    """Ask the user, if there is one."""
    import sys

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
