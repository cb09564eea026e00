"""Commands that write files: results for other programs, a report, and the schemas of what is read and written."""

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from os.path import relpath
from pathlib import Path
from shlex import quote
from typing import Any

from pydantic import TypeAdapter

from agents.common.files import check_folder, refusal
from benchmark.cli.settings import Export, Output, Report, Schema, schema_names
from benchmark.errors import StorageError, UsageError, storing
from benchmark.play.claims import modules_of
from benchmark.play.options import OPTIONS, RunOptions, arguments_of
from benchmark.results import Results, read_results
from benchmark.runs.folder import PROMPTS_NAME, check_file_place, folder_name, write_atomically
from benchmark.runs.manifest import Manifest
from benchmark.score.results import expand_sources
from benchmark.show import export, published, training_data
from benchmark.show.board import comparison_tables, leaderboard_tables, verdict_sentence
from benchmark.show.document_of import MOST_PAIRED
from benchmark.show.markdown import LEGEND
from benchmark.show.notes import SHORT_FIRST, listed
from benchmark.show.report import Section, cost_table, html_report, markdown_report, mistakes_section, settings_tables
from benchmark.show.table import Table
from textgames.plugins import installed


def run_export(settings: Export) -> int:
    """Write the files that were asked for."""
    files = _asked_for(settings)
    sources = Output().folders(settings.sources)
    results = read_results(*sources, agents=settings.agents)
    if not results.columns.played:
        raise UsageError(f"{', '.join(map(str, sources))} has no finished episode")
    rows = export.step_rows if settings.steps else export.episode_rows
    fields = export.STEP_FIELDS if settings.steps else export.EPISODE_FIELDS
    for name, write in (("csv", export.write_csv), ("parquet", export.write_parquet)):
        if file := files.get(name):
            print(f"{file}: {write(rows(results.columns), fields, file)} rows", file=sys.stderr)
    if settings.plot:
        export.write_plot(results.leaderboard().scores, settings.plot, settings.measure)
        print(settings.plot, file=sys.stderr)
    if settings.sft or settings.preferences:
        _training_data(settings, results)
    if settings.eval_results or settings.every_eval_ever:
        _publish(settings, results)
    return 0


def _asked_for(settings: Export) -> dict[str, str]:
    names = ("csv", "parquet", "plot", "sft", "preferences")
    files: dict[str, str] = {name: file for name in names if (file := getattr(settings, name))}
    if not (files or settings.eval_results or settings.every_eval_ever):
        raise UsageError(
            "say what to write: --csv, --parquet, --plot, --sft or --preferences FILE, --eval-results or "
            "--every-eval-ever DIR"
        )
    if settings.eval_results and not settings.benchmark:
        raise UsageError("--eval-results needs --benchmark OWNER/NAME")
    if settings.every_eval_ever and not settings.organization:
        raise UsageError("--every-eval-ever needs --organization NAME")
    if settings.plot and not settings.plot.lower().endswith(export.PLOT_ENDINGS):
        raise UsageError(f"a plot's file ends with .svg, .png or .pdf, got {settings.plot!r}")
    if settings.parquet == "-":
        raise UsageError("--parquet takes a file, such as episodes.parquet, got '-'")
    written: dict[str, str] = {}
    for name, file in files.items():
        if (other := written.setdefault(file, name)) != name:
            raise UsageError(f"--{other} and --{name} both write to {file}: choose another file for one")
        if file != "-":
            check_file_place(file)
    return files


def _training_data(settings: Export, results: Results) -> None:
    source = training_data.Source(results.columns, settings.mode)
    made = (
        (settings.sft, training_data.demonstrations(source, settings.keep)),
        (settings.preferences, training_data.preferences(source)),
    )
    for file, lines in made:
        if not file:
            continue
        first = next(lines, None)
        count = 0 if first is None else training_data.write_lines(chain([first], lines), file, text=settings.text)
        _tell_left_out(source)
        if not count:
            raise UsageError(f"there is nothing to write to {file}: no decision of these runs is of that kind")
        print(f"{file}: {count} lines", file=sys.stderr)
    if source.evaluation_seeds:
        print(
            "these episodes have seeds that scores are measured on, so what is trained on them must be evaluated on "
            "others; textbench run --seed-offset 100000 plays episodes to train on",
            file=sys.stderr,
        )


def _tell_left_out(source: training_data.Source) -> None:
    for why, episodes in source.left_out.items():
        print(f"{episodes} episodes were left out: {why}", file=sys.stderr)


def _publish(settings: Export, results: Results) -> None:
    document, files = results.leaderboard().document, []
    folders = settings.eval_results, settings.every_eval_ever
    try:
        for place in filter(None, folders):
            check_folder(Path(place))
    except OSError as error:
        raise StorageError(refusal(error)) from None
    if settings.eval_results and settings.benchmark:
        files += published.write_eval_results(document, Path(settings.eval_results), settings.benchmark)
    if settings.every_eval_ever and settings.organization:
        source = training_data.Source(results.columns) if settings.instances else None
        out = Path(settings.every_eval_ever)
        files += published.write_every_eval_ever(document, out, settings.organization, source)
        if source is not None:
            _tell_left_out(source)
    print("\n".join(map(str, files)), file=sys.stderr)


FORMS = {".md": markdown_report, ".html": html_report}
SEVERAL_PLAYERS = "No verdict over all: these agents share no scenarios for one player. See the tables below."


def run_report(settings: Report) -> int:
    """Write the report, and print the names of its files."""
    files = _places(settings.out)
    if not Path(settings.out).suffix:
        with storing(settings.out):
            Path(settings.out).mkdir(exist_ok=True)
    for file in files:
        check_file_place(str(file))
    named = settings.output.folders(settings.sources)
    results = read_results(*named, quiet=settings.output.quiet)
    title = f"Report on {listed([path.resolve().name for path in results.folders])}"
    sections = list(_sections(results, named))
    for file in files:
        write_atomically(file, FORMS[file.suffix.lower()](title, sections))
        print(file)
    return 0


def _places(out: str) -> list[Path]:
    place = Path(out)
    if place.is_dir() or not (place.suffix or place.exists()):
        return [place / f"report{suffix}" for suffix in FORMS]
    if place.suffix.lower() not in FORMS:
        raise UsageError(f"--out takes a file that ends with .md or .html, or a folder for both, got {out!r}")
    return [place]


def _sections(results: Results, named: Sequence[Path]) -> Iterator[Section]:
    document = results.document(max_episodes=0)
    verdict, differences = _compared(results, [row["agent"] for row in document["overall"]])
    if not results.complete:
        played, planned = document["episodes_total"], document["episodes_planned"]
        verdict.append(f"Not complete: {played:,} of {planned:,} episodes are played, {SHORT_FIRST}.")
    yield Section("Verdict", verdict)
    yield Section("Scores", [" ".join(LEGEND.split())], leaderboard_tables(document, overall_first=True))
    if differences:
        yield Section("Differences", (), differences)
    yield Section("Costs", (), [cost_table(results.columns)])
    yield mistakes_section(results.columns, document)
    yield Section("Settings", (), settings_tables(results.columns, document))
    yield Section("Commands", (), (), list(_commands(results, named)))


def _compared(results: Results, agents: Sequence[str]) -> tuple[list[str], list[Table]]:
    """Return the sentences on the best agent and each other one, and the tables of these pairs."""
    if len(agents) < 2:
        return [f"{agents[0]} is the only agent: there is nothing to compare it with."], []
    try:
        found = results.compare(*agents[:MOST_PAIRED])
    except UsageError as error:
        return [f"No verdict: {error}."], []
    told = [verdict_sentence(row) for row in found.overall if row["a"] == agents[0]] or [SEVERAL_PLAYERS]
    if len(agents) > MOST_PAIRED:
        told.append(f"Only the first {MOST_PAIRED} of {len(agents)} agents are compared.")
    return told, comparison_tables([row for row in found.rows if row["a"] == agents[0]], (), ())


def _commands(results: Results, named: Sequence[Path]) -> Iterator[str]:
    """Yield the commands that play the runs again into other folders, and that show the same."""
    for path, manifest in results.columns.sources:
        yield _run_again(path, manifest)
    modules = modules_of(scenario.env_id for scenario in results.columns.scenarios.values())
    imports = "".join(f" --import {quote(module)}" for module in modules)
    words = " ".join(map(quote, map(str, named))) + imports
    yield from (f"textbench {command} {words}" for command in ("report", "compare", "leaderboard --stats"))
    yield from (f"textbench replay --worst {quote(str(path))}{imports}" for path in expand_sources(named))


def _run_again(path: Path, manifest: Manifest) -> str:
    usual, cards = RunOptions(), {card["name"]: card["spec"] for card in manifest["agents"]}
    if objects := [name for name, spec in cards.items() if spec.startswith("python:")]:
        return f"# {path.name} has Python objects as agents, which no command makes: {listed(objects)}"
    given = {
        name: one for name, one in manifest["settings"].items() if name in {*OPTIONS} - {"out"} and one is not None
    }
    given = {name: one for name, one in given.items() if one != getattr(usual, name)}
    given["agents"] = [name if name == spec else f"{name}={spec}" for name, spec in cards.items()]
    if "prompts" in given:
        given["prompts"] = relpath(path / PROMPTS_NAME)
    try:
        options = RunOptions.of(given)
    except UsageError as error:
        return f"# {path.name} has settings that this version doesn't take: {error}"
    words = [*arguments_of(options), *(["--base-url", options.base_url] if options.base_url else [])]
    for agent in cards:
        for name, one in options.by_agent.get(agent, {}).items():
            words += ["--set", f"{agent}.{name}={json.dumps(one)}"]
    return " ".join(["textbench run", *map(quote, words), "--out", f"{folder_name(path.name)}-again"])


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
