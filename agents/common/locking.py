"""One writer per folder: an operating-system lock, which a killed process can't leave behind."""

import os
import sys
from pathlib import Path
from typing import Self

from agents.common.toml import Refusal

LOCK_NAME = ".lock"


NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # Windows has none
"""For files of a folder that are written: a link in a folder from elsewhere mustn't lead to a file of the user's."""


def strangers(folder: Path, file: str) -> list[str]:
    """The names in a folder, sorted, of what is neither its lock nor a draft of ``file`` that a killed process left."""
    names = (path.name for path in folder.iterdir())
    return sorted(name for name in names if name != LOCK_NAME and not name.startswith(f".{file}."))


class FolderLock:
    """Holds ``folder/.lock`` exclusively until :meth:`release` or the end of the process, however it ends.

    Raises:
        OSError: or what ``refusal`` makes of one sentence: another process holds it, or the folder can't be written.
    """

    def __init__(self, folder: Path, refusal: Refusal = OSError) -> None:
        path = folder / LOCK_NAME
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o644)
        except OSError as error:
            raise refusal(f"can't write in {folder}: {error.strerror}") from None
        try:
            _lock(self._file)
        except OSError:
            os.close(self._file)
            raise refusal(
                f"{folder} is in use by another textbench process; wait for it, or choose another folder"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let others in. The file stays: removing it would let two processes lock two different files."""
        os.close(self._file)


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
