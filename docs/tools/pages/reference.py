"""The made tables of the reference pages, of commands, settings and files; and the JSON Schemas of docs/schemas.

The tables are put into the pages while the site is built (docs/conf.py): the repository would only hold a second copy
of what ``--help`` and the schemas say. All else on these pages is written by hand.
"""

import re
from argparse import Action
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.common.settings import Parser
from benchmark.cli import COMMANDS, LAB, TRAIN, lab_commands, settings_of
from benchmark.cli.files import schema_of, schema_text
from benchmark.cli.settings import schema_names
from benchmark.play.options import OPTIONS, VARIABLES
from pages.marks import ON_THE_SITE, remade
from pages.prose import one_line, table

FOLDER = Path(__file__).parents[2] / "reference"
SCHEMAS = Path(__file__).parents[2] / "schemas"

Schema = dict[str, Any]


def kind(schema: Schema) -> str:
    """Return what a value may be, in a few words."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2].removesuffix("Shape")
    if "const" in schema:
        return f"`{schema['const']!r}`".replace("'", '"')
    if "enum" in schema:
        return ", ".join(f"`{value!r}`".replace("'", '"') for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(one) for one in schema["anyOf"]))
    if schema.get("type") == "array":
        inside = schema.get("items") or {}
        many = schema.get("minItems")
        return f"{many} of {kind(inside)}" if many and many == schema.get("maxItems") else f"list of {kind(inside)}"
    if schema.get("type") == "object":
        inside = schema.get("additionalProperties")
        return f"{{name: {kind(inside)}}}" if isinstance(inside, dict) and inside else "table"
    return {"string": "text", "boolean": "true or false", "null": "null"}.get(schema.get("type", ""), bounded(schema))


def bounded(schema: Schema) -> str:
    """Return a number with its bounds."""
    name = schema.get("type", "any")
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    if low is not None:
        return f"{name} from {low:g}"
    return f"{name} above {above:g}" if above is not None else name


def plain(text: str) -> str:
    """Return a description on one line, in Markdown's backticks, with the flags that it names in some as well."""
    line = one_line(text)
    return line if "`" in line else re.sub(r"(?<!\S)(--[a-z][a-z-]*)", r"`\1`", line)


def object_tables(name: str) -> str:
    """Return a table for the document that a schema describes, and one for each kind of object in it."""
    schema = schema_of(name)
    parts = []
    for title, shape in [("", schema), *schema.get("$defs", {}).items()]:
        if "properties" not in shape:
            continue
        told = plain(shape.get("description", ""))
        if title:
            parts.append(f"**{title.removesuffix('Shape')}**" + (f". {told}" if told else ""))
        required = set(shape.get("required", ()))
        rows = [
            [f"`{key}`" + ("" if key in required else " (optional)"), kind(one), plain(one.get("description", ""))]
            for key, one in shape["properties"].items()
        ]
        parts.append(table(["key", "value", "meaning"], rows))
    return "\n\n".join(parts)


def run_options() -> str:
    """Return every option of a run, with its flag and its environment variable; the page of commands says what it
    means."""
    variables = {name: variable for variable, name in VARIABLES.items()}
    rows = []
    for name, one in OPTIONS.items():
        if name in variables:
            flag = f"`{one.flag} {one.metavar}`"
            rows.append([f"`{name}`", flag, f"`{variables[name]}`", shown_default(one.default)])
    return table(["in a file", "flag", "environment variable", "default"], rows)


def shown_default(value: Any) -> str:
    """Return an option's default, or nothing if its text says it."""
    return "" if value in (None, ()) else f"`{toml(list(value) if isinstance(value, tuple) else value)}`"


def training_settings() -> str:
    """Return every setting of a training, by its table in the file."""
    sections: dict[str, list[list[str]]] = {}
    for name, one in schema_of("training-config")["properties"].items():
        shown = f"`{toml(one['default'])}`" if one.get("default") not in (None, "", [], {}) else ""
        rows = sections.setdefault(one["section"], [])
        rows.append([f"`{name}`", kind(one), shown, plain(one.get("description", ""))])
    heads = ["setting", "value", "default", "meaning"]
    return "\n\n".join(f"**`[{title}]`**\n\n{table(heads, rows)}" for title, rows in sections.items())


def toml(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def commands(listed: Mapping[str, str]) -> str:
    """Describe commands: what each does, its examples and arguments; those that one above has alike by name alone."""
    parts, told = [], set[tuple[str, str]]()
    for name, text in listed.items():
        parts.append(f"## textbench {name}\n\n{text[0].upper()}{text[1:]}.")
        if name == TRAIN:
            parts.append("Its options are those of `python -m agents.msgrpo`: see `textbench train --help`.")
            continue
        kind = settings_of(name)
        parsers = [Parser(one, f"textbench {name}") for one in ([kind] if isinstance(kind, type) else kind.values())]
        told_by = "\n".join(parser.description or "" for parser in parsers)
        if examples := re.findall(r"^  (textbench .*)$", told_by, re.MULTILINE):
            lines = [re.sub(r" {2,}(?=\S)", "  # ", line, count=1) for line in examples]
            parts.append("```sh\n" + "\n".join(lines) + "\n```")
        actions = [action for parser in parsers for action in parser._actions if action.dest != "help"]
        arguments = [(f"`{called(action)}`", plain(action.help or "")) for action in actions]
        parts.append(table(["argument", "meaning"], [list(one) for one in arguments if one not in told]))
        again = [name for name, help in arguments if (name, help) in told]
        if again:
            parts.append(f"As in commands above: {', '.join(again)}.")
        told.update(arguments)
    return "\n\n".join(parts)


def called(action: Action) -> str:
    """Return ``--agent SPEC``, or ``RUN ...`` of an argument without a flag."""
    metavar = action.metavar or ("" if action.nargs == 0 else action.dest.upper())
    value = " ".join(metavar) if isinstance(metavar, tuple) else metavar
    if action.nargs in ("*", "+"):
        value += " ..."
    return f"{action.option_strings[-1]} {value}".strip() if action.option_strings else value


PARTS: dict[str, Callable[[], str]] = {
    "manifest": lambda: object_tables("manifest"),
    "episode": lambda: object_tables("episode"),
    "run-options": run_options,
    "training-settings": training_settings,
    "commands": lambda: commands(COMMANDS | LAB),
    "research-commands": lambda: commands({n: text for n, text in lab_commands().items() if n not in COMMANDS | LAB}),
}
"""``{part of a page: what makes it}``."""


def with_tables(page: str) -> str:
    """Return a page of docs/reference with its tables, as the site shows it."""
    return remade(page, PARTS, ON_THE_SITE)


def files() -> Iterator[tuple[Path, str]]:
    """Yield the schemas."""
    for name in schema_names():
        yield SCHEMAS / f"{name}.json", schema_text(name)
