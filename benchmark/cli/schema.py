"""The JSON Schemas of files and documents."""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from benchmark.cli.settings import Schema, schema_names
from benchmark.errors import UsageError, storing
from benchmark.play.options import OPTIONS, RunOptions
from textgames.plugins import installed


def run_schema(settings: Schema) -> int:
    """Print one schema, or write one or all."""
    known = schema_names()
    if settings.name is None and settings.out is None:
        raise UsageError(f"say which schema to print, {', '.join(known)}, or --out DIR for all of them")
    for name in known if settings.name is None else (settings.name,):
        if settings.out is None:
            print(schema_text(name), end="")
            continue
        file = Path(settings.out) / f"{name}.json"
        with storing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(schema_text(name), encoding="utf-8")
    return 0


def schema_text(name: str) -> str:
    """Return a JSON Schema as it is printed."""
    return json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of one of the documents."""
    if name == "training-config":
        from agents.msgrpo.configuration.config import training_config_schema

        return training_config_schema()
    if name == "run-config":
        schema = TypeAdapter(RunOptions).json_schema()
        told = {name: schema["properties"][name] | {"description": one.text} for name, one in OPTIONS.items()}
        properties = {name: dict(sorted(about.items())) for name, about in told.items()}
        table = {"type": "object", "properties": {"spec": {"type": "string"}}, "additionalProperties": True}
        tables = {"type": "object", "additionalProperties": table, "description": "[agents.NAME], with options"}
        agents = properties["agents"]
        properties["agents"] = {"anyOf": [agents, tables], "title": agents.pop("title")}
        schema = {"additionalProperties": False, **schema, "properties": properties}
    else:
        from benchmark.runs.manifest import ManifestShape
        from benchmark.runs.record import EpisodeRecord

        shapes = {"manifest": ManifestShape, "episode": EpisodeRecord}
        adapter: TypeAdapter[Any] = TypeAdapter(shapes.get(name) or installed("textbench.schemas")[name].load())
        schema = adapter.json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
