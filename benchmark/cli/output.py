"""Reports on the end of a run."""

import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote

from agents.common.redaction import Redactor
from benchmark.cli.settings import Output
from benchmark.errors import StorageError
from benchmark.play.agents.options import secrets_of
from benchmark.play.claims import modules_of
from benchmark.play.options import CLUSTER, OPTIONS
from benchmark.play.session import Ending
from benchmark.results import read_results
from benchmark.runs.folder import RunFolder, resume_command
from benchmark.runs.unreadable import MOST_SHARE, unreadable_answers
from benchmark.score.document import ScoreView
from benchmark.show.notes import SHORT_FIRST, lenient_note

COMPLETE, INCOMPLETE, INTERRUPTED = 0, 1, 130
MOST_EXPLAINED = 3  # agents whose unreadable answers are explained where a run ends


def report(
    ending: Ending,
    output: Output,
    beside: Path | None = None,
    keep: Callable[[Sequence[ScoreView]], None] = lambda scores: None,
) -> int:
    """Print the leaderboard of a run and how it is resumed, and return the exit code.

    ``beside`` is the folder of several runs, whose last one this is; ``keep`` is given the scores if all is complete.
    """
    path, stopped, error, options = beside or ending.path, ending.stopped, ending.error, ending.options
    again = resume_command(path) if beside is None else f"the same command with --out {quote(str(beside))}"
    complete = error is None
    if error is None:
        results = read_results(path, quiet=output.quiet)
        leaderboard, complete = results.leaderboard(), results.complete
        if complete:
            keep(leaderboard.scores)
        rates = [(row["agent"], row["invalid_rate"]) for row in leaderboard.scores]
        suspects = [agent for agent, rate in rates if rate and rate["value"] > MOST_SHARE]
        records = RunFolder.open(ending.path).records() if suspects else ()
        unreadable = unreadable_answers(records, dict.fromkeys(suspects))
        if output.json:
            about = {"run": str(path), "complete": complete, "stopped": stopped}
            about |= {
                "partial": None if complete else SHORT_FIRST,
                "unreadable": [one.document() for one in unreadable],
            }
            output.document(about | leaderboard.document)
        else:
            leaderboard.print(stats=output.stats)
            readings = leaderboard.document.get("readings", ())
            for one in unreadable[:MOST_EXPLAINED]:
                why = "; ".join(filter(None, (one.reason, lenient_note(one.agent, readings))))
                output.say(f"{one.agent}: {one.share:.0%} of {one.answers} answers can't be read: {why}")
            own = "".join(f" --import {quote(module)}" for module in modules_of(options.scenarios))
            output.say(f"the episodes: textbench replay {quote(str(ending.path))}{own}")
            if not output.stats:
                output.say(f"all figures: textbench leaderboard {quote(str(path))} --stats{own}")
            if results.unscored and stopped is None:
                reasons = sum((Counter(row["errors"]) for row in leaderboard.scores), Counter[str]())
                (reason, times), *others = reasons.most_common()
                many = "1 episode is" if (count := reasons.total()) == 1 else f"{count} episodes are"
                told = f"{reason} ({times} of them)" if others else reason
                output.say(f"{many} unscored: {told}; play them again with: {again}")
    elif not isinstance(error, KeyboardInterrupt | StorageError):
        # a player's own code: its author needs the traceback, its user the rest
        scrub = Redactor.from_environment(secrets=secrets_of(options)).scrub
        print(scrub("".join(traceback.format_exception(error))), file=sys.stderr)
    if stopped is None:
        if ending.too_wide:
            output.say(ending.too_wide_message)
            output.say(f"play more: {again} --episodes {2 * options.episodes}")
        return COMPLETE if complete and not ending.too_wide else INCOMPLETE
    print(f"textbench: {stopped}; {ending.done} of {ending.total} episodes are kept. Go on with:", file=sys.stderr)
    more = ""
    for name in CLUSTER if beside is None and options.ray is not None else ():
        if name in options.given:  # the folder doesn't know of the cluster
            flag, value = OPTIONS[name].flag, str(getattr(options, name))
            more += f" {flag}" + ("" if value == OPTIONS[name].alone else f" {quote(value)}")
    if ending.for_money:  # the folder keeps the limit, with which nothing more would be played
        limit = 2 * (options.max_cost or 0.5)
        more += f" --max-cost {limit:g}" if beside is None else " and a larger --max-cost"
    print(f"  {again}{more}", file=sys.stderr, flush=True)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else INCOMPLETE


def ask_at_terminal(question: str) -> bool:
    """Ask the user, if there is one."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
