"""What commands share that make a player better: its own episodes, played as it was and as it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmark.cli.output import report
from benchmark.cli.settings import Output
from benchmark.play.agents.choice import plan_run
from benchmark.play.options import RunOptions
from benchmark.play.session import open_session
from benchmark.score.document import ScoreView
from benchmark.show.table import estimate_figure

KEPT = (
    *("scenario", "episodes", "protocol", "mean_return", "normalized", "normalized_by", "above_blind"),
    *("success_rate", "invalid_rate", "blind", "reference"),
)
"""What is kept of a score, as ``run --json`` has it."""

Rows = list[dict[str, Any]]


def play_both(
    values: Mapping[str, Any], names: tuple[str, str], output: Output, keep: Callable[[Rows, Rows], None]
) -> int:
    """Play the scenarios' own episodes, which nothing is trained on, and print the leaderboard; return the exit code.

    ``values`` are options of a run. ``names`` are those of the player as it was and as it is; ``keep`` is given the two
    lists of scores, a row a scenario.
    """

    def compared(scores: Sequence[ScoreView]) -> None:
        before, after = ([{**score} for score in scores if score["agent"] == name] for name in names)
        keep(*([{key: score[key] for key in KEPT} for score in own] for own in (before, after)))
        for old in before:
            new = next(score for score in after if score["scenario"] == old["scenario"])
            told = [
                f"{called} {_shown(old[key], form)} before, {_shown(new[key], form)} after"
                for called, key, form in (("score", "normalized", ".2f"), ("success", "success_rate", ".0%"))
                if key != "success_rate" or old[key] or new[key]  # else the game knows none
            ]
            output.say(f"{old['scenario']}, {old['episodes']} episodes each: {'; '.join(told)}")

    ending = open_session(plan_run(RunOptions.of(values), output.say)).play(quiet=output.quiet)
    return report(ending, output, keep=compared)


def _shown(score: Any, form: str) -> str:
    figure = estimate_figure(score, form)
    return f"{figure.text or 'unknown'} {figure.interval}".strip()
