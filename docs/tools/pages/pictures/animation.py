"""Animated pictures of play: SVG whose frames are shown in turn by style sheets alone.

They are crisp at every size, have light and dark colours of their own, weigh some kilobytes, and stand still on their
last frame for those who have asked their system for less motion. No script runs, so they move inside ``<img>``, too.
"""

from collections import Counter
from collections.abc import Sequence
from html import escape
from textwrap import wrap

from pages.pictures.playing import Play, scenario_of

WIDTH = 350  # of a panel, in pixels
PADDING = 14
BOARD = WIDTH - 2 * PADDING
LINE = 17  # height of a line of text
COLUMNS = 42  # of text in a panel: 0.6 of the size each
MOST_ROWS = 17  # of text; of a longer one the middle is left out
MOST_CELL = 40
TOP = 58  # where the board begins
BLANK = " ._"  # marks of cells with nothing in them: no letter is drawn
LONGEST = 24.0  # seconds, of all frames together
STARTED = 0.05  # seconds that have passed when a picture appears, so that it never begins between two frames
HOLD = 2.5  # seconds that the last frame stays

STYLE = """
text{font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#24292f;white-space:pre}
.t{font-weight:700;font-size:15px}.m{fill:#57606a}.c{text-anchor:middle;dominant-baseline:central}
.k{fill:#fff;stroke:#d0d7de}.n{fill:#eaeef2}.e{fill:#fff}.d{fill:#111}.f{visibility:hidden}.l{visibility:visible}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#9aa4af}.k{fill:#161b22;stroke:#30363d}.n{fill:#30363d}}
.c.e{fill:#fff}.c.d{fill:#111}
@media(prefers-reduced-motion:reduce){.f{animation:none!important}}
"""


def pictures(plays: Sequence[Play], titles: Sequence[tuple[str, str]]) -> list[str]:
    """Return a picture for each play, of the same size and pace; ``titles`` are a name and a line below it."""
    return [_svg([panel], [title]) for panel, title in zip(_panels(plays, titles), titles, strict=True)]


def side_by_side(plays: Sequence[Play], titles: Sequence[tuple[str, str]]) -> str:
    """Draw one picture of several plays."""
    return _svg(_panels(plays, titles), titles)


def _svg(panels: Sequence["_Panel"], titles: Sequence[tuple[str, str]]) -> str:
    height, width = panels[0].height, len(panels) * WIDTH + (len(panels) - 1) * PADDING
    label = escape("; ".join(f"{name}: {about}" for name, about in titles))
    style = STYLE + "".join(panel.style for panel in panels)
    drawn = "".join(
        f'<g transform="translate({index * (WIDTH + PADDING)} 0)">{panel.drawing()}</g>\n'
        for index, panel in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:g}" viewBox="0 0 {width} {height:g}" '
        f'role="img" aria-label="{label}">\n<style>{style}</style>\n{drawn}</svg>\n'
    )


def _panels(plays: Sequence[Play], titles: Sequence[tuple[str, str]]) -> list["_Panel"]:
    """Lay out the panels of plays that are looked at together: one pace, one size."""
    pace = min(1.0 if all(one.has_board for one in plays) else 1.6, LONGEST / max(len(one.frames) for one in plays))
    seconds = max(len(one.frames) for one in plays) * pace + HOLD
    panels = [
        _Panel(play, title, pace, seconds, letter) for play, title, letter in zip(plays, titles, "ab", strict=False)
    ]
    view, lines, key = (max(getattr(panel, name) for panel in panels) for name in ("view", "lines", "key_lines"))
    for panel in panels:
        panel.view, panel.lines, panel.key_lines = view, lines, key
    return panels


class _Panel:
    """One play in a picture.

    Args:
        play: what is shown.
        title: a name, and a line below it.
        pace: seconds of a frame.
        seconds: of the whole picture.
        letter: what its style's names begin with.

    Attributes:
        view: height of the board or the text, in pixels.
        lines: of text on what was done in a round.
        key_lines: of the key to the marks.
    """

    def __init__(self, play: Play, title: tuple[str, str], pace: float, seconds: float, letter: str) -> None:
        self._play, self._title, self._letter = play, title, letter
        self._pace, self._seconds = pace, seconds
        game = scenario_of(play.scenario).game()
        self._palette = game.palette
        self._doing = [[line for text in frame.doing for line in wrap(text, COLUMNS)] for frame in play.frames]
        self._texts = [] if play.has_board else [_shortened(frame.rows) for frame in play.frames]
        self._key: list[str] = []
        if play.has_board:
            rows, columns = len(play.frames[0].rows), len(play.frames[0].rows[0])
            self._cell = min(MOST_CELL, BOARD // columns, 320 // rows)
            met = {mark for frame in play.frames for row in frame.rows for mark in row if mark not in BLANK}
            told = [f"{mark}\xa0{what}".replace(" ", "\xa0") for mark, what in game.legend.items() if mark in met]
            self._key = wrap("  ".join(told), COLUMNS)
        self.view = rows * self._cell if play.has_board else max(map(len, self._texts)) * LINE
        self.lines, self.key_lines = max(map(len, self._doing)), len(self._key)

    @property
    def _below(self) -> float:
        return TOP + self.view + 24

    @property
    def _last_line(self) -> float:
        return self._below + self.lines * LINE

    @property
    def height(self) -> float:
        return self._last_line + 16 + (self.key_lines * LINE + 6 if self.key_lines else 0)

    @property
    def style(self) -> str:
        """The key frames of an ordinary frame and of the last one."""
        count, letter = len(self._play.frames), self._letter
        share = 100 * self._pace / self._seconds
        rest = 100 - share * (count - 1)
        return (
            f"@keyframes {letter}{{0%{{visibility:visible}}{share:.4g}%,to{{visibility:hidden}}}}"
            f"@keyframes {letter}z{{0%{{visibility:visible}}{rest:.4g}%,to{{visibility:hidden}}}}"
            f".{letter}{{animation:{letter} {self._seconds:.4g}s steps(1,end) infinite}}"
            f".{letter}z{{animation-name:{letter}z}}\n"
        )

    def drawing(self) -> str:
        name, about = self._title
        parts = [
            f'<rect class="k" x=".5" y=".5" width="{WIDTH - 1}" height="{self.height - 1:g}" rx="8"/>',
            _text(PADDING, 24, name, "t"),
            _text(PADDING, 43, about, "m"),
        ]
        if self._play.has_board:
            usual = self._usual_board()
            parts.append(self._cells(usual, None))
        for index, frame in enumerate(self._play.frames):
            body = self._cells(frame.rows, usual) if self._play.has_board else self._text_rows(self._texts[index])
            body += "".join(
                _text(PADDING, self._below + number * LINE, line) for number, line in enumerate(self._doing[index])
            )
            body += _text(PADDING, self._last_line, f"Return so far: {frame.paid:.4g}", "m")
            last = index == len(self._play.frames) - 1
            classes = f"f {self._letter}" + (f" {self._letter}z l" if last else "")
            delay = index * self._pace - self._seconds - STARTED
            parts.append(f'<g class="{classes}" style="animation-delay:{delay:.4g}s">{body}</g>')
        first = self._last_line + LINE + 6
        parts += [_text(PADDING, first + number * LINE, line, "m") for number, line in enumerate(self._key)]
        return "\n".join(parts)

    def _usual_board(self) -> tuple[str, ...]:
        """Return what stands in each cell most of the time: drawn once, so that a frame has only what differs."""
        boards = [frame.rows for frame in self._play.frames]
        return tuple(
            "".join(Counter(board[row][column] for board in boards).most_common(1)[0][0] for column in range(len(line)))
            for row, line in enumerate(boards[0])
        )

    def _cells(self, board: tuple[str, ...], beneath: tuple[str, ...] | None) -> str:
        """Return the cells that differ from those beneath: a shape for each mark, and its letters in one text."""
        size = self._cell
        left = PADDING + (BOARD - size * len(board[0])) // 2
        places: dict[str, list[tuple[int, int]]] = {}
        for row, line in enumerate(board):
            for column, mark in enumerate(line):
                if beneath is None or beneath[row][column] != mark:
                    places.setdefault(mark, []).append((left + column * size, TOP + row * size))
        parts = []
        for mark, corners in places.items():
            colour = self._palette.get(mark)
            fill = f'fill="#{bytes(colour).hex()}"' if colour else 'class="n"'
            tile = f"h{size - 1}v{size - 1}h{1 - size}z"
            parts.append(f'<path {fill} d="{"".join(f"M{x} {y}{tile}" for x, y in corners)}"/>')
            if mark not in BLANK:
                ink = "" if colour is None else (" d" if _is_light(colour) else " e")
                xs = " ".join(str(x + size // 2) for x, _ in corners)
                ys = " ".join(str(y + size // 2) for _, y in corners)
                parts.append(f'<text class="c{ink}" x="{xs}" y="{ys}">{escape(mark * len(corners))}</text>')
        return "".join(parts)

    def _text_rows(self, rows: Sequence[str]) -> str:
        return "".join(_text(PADDING, TOP + 12 + number * LINE, row) for number, row in enumerate(rows) if row)


def _text(x: float, y: float, text: str, classes: str = "") -> str:
    named = f' class="{classes}"' if classes else ""
    return f'<text{named} x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _is_light(colour: Sequence[int]) -> bool:
    red, green, blue = colour
    return 0.299 * red + 0.587 * green + 0.114 * blue > 140


def _shortened(rows: Sequence[str]) -> list[str]:
    """Lines as they fit into a panel; of many the first and the last ones."""
    lines = [line for row in rows for line in (wrap(row, COLUMNS, subsequent_indent="  ") or [""])]
    if len(lines) <= MOST_ROWS:
        return lines
    return [*lines[:4], "...", *lines[5 - MOST_ROWS :]]
