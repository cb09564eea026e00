"""A command in a real pseudo-terminal: keys go in, what it prints comes out."""

import contextlib
import os
import re
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from select import select
from typing import Any

import pytest

pty = pytest.importorskip("pty")

ROOT = Path(__file__).parents[1]
TEXTBENCH = [sys.executable, "-m", "benchmark.cli"]
UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
PAGE_UP, PAGE_DOWN = "\x1b[5~", "\x1b[6~"


class Terminal:
    """A process whose controlling terminal has this many columns and lines.

    Attributes:
        text: everything that was printed since the last key, without escape sequences.
    """

    def __init__(self, command: Sequence[str], columns: int = 80, lines: int = 24) -> None:
        import fcntl
        import termios

        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
        for name in ("COLUMNS", "LINES", "NO_COLOR", "HF_HUB_DISABLE_PROGRESS_BARS"):  # set in this process by a run
            environment.pop(name, None)
        self.file, slave = pty.openpty()
        self.resize(columns, lines)
        self.settings = termios.tcgetattr(slave)

        def take_the_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches the process

        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
            preexec_fn=take_the_terminal,
        )
        self._slave = slave
        self._printed = ""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._slave)
        os.close(self.file)

    def resize(self, columns: int, lines: int) -> None:
        import fcntl
        import termios

        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._printed.replace("\r\n", "\n"))

    @property
    def screen(self) -> list[str]:
        """The lines of the last full screen, which begins where the cursor was sent home."""
        last = self._printed.rpartition("\x1b[H")[2]
        return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in last.replace("\r", "").split("\n")]

    def wait_for(self, wanted: str, seconds: float = 30) -> str:
        """Read until ``wanted`` has been printed since the last key."""
        end = time.monotonic() + seconds
        while wanted not in self.text:
            assert time.monotonic() < end, f"no {wanted!r} in {self.text!r}"
            if select([self.file], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self._printed += os.read(self.file, 65536).decode(errors="replace")
        time.sleep(0.05)
        while select([self.file], [], [], 0.05)[0]:  # the rest of the same screen
            self._printed += os.read(self.file, 65536).decode(errors="replace")
        return self.text

    def press(self, keys: str, wanted: str) -> str:
        self._printed = ""
        os.write(self.file, keys.encode())
        return self.wait_for(wanted)

    def ends_with(self) -> int:
        """The exit code of the process, which must end by itself."""
        return self.process.wait(20)

    def was_put_back(self) -> bool:
        """Whether the terminal's settings are those from before the command."""
        import termios

        now: list[Any] = termios.tcgetattr(self._slave)
        return now == self.settings
