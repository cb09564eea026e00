"""What the project says of itself in files that tools read: citation, badges, templates, the index for models."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import yaml

from agents.msgrpo.configuration.config import presets
from agents.msgrpo.credit import METHODS
from agents.msgrpo.draws import DRAWS
from agents.msgrpo.filters import FILTERS
from agents.msgrpo.surrogates import SURROGATES
from agents.msgrpo.tasks import SAMPLERS

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REPOSITORY = PROJECT["urls"]["Source"]


def test_the_citation_is_of_this_version():
    """The keys that CFF 1.2.0 requires; cffconvert --validate checked the rest when it was written."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert str(citation["version"]) == PROJECT["version"]
    for folder in ("research", "textgames"):
        other = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
        assert other["version"] == PROJECT["version"]
        ours = [one for one in other["dependencies"] if one.startswith("textbench")]
        assert ours == [f"textbench[train]=={PROJECT['version']}"] * (folder == "research")
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == [{"name": author["name"]} for author in PROJECT["authors"]]


def test_the_projects_address_stands_in_one_place():
    """In pyproject.toml, from which the site has it: commands begin in the checkout, and links are relative."""
    owner = "/".join(REPOSITORY.removeprefix("https://github.com/").split("/")[:2])
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    naming = [
        name
        for name in listed.split("\0")
        if name
        and (ROOT / name).is_file()
        and re.search(rf"github\S*\.com/{owner}".encode(), (ROOT / name).read_bytes())
    ]
    assert naming == ["pyproject.toml"]


def test_the_index_for_language_models_leads_to_files():
    text = (ROOT / "llms.txt").read_text()
    assert text.startswith("# textbench\n\n> ")
    links = re.findall(r"^- \[[^]]+\]\(([^)]+)\): .+$", text, re.MULTILINE)
    assert len(links) == len(re.findall(r"^- ", text, re.MULTILINE))
    for link in links:
        assert (ROOT / link).is_file(), link
    for page in (ROOT / "docs/tutorials").glob("[!i]*.md"):
        assert f"docs/tutorials/{page.name}" in links


def test_every_method_has_a_line_with_its_source():
    """By its preset, where it has one; the page of methods is the index of papers."""
    text = (ROOT / "docs/research/credit/methods.md").read_text()
    told = set(re.findall(r"`([a-z]\w*)`", text))
    assert presets().keys() - {"common"} <= told
    assert {*METHODS.names, *DRAWS.names, *FILTERS.names, *SAMPLERS.names, *SURROGATES.names} - {
        "oracle",
        "noise",
    } <= told
    rows = [line for line in text.splitlines() if re.match(r"\| `", line)]
    assert sum(bool(re.search(r"\b\d{4}\.\d{5}\b", row)) for row in rows) > 25


def test_every_page_that_is_named_exists():
    """In code, settings, recipes and files of the project; the changelog names pages of its time."""
    pattern = r"(?<![\w/])docs/[\w/-]+\.(?:md|toml)\b"
    found = subprocess.run(
        ["git", "grep", "-ohP", pattern, "--", ":!CHANGELOG.md"], cwd=ROOT, capture_output=True, text=True
    )
    assert sorted({name for name in found.stdout.split() if not (ROOT / name).is_file()}) == []


def test_data_of_studies_is_not_among_the_documents():
    """It lies beside the study, compressed: ``research/*/data``."""
    assert [file for file in (ROOT / "docs").rglob("*.json") if file.stat().st_size > 100_000] == []
