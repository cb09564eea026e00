"""What a person sees while a run plays: done and total, mean so far, errors, time left, tokens and money. On stderr."""

import logging
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from agents.common.console import PlainConsole
from agents.common.progress import duration
from agents.episode import Episode
from agents.models.served.model import NOTICES
from benchmark.runs.manifest import Price
from benchmark.runs.plan import Matchup
from benchmark.runs.record import paid_tokens
from benchmark.score.scores import cost
from benchmark.show.draw import to_html
from benchmark.show.table import text_table


@dataclass
class Tally:
    """How far one matchup has been played."""

    total: int  # episodes that it has
    done: int  # scored episodes, those of earlier processes included
    errors: int = 0  # unscored episodes of this process
    scored: int = 0  # scored episodes of this process
    score: float = 0.0  # the sum of the first player's returns over them
    kept: int = 0  # episodes with a record, scored or not, those of earlier processes included
    cost: float = 0.0  # US dollars of them

    @property
    def counts(self) -> str:
        """How many episodes are done, of how many: ``12/50``."""
        return f"{self.done + self.errors}/{self.total}"

    @property
    def mean(self) -> str:
        """The mean return of this process's episodes; empty before the first."""
        return f"{self.score / self.scored:+.3f}" if self.scored else ""


class Meter:
    """Counts what a run does, for its display and for its limits."""

    def __init__(
        self,
        totals: Mapping[Matchup, int],
        prices: Mapping[str, Price],
        tokens: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.tallies = {matchup: Tally(total, 0) for matchup, total in totals.items()}
        # ``{agent: [prompt, completion, cached prompt tokens]}`` that were paid for, by earlier processes too; the last
        # are those of the prompt that the provider had in its cache
        self.tokens = {agent: [*counted, 0][:3] for agent, counted in (tokens or {}).items()}
        self.prices = prices  # of the agents whose price is known
        self._started = time.monotonic()
        self._lock = Lock()  # steps are counted if they are played, what a failure cost where its episode is kept

    def count_tokens(self, agent: str, prompt: int, completion: int, cached: int = 0) -> None:
        with self._lock:
            before = self.tokens.get(agent, [0, 0, 0])
            self.tokens[agent] = [before[0] + prompt, before[1] + completion, before[2] + cached]

    def count_kept(self, record: Episode) -> None:
        """Count what an episode that is kept has cost; its tokens are counted already."""
        agents = record.agents
        tally = self.tallies.get(Matchup(record.scenario, tuple(agents.values())), Tally(0, 0))
        tally.kept += 1
        for player, paid in paid_tokens(record).items():
            tally.cost += cost(paid, self.prices.get(agents[player])) or 0.0

    def mean_cost(self, matchups: Iterable[Matchup]) -> tuple[int, float]:
        """Return how many episodes of these matchups are kept, and the US dollars of one, 0 if there are none."""
        tallies = [self.tallies[matchup] for matchup in matchups]
        kept = sum(tally.kept for tally in tallies)
        return kept, sum(tally.cost for tally in tallies) / max(1, kept)

    def count_episode(self, record: Episode) -> None:
        tally = self.tallies[Matchup(record.scenario, tuple(record.agents.values()))]
        if record.error is None:
            tally.done += 1
            tally.score += next(iter(record.returns.values()))
            tally.scored += 1
        else:
            tally.errors += 1

    @property
    def spent(self) -> float:
        """US dollars so far, of the agents whose price is known."""
        return sum(cost(tokens, self.prices.get(agent)) or 0.0 for agent, tokens in self.tokens.items())

    @property
    def finished(self) -> int:
        return sum(tally.scored + tally.errors for tally in self.tallies.values())

    def summary(self) -> str:
        """Return how far the run is, what it has used, and how long it will take, in one line."""
        done, errors, total = (
            sum(getattr(tally, name) for tally in self.tallies.values()) for name in ("done", "errors", "total")
        )
        parts = [f"{done}/{total} episodes"]
        if errors:
            parts.append(f"{errors} unscored")
        prompt, completion = (sum(counted[i] for counted in self.tokens.values()) for i in (0, 1))
        if prompt or completion:
            parts.append(f"{prompt:,} + {completion:,} tokens")
            if self.prices:
                parts.append(f"{self.spent:.4f} USD")
        seconds, left = time.monotonic() - self._started, total - done - errors
        parts.append(f"{duration(seconds)} elapsed")
        if self.finished and left:
            parts.append(f"about {duration(seconds / self.finished * left)} left")
        return " · ".join(parts)

    def rows(self, room: int) -> Sequence[tuple[Matchup, Tally]]:
        """Return as many rows as there is room for; finished matchups are the first to be left out."""
        rows = list(self.tallies.items())
        if len(rows) > room:
            rows = ([row for row in rows if row[1].done + row[1].errors < row[1].total] or rows)[:room]
        return rows


class Display:
    """Shows nothing (``--quiet``), and is the base of what shows progress: a context manager around the run."""

    pause = math.inf  # seconds between two calls of :meth:`show`

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._next = time.monotonic() + self.pause

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def update(self) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self.pause
            self.show()

    def show(self) -> None:
        """Show how far the run is."""


class Lines(Display):
    """Progress as a line now and then, for logs and pipes."""

    pause = 15.0

    def show(self) -> None:
        print(self._meter.summary(), file=sys.stderr, flush=True)

    def __exit__(self, *exception: object) -> None:
        self.show()


class LiveTable(Display):
    """A table that redraws itself a few times a second, for terminals."""

    def __init__(self, meter: Meter, console: Console) -> None:
        super().__init__(meter)
        self._console = console
        # rich's own thread draws by the clock, so playing never waits for the terminal
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.__exit__(None, None, None)
        self._console.print(Text(self._meter.summary(), style="dim"))

    def _draw(self) -> Group:
        table = Table(box=None, pad_edge=False)
        for title in ("scenario", "agent", ""):
            table.add_column(title)
        for title in ("episodes", "mean", "errors"):
            table.add_column(title, justify="right")
        for matchup, tally in self._meter.rows(max(3, self._console.size.height - 4)):
            errors = Text(str(tally.errors), style="red") if tally.errors else Text("")
            bar = ProgressBar(total=max(tally.total, 1), completed=tally.done + tally.errors, width=20)
            table.add_row(matchup.scenario, " v ".join(matchup.agents), bar, tally.counts, tally.mean, errors)
        return Group(table, Text(self._meter.summary()))


class NotebookTable(Display):
    """A table in the output of a notebook's cell that is replaced a few times a second, and by its summary at the end.

    It is plain HTML under IPython's own display handle: what rich redraws in a notebook needs ipywidgets, and leaves
    nothing in the saved notebook.
    """

    pause = 0.25
    room = 24  # rows

    def __enter__(self) -> Self:
        ipython: Any = import_module("IPython.display")
        self._html = ipython.HTML
        self._handle = ipython.display(self._html(self._draw()), display_id=True)
        return self

    def __exit__(self, *exception: object) -> None:
        self._handle.update(self._html(f"<small>{self._meter.summary()}</small>"))

    def show(self) -> None:
        self._handle.update(self._html(self._draw()))

    def _draw(self) -> str:
        columns = ("<scenario", "<agent", "episodes", "mean", "errors")
        rows = tuple(
            (matchup.scenario, " v ".join(matchup.agents), tally.counts, tally.mean, str(tally.errors or ""))
            for matchup, tally in self._meter.rows(self.room)
        )
        return to_html([text_table("", columns, rows, (self._meter.summary(),))])


def teller(quiet: bool) -> Callable[[str], None]:
    """Return a function that prints a sentence on stderr, or nothing if ``quiet``."""
    return (lambda message: None) if quiet else lambda message: print(message, file=sys.stderr, flush=True)


def choose_display(meter: Meter, quiet: bool) -> Display:
    """Return the display that suits the place: a table in a notebook or a terminal, lines elsewhere."""
    if quiet:
        return Display(meter)
    console = PlainConsole(stderr=True)
    if console.is_jupyter:
        return NotebookTable(meter)
    return LiveTable(meter, console) if console.is_terminal else Lines(meter)


@contextmanager
def noticed(say: Callable[[str], None]) -> Iterator[list[str]]:
    """Report every notice about a server once, within this context; yield the list in which they collect."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if message not in said:
                said.append(message)
                say(message)

    listener = Listener(logging.WARNING)
    NOTICES.addHandler(listener)
    try:
        yield said
    finally:
        NOTICES.removeHandler(listener)
