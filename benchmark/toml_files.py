"""Reading the TOML files that people write: options of a run, prices, recipes."""

import tomllib
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from benchmark.errors import UsageError


def read_toml(file: Path | Traversable, name: str, advice: str = "") -> dict[str, Any]:
    """The content of a TOML file.

    Args:
        file: where it is, on disk or in a package.
        name: what an error calls it, such as ``"the price file prices.toml"``.
        advice: what an error about a file that can't be read ends with.

    Raises:
        UsageError: it can't be read, or isn't TOML.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"can't read {name}: {error.strerror or error}{advice}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} isn't TOML: {error}") from None
