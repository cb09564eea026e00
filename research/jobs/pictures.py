"""What the pictures of all reports are drawn with, as SVG.

Needs matplotlib (the ``plots`` extra). The same results give the same files, so that they can be kept under version
control.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from agents.common import Estimate
from textgames import install_command

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's, told apart with any colour vision."""

NO_MATPLOTLIB = f"plots need matplotlib, which is not installed: {install_command('plots')}"


def style() -> AbstractContextManager[None]:
    """Return a context in which the same data gives the same file, whenever it is drawn.

    Raises:
        ModuleNotFoundError: without matplotlib; the message has the command.
    """
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(NO_MATPLOTLIB, name="matplotlib") from error
    return matplotlib.rc_context({"svg.hashsalt": "textbench", "svg.fonttype": "none", "font.size": 9})


def save(figure: Any, file: Path) -> None:
    """Write a figure into a file."""
    # without a date the same data gives the same file
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": "textbench"})


def figure_of(columns: int, rows: int, width: float, height: float) -> tuple[Any, Any]:
    """Return a figure with rows of axes; width and height in inches."""
    # not pyplot: it keeps figures alive and would need a display's settings
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def with_intervals(
    axis: Any, places: Sequence[float], values: Sequence[Estimate], *, across: bool = False, **look: Any
) -> None:
    """Points at ``places`` with their intervals, upright or ``across``; one of a single run has none."""
    means = np.array([each.value for each in values])
    ends = np.array([[each.low for each in values], [each.high for each in values]], dtype=np.float64)
    spread = np.nan_to_num(np.maximum((ends - means) * [[-1], [1]], 0))
    points = (means, places) if across else (places, means)
    axis.errorbar(*points, **{"xerr" if across else "yerr": spread}, **look)


def bars(axis: Any, title: str, names: list[str], shown: Iterable[tuple[int, str, Estimate]], *, named: bool) -> None:
    """Means with their intervals, ``(place, colour, mean)`` each, in the order of ``names`` from the top."""
    for place, colour, mean in shown:
        axis.barh(place, mean.value, color=colour)
        if mean.low is not None:
            with_intervals(axis, [place], [mean], across=True, color="black", capsize=2, linewidth=1)
    axis.set_title(title)
    axis.set_yticks(range(len(names)), names if named else [])
    axis.invert_yaxis()
    axis.axvline(0, color="black", linewidth=0.6)
    axis.grid(alpha=0.3, axis="x")
