"""What several tests of the benchmark look at."""

from pathlib import Path

from benchmark.runs.folder import RunFolder
from benchmark.runs.record import canonical_lines, opened_line


def counted(folder) -> bytes:
    """Everything in a run that counts, in canonical form."""
    return b"".join(canonical_lines(RunFolder.open(Path(folder)).records()))


def text_without_checksums(folder) -> str:
    """The lines of a run as they were before checksums, to be changed by hand."""
    lines = (Path(folder) / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    return b"".join(map(opened_line, lines)).decode()
