"""A checksum (CRC-32, no signature) inside a line of JSON, so that a damaged line is never read as something else."""

import re
from zlib import crc32

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
