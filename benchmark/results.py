"""The results of evaluations, for people and programs: :class:`Results`, its leaderboard and its comparisons.

``run folders -> Results -> leaderboard | comparison | data frames``. The commands ``leaderboard`` and ``compare`` print
them.
"""

import shutil
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agents.common.terminal import printable
from benchmark.errors import UsageError, unknown_name
from benchmark.play.progress import teller
from benchmark.score.document import (
    ComparisonView,
    OverallComparisonView,
    OverallView,
    RatingView,
    ScoreView,
    ViewDocument,
)
from benchmark.score.pairs import compare_overall
from benchmark.score.references import References
from benchmark.score.results import ResultColumns, read_columns
from benchmark.score.samples import without_samples
from benchmark.score.scores import rating_rows
from benchmark.show import draw, export
from benchmark.show.board import comparison_tables, leaderboard_tables
from benchmark.show.document_of import results_document
from benchmark.show.markdown import leaderboard_markdown
from benchmark.show.summary import summary_lines
from benchmark.show.table import Table

if TYPE_CHECKING:
    import pandas

TITLE = "textbench leaderboard"

Frame = Literal["episodes", "steps", "scores"]


def read_results(*folders: str | Path, agents: Sequence[str] = (), quiet: bool = False) -> "Results":
    """Return the results in run folders and leaderboard entries, or folders of them, together.

    An agent's name that an earlier one has taken gets the folder's name in front. ``agents`` are the names to keep, by
    default all; ``quiet``: nothing on standard error.

    Raises:
        UsageError: something that isn't a run or an entry, two folders that mean different things by a scenario's name,
            or no episode at all.
        StorageError: a folder can't be read.
    """
    for folder in folders:
        if not isinstance(folder, str | Path):
            raise UsageError(f"folders are given one by one, as read_results('runs/a', 'runs/b'), got {folder!r}")
    return Results(read_columns(folders, (agents,) if isinstance(agents, str) else agents), quiet=quiet)


class Results:
    """The results of agents in scenarios, as :func:`benchmark.evaluate` and :func:`benchmark.read_results` return them.

    Episodes stay on disk and are read when they are asked for; in memory are columns of numbers. In a notebook, results
    show their leaderboard.

    Attributes:
        stopped: why the evaluation ended before everything was played, as half a sentence; ``None`` otherwise. The same
            call with the same ``out`` resumes it.
        columns: the numbers, for code that computes figures of its own.
    """

    def __init__(self, columns: ResultColumns, *, stopped: str | None = None, quiet: bool = False) -> None:
        self.columns = columns
        self.stopped = stopped
        self._say = teller(quiet)
        self._temporary = False

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents' names, as they were given."""
        return tuple(self.columns.agents)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The names of the scenarios that were played."""
        return tuple(self.columns.scenarios)

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of the episodes. That of an evaluation without ``out`` goes with the results."""
        return tuple(path for path, _ in self.columns.sources)

    @property
    def complete(self) -> bool:
        """Whether every agent played and scored everything that was planned for it."""
        return self.columns.complete

    @property
    def unscored(self) -> int:
        """Episodes that ended in a provider's error and take part in no figure."""
        return sum(cell.unscored for cell in self.columns.cells.values())

    def leaderboard(self, *, title: str = TITLE) -> "Leaderboard":
        """Return the scores: counts, 95% intervals, normalised scores, ranks. Computed once; large results take
        seconds."""
        return Leaderboard({**self._scores, "title": title})

    @cached_property
    def _scores(self) -> ViewDocument:
        return self.document(max_episodes=0)

    def document(self, *, title: str = TITLE, max_episodes: int = 5000) -> ViewDocument:
        """Return the content of the leaderboard page: scores, comparisons, and so many episodes to replay at most."""
        references = References(self.columns, self._say)
        return results_document(self.columns, title=title, max_episodes=max_episodes, references=references)

    def compare(self, *agents: str, scenarios: Sequence[str] = ()) -> "Comparison":
        """Return every two of these agents on the seeds that both scored: paired differences with 95% intervals.

        Without names, all agents are compared, of several samples the first. Positive differences mean that the first
        of two got the higher returns. A UsageError is raised for a name that isn't in the results, one agent alone or
        twice, or no two equal seeds.
        """
        columns, wanted = self.columns, agents or tuple(without_samples(self.columns).agents)
        for name in wanted:
            if wanted.count(name) > 1:
                raise UsageError(f"comparing takes different agents, got {name!r} twice")
        named = (scenarios,) if isinstance(scenarios, str) else scenarios
        for kind, names, known in (("agent", wanted, self.agents), ("scenario", named, self.scenarios)):
            for name in names:
                if name not in known:
                    raise unknown_name(f"{kind} in these results", name, known)
        if len(wanted) < 2:
            raise UsageError(
                f"comparing takes two agents, there is {', '.join(wanted)}; in these results: {', '.join(self.agents)}"
            )
        keep = {name: scenario for name, scenario in columns.scenarios.items() if not named or name in named}
        rows, overall = compare_overall(columns, References(columns, self._say), wanted, list(keep))
        ratings = [row for row in rating_rows(columns) if row["agent"] in wanted and row["scenario"] in keep]
        if not rows and not ratings:
            several = len({one.rules for one in columns.scenarios.values()}) > 1
            alike = ", played by the same protocol" if several else ""
            raise UsageError(f"these agents have no two scored episodes with equal seeds in any scenario{alike}")
        return Comparison(rows, ratings, overall)

    def to_pandas(self, table: Frame = "episodes") -> "pandas.DataFrame":
        """Return the results as a data frame (extra ``pandas``).

        ``"episodes"`` has a row an episode (and player, if several play), with the columns of ``textbench export
        --csv``; ``"steps"`` one a step, responses included; ``"scores"`` one an agent and scenario, with intervals in
        columns ``*_low`` and ``*_high``. A UsageError is raised if there is no such table, or pandas isn't installed.
        """
        if table == "episodes":
            return export.frame_of(export.episode_rows(self.columns), export.EPISODE_FIELDS)
        if table == "steps":
            return export.frame_of(export.step_rows(self.columns), export.STEP_FIELDS)
        if table == "scores":
            return self.leaderboard().to_pandas()
        raise unknown_name("table of results", table, ("episodes", "steps", "scores"))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._temporary:
            raise TypeError("the folder of these results goes with them: give them one by evaluate(..., out=FOLDER)")
        return partial(read_results, agents=self.agents, quiet=True), self.folders, {"stopped": self.stopped}

    def goes_with(self, folder: Path) -> None:
        """Remove a folder when these results aren't used any more, at the latest when the program ends."""
        self._temporary = True
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def __repr__(self) -> str:
        count = f"{self.columns.played} episode{'' if self.columns.played == 1 else 's'}"
        state = f", stopped: {self.stopped}" if self.stopped else "" if self.complete else ", incomplete"
        return f"<Results: {', '.join(self.agents)} on {', '.join(self.scenarios)}; {count}{state}>"

    def _repr_html_(self) -> str:
        return self.leaderboard()._repr_html_()


class _Tables:
    def print(self) -> None:
        """Print the tables to standard output, as wide as the terminal."""
        draw.print_tables(self._tables())

    def _tables(self) -> list[Table]:
        raise NotImplementedError

    def __str__(self) -> str:
        return draw.to_text(self._tables())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return draw.to_html(self._tables())


class Leaderboard(_Tables):
    """The scores of results, which print as tables and show as such in a notebook.

    Attributes:
        document: everything that the tables are made of, as ``textbench leaderboard --json`` prints it; its shape is
            :class:`benchmark.score.document.ViewDocument`, without episodes.
    """

    def __init__(self, document: Any) -> None:
        self._whole = document
        left_out = ("episodes", "comparisons", "overall_pairs")
        self.document: dict[str, Any] = {name: value for name, value in document.items() if name not in left_out}

    @property
    def scores(self) -> list[ScoreView]:
        """A row for every agent and scenario; best agents first."""
        return self._whole["scores"]  # type: ignore[no-any-return]

    @property
    def overall(self) -> list[OverallView]:
        """A row for every agent, over ``document["overall_scenarios"]``; best agents first."""
        return self._whole["overall"]  # type: ignore[no-any-return]

    def print(self, *, stats: bool = False) -> None:
        """Print to standard output: at most a dozen lines, or with ``stats`` the tables of all figures."""
        if stats:
            super().print()
        else:
            # from a program, too, of which standard output may not be plain
            print(printable("\n".join(summary_lines(self._whole, draw.stdout_console().width))))

    def to_markdown(self) -> str:
        """Return the tables as GitHub Markdown."""
        return leaderboard_markdown(self._whole)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a row for every agent and scenario; see :meth:`Results.to_pandas`."""
        return export.frame_of(self.scores)

    def _tables(self) -> list[Table]:
        return leaderboard_tables(self._whole)


@dataclass(eq=False, repr=False)
class Comparison(_Tables):
    """Agents on equal seeds, two and two, which prints as tables and shows as such in a notebook."""

    rows: list[ComparisonView]  # of every two agents and scenario for one player: difference with interval, p-values
    ratings: list[RatingView]  # of every agent in scenarios for several players, in which they met
    overall: list[OverallComparisonView]  # of every two agents over all scenarios: the better one, and what decides it

    @property
    def document(self) -> dict[str, Any]:
        """What ``textbench compare --json`` prints; ``overall`` is that of two agents, of more there are pairs."""
        return {
            "overall": self.overall[0] if len(self.overall) == 1 else None,
            "overall_pairs": self.overall,
            "comparisons": self.rows,
            "ratings": self.ratings,
        }

    def to_markdown(self) -> str:
        """Return the tables as GitHub Markdown, each below its verdict."""
        return draw.to_markdown(self._tables())

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a row for every two agents and scenario; the difference's interval in columns of their own."""
        return export.frame_of(self.rows)

    def _tables(self) -> list[Table]:
        return comparison_tables(self.rows, self.overall, self.ratings)
