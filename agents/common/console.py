"""Consoles of rich that show the control characters of a text as escapes."""

import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderHook
from rich.file_proxy import FileProxy
from rich.segment import Segment
from rich.text import Text

from agents.common.terminal import PlainStream, plain, printable


class PlainConsole(Console):
    """Draws control characters as escapes and takes no text for markup."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"markup": False, "highlight": False, "emoji": False, **settings})

    @property
    def file(self) -> IO[str]:
        """The stream below, past those that make text plain: rich's own escape sequences have to pass."""
        file = super().file
        while isinstance(file, PlainStream | FileProxy):
            file = file.inner if isinstance(file, PlainStream) else file.rich_proxied_file
        return file

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def push_render_hook(self, hook: RenderHook) -> None:
        """Begin a live display, whose streams read escape sequences in what is printed: ours stand before them."""
        super().push_render_hook(hook)
        sys.stdout, sys.stderr = (plain(one) if isinstance(one, FileProxy) else one for one in (sys.stdout, sys.stderr))

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render to segments with plain texts; only segments of rich's own control the terminal."""
        if isinstance(renderable, Text):  # before it is laid out, so that lines and boxes fit
            renderable = plain_text(renderable)
        for text, style, control in super().render(renderable, options):
            if style is not None and style.link is not None:
                style = style.update_link(None)
            yield Segment(text if control else printable(text), style, control)


def plain_text(text: Text) -> Text:
    """Escape the control characters of a text of rich's; a text that had any loses the styles of its parts."""
    if (shown := printable(text.plain)) == text.plain:
        return text
    return Text(shown, text.style, justify=text.justify, overflow=text.overflow, no_wrap=text.no_wrap, end=text.end)
