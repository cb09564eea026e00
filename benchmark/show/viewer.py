"""An episode for the eyes, in the terminal: printed as a whole, or step by step with keys."""

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import set_cell_size
from rich.console import Console, Group
from rich.rule import Rule
from rich.text import Text

from agents.common.console import PlainConsole, plain_text
from agents.common.interrupt import kills_interrupt
from agents.common.keys import END_OF_INPUT, Keyboard
from agents.episode import Episode, Step
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Plan, num_players
from benchmark.runs.replay import Replay, ReplayError, ending, replay, shows_what_was_seen
from benchmark.score.move_losses import ALL, Decision, MoveLosses, folder_losses
from benchmark.show.draw import stdout_console
from benchmark.show.table import number
from textgames.scenarios import Scenario

MIN_WIDTH, MIN_HEIGHT = 40, 12  # the smallest terminal, in characters, that an episode can be stepped through in
KEYS = ("n next", "p back", "g G first/last", "w worst", "[ ] episode", "j k PgDn PgUp scroll", "q quit")

NEXT, BACK = ("n", " ", "enter", "right", "l"), ("p", "backspace", "left", "h")
FIRST, LAST = ("g", "home"), ("G", "end")
WORST = "w"
SCROLL = {"j": 1, "down": 1, "k": -1, "up": -1}
PAGE = {"page down": 1, "page up": -1}
EPISODE = {"]": 1, "[": -1}
QUIT = ("q", END_OF_INPUT)


class Showing(NamedTuple):
    """One episode as the viewer shows it: its title, what was recorded, and what its replay gave."""

    title: str
    record: Episode
    replayed: Replay | None  # None if the responses don't fit the game
    warning: str = ""  # what the reader must know of the replay; "" for nothing
    decisions: Sequence[Decision] = ()  # one a step, if the game has exact values

    @classmethod
    def of(cls, title: str, record: Episode, scenario: Scenario, losses: MoveLosses | None = None) -> "Showing":
        agents = " against ".join(record.agents.values())
        title = f"{record.scenario}, seed {record.seed}, {agents}{title}"
        try:
            replayed = replay(record, scenario)
        except ReplayError as error:
            return cls(title, record, None, f"the responses don't fit the game ({error}); boards can't be shown")
        if shows_what_was_seen(replayed, record):
            return cls(title, record, replayed, "", losses.of_replay(replayed) if losses else ())
        changed = "the game's rules or texts have changed since this was played: boards may differ"
        return cls(title, record, replayed, changed)

    @property
    def worst(self) -> int:
        """The index of the step that lost the most value; the first one if none is known to have lost any."""
        lost = [decision.lost for decision in self.decisions]
        return lost.index(max(lost)) if lost else 0


class EpisodePicker:
    """The episodes of a folder that pass a filter, by number, in the order of scenarios, agents and seeds.

    ``None`` stands for any agent, scenario or seed; ``failed`` asks for episodes in which no player succeeded, and
    ``worst`` for those whose value lost is known, within each scenario in the order of what the agent lost, or all did.
    """

    def __init__(
        self,
        folder: RunFolder,
        agent: str | None,
        scenario: str | None,
        seed: int | None,
        failed: bool,
        worst: bool = False,
    ) -> None:
        self.folder = folder
        plan = Plan.from_manifest(folder.manifest)
        self.scenarios = plan.scenarios
        self._losses: dict[str, MoveLosses | None] = {}
        scenarios, agents = list(plan.scenarios), list(plan.agents)
        found = []
        for key, (offset, _) in folder.index().items():
            wanted = (agent is None or agent in key.agents) and (scenario is None or scenario == key.scenario)
            if wanted and (seed is None or seed == key.seed):
                seats = [agents.index(name) if name in agents else len(agents) for name in key.agents]
                found.append((scenarios.index(key.scenario), seats, key.seed, offset))
        self._offsets = [offset for *_, offset in sorted(found)]
        if failed:
            pairs = zip(self._offsets, folder.records_at(self._offsets), strict=True)
            self._offsets = [offset for offset, record in pairs if not any(record.successes.values())]
        if worst:
            self._put_worst_first(agent)

    def _put_worst_first(self, agent: str | None) -> None:
        names = list(self.scenarios)
        known = folder_losses({name: one for name in names if (one := self.losses(name)) is not None}, self.folder)
        lost = []
        for offset, record in zip(self._offsets, self.folder.records_at(self._offsets), strict=True):
            told = (known[record.scenario].of(record) if record.scenario in known else None) or {}
            seats = [player for player in told if agent in (None, record.agents[player])]
            if seats:
                lost.append((names.index(record.scenario), -sum(told[seat][ALL][0] for seat in seats), offset))
        for found in known.values():
            found.keep()
        self._offsets = [offset for *_, offset in sorted(lost, key=lambda one: one[:2])]

    def losses(self, scenario: str) -> MoveLosses | None:
        """Return the finder of values lost in a scenario; ``None`` if its values aren't known exactly."""
        if scenario not in self._losses:
            one = self.scenarios[scenario]
            self._losses[scenario] = MoveLosses.of(one, players=num_players(one))
        return self._losses[scenario]

    @property
    def count(self) -> int:
        return len(self._offsets)

    def showing(self, number: int) -> Showing:
        """Return the episode with this number, from 1."""
        (record,) = self.folder.records_at(self._offsets[number - 1 : number])
        title, name = f" (episode {number} of {self.count})", record.scenario
        return Showing.of(title, record, self.scenarios[name], self.losses(name))


def move(showing: Showing, index: int) -> Text:
    """Return the effect of a step's response: the action, what happened and why, the reward, the return so far.

    If values are known, the value that the action lost comes last, with actions that would have lost none.
    """
    record, replayed, step = showing.record, showing.replayed, showing.record.steps[index]
    if step.valid:
        done = f"action {step.action}, valid"
    else:
        done = f"invalid response ({step.unreadable}), {step.action or 'nothing'} was executed instead"
    happened = replayed.happened(replayed.steps[index]) if replayed else ""
    so_far = sum(s.reward for s in record.steps[: index + 1] if s.player == step.player)
    scored = f"reward {step.reward:+g}   return so far {so_far:g}"
    lost = ""
    if showing.decisions:
        decision = showing.decisions[index]
        better = f", best: {decision.best}" if decision.best != step.action else ""
        lost = f"value lost {number(decision.lost, '.3g')}{better}"
    return Text("   ".join(filter(None, (done, happened, scored, lost))), style="" if step.valid else "red")


def outcome(showing: Showing) -> list[Text]:
    """Return how the episode ended and why, and all returns."""
    record, replayed = showing.record, showing.replayed
    rounds = 1 + max((step.index for step in record.steps), default=-1)
    lines = [Text(f"after {rounds} round{'s'[: rounds != 1]} the episode {ending(record, replayed)}")]
    if record.error is not None:
        return [*lines, Text(f"unscored: {record.error}", style="red")]
    lines[0].stylize("bold")
    for player, agent in record.agents.items():
        success = ", success" if record.successes[player] else ""
        own = [decision.lost for decision in showing.decisions if decision.player == player]
        lost = f", value lost {number(sum(own), '.3g')}" if own else ""
        lines.append(Text(f"{agent}: return {record.returns[player]:g}{success}{lost}"))
    return lines


def spaced(board: str) -> Text:
    """Return a board's cells apart from each other, which makes them about square."""
    return Text("\n".join(" ".join(row) for row in board.splitlines()))


def response_text(step: Step) -> Text:
    """Return the response as it was given, below those that were refused."""
    lines: list[Text] = []
    for turn, unreadable in step.answers:
        lines.append(Text(turn.response) if turn.response.strip() else Text("(empty)", style="dim"))
        if turn is not step.turn:
            lines.append(Text(f"refused ({unreadable}), asked again:", style="red"))
    return Text("\n").join(lines)


class View(NamedTuple):
    """The parts of one step's screen, or of the screen at the end of the episode."""

    head: list[Text]  # which step it is, and what its action did
    board: Text  # an empty text for games without one
    scrolling: list[Text]  # what may be long: reasoning, response, observation


def view(showing: Showing, index: int) -> View:
    """Return the step with this index, or the end for the number of steps."""
    record, replayed = showing.record, showing.replayed
    last = len(record.steps)
    head = [Text(showing.title, style="reverse")]
    if showing.warning:
        head.append(Text(showing.warning, style="yellow"))
    state = replayed and (*(step.state for step in replayed.steps), replayed.episode.end_state)[index]
    board = replayed.board(state) if replayed else ""
    if index < last:
        step = record.steps[index]
        who = f" {step.player} ({record.agents[step.player]})" if len(record.agents) > 1 else ""
        place = Text.assemble(f"step {index + 1} of {last}: ", (f"round {step.index + 1}{who}", "bold"))
        head += [place, move(showing, index)]
        thought = Text(step.turn.reasoning, style="dim")  # which the game never reads
        scrolling = [Text("reasoning", style="bold"), thought, Text()] if step.turn.reasoning.strip() else []
        scrolling += [Text("response", style="bold"), response_text(step)]
        title, read = "what the player read", replayed.steps[index].observation if replayed else ""
    else:
        how, *scrolling = outcome(showing)
        head.append(Text.assemble("end: ", how))
        title = "the last observation, which has no answer"
        read = next(iter(replayed.final_observations.values()), "") if replayed else ""
    if read:
        scrolling += [Text(), Text(title, style="bold"), Text(read, style="dim")]
    return View(head, spaced(board), scrolling)


def print_episode(picker: EpisodePicker, number: int) -> None:
    """Print the whole episode, one step below the other."""
    console, showing = stdout_console(), picker.showing(number)
    console.print(Rule(Text(showing.title)))
    if showing.warning:
        console.print(Text(showing.warning, style="yellow"))
    for index in range(len(showing.record.steps) + 1):
        head, board, scrolling = view(showing, index)
        shown = [board, Text()] if board else []
        console.print(Group(*head[1 + bool(showing.warning) :], Text(), *shown, *scrolling, Text()))


class Screen:
    """A view laid out for a terminal; head and board stand still, unless the terminal is too small for that.

    Attributes:
        page: how many lines scroll.
        furthest: the most lines that can be scrolled down by; 0 if everything fits.
    """

    def __init__(self, console: Console, seen: View, width: int, height: int) -> None:
        def wrapped(texts: list[Text], columns: int = width) -> list[Text]:
            return [line for text in texts for line in plain_text(text).wrap(console, columns, overflow="fold")]

        keys = "  ".join(item.replace(" ", "\N{NO-BREAK SPACE}") for item in KEYS)  # no key is parted from what it does
        hints = [line.replace("\N{NO-BREAK SPACE}", " ") for line in textwrap.wrap(keys, width)]
        head, board, scrolling = wrapped(seen.head), wrapped([seen.board]) if seen.board else [], seen.scrolling
        room = height - len(head) - len(hints) - 1
        left = max((line.cell_len for line in board), default=-3) + 3
        if len(board) > room or left > width - 20:
            scrolling = [*board, Text(), *scrolling]
            board, left = [], 0
        if room < 4:
            scrolling = [*head, Text(), *scrolling]
            head, room = [], height - len(hints) - 1
        self._head, self._hints, self._width = head, hints, width
        self._board = [set_cell_size(board[row].plain if row < len(board) else "", left) for row in range(room)]
        self._scrolling = wrapped(scrolling, width - left)
        self.page, self.furthest = room, max(0, len(self._scrolling) - room)

    def lines(self, scroll: int) -> list[Text]:
        """Return all of the terminal's lines, scrolled down by ``scroll``."""
        shown = self._scrolling[scroll : scroll + self.page]
        beside = [*shown, *[Text()] * (self.page - len(shown))]
        body = [Text.assemble(*row) for row in zip(self._board, beside, strict=True)]
        place = f"lines {scroll + 1} to {scroll + len(shown)} of {len(self._scrolling)}" if self.furthest else ""
        below = [place.rjust(self._width), *self._hints]
        return [*self._head, *body, *(Text(line, style="dim") for line in below)]


def step_through(picker: EpisodePicker, number: int, *, worst: bool = False) -> int:
    """Show one step at a time until ``q``, at first an episode's first or ``worst`` step; returns the exit code."""
    console = PlainConsole()
    width, height = console.size
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        raise UsageError(
            f"the terminal has {width} columns and {height} lines; stepping through an episode takes at least "
            f"{MIN_WIDTH} and {MIN_HEIGHT}: make it larger, or print the episode with --plain"
        )
    showing, scroll = picker.showing(number), 0
    index = showing.worst if worst else 0
    with kills_interrupt(), Keyboard() as keyboard, console.screen(hide_cursor=True) as terminal:
        while True:
            size = console.size
            # a terminal that was made too small meanwhile shows a part of the smallest screen
            screen = Screen(console, view(showing, index), max(size.width, MIN_WIDTH), max(size.height, MIN_HEIGHT))
            scroll = min(scroll, screen.furthest)
            terminal.update(Group(*screen.lines(scroll)))
            key = keyboard.read(seconds=0.3)
            while key is None and console.size == size:  # a terminal of a new size is drawn anew
                key = keyboard.read(seconds=0.3)
            if key in QUIT:
                return 0
            last = len(showing.record.steps)
            shown = number, index
            if key in NEXT:
                index = min(index + 1, last)
            elif key in BACK:
                index = max(index - 1, 0)
            elif key in FIRST + LAST:
                index = 0 if key in FIRST else last
            elif key == WORST:
                index = showing.worst
            elif key in EPISODE:
                number = max(1, min(picker.count, number + EPISODE[key]))
            elif key in SCROLL or key in PAGE:
                scroll += SCROLL[key] if key in SCROLL else PAGE[key] * (screen.page - 1)
                scroll = max(0, min(screen.furthest, scroll))
            if number != shown[0]:
                showing = picker.showing(number)
                index = showing.worst if worst else 0
            if (number, index) != shown:
                scroll = 0
