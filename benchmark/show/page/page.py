"""The leaderboard page: :func:`render_page` makes one self-contained HTML file of a document.

The file needs nothing else: no server, no network, no build step; it is read with ``file://`` as well as from a site.
Text in it that others wrote (names, responses, errors) can't act: Jinja escapes what it writes, the script writes text
nodes only, the data is inert JSON, and the content security policy admits the two inline elements by their hashes,
no network and no string-to-code conversion.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from agents.common.files import replacing
from benchmark.score.beside import size_of
from benchmark.score.document import ViewDocument
from benchmark.show.board import found_tables, suite_table
from benchmark.show.export import flat_view
from benchmark.show.notes import source_notes
from benchmark.show.page.pack import inert_json, pack_episodes, packed
from benchmark.show.page.tables import (
    Sortable,
    game_name,
    grouped_sections,
    kind_of,
    overall_table,
    scenario_index,
    suite_grid,
)

SCRIPTS = (
    *("base/dom.js", "base/data.js", "base/address.js"),
    *("board/tables.js", "board/filter.js", "board/plot.js", "board/ladders.js", "board/download.js"),
    *("board/leaderboard.js", "compare/matrix.js", "compare/compare.js", "compare/seeds.js"),
    *("replay/board.js", "replay/side.js", "replay/episodes.js", "replay/transport.js", "replay/replay.js"),
    *("base/follow.js", "base/main.js"),
)
"""The page's script is these files, in this order, inside one function."""

STYLES = ("page.css", "tables.css", "replay.css", "screens.css")


def render_page(document: ViewDocument, *, follow: str = "") -> str:
    """Draw a document as one HTML page; the same document gives the same text (with the same build of zlib).

    ``follow`` is what the page's server calls this state of a run that is being played: the page then asks it for newer
    ones.
    """
    pack = pack_episodes(document)
    # one strict function of all scripts: no global names, and one hash for the policy
    script = '(() => {\n"use strict";\n' + "\n".join(_asset(name) for name in SCRIPTS) + "})();\n"
    style = "\n".join(_asset(f"styles/{name}") for name in STYLES)
    agents = [
        {"name": one["name"], "kind": kind_of(one), "size": size_of(one), "spec": one["spec"]}
        for one in document["agents"]
    ]
    # the day on which the last of the sources was played
    played = max((source["finished"] or source["started"] for source in document["sources"]), default="")[:10]
    data = {
        "scenarios": document["scenarios"],
        "title": document["title"],
        "played": played,
        "agents": agents,
        "overall": [[row["agent"], row["normalized"] and row["normalized"]["value"]] for row in document["overall"]],
        "overall_scenarios": document["overall_scenarios"],
        "pairs": [{key: _short(value) for key, value in row.items()} for row in document["overall_pairs"]],
        "meetings": [list(row.values()) for row in document["meetings"]],
        "ladders": document.get("ladders", []),
        "follow": follow,
        "progress": [document["episodes_total"], document["episodes_planned"]],
        "comparisons_family": document["comparisons_family"],
        "index": pack.listing,
    }
    groups = grouped_sections(document)
    games = Counter(section.game for group in groups for section in group.sections)
    overall = overall_table(document) if len(document["overall_scenarios"]) > 1 else None
    suites = suite_table(document)
    # everything is escaped, whatever a template's name ends with, and an unknown name is an error
    jinja = Environment(
        autoescape=True, loader=FunctionLoader(_asset), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = jinja.get_template("page.html.j2").render(
        document=document,
        overall=overall,
        suites=suites and Sortable(suites),
        beside=map(Sortable, found_tables(document)),
        ladders=list(dict.fromkeys(row["scenario"] for row in document.get("ladders", []))),
        source_notes=source_notes(document),
        groups=groups,
        grids={
            group.suite: suite_grid(document, group.suite, [one.name for one in group.sections]) for group in groups
        },
        index=scenario_index(document) if overall else None,
        games=[(game, game_name(game)) for game, count in games.items() if count > 1],  # of several scenarios
        kinds=sorted({agent["kind"] for agent in agents}),
        played=played,
        scores=packed(_columns(document["scores"])),
        comparisons=packed(_columns(document["comparisons"])),
        policy=_policy(style, script, follows=bool(follow)),
        style=style,
        script=script,
        data=inert_json(data),
        blocks=pack.blocks,
        episodes_shown=len(document["episodes"]),
    )
    # lone surrogates and null characters in names can't be written to HTML
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def write_page(document: ViewDocument, path: str | Path) -> int:
    """Write the page of ``document`` to ``path`` and return its size in bytes; an existing file is replaced whole."""
    content = render_page(document).encode("utf-8")
    with replacing(Path(path), "wb", through_links=True) as stream:
        stream.write(content)
    return len(content)


def _columns(views: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as columns of equal length, named as in data frames; unpacked on demand."""
    rows = [dict(flat_view(row)) for row in views]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [_short(row.get(name)) for row in rows] for name in names}


def _short(value: Any) -> Any:
    """Numbers with six significant digits: the page shows three, and is read over networks."""
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _asset(name: str) -> str:
    return files("benchmark.show.page").joinpath("assets", name).read_text(encoding="utf-8")


def _policy(style: str, script: str, *, follows: bool) -> str:
    """Return the content security policy: this style and script alone; one that ``follows`` may ask its own server."""
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    directives = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digests[0]}'",
        "style-src": f"'sha256-{digests[1]}'",
        "img-src": "data:",
        **({"connect-src": "'self'"} if follows else {}),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())
