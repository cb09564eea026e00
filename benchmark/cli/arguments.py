"""What several commands take: numbers, how the result is told, whose results; and which, when nobody says."""

from argparse import ArgumentParser
from argparse import _ActionsContainer as Container
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from agents.common.arguments import whole_number
from benchmark.errors import UsageError

if TYPE_CHECKING:
    from benchmark.cli.output import Output


_OUTPUT = {
    "json": "print one JSON document",
    "stats": "print every table with every figure, not a dozen lines",
    "quiet": "no progress",
}


def add_output_options(parser: ArgumentParser, *names: str, **texts: str) -> None:
    """The switches that say how a result is told: ``json``, ``stats``, ``quiet``; ``texts`` are other lines of help."""
    for name in names:
        parser.add_argument(f"--{name}", action="store_true", help=texts.get(name, _OUTPUT[name]))


def add_page_options(parser: ArgumentParser) -> None:
    """The options of the commands that make a page: its heading, and how many replays are on it."""
    parser.add_argument("--title", default="textbench leaderboard", help="the page's heading")
    add_number(parser, "--max-episodes", 5000, "replays on the page", 1, 999_999_999)


def add_import_option(parser: ArgumentParser) -> None:
    """The option of the commands that read folders with which the user names modules; a folder never does."""
    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module that registers games of your own; none is imported since a folder names it",
    )


def add_season_option(parser: ArgumentParser) -> None:
    """The option of the commands that make and check entries, which are of the open leaderboard without it."""
    parser.add_argument("--season", metavar="DIR", help="of this season, and not of the open leaderboard")


def add_number(
    parser: Container, flag: str, default: int | None, text: str, least: int = 0, most: float = inf, metavar: str = "N"
) -> None:
    """An option that is a whole number from ``least`` to ``most``; its line of help ends with the default."""
    told = text if default is None else f"{text} (default {default})"
    parser.add_argument(flag, type=whole_number(least, most), default=default, metavar=metavar, help=told)


def given_or_newest(given: Sequence[str], output: "Output") -> list[Path]:
    """Return the given folders, else the newest run in ``runs/``, which is then named on stderr.

    Raises:
        UsageError: nothing is given and there is no run.
    """
    from benchmark.runs.manifest import MANIFEST_NAME

    if given:
        return [Path(path) for path in given]
    runs = sorted(Path("runs").glob(f"*/{MANIFEST_NAME}"), key=lambda file: file.stat().st_mtime)
    if not runs:
        raise UsageError("there is no run in runs/; name a run folder, or make one: textbench run")
    output.say(f"showing the newest run, {runs[-1].parent}")
    return [runs[-1].parent]
