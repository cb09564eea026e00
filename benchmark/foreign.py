"""Whether the package ``agents`` that would be imported is ours: OpenAI's agents SDK has the same import name."""

from importlib.util import find_spec
from pathlib import Path

MARK = "language-agent policies"  # words that our ``agents/__init__.py`` has, and no other
SDK = "openai-agents"
WAY_OUT = (
    "give textbench an environment of its own (python3 -m venv .venv && . .venv/bin/activate), or pip uninstall "
    f"{SDK} and install textbench again with --force-reinstall --no-deps"
)


def foreign_agents() -> str | None:
    """Return what is wrong if ``import agents`` gets something else than ours, and what to do; else ``None``.

    What is installed last overwrites files of the other. Nothing of the package is imported.
    """
    found = find_spec("agents")
    init = Path(found.origin) if found is not None and found.origin else None
    if init is not None and (init.parent / "turn.py").is_file() and MARK in init.read_text(encoding="utf-8"):
        return None
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    where = f"is another one here, in {folders[0]}" if folders else "is missing here"
    return f"textbench's package 'agents' {where}: OpenAI's agents SDK ({SDK}) has the same import name; {WAY_OUT}"


def overwritten_sdk() -> str | None:
    """Return a warning if OpenAI's agents SDK is installed too, and its files lie among ours; else ``None``."""
    from importlib.metadata import PackageNotFoundError, version  # here: its import takes half of a --help

    try:
        installed = version(SDK)
    except PackageNotFoundError:
        return None
    return f"{SDK} {installed} has the import name 'agents', too, and one has overwritten files of the other; {WAY_OUT}"
