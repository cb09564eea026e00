"""What the commands that show results share: which results, when nobody says, and how much of them."""

import os
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.errors import StorageError, UsageError

if TYPE_CHECKING:
    from benchmark.cli.output import Output


def add_page_options(parser: ArgumentParser) -> None:
    """The options of the commands that make a page: its heading, and how many replays are on it."""
    parser.add_argument("--title", default="textbench leaderboard", help="the page's heading")
    parser.add_argument(
        "--max-episodes", type=_episodes, default=5000, metavar="N", help="replays on the page (default 5000)"
    )


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


def _episodes(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise ArgumentTypeError(f"must be a whole number from 1 to 999999999, got {text!r}")
    return int(text)


def whole_number(flag: str, text: str, least: int) -> int:
    """The number that was given to a flag.

    Raises:
        UsageError: it isn't a whole number, or is less than ``least``.
    """
    if not text.isdecimal() or int(text) < least:
        raise UsageError(f"{flag} must be a whole number of at least {least}, got {text!r}")
    return int(text)


def real_number(flag: str, text: str) -> float:
    """The number of at least 0 that was given to a flag.

    Raises:
        UsageError: it isn't a finite number, or is below 0.
    """
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not (isfinite(number) and number >= 0):
        raise UsageError(f"{flag} must be a number of at least 0, got {text!r}")
    return number


def check_file_place(file: str) -> None:
    """Refuse a file that can't be written before the work is done whose result it is to hold.

    Raises:
        StorageError: it is a folder, its folder doesn't exist, or writing there isn't allowed.
    """
    path = Path(file)
    if not file or path.is_dir():
        raise StorageError(f"can't write {file!r}: it names a folder and no file")
    if not path.parent.is_dir():
        raise StorageError(f"can't write {file}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise StorageError(f"can't write {file}: Permission denied")


def given_or_newest(given: Sequence[str], output: "Output") -> list[Path]:
    """The given folders, else the newest run in ``runs/``, which is then named on stderr.

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
