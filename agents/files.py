"""Writing files and folders so that a crash leaves the old one or the new one, never half of one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(file: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a draft beside ``file`` for writing; at the end of the block it takes the file's place.

    An error in the block leaves the old file as it was. The draft is synced to the device before it is renamed, since
    some file systems would otherwise keep the new name and lose the content in a power cut. ``mode`` is ``"w"`` for
    UTF-8 text, or ``"wb"`` for bytes.

    Raises:
        OSError: the disk is full, or the folder can't be written.
    """
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with draft.open(mode, encoding=None if "b" in mode else "utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Give the path of an empty draft folder; at the end of the block it takes the place of ``folder``.

    Raises:
        OSError: the disk is full, or the parent folder can't be written.
    """
    draft = folder.with_name(f".writing-{folder.name}")
    shutil.rmtree(draft, ignore_errors=True)  # a process that was killed left it
    draft.mkdir(parents=True)
    yield draft
    for path in [*draft.rglob("*"), draft]:
        sync(path)
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    sync(folder.parent)


def sync(path: Path) -> None:
    """Have the operating system put a file, or the names in a folder, on the device."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
