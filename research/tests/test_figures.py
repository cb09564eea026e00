"""Figures of README and docs are traced to a file or a command by docs/figures.toml, whose head explains its form."""

import csv
import gzip
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest

from benchmark.cli import COMMANDS, LAB
from research import commands as added
from research.jobs.intervals import share_of

ROOT = Path(__file__).parents[2]
TRACED: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "docs/figures.toml").read_text())
ROWS = [(page, row) for page, traced in TRACED.items() for row in traced.get("rows", [])]
MADE = "docs/research/credit/methods/"  # by the site, if it was built
NUMBER = r"([-+]?\d[\d,]*(?:\.\d+)?)"
ESTIMATE = re.compile(rf"{NUMBER}(%?) \[{NUMBER}%?, {NUMBER}%?\]")
OF_A_LIST = {"len": len, "mean": np.mean, "max": max, "min": min}


def plain(text: str) -> str:
    """Return a page without emphasis and line ends, and without what is made of data by code."""
    return re.sub(r"\s+", " ", re.sub(r"<!--made:.*?<!--end:", "", text, flags=re.DOTALL).replace("**", ""))


@cache
def page_of(page: str) -> str:
    return plain((ROOT / page).read_text())


def numbers(texts: tuple[str, ...]) -> list[tuple[float, float]]:
    """Return each number with half of its last digit."""
    return [(float(text.replace(",", "")), 0.5 * 0.1 ** len(text.partition(".")[2]) + 1e-9) for text in texts]


@cache
def read(file: str) -> Any:
    """Return what a file or, as ``module:name``, a name of the code holds."""
    if ":" in file:
        return resolve_name(file)
    path = ROOT / file
    data = path.read_bytes() if path.suffix != ".gz" else gzip.decompress(path.read_bytes())
    if path.suffix == ".csv":
        lines = csv.DictReader(data.decode().splitlines())
        return [
            {key: float(cell) if re.fullmatch(NUMBER, cell) else cell for key, cell in row.items()} for row in lines
        ]
    return json.loads(data)


def estimates(data: Any) -> Iterator[tuple[float, float, float]]:
    """Yield ``(value, low, high)`` of everything in a file that has them; successes of 0 and 1 have Wilson's."""
    if isinstance(data, dict):
        found = tuple(data.get(key) for key in ("value", "low", "high"))
        if all(isinstance(one, int | float) for one in found):
            yield found  # type: ignore[misc]
        if isinstance(data.get("successes"), list):
            yield tuple(share_of(data["successes"]))
    if isinstance(data, dict | list):
        for one in data.values() if isinstance(data, dict) else data:
            yield from estimates(one)


@cache
def known(pattern: str) -> np.ndarray:
    """Return (n, 3), the estimates of the files that a pattern names and the same with the other sign."""
    files = [str(file.relative_to(ROOT)) for file in ROOT.glob(pattern)]
    assert files, f"no file is {pattern}"
    found = np.array([one for file in files for one in estimates(read(file))]).reshape(-1, 3)
    return np.concatenate([found, -found[:, [0, 2, 1]]])


def is_known(found: re.Match[str], patterns: list[str]) -> bool:
    values, halves = np.array(numbers(found.group(1, 3, 4))).T
    scale = 100 if found[2] else 1
    return any((abs(known(one) * scale - values) <= halves).all(axis=1).any() for one in patterns)


def at(data: Any, path: list[Any]) -> list[float]:
    """Return the numbers at a path of a row."""
    for step in path:
        if isinstance(step, dict):
            fitting = [one for one in data if all(one.get(key) == value for key, value in step.items())]
            data = fitting[0] if len(fitting) == 1 else fitting
        elif step in OF_A_LIST and not (isinstance(data, dict) and step in data):
            data = OF_A_LIST[step](data)
        else:
            data = [one[step] for one in data] if isinstance(data, list) and isinstance(step, str) else data[step]
    if isinstance(data, dict):
        data = [data[key] for key in ("value", "low", "high")]
    return [float(one) for one in np.ravel(data)]


def put(step: Any, value: str) -> Any:
    """Return a step of a path with a value in the place of ``$``."""
    if isinstance(step, dict):
        return {key: put(one, value) for key, one in step.items()}
    return value if step == "$" else step


def check_command(command: str) -> None:
    """Fail unless a command can be run here: its program, its script and its recipe are there."""
    program, first, *others = shlex.split(command)
    if program == "textbench":
        assert first in {*COMMANDS, *LAB, *(name.lower() for name in vars(added))}, command
        if "--config" in others:
            name = others[others.index("--config") + 1]
            assert any(ROOT.glob(f"research/**/recipes/{name}.toml")), command
    else:
        assert program == "python", command
        place = f"{others[0].replace('.', '/')}.py" if first == "-m" else first
        assert (ROOT / place).is_file() or (ROOT / place.removesuffix(".py")).is_dir(), command


@pytest.mark.parametrize("page", TRACED)
def test_every_estimate_of_a_page_is_in_its_files_or_has_a_command(page):
    traced = TRACED[page]
    commands = traced.get("commands", {})
    listed = [text for texts in commands.values() for text in texts]
    untraced = [one[0] for one in ESTIMATE.finditer(page_of(page)) if not is_known(one, traced.get("files", []))]
    known_by_command = [text for text in listed if ESTIMATE.fullmatch(text)]
    assert sorted(untraced) == sorted(known_by_command), "docs/figures.toml says how an estimate is traced"
    assert [text for text in listed if plain(text) not in page_of(page)] == []
    for command in commands:
        check_command(command)


@pytest.mark.parametrize(("page", "row"), ROWS, ids=[f"{page}: {row['text'][:40]}" for page, row in ROWS])
def test_a_figure_is_what_its_file_says(page, row):
    template = re.escape(plain(row["text"])).replace(r"\{\}", NUMBER)
    (told,) = re.findall(template, page_of(page))
    told = (told,) if isinstance(told, str) else told
    paths = [[put(step, one) for step in path] for one in row.get("over", [""]) for path in row["paths"]]
    computed = [value * row.get("times", 1) for path in paths for value in at(read(row["file"]), path)]
    values, halves = np.array(numbers(told)).T
    assert len(computed) == len(told)
    assert (abs(values - computed) <= halves).all(), computed


def test_every_page_with_an_estimate_is_traced():
    pages = [str(page.relative_to(ROOT)) for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]]
    written = [page for page in pages if not page.startswith(MADE)]
    assert {page for page in written if ESTIMATE.search(page_of(page))} - {*TRACED} == set()
