"""An episode for the eyes, in the terminal: printed as a whole, or step by step with keys."""

import textwrap
from typing import NamedTuple

from rich.cells import set_cell_size
from rich.console import Console, Group
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from agents.keys import END_OF_INPUT, Keyboard
from agents.redaction import Redactor
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Plan
from benchmark.runs.record import Record, observations_digest, parse_line
from benchmark.runs.replay import Replay, ReplayError, ending, replay
from benchmark.show.terminal_tables import printable, stdout_console
from textgames.scenarios import Scenario

MIN_WIDTH, MIN_HEIGHT = 40, 12
"""The smallest terminal, in characters, that an episode can be stepped through in."""

KEYS = ("n next", "p back", "g G first/last", "[ ] episode", "j k PgDn PgUp scroll", "q quit")

NEXT, BACK = ("n", " ", "enter", "right", "l"), ("p", "backspace", "left", "h")
FIRST, LAST = ("g", "home"), ("G", "end")
SCROLL = {"j": 1, "down": 1, "k": -1, "up": -1}
PAGE = {"page down": 1, "page up": -1}
EPISODE = {"]": 1, "[": -1}
QUIT = ("q", END_OF_INPUT)


class Showing(NamedTuple):
    """One episode that is being looked at.

    Attributes:
        title: what tells it from the others.
        record: the episode.
        replayed: its replay; ``None`` where its responses don't fit the game.
        warning: what the reader must know of the replay; ``""`` for nothing.
    """

    title: str
    record: Record
    replayed: Replay | None
    warning: str

    @classmethod
    def of(cls, title: str, record: Record, scenario: Scenario) -> "Showing":
        """Play the episode again."""
        agents = " against ".join(record["agents"].values())
        title = printable(f"{record['scenario']}, seed {record['seed']}, {agents}{title}")
        try:
            replayed = replay(record, scenario)
        except ReplayError as error:
            return cls(title, record, None, f"the responses don't fit the game ({error}); boards can't be shown")
        if observations_digest(step.observation for step in replayed.steps) == record["observations_digest"]:
            return cls(title, record, replayed, "")
        changed = "the game's rules or texts have changed since this was played: boards may differ"
        return cls(title, record, replayed, changed)


class EpisodePicker:
    """The episodes of a folder that pass a filter, by number; only their places in the file are in memory.

    They are in the order of the run's scenarios, then of its agents, then of the seeds.

    Args:
        folder: where they are.
        agent, scenario, seed: what they must have, ``None`` for anything.
        failed: only episodes in which nobody succeeded.

    Raises:
        UsageError: an episode of a scenario that the run doesn't define.
    """

    def __init__(
        self, folder: RunFolder, agent: str | None, scenario: str | None, seed: int | None, failed: bool
    ) -> None:
        self.folder = folder
        plan = Plan.from_manifest(folder.manifest)
        self.scenarios = plan.scenarios
        rank = {name: place for place, name in enumerate([*plan.scenarios, *plan.agents])}
        found = []
        for key, (offset, _) in folder.index().items():
            if key.scenario not in plan.scenarios:
                raise UsageError(f"{folder.path} has an episode of {key.scenario!r}, which its manifest doesn't define")
            wanted = (agent is None or agent in key.agents) and (scenario is None or scenario == key.scenario)
            if wanted and (seed is None or seed == key.seed):
                agents = [rank.get(name, len(rank)) for name in key.agents]
                found.append((rank[key.scenario], agents, key.seed, offset))
        self._offsets = [offset for *_, offset in sorted(found)]
        if failed:
            self._offsets = [o for o in self._offsets if not any(self._read(o)["successes"].values())]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._offsets)

    def showing(self, number: int) -> Showing:
        """The episode with this number, from 1."""
        record = self._read(self._offsets[number - 1])
        return Showing.of(f" (episode {number} of {self.count})", record, self.scenarios[record["scenario"]])

    def _read(self, offset: int) -> Record:
        with self.folder.episodes_path.open("rb") as file:
            file.seek(offset)
            return parse_line(Redactor.from_environment().scrub_bytes(file.readline()))


# ---------------------------------------------------------------- what there is to say


def place(record: Record, index: int) -> Text:
    """Which step this is, and whose."""
    step = record["steps"][index]
    who = f" {step['player']} ({record['agents'][step['player']]})" if len(record["agents"]) > 1 else ""
    return Text(printable(f"round {step['round'] + 1}{who}"), style="bold")


def move(record: Record, replayed: Replay | None, index: int) -> Text:
    """What a step's response did: the action, what happened and why, the reward, the return so far."""
    step = record["steps"][index]
    if step["valid"]:
        done = f"action {step['action']}, valid"
    else:
        done = f"invalid response ({step.get('unreadable')}), {step['action'] or 'nothing'} was executed instead"
    happened = replayed.steps[index].happened if replayed else ""
    so_far = sum(s["reward"] for s in record["steps"][: index + 1] if s["player"] == step["player"])
    scored = f"reward {step['reward']:+g}   return so far {so_far:g}"
    return Text(printable("   ".join(filter(None, (done, happened, scored)))), style="" if step["valid"] else "red")


def outcome(record: Record, replayed: Replay | None) -> list[Text]:
    """How the episode ended and why, and everybody's return."""
    rounds = 1 + max((step["round"] for step in record["steps"]), default=-1)
    lines = [Text(printable(f"after {rounds} round{'s'[: rounds != 1]} the episode {ending(record, replayed)}"))]
    if record["error"] is not None:
        return [*lines, Text(printable(f"unscored: {record['error']}"), style="red")]
    lines[0].stylize("bold")
    for player, agent in record["agents"].items():
        success = ", success" if record["successes"][player] else ""
        lines.append(Text(printable(f"{agent}: return {record['returns'][player]:g}{success}")))
    return lines


def spaced(board: str) -> Text:
    """A board's cells apart from each other, which makes them about square."""
    return Text("\n".join(" ".join(row) for row in printable(board).splitlines()))


def response_text(record: Record, index: int) -> Text:
    """The response as it was given, or in its place that it was empty."""
    response = record["steps"][index]["response"]
    return Text(printable(response)) if response.strip() else Text("(empty)", style="dim")


# ---------------------------------------------------------------- printed as a whole


def print_episode(picker: EpisodePicker, number: int) -> None:
    """The whole episode, one step below the other."""
    console = stdout_console()
    showing = picker.showing(number)
    record, replayed = showing.record, showing.replayed
    console.print(Rule(Text(showing.title)))
    if showing.warning:
        console.print(Text(showing.warning, style="yellow"))
    for index in range(len(record["steps"])):
        console.print(place(record, index))
        if replayed:
            grid = Table.grid(padding=(0, 4))
            observation = Text(printable(replayed.steps[index].observation), style="dim")
            grid.add_row(spaced(replayed.steps[index].board), observation)
            console.print(grid)
        console.print(Panel(response_text(record, index), title="response", title_align="left"))
        console.print(move(record, replayed, index))
    console.print(Text("end", style="bold"))
    if replayed:
        console.print(spaced(replayed.end.board))
    console.print(Group(*outcome(record, replayed)))


# ---------------------------------------------------------------- step by step


class View(NamedTuple):
    """What there is to see of one step, or of the end.

    Attributes:
        head: which step it is and what its action did.
        board: the board, an empty text for games without one.
        scrolling: what may be long: the response and the observation, or how the episode ended.
    """

    head: list[Text]
    board: Text
    scrolling: list[Text]


def view(showing: Showing, index: int) -> View:
    """The step with this index, or the end for the number of steps."""
    record, replayed = showing.record, showing.replayed
    last = len(record["steps"])
    head = [Text(showing.title, style="reverse")]
    if showing.warning:
        head.append(Text(showing.warning, style="yellow"))
    if index < last:
        head += [Text.assemble(f"step {index + 1} of {last}: ", place(record, index)), move(record, replayed, index)]
        scrolling = [Text("response", style="bold"), response_text(record, index)]
        title, read = "what the player read", replayed.steps[index].observation if replayed else ""
        board = replayed.steps[index].board if replayed else ""
    else:
        how, *results = outcome(record, replayed)
        head.append(Text.assemble("end: ", how))
        scrolling = results
        title = "the last observation, answered by nobody"
        read = next(iter(replayed.end.observations.values()), "") if replayed else ""
        board = replayed.end.board if replayed else ""
    if read:
        scrolling += [Text(), Text(title, style="bold"), Text(printable(read), style="dim")]
    return View(head, spaced(board), scrolling)


class Frame(NamedTuple):
    """What one screen shows, and how far it can be scrolled.

    Attributes:
        lines: exactly as many as the terminal has.
        page: how many of them scroll.
        furthest: the most lines that it can be scrolled down by.
    """

    lines: list[Text]
    page: int
    furthest: int


def frame(console: Console, seen: View, scroll: int, width: int, height: int) -> Frame:
    """Lay out a view for a terminal, so that everything can be read in it.

    The head and the board stand still. Where the terminal is too small for that, they are scrolled as well.

    Args:
        console: what measures texts.
        seen: what to show.
        scroll: by how many lines the scrolling part is moved down.
        width, height: the terminal's size in characters.
    """

    def wrapped(texts: list[Text], columns: int = width) -> list[Text]:
        return [line for text in texts for line in text.wrap(console, columns, overflow="fold")]

    keys = "  ".join(item.replace(" ", "\N{NO-BREAK SPACE}") for item in KEYS)  # no key is parted from what it does
    hints = [Text(line.replace("\N{NO-BREAK SPACE}", " "), style="dim") for line in textwrap.wrap(keys, width)]
    head, board, scrolling = wrapped(seen.head), wrapped([seen.board]) if seen.board else [], seen.scrolling
    room = height - len(head) - len(hints) - 1
    left = max((line.cell_len for line in board), default=-3) + 3
    if len(board) > room or left > width - 20:
        scrolling = [*board, Text(), *scrolling]
        board, left = [], 0
    if room < 4:
        scrolling = [*head, Text(), *scrolling]
        head, room = [], height - len(hints) - 1
    pane = wrapped(scrolling, width - left)
    furthest = max(0, len(pane) - room)
    scroll = min(scroll, furthest)
    shown = pane[scroll : scroll + room]
    body = []
    for row in range(room):
        cells = board[row].plain if row < len(board) else ""
        body.append(Text.assemble(set_cell_size(cells, left), shown[row] if row < len(shown) else ""))
    position = f"lines {scroll + 1} to {scroll + len(shown)} of {len(pane)}" if furthest else ""
    return Frame([*head, *body, Text(position.rjust(width), style="dim"), *hints], room, furthest)


def step_through(picker: EpisodePicker, number: int) -> int:
    """Show one step at a time until ``q``; returns the exit code.

    Raises:
        UsageError: the terminal is too small.
    """
    console = Console(highlight=False)
    width, height = console.size
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        raise UsageError(
            f"the terminal has {width} columns and {height} lines; stepping through an episode takes at least "
            f"{MIN_WIDTH} and {MIN_HEIGHT}: make it larger, or print the episode with --plain"
        )
    showing, index, scroll = picker.showing(number), 0, 0
    with Keyboard() as keyboard, console.screen(hide_cursor=True) as screen:
        while True:
            last = len(showing.record["steps"])
            size = console.size
            shown = frame(console, view(showing, index), scroll, *size)
            screen.update(Group(*shown.lines))
            key = keyboard.read(seconds=0.3)
            while key is None and console.size == size:  # a terminal of a new size is drawn anew
                key = keyboard.read(seconds=0.3)
            before = number, index
            if key in QUIT:
                return 0
            if key in NEXT:
                index = min(index + 1, last)
            elif key in BACK:
                index = max(index - 1, 0)
            elif key in FIRST + LAST:
                index = 0 if key in FIRST else last
            elif key in EPISODE:
                number, index = max(1, min(picker.count, number + EPISODE[key])), 0
            elif key in SCROLL or key in PAGE:
                by = SCROLL[key] if key in SCROLL else PAGE[key] * max(1, shown.page - 1)
                scroll = max(0, min(shown.furthest, scroll + by))
            if before[0] != number:
                showing = picker.showing(number)
            if before != (number, index):
                scroll = 0
