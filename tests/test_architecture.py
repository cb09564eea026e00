"""The shape of the project: who imports whom, and what a light import may cost."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "textgames": {"textgames"},
    "agents": {"textgames", "agents"},
    "benchmark": {"textgames", "agents", "benchmark"},
    "textbench": {"textgames", "agents", "benchmark", "textbench"},
}
# the command that starts an adapter: the door through which an import may go back
DOORS = {"benchmark/cli/serve.py": "textbench"}
PACKAGES = set(ALLOWED)


@cache
def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, anywhere in it, as dotted names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_go_one_way(package):
    files = list((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        ours = {name.split(".")[0] for name in imports_of(path)} & PACKAGES
        ours.discard(DOORS.get(path.relative_to(ROOT).as_posix(), ""))
        assert ours <= ALLOWED[package], f"{path} imports {ours - ALLOWED[package]}"


def modules(packages: Iterable[str] = PACKAGES) -> dict[str, Path]:
    """``{dotted name: file}`` of everything in the packages; a folder's ``__init__`` has the folder's name."""
    found = {}
    for package in packages:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if "tests" not in parts:
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_between(files: dict[str, Path]) -> dict[str, set[str]]:
    """Which module imports which, wherever in the file; a name taken from a package's face counts as the face."""
    return {name: {other for other in imports_of(path) if other in files} - {name} for name, path in files.items()}


def check_circles(files: dict[str, Path]) -> None:
    """Raise a CycleError that names the files of a circle of imports."""
    faces = {name for name, path in files.items() if path.name == "__init__.py"}
    graph = {name: others - faces for name, others in imports_between(files).items() if name not in faces}
    TopologicalSorter(graph).prepare()


def check_rooms(package: str, files: dict[str, Path]) -> None:
    """Raise a CycleError if folders of a package, or files beside them, import each other in a circle."""
    depth = package.count(".") + 2
    graph: dict[str, set[str]] = {}
    for name, others in imports_between(files).items():
        room = ".".join(name.split(".")[:depth])
        if name.startswith(f"{package}.") and name != package:
            inside = {".".join(other.split(".")[:depth]) for other in others if other.startswith(f"{package}.")}
            graph.setdefault(room, set()).update(inside - {room})
    TopologicalSorter(graph).prepare()


def test_no_file_is_in_a_circle_of_imports():
    check_circles(modules())


@pytest.mark.parametrize("package", ["agents", "agents.msgrpo", "benchmark"])
def test_rooms_import_one_way(package):
    check_rooms(package, modules())


NAMES_RESEARCH = re.compile(r"^\s*(?:from|import) research\b|\bresearch(?:\.[a-z_]+)+(?!\.?[a-z_]*/)", re.M)


@pytest.mark.parametrize("folder", [*sorted(ALLOWED), "configs", "examples", "tests", "conftest.py"])
def test_the_product_does_not_know_research(folder):
    """It finds what research adds by entry points alone, so it runs and passes its tests without."""
    place = ROOT / folder
    for path in [place] if place.is_file() else place.rglob("*"):
        if path.suffix in (".py", ".pyi", ".toml", ".json", ".ipynb") and path != Path(__file__):
            found = NAMES_RESEARCH.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{path} names {found and found[0]!r}"


def test_players_do_not_know_their_trainer():
    for path in (ROOT / "agents").rglob("*.py"):
        if "msgrpo" not in path.relative_to(ROOT).parts:
            assert not [name for name in imports_of(path) if name.startswith("agents.msgrpo")], path


def test_rules_know_no_framework():
    for path in [
        *(ROOT / "textgames").rglob("rules.py"),
        *(ROOT / "textgames").rglob("solver.py"),
        ROOT / "textgames/tsmg.py",
    ]:
        for name in imports_of(path):
            assert name.split(".")[0] not in {"gymnasium", "pettingzoo", "rich", "torch"}, f"{path} imports {name}"


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement", ["import textgames", "import textgames.conformance, textgames.snake, textgames.solving.minimax"]
)
def test_textgames_is_light(statement):
    assert not loaded_by(statement) & {
        "torch",
        "transformers",
        "openai",
        "rich",
        "scipy",
        "matplotlib",
        "agents",
        "benchmark",
    }


def test_what_an_error_advises_works_as_it_stands():
    """After ``import textgames`` alone, which doesn't load what most programs never need."""
    assert "textgames.conformance" in loaded_by("import textgames; textgames.conformance.check('TextNim-v0')")
    assert "textgames.conformance" not in loaded_by("import textgames")


@pytest.mark.parametrize(
    "statement",
    [
        "import benchmark.cli",
        "from benchmark import evaluate",
        *(pytest.param(f"import {each}", marks=pytest.mark.slow) for each in ("agents", "benchmark")),
    ],
)
def test_players_and_commands_start_without_models(statement):
    assert not loaded_by(statement) & {"torch", "transformers", "vllm", "matplotlib", "pyarrow", "pandas", "IPython"}


def test_the_face_of_the_benchmark_loads_nothing():
    ours = {name for name in loaded_by("import benchmark") if name.split(".")[0] in PACKAGES}
    assert ours == {"benchmark"}


def test_packages_are_typed():
    assert all((ROOT / package / "py.typed").exists() for package in PACKAGES)


def test_the_wheel_leaves_out_what_is_run_from_a_clone():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert set(wheel["packages"]) == PACKAGES


def test_dependencies_have_their_reason():
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    for line in lines:
        text = line.strip()
        if text.startswith('"') and ">=" in text and not text.startswith('"textbench'):
            assert "#" in text, f"say in one line why it is needed: {text}"
