"""Print the JSON Schema of a file or document that textbench reads or writes.

examples:
  textbench schema episode              of one line of episodes.jsonl
  textbench schema --out docs/schemas   write all of them, as NAME.json
"""

from argparse import ArgumentParser, Namespace
from typing import Any

NAMES = ("manifest", "episode", "run-config", "training-config")
"""The schemas of the product. An installed package adds those of its commands' documents under the group
``textbench.schemas`` of entry points, each a type that pydantic reads."""


def names() -> tuple[str, ...]:
    """Return the names of all schemas, those of installed packages among them."""
    from textgames.plugins import installed

    return tuple(dict.fromkeys((*NAMES, *installed("textbench.schemas"))))


def add_arguments(parser: ArgumentParser) -> None:
    """Declare which schema, and the folder to write into."""
    parser.add_argument("name", nargs="?", choices=names(), metavar="NAME", help=", ".join(names()))
    parser.add_argument("--out", metavar="DIR", help="write the schemas into this folder instead")


def run(args: Namespace) -> int:
    """Print one schema, or write one or all."""
    from pathlib import Path

    from benchmark.errors import UsageError, storing

    if args.name is None and args.out is None:
        raise UsageError(f"say which schema to print, {', '.join(names())}, or --out DIR for all of them")
    for name in names() if args.name is None else (args.name,):
        text = schema_text(name)
        if args.out is None:
            print(text, end="")
            continue
        file = Path(args.out) / f"{name}.json"
        with storing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    return 0


def schema_text(name: str) -> str:
    """Return the JSON Schema of one of :func:`names` as it is printed."""
    import json

    return json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of one of :func:`names`."""
    from pydantic import TypeAdapter

    if name == "training-config":
        from agents.msgrpo.configuration.config import training_config_schema

        return training_config_schema()
    if name == "run-config":
        from benchmark.play.options import options_model

        schema = options_model().model_json_schema()
        table = {"type": "object", "properties": {"spec": {"type": "string"}}, "additionalProperties": True}
        agents = schema["properties"]["agents"]
        tables = {"type": "object", "additionalProperties": table, "description": "[agents.NAME], with options"}
        schema["properties"]["agents"] = {"anyOf": [agents, tables], "title": agents.pop("title")}
    else:
        from benchmark.runs.manifest import ManifestShape
        from benchmark.runs.record import EpisodeRecord
        from textgames.plugins import installed

        shapes = {"manifest": ManifestShape, "episode": EpisodeRecord}
        adapter: TypeAdapter[Any] = TypeAdapter(shapes.get(name) or installed("textbench.schemas")[name].load())
        schema = adapter.json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
