"""The leaderboard page: :func:`render_page` makes one self-contained HTML file of a document.

The file needs nothing else: no server, no network, no build step; it is read with ``file://`` as well as from a site.
Text in it that others wrote (names, responses, errors) can't act: Jinja escapes what it writes, the script writes text
nodes only, the data is inert JSON, and the content security policy admits the two inline elements by their hashes,
no network and no string-to-code conversion.
"""

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from agents.files import replacing
from benchmark.score.document import SCHEMA_VERSION, ViewDocument
from benchmark.show.columns import LARGE
from benchmark.show.page.pack import inert_json, pack_episodes
from benchmark.show.page.tables import grouped_sections, overall_table, suite_table

SCRIPTS = ("dom.js", "data.js", "board.js", "tables.js", "compare.js", "side.js", "replay.js", "main.js")
"""The page's script is these files, in this order, inside one function."""


def render_page(document: ViewDocument) -> str:
    """Draw a document as one HTML page, ASCII apart from names and captions.

    The same document gives the same text (with the same build of zlib).

    Raises:
        ValueError: a document of another schema version, with a number that isn't finite, or with an episode of an
            unlisted agent or scenario.
    """
    version = document["schema_version"]
    if version != SCHEMA_VERSION:
        raise ValueError(f"the page draws documents of schema version {SCHEMA_VERSION}, this one has {version}")
    pack = pack_episodes(document)
    # one strict function of all scripts: no global names, and one hash for the policy
    script = '(() => {\n"use strict";\n' + "\n".join(_asset(name) for name in SCRIPTS) + "})();\n"
    style = _asset("style.css")
    prompts, agents = _shared_prompts(document)
    data = {
        "scenarios": document["scenarios"],
        "agents": agents,
        "prompts": prompts,
        "comparisons": [{key: _short(value) for key, value in row.items()} for row in document["comparisons"]],
        "comparisons_family": document["comparisons_family"],
        "index": pack.listing,
    }
    # everything is escaped, whatever a template's name ends with, and an unknown name is an error
    jinja = Environment(
        autoescape=True, loader=FunctionLoader(_asset), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = jinja.get_template("page.html.j2").render(
        document=document,
        overall=overall_table(document) if len(document["overall_scenarios"]) > 1 else None,
        suites=suite_table(document),
        groups=grouped_sections(document),
        large=len(document["scenarios"]) > LARGE,
        policy=_policy(style, script),
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
    """Write the page of ``document`` to ``path`` and return its size in bytes; an existing file is replaced whole.

    Raises:
        ValueError: as :func:`render_page`.
        OSError: the file can't be written; the old one is then still there.
    """
    target = Path(path)
    content = render_page(document).encode("utf-8")
    with replacing(target, "wb") as stream:
        stream.write(content)
    return len(content)


def _shared_prompts(document: ViewDocument) -> tuple[list[Any], list[dict[str, Any]]]:
    """Every different prompt once, and the agents with ``{scenario: place in that list}``: most agents share theirs."""
    prompts: list[Any] = []
    agents = []
    for agent in document["agents"]:
        places = {}
        for scenario, messages in agent["prompts"].items():
            if messages not in prompts:
                prompts.append(messages)
            places[scenario] = prompts.index(messages)
        agents.append({"name": agent["name"], "prompts": places})
    return prompts, agents


def _short(value: Any) -> Any:
    """Numbers with six significant digits: the page shows three, and is read over networks."""
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _asset(name: str) -> str:
    return files("benchmark.show.page").joinpath("assets", name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """The content security policy: this style, this script, nothing else; no HTML from strings, no network."""
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    directives = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digests[0]}'",
        "style-src": f"'sha256-{digests[1]}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())
