"""What the reference pages say is what the code says."""

import re
from importlib import import_module
from pathlib import Path

import pytest
from pages import api, reference
from pages.marks import ON_THE_SITE, names_in

from benchmark.cli import COMMANDS, LAB

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference"
PACKAGES = ("textgames", "agents", "benchmark", "textbench", "research")


MADE = dict(reference.files())


@pytest.mark.parametrize("file", MADE, ids=lambda file: file.name)
def test_schemas_are_those_of_the_code(file):
    assert file.read_text() == MADE[file], "run: python docs/tools/make_pages.py"


@pytest.mark.parametrize("name", ["textgames", "agents", "benchmark"])  # the others load torch
def test_the_api_has_its_names_in_the_repository_and_its_docstrings_on_the_site(name):
    file, kept = PAGES / f"api/{name}.md", api.page(name)
    assert file.read_text() == kept, "run: python docs/tools/make_pages.py"
    rows = re.findall(r"^\| \[`(\w+)`\]\(([^)]+)\) \| (.+) \|$", kept, re.MULTILINE)
    assert set(import_module(name).__all__) <= {key for key, _, _ in rows}
    for key, path, about in rows:
        defined = re.search(rf"^(?:class|def|async def)? ?{key}\b", (file.parent / path).read_text(), re.MULTILINE)
        assert defined or f"/{key}" in path, key  # a module
        assert about.strip(), key
    site = api.page(name, on_the_site=True)
    assert f".. automodule:: {name}\n   :imported-members:\n" in site
    assert re.findall("^#.*", site, re.MULTILINE) == re.findall("^#.*", kept, re.MULTILINE)


def test_every_maker_has_its_page():
    marked = [name for file in PAGES.glob("*.md") for name in names_in(file.read_text(), ON_THE_SITE)]
    assert sorted(marked) == sorted(reference.PARTS)


def test_the_site_has_every_command_and_the_repository_says_where_they_are():
    kept = (PAGES / "commands.md").read_text()
    shown = reference.with_tables(kept)
    for name in COMMANDS | LAB:
        heading = f"## textbench {name}\n"
        assert heading in shown
        assert heading not in kept
    assert "`textbench COMMAND --help`" in kept


@pytest.mark.slow
def test_every_environment_variable_is_told_of():
    """What ``os.environ`` is asked for, by its name or by a constant of its module."""
    found = set()
    for path in (file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        text = path.read_text()
        constants = dict(re.findall(r'^(\w+) = "(\w+)"', text, re.MULTILINE))
        asked = re.findall(r"environ(?:\.\w+\(|\[)([\w\"]+)|getenv\(([\w\"]+)|([\w\"]+) (?:not )?in os\.environ", text)
        names = ["".join(each) for each in asked]
        found |= {constants.get(name, name.strip('"')) for name in names if name[:1] == '"' or name in constants}
    found -= {"PATH", "PYTHONPATH"}  # what research gives to the programs that it starts
    assert {"OPENAI_API_KEY", "TEXTBENCH_CACHE_DIR", "WORLD_SIZE", "VLLM_ENABLE_V1_MULTIPROCESSING"} <= found
    told = set(re.findall(r"`\$?([A-Z][A-Z0-9_]+)(?:=\d)?`", (PAGES / "environment.md").read_text()))
    assert sorted(found - told) == [], "docs/reference/environment.md has to tell of them"
