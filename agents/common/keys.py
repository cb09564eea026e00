"""Single keys of a terminal, for playing and for stepping through a replay."""

import os
import re
import sys
from codecs import getincrementaldecoder
from collections import deque
from select import select
from typing import Any

END_OF_INPUT = "end of input"  # the key that stands for Ctrl-D and for a terminal that is gone

_SEQUENCES = {
    **{"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"},
    **{"1~": "home", "4~": "end", "5~": "page up", "6~": "page down"},
}
_CHARACTERS = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", "\x04": END_OF_INPUT}
_WINDOWS = {
    **{"H": "up", "P": "down", "M": "right", "K": "left"},
    **{"G": "home", "O": "end", "I": "page up", "Q": "page down"},
}
_KEY = re.compile(r"\x1b[\[O]([\d;]*[A-Za-z~])|(.)", re.DOTALL)
_UNFINISHED = re.compile(r"\x1b([\[O][\d;]*)?$")


class Keyboard:
    """The terminal on standard input, key by key; as a context manager it puts the terminal back afterwards.

    A key is the character that it types, or ``"up"``, ``"down"``, ``"left"``, ``"right"``, ``"home"``, ``"end"``,
    ``"page up"``, ``"page down"``, ``"enter"``, ``"backspace"`` or :data:`END_OF_INPUT`.
    """

    def __init__(self) -> None:
        self._pressed: deque[str] = deque()  # survives the end of the context: keys may be typed ahead
        self._decoder = getincrementaldecoder("utf-8")(errors="replace")
        self._unfinished = ""  # the beginning of a key that is sent as several characters
        self._settings: list[Any] = []

    def __enter__(self) -> "Keyboard":
        if sys.platform != "win32":
            import termios
            import tty

            self._settings = termios.tcgetattr(0)
            tty.setcbreak(0, termios.TCSADRAIN)  # the default, TCSAFLUSH, throws away what was typed ahead
        return self

    def __exit__(self, *exception: object) -> None:
        if sys.platform != "win32":
            import termios

            termios.tcsetattr(0, termios.TCSADRAIN, self._settings)

    def read(self, seconds: float | None = None) -> str | None:
        """Wait for a key, at most ``seconds``, and return it; ``""`` for keys without a name, ``None`` for no key."""
        if sys.platform == "win32":
            import msvcrt

            key = msvcrt.getwch()
            return _WINDOWS.get(msvcrt.getwch(), "") if key in "\0\xe0" else _CHARACTERS.get(key, key)
        while not self._pressed:
            if not select([0], [], [], seconds)[0]:
                return None
            # a slow line may deliver the three characters of an arrow key in pieces
            try:
                data = os.read(0, 1024)
            except OSError:  # the terminal's window was closed
                data = b""
            text = self._unfinished + (self._decoder.decode(data) if data else "\x04")
            piece = _UNFINISHED.search(text)
            self._unfinished = piece[0] if piece else ""
            text = text.removesuffix(self._unfinished)
            for sequence, character in _KEY.findall(text):
                name = _SEQUENCES.get(sequence, "") if sequence else _CHARACTERS.get(character, character)
                self._pressed.append(name)
        return self._pressed.popleft()
