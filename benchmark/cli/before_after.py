"""What commands share that make a player better: its own episodes, played as it was and as it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmark.cli.output import Output
    from benchmark.score.document import ScoreView

KEPT = (
    *("scenario", "episodes", "protocol", "mean_return", "normalized", "normalized_by", "above_blind"),
    *("success_rate", "invalid_rate", "blind", "reference"),
)
"""What is kept of a score, as ``run --json`` has it."""

Rows = list[dict[str, Any]]


def play_both(
    values: Mapping[str, Any], names: tuple[str, str], output: "Output", keep: Callable[[Rows, Rows], None]
) -> int:
    """Play the scenarios' own episodes, which nothing is trained on, and print the leaderboard; returns the exit code.

    Args:
        values: options of a run, by their names; the agents are called as ``names`` say.
        names: of the player as it was, and as it is.
        output: what the user wants to see.
        keep: is given what they scored, a row a scenario.
    """
    from benchmark.cli.output import report
    from benchmark.play.agents.choice import plan_run
    from benchmark.play.options import RunOptions, checked_options
    from benchmark.play.session import open_session

    options = RunOptions(**checked_options(values, {}), given=frozenset(values))
    ending = open_session(plan_run(options, output.say)).play(quiet=output.quiet)

    def compared(scores: "Sequence[ScoreView]") -> None:
        plain: Rows = [{**score} for score in scores]
        before, after = ([score for score in plain if score["agent"] == name] for name in names)
        keep(*([{key: score[key] for key in KEPT} for score in own] for own in (before, after)))
        _say(before, after, output)

    return report(ending, output, keep=compared)


def _say(before: Rows, after: Rows, output: "Output") -> None:
    from benchmark.show.table import estimate_figure

    def shown(score: dict[str, Any], key: str, form: str) -> str:
        figure = estimate_figure(score[key], form)
        return f"{figure.text or 'unknown'} {figure.interval}".strip()

    for old in before:
        new = next(score for score in after if score["scenario"] == old["scenario"])
        told = [
            f"{called} {shown(old, key, form)} before, {shown(new, key, form)} after"
            for called, key, form in (("score", "normalized", ".2f"), ("success", "success_rate", ".0%"))
            if key != "success_rate" or old[key] or new[key]  # else the game knows none
        ]
        output.say(f"{old['scenario']}, {old['episodes']} episodes each: {'; '.join(told)}")
