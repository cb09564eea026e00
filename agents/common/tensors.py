"""Files of tensors that ``torch.save`` wrote, read without running the code that such a file can hold."""

import re
from pathlib import Path
from typing import Any

from textgames.extras import install_command

OLDEST = (2, 10)
"""The oldest PyTorch whose restricted unpickler runs no code: 2.6 closed CVE-2025-32434, 2.10 CVE-2026-24747."""


def check_torch(file: str | Path) -> None:
    """Raise a ModuleNotFoundError, with the command, if PyTorch is older than :data:`OLDEST`."""
    import torch

    numbers = tuple(int(number) for number in re.findall(r"\d+", torch.__version__)[:2])
    if numbers < OLDEST:
        raise ModuleNotFoundError(
            f"{file} isn't read: that needs PyTorch {'.'.join(map(str, OLDEST))} or later, and {torch.__version__} is "
            f"installed, in which such a file can run code (CVE-2025-32434, CVE-2026-24747): {install_command('local')}"
        )


def load_tensors(file: str | Path) -> Any:
    """Load tensors and plain values from a file to the computer's memory; a one-line ValueError for anything else."""
    import torch

    check_torch(file)
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # the unpickler raises whatever it meets, and advises at length to run the code
        raise ValueError(f"it isn't a file of tensors and plain values: {str(error).partition('.')[0]}") from error
