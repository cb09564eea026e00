"""Writing files and folders so that a crash leaves the old one or the new one, never half of one."""

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM}


@contextmanager
def replacing(file: Path, mode: str = "w", *, through_links: bool = False) -> Iterator[IO[Any]]:
    """Open a draft beside ``file`` for writing; at the end of the block it takes the file's place.

    An error in the block leaves the old file as it was. The draft is synced to the device before it is renamed, since
    some file systems would otherwise keep the new name and lose the content in a power cut. ``mode`` is ``"w"`` for
    UTF-8 text, or ``"wb"`` for bytes. A link is replaced itself, as one in a stranger's folder may lead anywhere; with
    ``through_links`` it stays, and what it leads to is replaced.

    Raises:
        OSError: the disk is full, the folder can't be written, or ``file`` is a device or a pipe.
    """
    if through_links:
        file = Path(os.path.realpath(file))
    if file.exists() and not (file.is_file() or file.is_dir() or file.is_symlink()):
        raise OSError(errno.EINVAL, "it is a device or a pipe, and what is accepted is a file", str(file))
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with draft.open(mode, encoding=None if "b" in mode else "utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
    except BaseException as error:
        draft.unlink(missing_ok=True)
        refused = _refused(error)
        if refused is not None and refused is not error:
            raise refused from error
        raise


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Give the path of an empty draft folder; at the end of the block it takes the place of ``folder``.

    An error in the block leaves the old folder as it was, and nothing of the draft.

    Raises:
        OSError: the disk is full, or the parent folder can't be written.
    """
    draft = folder.with_name(f".writing-{folder.name}")
    shutil.rmtree(draft, ignore_errors=True)  # a process that was killed left it
    draft.mkdir(parents=True)
    try:
        yield draft
        for path in [*draft.rglob("*"), draft]:
            sync(path)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)  # on a full disk it would take what the next attempt needs
        refused = _refused(error)
        if refused is not None and refused is not error:
            raise refused from error
        raise
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


def check_writable(folder: Path) -> None:
    """Find out whether a folder can be made here, or written to, before anything is computed that should go there.

    Raises:
        OSError: it can't; with the path that stands in the way.
    """
    place = folder.expanduser().absolute()
    while not _is_there(place):
        place = place.parent
    try:  # an access right is not the whole truth (a read-only device, a quota, the superuser), so something is written
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"1")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(place)) from None


def _is_there(path: Path) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def reason_of(error: Exception) -> str:
    """Why a file can't be used, without its name: the sentence around it has that."""
    return str(getattr(error, "strerror", None) or error)


def refusal(error: OSError) -> str:
    """What the operating system refused, as a sentence: the file, and why."""
    if error.strerror is None:
        return str(error) or type(error).__name__
    about = f"can't use {error.filename}" if error.filename is not None else "the operating system refused"
    return f"{about}: {error.strerror}"


def _refused(raised: BaseException) -> OSError | None:
    """What the operating system refused, where that is behind an error.

    Libraries say a full disk in their own ways: torch ``unexpected pos 576 vs 534``, with the reason in the error's
    context, and safetensors ``I/O error: No space left on device (os error 28)``.
    """
    error: BaseException | None = raised if isinstance(raised, Exception) else None  # Ctrl-C is Ctrl-C
    while error is not None:
        if isinstance(error, OSError) and error.errno in _DISK:
            return error
        if number := re.search(r"\(os error (\d+)\)", str(error)):
            return OSError(int(number[1]), os.strerror(int(number[1])))
        error = error.__cause__ or error.__context__
    return None
