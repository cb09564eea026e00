"""One writer per folder: an operating-system lock, which a killed process can't leave behind."""

import os
import sys
from pathlib import Path
from typing import Self

from agents.common.files import NO_LINKS, check_folder, draft_of, restore
from agents.common.files import refusal as sentence
from agents.common.toml import Refusal

LOCK_NAME = ".lock"


def strangers(folder: Path, file: str) -> list[str]:
    """Return the names in a folder, sorted, of what is neither its lock nor a draft of ``file`` that a killed process
    left."""
    return sorted(path.name for path in folder.iterdir() if path.name != LOCK_NAME and draft_of(path) != file)


class FolderLock:
    """Holds ``folder/.lock`` exclusively until :meth:`release` or the end of the process, however it ends.

    What killed processes left in the folder is cleared away, as only the holder of the lock writes there.

    Raises:
        OSError: or what ``refusal`` makes of one sentence: another process holds it, the folder can't be written, or a
            link leads out of it (:func:`~agents.common.files.check_folder`).
    """

    def __init__(self, folder: Path, refusal: Refusal = OSError) -> None:
        try:
            check_folder(folder)
        except OSError as error:
            raise refusal(sentence(error)) from None
        try:
            self._file = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o644)
        except OSError as error:
            raise refusal(f"can't write in {folder}: {error.strerror}") from None
        try:
            _lock(self._file)
        except OSError:
            os.close(self._file)
            raise refusal(
                f"{folder} is in use by another textbench process; wait for it, or choose another folder"
            ) from None
        try:
            # an inner folder with a lock of its own may be in use
            inner = [path for path in folder.iterdir() if path.is_dir() and not (path / LOCK_NAME).exists()]
            for place in (folder, *(path for path in inner if not path.is_symlink())):
                restore(place)
        except OSError as error:
            self.release()
            raise refusal(sentence(error)) from None

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
