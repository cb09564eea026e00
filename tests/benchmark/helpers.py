"""What several tests of the benchmark look at."""

from pathlib import Path

from benchmark.runs.folder import RunFolder
from benchmark.runs.record import canonical_lines


def counted(folder) -> bytes:
    """Everything in a run that counts, in canonical form."""
    return b"".join(canonical_lines(RunFolder.open(Path(folder)).records()))
