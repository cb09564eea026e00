"""The figures of research/perf/gpu.py as Markdown."""

from collections.abc import Mapping
from typing import Any

from research.jobs.recipes import flat
from research.jobs.report import table


def markdown(result: Mapping[str, Any]) -> str:
    """Return the whole report: a table with a column for each recipe, and the figures of every other part."""
    about = result["machine"]
    size = "tiny shapes in place of the recipes' own" if result["small"] else "the recipes' own shapes"
    clock = "wall-clock" if about["device"].startswith("cuda") else "processor"
    lines = [f"# {about['name']}: {size}", "", *(f"{key}: {_told(value)}  " for key, value in about.items()), ""]
    lines.append(f"All of it took {result['seconds']:.0f} s. Times below are {clock} seconds, sizes are bytes.")
    parts = {name: dict(flat(one)) for name, one in result.items() if isinstance(one, Mapping)}
    recipes = {name.removeprefix("recipes: "): one for name, one in parts.items() if name.startswith("recipes: ")}
    if recipes:
        names = dict.fromkeys(name for one in recipes.values() for name in one)
        rows = [[name, *(_told(one.get(name)) for one in recipes.values())] for name in names]
        lines += ["", "## Recipes: one iteration, random weights", "", table(["", *recipes], rows)]
    for name, one in parts.items():
        if one and name != "machine" and name.removeprefix("recipes: ") not in recipes:
            lines += ["", f"## {name}", "", *(f"- {key}: {_told(value)}" for key, value in one.items())]
    lines += ["", "## Notes", "", *(f"- {note}" for note in result["notes"])] if result["notes"] else []
    return "\n".join(lines)


def _told(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
