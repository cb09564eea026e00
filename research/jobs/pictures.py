"""What the pictures of all reports are drawn with, as SVG.

Needs matplotlib (the ``plots`` extra). The same results give the same files, so that they can be kept under version
control.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from agents.common.intervals import Estimate
from textgames.extras import install_command

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's, told apart with any colour vision."""

NO_MATPLOTLIB = f"plots need matplotlib, which is not installed: {install_command('plots')}"


def style() -> AbstractContextManager[None]:
    """A context in which the same data gives the same file, whenever it is drawn.

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
    """A figure with rows of axes; width and height in inches."""
    # not pyplot: it keeps figures alive and would need a display's settings
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def bars(axis: Any, title: str, names: list[str], shown: Iterable[tuple[int, str, Estimate]], *, named: bool) -> None:
    """Means with their intervals, ``(place, colour, mean)`` each, in the order of ``names`` from the top."""
    for place, colour, (value, low, high) in shown:
        axis.barh(place, value, color=colour)
        if low is not None and high is not None:
            ends = [[max(0.0, value - low)], [max(0.0, high - value)]]
            axis.errorbar(value, place, xerr=ends, color="black", capsize=2, linewidth=1)
    axis.set_title(title)
    axis.set_yticks(range(len(names)), names if named else [])
    axis.invert_yaxis()
    axis.axvline(0, color="black", linewidth=0.6)
    axis.grid(alpha=0.3, axis="x")
