"""A report on runs and entries, as files that open anywhere."""

import json
from collections.abc import Iterator, Sequence
from os.path import relpath
from pathlib import Path
from shlex import quote

from benchmark.cli.settings import Report
from benchmark.errors import UsageError, storing
from benchmark.play.claims import modules_of
from benchmark.play.options import OPTIONS, RunOptions, arguments_of
from benchmark.results import Results, read_results
from benchmark.runs.folder import PROMPTS_NAME, check_file_place, folder_name, write_atomically
from benchmark.runs.manifest import Manifest
from benchmark.score.results import expand_sources
from benchmark.show.board import comparison_tables, leaderboard_tables, verdict_sentence
from benchmark.show.document_of import MOST_PAIRED
from benchmark.show.markdown import LEGEND
from benchmark.show.notes import SHORT_FIRST, listed
from benchmark.show.report import Section, cost_table, html_report, markdown_report, mistakes_section, settings_tables
from benchmark.show.table import Table

FORMS = {".md": markdown_report, ".html": html_report}
SEVERAL_PLAYERS = "No verdict over all: these agents share no scenarios for one player. See the tables below."


def run_report(settings: Report) -> int:
    """Write the report, and print the names of its files."""
    files = _files(settings.out)
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


def _files(out: str) -> list[Path]:
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
