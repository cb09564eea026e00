"""An episode for the eyes, in the terminal: printed as a whole, or step by step with keys."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Plan
from benchmark.runs.record import Record, observations_digest, parse_line
from benchmark.runs.replay import Replay, ReplayedStep, ReplayError, replay
from benchmark.show.terminal_tables import printable, stdout_console
from textgames.scenarios import Scenario


class EpisodePicker:
    """The episodes of a folder that pass a filter, by number; only their places in the file are in memory.

    Args:
        folder: where they are.
        agent, scenario, seed: what they must have, ``None`` for anything.
        failed: only episodes in which nobody succeeded.
    """

    def __init__(
        self, folder: RunFolder, agent: str | None, scenario: str | None, seed: int | None, failed: bool
    ) -> None:
        self.folder = folder
        self.scenarios = Plan.from_manifest(folder.manifest).scenarios
        self._offsets = []
        for key, (offset, _) in folder.index().items():
            wanted = (agent is None or agent in key.agents) and (scenario is None or scenario == key.scenario)
            if wanted and (seed is None or seed == key.seed):
                self._offsets.append(offset)
        if failed:
            self._offsets = [o for o in self._offsets if not any(self._read(o)["successes"].values())]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._offsets)

    def record(self, number: int) -> Record:
        """The episode with this number, from 1."""
        return self._read(self._offsets[number - 1])

    def _read(self, offset: int) -> Record:
        with self.folder.episodes_path.open("rb") as file:
            file.seek(offset)
            return parse_line(file.readline())

    def scenario(self, record: Record) -> Scenario:
        """Its scenario."""
        return self.scenarios[record["scenario"]]


def print_episode(picker: EpisodePicker, number: int) -> None:
    """The whole episode, one step below the other."""
    console = stdout_console()
    record = picker.record(number)
    replayed, warning = _replayed(record, picker.scenario(record))
    console.print(_heading(record, number, picker.count))
    if warning:
        console.print(Text(warning, style="yellow"))
    for index in range(len(record["steps"])):
        console.print(_step_view(record, replayed, index))
    console.print(_end_view(record, replayed))


def step_through(picker: EpisodePicker, number: int) -> int:
    """Show one step at a time until ``q``; returns the exit code."""
    console = Console(highlight=False)
    index = 0
    record = picker.record(number)
    replayed, warning = _replayed(record, picker.scenario(record))
    with _keys() as read_key, console.screen(hide_cursor=True) as screen:
        while True:
            last = len(record["steps"])
            body = _step_view(record, replayed, index) if index < last else _end_view(record, replayed)
            place = f"step {index + 1} of {last}" if index < last else f"end, after {last} steps"
            hint = Text(f"{place}   n next  p previous  ] [ episode  q quit", style="dim")
            parts: list[RenderableType] = [_heading(record, number, picker.count)]
            if warning:
                parts.append(Text(warning, style="yellow"))
            screen.update(Group(*parts, body, hint))
            key = read_key()
            if key in ("q", "", "\x03", "\x04"):
                return 0
            if key in ("n", " ", "\r", "\n", "\x1b[C", "l", "j"):
                index = min(index + 1, last)
            elif key in ("p", "\x1b[D", "h", "k"):
                index = max(index - 1, 0)
            elif key in ("]", "[", "\x1b[B", "\x1b[A"):
                number = max(1, min(picker.count, number + (1 if key in ("]", "\x1b[B") else -1)))
                index = 0
                record = picker.record(number)
                replayed, warning = _replayed(record, picker.scenario(record))


def _replayed(record: Record, scenario: Scenario) -> tuple[Replay | None, str]:
    """The replay, and what to say when it isn't what the record holds."""
    try:
        replayed = replay(record, scenario)
    except ReplayError as error:
        return None, f"the responses don't fit the game ({error}); boards can't be shown"
    if observations_digest(step.observation for step in replayed.steps) != record["observations_digest"]:
        return replayed, "the game's rules or texts have changed since this was played: boards may differ"
    return replayed, ""


def _heading(record: Record, number: int, count: int) -> RenderableType:
    agents = " against ".join(record["agents"].values())
    return Rule(Text(printable(f"{record['scenario']}, seed {record['seed']}, {agents} (episode {number} of {count})")))


def _step_view(record: Record, replayed: Replay | None, index: int) -> RenderableType:
    step = record["steps"][index]
    played: ReplayedStep | None = replayed.steps[index] if replayed and index < len(replayed.steps) else None
    several = len(record["agents"]) > 1
    who = f" {step['player']} ({record['agents'][step['player']]})" if several else ""
    rows: list[RenderableType] = [Text(printable(f"round {step['round'] + 1}{who}"), style="bold")]
    if played is not None:
        grid = Table.grid(padding=(0, 4))
        grid.add_row(Text(spaced(played.board)), Text(printable(played.observation), style="dim"))
        rows.append(grid)
    rows.append(Panel(Text(printable(step["response"]) or " "), title="response", title_align="left"))
    if step["valid"]:
        rows.append(Text(f"action {step['action']}   reward {step['reward']:+g}"))
    else:
        reason = f"invalid ({step.get('unreadable')}), {step['action'] or 'nothing'} was executed instead"
        rows.append(Text(f"{reason}   reward {step['reward']:+g}", style="red"))
    return Group(*rows)


def _end_view(record: Record, replayed: Replay | None) -> RenderableType:
    rows: list[RenderableType] = [Text("end", style="bold")]
    if replayed is not None:
        rows.append(Text(spaced(replayed.end.board)))
    if record["error"] is not None:
        rows.append(Text(printable(f"unscored: {record['error']}"), style="red"))
    else:
        how = "terminated" if record["terminated"] else "truncated at the step limit"
        results = ", ".join(
            f"{agent}: return {record['returns'][player]:g}{', success' if record['successes'][player] else ''}"
            for player, agent in record["agents"].items()
        )
        rows.append(Text(printable(f"{how}. {results}")))
    return Group(*rows)


def spaced(board: str) -> str:
    """A board's cells apart from each other, which makes them about square."""
    return "\n".join(" ".join(row) for row in board.splitlines())


@contextmanager
def _keys() -> Iterator[Any]:
    """A function that waits for one key; the terminal is put back afterwards."""
    if sys.platform == "win32":
        import msvcrt

        yield msvcrt.getwch
        return
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    try:
        tty.setcbreak(file)
        yield lambda: os.read(file, 8).decode(errors="replace")
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
