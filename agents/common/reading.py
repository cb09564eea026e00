"""Reading files that may be a stranger's: one that is too large is refused before it fills memory, and a damaged line
by its checksum (CRC-32, no signature), so that it is never read as something else.
"""

import errno
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import IO, Any
from zlib import crc32

MOST_BYTES = 32 * 2**20
"""Most bytes of a file that is read as a whole. The manifest of a run of 100 agents that all meet has half as many."""
MOST_LINE = 64 * 2**20
"""Most bytes of one line of records. An episode of 80 steps with 100,000 tokens of reasoning each has half as many."""


def read_bytes(file: str | Path) -> bytes:
    """Read a file; an OSError if it is no file, or is larger than :data:`MOST_BYTES`.

    A pipe is only read if the path itself names a device, as ``--config <(command)`` does; one in a folder would never
    end.
    """
    device = str(file).startswith("/dev/")
    handle = os.open(file, os.O_RDONLY | (0 if device else os.O_NONBLOCK))
    try:
        about = os.fstat(handle)
        if S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
        if not (device or S_ISREG(about.st_mode)):
            raise OSError(errno.EINVAL, "it is a device or a pipe; accepted: a file", str(file))
        size = about.st_size
        if size <= MOST_BYTES:
            with os.fdopen(handle, "rb", closefd=False) as stream:
                data = stream.read(MOST_BYTES + 1)
            size = len(data)  # it may have grown meanwhile, and those in /proc tell no size
    finally:
        os.close(handle)
    if size > MOST_BYTES:
        told = f"it has {size:,} bytes, and at most {MOST_BYTES:,} are read: it is damaged, or isn't what its name says"
        raise OSError(errno.EFBIG, told, str(file))
    return data


def read_text(file: str | Path) -> str:
    """Read a file as UTF-8; raise as :func:`read_bytes`, or a UnicodeDecodeError."""
    return read_bytes(file).decode("utf-8").replace("\r\n", "\n")


def read_json(file: str | Path) -> Any:
    """Read a file of JSON; raise as :func:`read_bytes`, or a ValueError."""
    try:
        return json.loads(read_text(file))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class LineTooLongError(ValueError):
    """A line that is longer than :data:`MOST_LINE`."""

    def __init__(self) -> None:
        super().__init__(f"it has more than {MOST_LINE:,} bytes, the most that are read of one line")


def read_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield a file's lines; raise a LineTooLongError at the first one that is longer than :data:`MOST_LINE`."""
    while line := stream.readline(MOST_LINE + 1):
        if len(line) > MOST_LINE:
            raise LineTooLongError
        yield line


_SEALED = re.compile(rb'[,{]"checksum":"([0-9a-f]{8})"$')
_LENGTH = len(',"checksum":"00000000"')


def sealed(line: bytes, closing: bytes) -> bytes:
    """Add the checksum as the last key of the object that ``closing``, the line's last bytes, closes first."""
    assert line.endswith(closing), "the checksum's place is before the closing brackets"
    body = line[: -len(closing)]
    comma = b"" if body.endswith(b"{") else b","
    return b'%b%b"checksum":"%08x"%b' % (body, comma, crc32(line), closing)


def opened(line: bytes, closing: bytes) -> bytes:
    """Undo :func:`sealed`, or return a line without a checksum; a ValueError if the checksum doesn't fit."""
    end = len(line) - len(closing)
    found = _SEALED.search(line, max(0, end - _LENGTH), end) if line.endswith(closing) else None
    if found is None:
        return line
    start = found.start() + (line[found.start() : found.start() + 1] == b"{")
    body = line[:start] + closing
    if crc32(body) != int(found[1], 16):
        raise ValueError("its checksum doesn't fit: it was changed or damaged after it was written")
    return body
