"""How to install what an optional part of the project needs: advice that works where this copy of it runs."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

OWN_VERSIONS = frozenset({"litellm", "vllm"})
"""Extras that want other versions than the tested ones, of openai, huggingface_hub, torch or transformers."""

GAMES_ALONE = "textbench-games"
"""The distribution of this package without the others: ``textgames/pyproject.toml``."""

CPU_TORCH = "--extra-index-url https://download.pytorch.org/whl/cpu"
"""What pip needs to take torch's build for processors, a tenth of the one for GPUs."""


def install_command(extra: str) -> str:
    """Return the pip command for an extra of ``pyproject.toml``, such as ``"local"``.

    In a clone that is the command of the README, which takes the tested versions; elsewhere the installed package's,
    ``textbench`` or the games alone.
    """
    root = Path(__file__).parents[1]
    if (root / "pyproject.toml").is_file() and (root / "constraints.txt").is_file():
        tested = "" if extra in OWN_VERSIONS else "-c constraints.txt "
        return f'pip install {tested}-e ".[{extra}]" (in {root})'
    try:
        version(GAMES_ALONE)
    except PackageNotFoundError:
        return f'pip install "textbench[{extra}]"'
    return f'pip install "{GAMES_ALONE}[{extra}]"'


def missing_packages(*packages: str, extra: str) -> str | None:
    """Return ``"torch, peft: pip install ..."`` for those of ``packages`` that aren't installed, or ``None``."""
    missing = [package for package in packages if find_spec(package) is None]
    return f"{', '.join(missing)}: {install_command(extra)}" if missing else None


@dataclass(frozen=True)
class Packages:
    """Packages that something needs, and an extra that has all of them; called, it says :func:`missing_packages`."""

    names: tuple[str, ...]
    extra: str

    def __call__(self) -> str | None:
        return missing_packages(*self.names, extra=self.extra)
