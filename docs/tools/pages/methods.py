"""A page for every method of the fine-tuner: its formula, source, settings, cost, and what was measured of it.

The formula stands in docs/research/credit/formulas.toml, source and cost in docs/research/credit/methods.md, what it
does in the docstring of its code, and its settings are the fields of its class: nothing is written here. The pages
aren't kept in the repository: docs/conf.py writes them when the site is built.
"""

import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from agents.msgrpo.configuration.config import MSGRPOConfig, preset, presets
from agents.msgrpo.configuration.settings import POINTS
from agents.msgrpo.plugins import OWN
from pages import measurements, prose

FOLDER = Path(__file__).parents[2] / "research/credit/methods"
ROOT = Path(__file__).parents[3]

KINDS = {
    "credit": "a method of credit: the advantage of each step",
    "surrogate": "a surrogate: the loss of a token",
    "reward": "a reward rule: what steps are paid in training",
    "filter": "a group filter: what is learnt from",
    "draw": "a draw: which episodes the update sees",
    "normalizer": "a normaliser: what the loss is divided by",
    "tasks": "a task sampler: what is played",
}
"""What each plug-in point decides."""

PLAIN = {
    "credit": "msgrpo",
    "surrogate": "ppo",
    "reward": "game",
    "filter": "off",
    "draw": "aaw",
    "normalizer": "token",
    "tasks": "plain",
}
"""The methods that the costs of others are measured beside."""

NEEDS = {
    "old_logprobs": "the log-probabilities of the policy that played",
    "entropies": "the entropy of every token",
    "values": "a critic",
    "reward_model": "a reward model that learns beside the policy",
    "rollouts": "fresh rollouts from visited states",
    "segments": "the parts of a response between its tags",
    "reference": "the log-probabilities of a reference model",
    "current": "a pass for the present log-probabilities before every optimiser step",
}
"""What a method may need, for people."""


@cache
def formulas() -> dict[str, dict[str, dict[str, str]]]:
    """Return ``{point: {name: {"title", "formula" and perhaps "source"}}}``."""
    file = FOLDER.parent / "formulas.toml"
    found: dict[str, dict[str, dict[str, str]]] = tomllib.loads(file.read_text(encoding="utf-8"))
    return found


def write_pages(folder: Path = FOLDER) -> None:
    """Write the pages of all methods into a folder, and remove those of methods that are gone."""
    pages = method_pages()
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*.md"):
        if file.name not in pages:
            file.unlink()
    for name, text in pages.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:  # Sphinx reads again what has changed
            file.write_text(text, encoding="utf-8")


def method_pages() -> dict[str, str]:
    """Return ``{file name: page}`` of every registered method."""
    return {
        f"{point}-{name}.md": method_page(point, name)
        for point, registry in POINTS.items()
        for name in registry.names
        if name in formulas()[point]
    }


def method_page(point: str, name: str) -> str:
    """Return the page of one method, as Markdown."""
    about, registry = formulas()[point][name], POINTS[point]
    cls = registry.find(name)
    parts = [
        f"# {about['title']}, `{name}`",
        f'`{registry.setting} = "{name}"` is {KINDS[point]}.{_variant(point, name)}',
        f"$$\n{about['formula']}\n$$",
        f"[The symbols](../methods.md#words). [The code]({code_of(cls)}): {described(cls)}",
        "## Source",
        sources(point, name),
        "## Settings",
        settings(point, name),
        "## What it needs and costs",
        needed(point, name, cls),
    ]
    if point == "credit" and (found := measurements.measured(name)):
        parts += ["## What was measured of it", found]
    return "\n\n".join(parts) + "\n"


def sources(point: str, name: str) -> str:
    """Return the source of a method, with remarks on what is our reading or missing."""
    row = measurements.rows().get((point, name), measurements.Row("", ""))
    source = row.source or formulas()[point][name]["source"]
    said = f"{_sentence(_linked(source))}\n\n{_sentence(row.remarks)}".strip()
    return re.sub(r"\]\((?!http)([^)]+)\)", r"](../\1)", said)  # the overview stands one folder above


def _sentence(text: str) -> str:
    """Return a table's cell as a sentence: names of repositories and symbols stay as they are."""
    if re.match(r"[a-z]+[ ,:]", text) and not re.match(r"w ", text):
        text = text[0].upper() + text[1:]
    return text and (text if text.endswith((".", "?")) else f"{text}.")


def _linked(source: str) -> str:
    source = re.sub(r"(?<![\w/.-])([\w-]+/[\w.-]+)(?![\w/.-])", r"[\1](https://github.com/\1)", source)
    return re.sub(r"arXiv (\d{4}\.\d{5})", r"[arXiv \1](https://arxiv.org/abs/\1)", source)


def described(cls: type[Any]) -> str:
    """Return the first paragraph of the docstring of a method's class; the code has the rest."""
    return prose.summary(cls).partition("\n\n")[0]


def code_of(cls: type[Any]) -> str:
    """Return the link from a page to the file of a class."""
    file = Path(sys.modules[cls.__module__].__file__ or "").resolve()
    return f"../../../../{file.relative_to(ROOT).as_posix()}"


def _variant(point: str, name: str) -> str:
    """Return the method of a name that is another one with some of its settings."""
    base, chosen = POINTS[point].variant(name)
    listed = ", ".join(f"`{setting} = {_value(value).strip('`')}`" for setting, value in chosen.items())
    return f" It is [`{base}`]({point}-{base}.md) with {listed}." if chosen else ""


def settings(point: str, name: str) -> str:
    """Return the table of a method's own settings."""
    registry = POINTS[point]
    shared = registry.shared(name)
    rows = []
    for setting, about in registry.settings_of(name).items():
        default = _value(about.get("default"))
        if (of_run := shared.get(setting)) is not None:
            own = getattr(MSGRPOConfig(), of_run) == OWN
            default = f"the run's `{of_run}`, else {default}" if own else f"the run's `{of_run}`"
        rows.append([f"`{setting}`", default, prose.markdown(about.get("description", ""))])
    if not rows:
        return "It has none."
    table = prose.table(["setting", "default", "meaning"], rows)
    return f"They stand in `[{point}.{name}]`.\n\n{table}"


def _value(value: Any) -> str:
    if value is None:
        return "none"
    said = str(value).lower() if isinstance(value, bool) else repr(value)
    return f"`{said}`".replace("'", '"')


def needed(point: str, name: str, cls: type[Any]) -> str:
    """Return what a method asks for, what that costs, and the presets that choose it."""
    asked = cls().needs if isinstance(getattr(cls, "needs", None), property) else getattr(cls, "needs", frozenset())
    words = [f"{NEEDS[one]} (`{one}`)" for one in sorted(asked)]
    said = [f"It needs {', '.join(words)}." if words else "It needs nothing that isn't there anyway."]
    setting = POINTS[point].setting
    if name in presets() and preset(name).get(setting) == name:
        said.append(f'`preset = "{name}"` sets it with [what goes with it](../methods.md#presets).')
    return " ".join(said) + _cost(point, name)


def _cost(point: str, name: str) -> str:
    named, rest = measurements.costs()
    at = "An iteration takes"
    known = named.get(name if point == "credit" else f"{point}.{name}")
    where = "([measured](../methods.md#what-a-method-costs))"
    if PLAIN[point] == name:
        return f"\n\nThe costs of other methods are ratios to an iteration with it {where}."
    if known:
        return f"\n\n{at} {known[0]} times the processor time of a plain one: {known[1]} {where}."
    if point in ("tasks", "reward") or name in measurements.without_cost():
        return "\n\nWhat it costs wasn't measured."
    return (
        f"\n\n{at} {rest[0]} times the processor time of a plain one, the range of all methods without a cost of their "
        f"own {where}."
    )
