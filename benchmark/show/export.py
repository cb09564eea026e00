"""Results for other programs: one row per episode and player, or one per step, as CSV, Parquet or data frame; plots."""

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from agents.common.files import replacing
from agents.episode import Episode
from agents.turn import total_usage
from benchmark.errors import UsageError, storing
from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import replay_if_unchanged
from benchmark.score.document import EstimateView, ScoreView
from benchmark.score.results import ResultColumns
from textgames.extras import install_command

if TYPE_CHECKING:
    import pandas

_WHOSE: dict[str, type] = {"source": str, "scenario": str, "agent": str, "player": str, "opponents": str, "seed": int}
_TOKENS: dict[str, type] = {"prompt_tokens": int, "completion_tokens": int}
EPISODE_FIELDS: dict[str, type] = {
    **_WHOSE,
    **{"return": float, "success": bool, "terminated": bool, "truncated": bool},
    **{"error": str, "length": int, "invalid": int},
    **_TOKENS,
    "seconds": float,
}
STEP_FIELDS: dict[str, type] = {
    **_WHOSE,
    **{"round": int, "response": str, "action": str, "valid": bool, "unreadable": str},
    **{"reward": float, "happened": str, "finish_reason": str},
    **_TOKENS,
}
PLOT_ENDINGS = (".svg", ".png", ".pdf")
_BATCH = 10_000

Row = dict[str, Any]


def episode_rows(results: ResultColumns) -> Iterator[Row]:
    """Yield one row per episode and player, in the order of the sources; read one at a time."""
    for source, record, names in _records(results):
        for player in record.agents:
            steps = record.steps_of(player)
            answers = [answer for step in steps for answer in step.answers]
            usage = total_usage(turn.usage for turn, _ in answers)
            yield {
                **_whose(source, record, names, player),
                "return": record.returns[player] if record.error is None else None,
                "success": record.successes[player] if record.error is None else None,
                "terminated": record.terminated,
                "truncated": record.truncated,
                "error": record.error,
                "length": len(steps),
                "invalid": sum(unreadable is not None for _, unreadable in answers),
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "seconds": record.measured.get("seconds"),
            }


def step_rows(results: ResultColumns) -> Iterator[Row]:
    """Yield one row per step, responses included; ``happened`` is empty if the game has changed since."""
    for source, record, names in _records(results):
        replayed = replay_if_unchanged(record, results.scenarios[record.scenario])
        for index, step in enumerate(record.steps):
            usage = total_usage(turn.usage for turn in step.turns)
            yield {
                **_whose(source, record, names, step.player),
                "finish_reason": step.turn.finish_reason,
                "unreadable": step.unreadable,
                "happened": replayed.happened(replayed.steps[index]) if replayed else None,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                **{"round": step.index, "response": step.turn.response},
                **{name: getattr(step, name) for name in ("action", "valid", "reward")},
            }


def _whose(source: str, record: Episode, names: Mapping[str, str], player: str) -> Row:
    """Return which episode a row is of, and which player's; several tables of agents may meet on one seed."""
    called = {seat: names.get(agent, agent) for seat, agent in record.agents.items()}
    others = " ".join(agent for seat, agent in called.items() if seat != player)
    place = {"source": source, "scenario": record.scenario, "seed": record.seed}
    return {**place, "agent": called[player], "player": player, "opponents": others}


def _records(results: ResultColumns) -> Iterator[tuple[str, Episode, Mapping[str, str]]]:
    for (path, manifest), names in zip(results.sources, results.names, strict=True):
        for record in RunFolder(path, manifest).records():
            if set(record.agents.values()) & set(names):
                yield path.resolve().name, record, names


@contextmanager
def text_output(file: str) -> Iterator[TextIO]:
    """Open a file for text, line ends as they are; stdout for ``"-"``. An error leaves the old file as it was."""
    target = Path(file)
    with storing(file):
        if file == "-":
            yield sys.stdout
            sys.stdout.flush()  # here it is known what couldn't be written
        elif target.exists() and not target.is_file():  # a pipe, which nothing can take the place of
            with target.open("w", encoding="utf-8", newline="") as stream:
                yield stream
        else:
            with replacing(target, "wb", through_links=True) as raw:
                stream = TextIOWrapper(raw, encoding="utf-8", newline="")
                try:
                    yield stream
                finally:
                    stream.detach()  # what it holds is written; the file below stays open


def write_csv(rows: Iterator[Row], fields: Mapping[str, type], file: str) -> int:
    """Write rows as CSV (UTF-8, RFC 4180) to a file, or to stdout for ``"-"``; returns how many."""
    count = 0
    with text_output(file) as stream:
        writer = csv.DictWriter(stream, list(fields), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            cells = {name: plain(row[name]) for name in fields}
            for name, value in cells.items():
                if isinstance(value, bool):
                    cells[name] = str(value).lower()
                elif isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
                    cells[name] = f"'{value}"  # a spreadsheet takes it for a formula; the page's download does the same
            writer.writerow(cells)
            count += 1
    return count


def plain(value: Any) -> Any:
    """Write lone surrogates in a response, which UTF-8 can't hold, as ``\\udc00``."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def write_parquet(rows: Iterator[Row], fields: Mapping[str, type], file: str) -> int:
    """Write rows as Parquet, ten thousand at a time; returns how many."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError(f"Parquet needs pyarrow: {install_command('plots')}") from None
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    schema = pa.schema([(name, types[kind]) for name, kind in fields.items()])
    count = 0
    written = replacing(Path(file), "wb", through_links=True)
    with storing(file), written as stream, pq.ParquetWriter(stream, schema) as writer:
        while batch := list(islice(rows, _BATCH)):
            columns = {name: [plain(row[name]) for row in batch] for name in fields}
            writer.write_table(pa.table(columns, schema=schema))
            count += len(batch)
    return count


def write_plot(rows: Sequence[ScoreView], file: str, measure: str = "normalized") -> None:
    """Draw an estimate of the rows, such as ``mean_return``, by scenario; the ending is of :data:`PLOT_ENDINGS`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(f"plots need matplotlib: {install_command('plots')}") from None
    scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
    agents = list(dict.fromkeys(row["agent"] for row in rows))
    figure = Figure(figsize=(3.2 * len(scenarios) + 1.5, 0.4 * len(agents) + 1.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(scenarios), sharey=True, squeeze=False)[0]
    for panel, scenario in zip(panels, scenarios, strict=True):
        for row in rows:
            estimate: EstimateView | None = row[measure]  # type: ignore[literal-required]
            if row["scenario"] == scenario and estimate is not None:
                value, low, high = estimate["value"], estimate["low"], estimate["high"]
                below = 0.0 if low is None else max(0.0, value - low)
                above = 0.0 if high is None else max(0.0, high - value)
                place = agents.index(row["agent"])
                panel.errorbar([value], [place], xerr=[[below], [above]], fmt="o", capsize=3)
        panel.axvline(0.0, color="0.8", linewidth=0.8, zorder=0)
        panel.grid(axis="x", color="0.93")
        panel.set_title(scenario)
        panel.set_xlabel(measure.replace("_", " "))
    panels[0].set_yticks(range(len(agents)), [agent.replace("$", r"\$") for agent in agents])  # $ means mathematics
    panels[0].invert_yaxis()
    with storing(file):
        # without a date and with fixed ids the same results give the same file
        figure.savefig(file, dpi=150, metadata={"Date": None} if file.lower().endswith((".svg", ".pdf")) else None)


_TYPES = {str: "object", int: "Int64", float: "float64", bool: "boolean"}  # of pandas, that know a missing value
_COUNTS = ("errors", "served_by", "invalid_reasons", "lacks")  # of a score: stay what they are, in one column each


def frame_of(rows: Iterable[Mapping[str, Any]], fields: Mapping[str, type] | None = None) -> "pandas.DataFrame":
    """Return the frame of rows that have these fields, in this order; without them, of a document's rows."""
    try:
        import pandas
    except ImportError:
        raise UsageError(f"data frames need pandas: {install_command('pandas')}") from None
    if fields is None:
        return pandas.DataFrame([dict(flat_view(row)) for row in rows])
    kinds = {name: _TYPES[kind] for name, kind in fields.items()}
    return pandas.DataFrame(rows, columns=list(fields)).astype(kinds)


def flat_view(view: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of everything in a row: an estimate is three of them, such as ``length_low``."""
    for key, value in view.items():
        name = f"{prefix}{key}"
        if not isinstance(value, Mapping) or key in _COUNTS:
            yield name, value
        elif value.keys() == {"value", "low", "high"}:
            yield from ((name, value["value"]), (f"{name}_low", value["low"]), (f"{name}_high", value["high"]))
        else:
            yield from flat_view(value, f"{name}_")
