"""One writer per folder, by an operating-system lock that a killed process can't leave behind."""

from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from agents.common.files import check_folder, draft_of, restore
from agents.common.files import refusal as sentence
from agents.common.toml import Refusal

LOCK_NAME = ".lock"


def strangers(folder: Path, file: str) -> list[str]:
    """List the names in a folder, sorted, that are neither its lock nor a killed process's draft of ``file``."""
    return sorted(path.name for path in folder.iterdir() if path.name != LOCK_NAME and draft_of(path) != file)


class FolderLock:
    """Holds ``folder/.lock`` until :meth:`release` or the process's end, and clears drafts of killed processes away.

    An OSError, or what ``refusal`` makes of one sentence, is raised if another process holds it, the folder can't be
    written, or a link leads out of it.
    """

    def __init__(self, folder: Path, refusal: Refusal = OSError) -> None:
        # held by the process, not by one of its threads; the file stays, else two processes could lock two files
        self._lock = FileLock(folder / LOCK_NAME, timeout=0, thread_local=False)
        try:
            check_folder(folder)
            self._lock.acquire()
            # an inner folder with a lock of its own may be in use
            inner = [path for path in folder.iterdir() if path.is_dir() and not (path / LOCK_NAME).exists()]
            for place in (folder, *(path for path in inner if not path.is_symlink())):
                restore(place)
        except Timeout:
            raise refusal(
                f"{folder} is in use by another textbench process; wait for it, or choose another folder"
            ) from None
        except OSError as error:
            self.release()
            raise refusal(sentence(error)) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        self._lock.release()
