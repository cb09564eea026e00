"""Tell our package ``agents`` from that of OpenAI's agents SDK, which has the same import name.

Ours is the folder beside ``benchmark``. In a clone that is installed with ``-e``, the SDK lies elsewhere and only comes
first on the path, so ours is imported from its folder. Among installed wheels, the one that came last has overwritten
files of the other. A second copy of ours in the wheel would need a finder that decides, for a whole process and by
what was imported first, which package a name means; an error is plainer.
"""

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

OWN = Path(__file__).parents[1] / "agents"
MARK = "language-agent policies"  # words that our ``agents/__init__.py`` has, and no other
SDK = "openai-agents"
WAY_OUT = (
    "give textbench an environment of its own (python3 -m venv .venv && . .venv/bin/activate), or pip uninstall "
    f"{SDK} and install textbench again with --force-reinstall --no-deps"
)


def _is_ours(folder: Path) -> bool:
    init = folder / "__init__.py"
    return init.is_file() and (folder / "turn.py").is_file() and MARK in init.read_text(encoding="utf-8")


def foreign_agents() -> str | None:
    """Let ``import agents`` get ours, and return ``None``; or return what is wrong if it can't, and what to do."""
    found = find_spec("agents")
    folders = [Path(folder) for folder in (found.submodule_search_locations or () if found is not None else ())]
    if folders and _is_ours(folders[0]):
        return None
    if not _is_ours(OWN):
        where = f"is another one here, in {folders[0]}" if folders else "is missing here"
        return f"textbench's package 'agents' {where}: OpenAI's agents SDK ({SDK}) has the same import name; {WAY_OUT}"
    if "agents" in sys.modules:
        return (
            f"another package 'agents' has been imported from {folders[0] if folders else 'elsewhere'}, and a process "
            "can have one of that name: import textbench.agents in a process that doesn't import the other"
        )
    spec = spec_from_file_location("agents", OWN / "__init__.py", submodule_search_locations=[str(OWN)])
    if spec is not None and spec.loader is not None:
        sys.modules["agents"] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules["agents"])
    return None


def overwritten_sdk() -> str | None:
    """Return a warning if OpenAI's agents SDK is installed into the same folder; else ``None``."""
    from importlib.metadata import PackageNotFoundError, distribution  # here: its import takes half of a --help

    try:
        sdk = distribution(SDK)
    except PackageNotFoundError:
        return None
    if Path(str(sdk.locate_file("agents"))).resolve() != OWN.resolve():
        return None
    return (
        f"{SDK} {sdk.version} has the import name 'agents', too, and one has overwritten files of the other; {WAY_OUT}"
    )
