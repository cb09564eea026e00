"""Which results a command is about when nobody says: the newest run."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.errors import UsageError

if TYPE_CHECKING:
    from benchmark.play.session import Output


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
