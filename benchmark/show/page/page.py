"""The leaderboard page: :func:`render_page` makes one self-contained HTML file of a document.

The file needs nothing else: no server, no network, no build step; it is read with ``file://`` as well as from a site.
Text in it that others wrote (names, responses, errors) can't act: Jinja escapes what it writes, the script writes text
nodes only, the data is inert JSON, and the content security policy admits the two inline elements by their hashes,
no network and no string-to-code conversion.
"""

import base64
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from agents.common.files import replacing
from benchmark.score.beside import size_of
from benchmark.score.document import EpisodeView, ViewDocument
from benchmark.show.board import found_tables, suite_table
from benchmark.show.export import flat_view
from benchmark.show.notes import source_notes
from benchmark.show.page.tables import (
    Sortable,
    game_name,
    grouped_sections,
    kind_of,
    overall_table,
    scenario_index,
    suite_grid,
)

BLOCK_CHARS = 400_000
"""A block is closed once its texts are this long: about a tenth of it compressed, and some 5 ms to unpack."""

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
    listing, blocks = pack_episodes(document)
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
        "index": listing,
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
        blocks=blocks,
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


def inert_json(value: object) -> str:
    """Serialise ``value`` so that no HTML parser finds anything in it: ASCII only, no ``<``, ``>`` or ``&``, no NaN."""
    return _json(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def pack_episodes(document: ViewDocument) -> tuple[dict[str, Any], list[str]]:
    """Return the document's episodes as the page carries them: a small index, and blocks that are read on demand.

    The index has columns of equal length, one item an episode in the order of the blocks, and ``lineups``: positions in
    the document's agents, one per player. A block is the base64 of the zlib-compressed JSON of ``{"texts": [...],
    "episodes": [...]}``. Episodes are sorted by scenario, seed and line-up, so the two of a side-by-side replay usually
    share a block, and neighbours that resemble each other compress well.
    """
    scenarios = {scenario["name"]: place for place, scenario in enumerate(document["scenarios"])}
    agents = {agent["name"]: place for place, agent in enumerate(document["agents"])}
    lineups: dict[tuple[int, ...], int] = {}
    rows: list[tuple[int, int, int, EpisodeView]] = []
    for episode in document["episodes"]:
        lineup = tuple(agents[name] for name in episode["agents"].values())
        place = lineups.setdefault(lineup, len(lineups))
        rows.append((scenarios[episode["scenario"]], episode["seed"], place, episode))
    rows.sort(key=lambda row: row[:3])

    episodes = [row[3] for row in rows]
    blocks = list(_blocks(episodes))
    listing = {
        "lineups": [list(lineup) for lineup in lineups],
        "block_sizes": [size for _, size in blocks],
        "scenario": [row[0] for row in rows],
        "seed": [row[1] for row in rows],
        "lineup": [row[2] for row in rows],
        "returns": [list(episode["returns"].values()) for episode in episodes],
        "successes": [[int(success) for success in episode["successes"].values()] for episode in episodes],
        # e: an error, so it is unscored; t: terminated; l: the step limit
        "ending": ["e" if one["error"] is not None else "t" if one["terminated"] else "l" for one in episodes],
        "rounds": [1 + max(episode["steps"]["round"], default=-1) for episode in episodes],
        "invalid": [sum(not valid for valid in episode["steps"]["valid"]) for episode in episodes],
        # by all players together; null if it isn't known
        "lost": [
            None if None in (lost := one["steps"]["lost"]) else round(sum(filter(None, lost)), 6) for one in episodes
        ],
    }
    return listing, [block for block, _ in blocks]


def packed(value: object) -> str:
    """Return ``base64(zlib(json))`` of any JSON value, as the page's script unpacks it."""
    return base64.b64encode(zlib.compress(_json(value).encode("ascii"), 9)).decode("ascii")


def _blocks(episodes: Sequence[EpisodeView]) -> Iterator[tuple[str, int]]:
    """Yield ``(block, episodes in it)``; a block has its own string table, so it can be read without any other."""
    table: dict[str, int] = {}  # boards and observations repeat a lot
    held: list[dict[str, Any]] = []

    def number(text: str | None) -> int:
        return -1 if text is None else table.setdefault(text, len(table))

    for episode in episodes:
        steps: dict[str, Any] = {**episode["steps"]}
        ending = number(episode["ending"])
        for name in ("board", "observation", "reasoning", "response", "happened"):
            steps[name] = list(map(number, steps[name]))
        steps["prompt"] = [told and [(role, number(text)) for role, text in told] for told in steps["prompt"]]
        held.append(
            {
                "players": list(episode["agents"]),
                "error": episode["error"],
                "ending": ending,
                **{name: column for name, column in steps.items() if name != "finish_reason"},
                "valid": [int(valid) for valid in steps["valid"]],
                "finish": steps["finish_reason"],
                "final_board": number(episode["final_board"]),
                "final_observation": number(episode["final_observation"]),
            }
        )
        if sum(map(len, table)) >= BLOCK_CHARS or episode is episodes[-1]:
            yield packed({"texts": list(table), "episodes": held}), len(held)
            table.clear()
            held = []
