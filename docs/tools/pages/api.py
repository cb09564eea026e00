"""The pages of docs/reference/api: in the repository a table of names, on the site all docstrings (docs/conf.py)."""

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from sphinx.pycode import ModuleAnalyzer

from pages.prose import one_line, table

DOCS = Path(__file__).parents[2]
PAGES: dict[str, dict[str, tuple[str, ...]]] = {
    "textgames": {
        "": ("textgames",),
        "Checking a game": ("textgames.conformance",),
        "Reading actions that can't be listed": ("textgames.texts.commands",),
        "Solving": (
            "textgames.solving.value_iteration",
            "textgames.solving.minimax",
            "textgames.solving.equilibrium",
        ),
    },
    "agents": {
        "": ("agents",),
        "Providers of models": ("agents.models.provider",),
        "Players that search": ("agents.baselines.search",),
    },
    "msgrpo": {
        "": ("agents.msgrpo",),
        "Credit": ("agents.msgrpo.credit",),
        "Engines": ("agents.msgrpo.engines.engine",),
    },
    "benchmark": {"": ("benchmark",)},
    "research": {"": ("research.credit",)},
}
"""``{page: {heading: modules}}``; the first heading is the page's own."""

SEE = "The site has the docstrings in full, with arguments and errors: `.ci/site` builds it."


def page(name: str, on_the_site: bool = False) -> str:
    """Write a page, with tables of names or with directives that Sphinx expands into the docstrings."""
    parts = [f"# `{'agents.msgrpo' if name == 'msgrpo' else name}`"]
    if name == "research":
        parts.append("These names need `textbench-research`: `pip install -e research`, in a clone.")
    if not on_the_site:
        parts.append(SEE)
    for heading, modules in PAGES[name].items():
        parts += [f"## {heading}"] * bool(heading)
        if on_the_site:
            faces = [f".. automodule:: {one}" + "\n   :imported-members:" * _is_face(one) for one in modules]
            parts.append("```{eval-rst}\n" + "\n".join(faces) + "\n```")
        else:
            rows = [[f"[`{key}`]({file})", about] for one in modules for key, file, about in _names(one)]
            parts.append(table(["name", "what it is"], rows))
    return "\n\n".join(parts) + "\n"


def files() -> Iterator[tuple[Path, str]]:
    """Yield the pages."""
    for name in PAGES:
        yield DOCS / f"reference/api/{name}.md", page(name)


def _is_face(module: str) -> bool:
    return hasattr(import_module(module), "__getattr__")


def _names(module: str) -> Iterator[tuple[str, str, str]]:
    """Yield each public name of a module, with the file that defines it and the first sentence of its docstring."""
    face = import_module(module)
    own = [key for key, value in vars(face).items() if key[0] != "_" and getattr(value, "__module__", "") == module]
    for key in getattr(face, "__all__", own):
        value = getattr(face, key)
        home = inspect.getmodule(value)
        text = inspect.getdoc(value) or ""
        if home is None or home.__name__.partition(".")[0] != module.partition(".")[0]:
            home, text = _constant(module, key)
        sentence = re.split(r"(?<=[.!?])\s", " ".join(text.partition("\n\n")[0].split()))[0]
        file = Path(str(home.__file__)).relative_to(DOCS.parent)
        yield key, f"../../../{file.as_posix()}", one_line(sentence).rstrip(".:")


def _constant(face: str, key: str) -> tuple[ModuleType, str]:
    """Return the module that assigns a name, and the string below the assignment, or else what is assigned.

    Modules below the face go first: others of its package, of which more or fewer are loaded, may assign the same name.
    """
    package = face.partition(".")[0]
    for name, one in sorted(sys.modules.items(), key=lambda each: (not f"{each[0]}.".startswith(f"{face}."), each[0])):
        if name.partition(".")[0] == package and key in vars(one) and str(one.__file__).endswith(".py"):
            source = ModuleAnalyzer.for_module(name)
            if assigned := re.search(rf"^{key}\b[^=\n]*= *(.*)", source.code, re.MULTILINE):
                return one, "\n".join(source.find_attr_docs().get(("", key), [f"``{assigned[1]}``"]))
    raise ValueError(f"no module of {package} assigns {key}")
