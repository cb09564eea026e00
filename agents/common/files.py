"""Reading and writing in folders that may be a stranger's, so that a crash leaves the old content or the new one.

Runs, trainings and entries are folders that people send each other. A link in one may lead to any file of the reader's.
So :func:`check_folder` refuses links that lead out of a folder, :func:`member` and :func:`open_for_appending` open no
link and no pipe, and drafts have names that can't be foreseen.
"""

import ctypes
import errno
import os
import re
import secrets
import shlex
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM}
_DRAFT = re.compile(r"\.(.+)\.[0-9a-f]{16}\.(draft|old)")
_NO_FILE = "it is a device or a pipe; accepted: a file"
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


@contextmanager
def replacing(file: Path, mode: str = "w", *, through_links: bool = False) -> Iterator[IO[Any]]:
    """Open a draft beside ``file`` for writing; at the end of the block it takes the file's place.

    An error in the block leaves the old file as it was. The draft is synced first, since some file systems keep the new
    name and lose the content in a power cut. ``mode`` is ``"w"`` for UTF-8 text, or ``"wb"``. A link is replaced
    itself, since one in a stranger's folder may lead anywhere; with ``through_links`` its target is replaced. Raise
    an OSError if the disk is full, the folder can't be written, or ``file`` is a device or a pipe.
    """
    if through_links:
        file = Path(os.path.realpath(file))
    if file.exists() and not (file.is_file() or file.is_dir() or file.is_symlink()):
        raise _unfit(file, _NO_FILE)
    draft = _draft_for(file)
    with _naming_what_was_refused():
        try:
            # "x" makes a file that isn't there yet, and follows no link
            with draft.open(mode.replace("w", "x"), encoding=None if "b" in mode else "utf-8") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(file)
        except BaseException:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise


@contextmanager
def replacing_folder(folder: Path, own: Collection[str] | None = None) -> Iterator[Path]:
    """Give the path of an empty draft folder; at the end of the block it takes the place of ``folder``.

    With ``own``, the names in a folder that was written before, one with other files is refused. An error in the block
    leaves the old folder as it was, and a killed process one of the two, whole, or the old one beside its place, where
    :func:`restore` finds it. Two processes mustn't replace a folder at once. Raise an OSError if the disk is full, the
    parent folder can't be written, or ``folder`` is a file or a link, or has no name of its own.
    """
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
        raise _unfit(folder, "it is a file or a link; accepted: a folder", errno.ENOTDIR)
    if folder.name in ("", ".."):
        raise _unfit(folder, "it can't be replaced; accepted: a path that ends in the folder's name", errno.EINVAL)
    if own is not None and folder.is_dir() and (others := sorted({*os.listdir(folder)} - {*own})):
        raise _unfit(folder, f"it has {others[0]!r}, which isn't of this command; accepted: a new folder", errno.EEXIST)
    folder.parent.mkdir(parents=True, exist_ok=True)
    restore(folder.parent, folder.name)
    draft = _draft_for(folder)
    with _naming_what_was_refused():
        try:
            draft.mkdir()
            yield draft
            for path in [*draft.rglob("*"), draft]:
                sync(path)
            _swap(draft, folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)  # on a full disk it would take what the next attempt needs
            raise


@contextmanager
def _naming_what_was_refused() -> Iterator[None]:
    """Raise the operating system's own error if a library wrapped one: torch in ``unexpected pos 576 vs 534``, say."""
    try:
        yield
    except Exception as raised:
        error: BaseException | None = raised
        while error is not None:
            if isinstance(error, OSError) and error.errno in _DISK:
                if error is raised:
                    raise
                raise error from raised
            if number := re.search(r"\(os error (\d+)\)", str(error)):
                raise OSError(int(number[1]), os.strerror(int(number[1]))) from raised
            error = error.__cause__ or error.__context__
        raise


def _swap(draft: Path, folder: Path) -> None:
    old = draft
    if not folder.exists():
        draft.rename(folder)
    elif not _exchanged(draft, folder):
        old = draft.with_suffix(".old")
        folder.rename(old)
        try:
            draft.rename(folder)
        except OSError:
            old.rename(folder)
            raise
    sync(folder.parent)  # the new names, before what they replaced is removed
    shutil.rmtree(old, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder so that a process that is killed leaves nothing of it under its name."""
    draft = _draft_for(folder)
    folder.rename(draft)
    shutil.rmtree(draft)


def _exchanged(first: Path, second: Path) -> bool:
    """Exchange two folders' names in one step; ``False`` if this system or file system can't."""
    try:
        exchange = ctypes.CDLL(None, use_errno=True).renameat2  # Linux with glibc or a recent musl
    except (AttributeError, OSError, TypeError):
        return False
    here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(exchange(here, os.fsencode(first), here, os.fsencode(second), swap) == 0)


def restore(parent: Path, name: str | None = None) -> None:
    """Remove the drafts of ``name``, or all, that killed processes left in ``parent``; put back an old folder.

    Only this module's names are touched, and no links. The caller is the only process that writes there.
    """
    with suppress(FileNotFoundError):
        for path in [*parent.iterdir()]:
            of = draft_of(path)
            if of is None or name not in (None, of):
                continue
            if path.suffix == ".old" and not os.path.lexists(parent / of):
                path.rename(parent / of)
            elif path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def draft_of(path: Path) -> str | None:
    """Return the name of the file or folder that a draft of this module's is for; ``None`` for any other path."""
    found = _DRAFT.fullmatch(path.name)
    return found[1] if found and not path.is_symlink() and (path.is_file() or path.is_dir()) else None


def _draft_for(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.draft")


def check_folder(folder: Path) -> None:
    """Raise an OSError for a folder that holds a link out of it, or a device or a pipe, at any depth.

    The folder itself may be a link, as its user has named it.
    """
    root = os.path.realpath(folder)
    is_junction = getattr(os.path, "isjunction", lambda _: False)  # a folder's link on Windows
    waiting = [str(folder)] if folder.is_dir() else []
    while waiting:
        with suppress(FileNotFoundError), os.scandir(waiting.pop()) as entries:  # what is deleted meanwhile
            for entry in entries:
                if entry.is_symlink() or is_junction(entry.path):
                    target = os.path.realpath(entry.path)
                    if not Path(target).is_relative_to(root):
                        raise _unfit(entry.path, f"it is a link out of {folder}, to {target}; remove it", errno.ELOOP)
                elif entry.is_dir():
                    waiting.append(entry.path)
                elif not entry.is_file():
                    raise _unfit(entry.path, f"{_NO_FILE}; remove it")


def member(folder: Path, name: str) -> Path:
    """Return the path of a file or folder in ``folder``; an OSError if the name leads elsewhere, or a link has it."""
    path = folder / name
    if path.name != name or name == ".." or "\\" in name:
        raise _unfit(path, "its name isn't one of a file in this folder")
    if path.is_symlink():
        raise _unfit(path, "it is a link; remove it", errno.ELOOP)
    return path


def open_for_appending(file: Path) -> int:
    """Open or make a file to read and to append to; return the descriptor.

    An OSError refuses a link, a device, a pipe, and a file with a second name, which may be another file of the user's.
    """
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | NO_LINKS, 0o644)
    except OSError:
        if file.is_symlink():
            raise _unfit(file, "it is a link; remove it", errno.ELOOP) from None
        raise
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
        return handle
    os.close(handle)
    if not stat.S_ISREG(status.st_mode):
        raise _unfit(file, _NO_FILE)
    name, copy = (shlex.quote(f"{file}{ending}") for ending in ("", ".copy"))
    raise _unfit(file, f"it has a second name, whose content would change too: cp {name} {copy} && mv {copy} {name}")


def _unfit(path: Path | str, why: str, number: int = errno.EINVAL) -> OSError:
    return OSError(number, why, str(path))


def sync(path: Path) -> None:
    """Have the operating system put a file, or the names in a folder, on the device."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_writable(folder: Path) -> None:
    """Raise an OSError, with the path that stands in the way, if a folder can't be made or written to."""
    place = folder.expanduser().absolute()
    while True:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.lstat(place)
            break
        place = place.parent
    try:  # an access right is not the whole truth (a read-only device, a quota, the superuser), so something is written
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"1")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(place)) from None


def reason_of(error: Exception) -> str:
    """Return the reason of an error without the file's name."""
    return str(getattr(error, "strerror", None) or error)


def refusal(error: OSError) -> str:
    """Say in a sentence what the operating system refused: the file, and why."""
    if error.strerror is None:
        return str(error) or type(error).__name__
    about = f"can't use {error.filename}" if error.filename is not None else "the operating system refused"
    return f"{about}: {error.strerror}"
