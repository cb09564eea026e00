"""Text on its way to a terminal: control characters in it are shown instead of obeyed.

A name, a response or a server's error may hold escape sequences that fill the clipboard or overwrite the screen.
:func:`plain_streams` wraps what is printed, and :class:`agents.common.console.PlainConsole` what rich draws.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

# Beside these, str.isprintable() refuses spaces of other scripts and the two joiners, which many texts need.
_PLAIN = re.compile("[\n\t\u00a0\u1680\u2000-\u200a\u200c\u200d\u202f\u205f\u3000]")
_REDRAWN = re.compile("(?:\x1b\\[A)+")


def printable(text: str) -> str:
    """Escape control and bidirectional characters as JSON does, so that a JSON document still means the same."""
    if text.isprintable() or _PLAIN.sub("", text).isprintable():
        return text
    return "".join(c if c.isprintable() or _PLAIN.match(c) else json.dumps(c)[1:-1] for c in text)


class PlainStream:
    """A text stream to which control characters are written as escapes.

    Progress bars of libraries redraw their line: a carriage return passes at the beginning of a line, if it overwrites
    nothing, and again on a line that was begun by one, as does the way back up to such a line.
    """

    def __init__(self, inner: TextIO) -> None:
        self.inner = inner
        self._line_begins, self._redrawn = True, False

    def write(self, text: str) -> int:
        if not text:
            return 0
        shown = text
        if not (self._redrawn and _REDRAWN.fullmatch(text) and not self._line_begins):
            returned = text.startswith("\r") and (self._redrawn or self._line_begins)
            self._redrawn = returned and "\n" not in text
            shown = f"\r{printable(text[1:])}" if returned else printable(text)
        self.inner.write(shown)
        self._line_begins = text.endswith("\n")
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@contextmanager
def plain_streams() -> Iterator[None]:
    """Let nothing that is printed in this context, or in a traceback that leaves it, control the terminal."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(plain, before)
    yield
    sys.stdout, sys.stderr = before


def plain(stream: Any) -> TextIO:
    """Wrap a stream in a :class:`PlainStream` unless it is one; ``None`` of a closed one stays."""
    return cast(TextIO, stream if stream is None or isinstance(stream, PlainStream) else PlainStream(stream))
