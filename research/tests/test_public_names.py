"""Research imports the public names of the product and nothing else of it, as any other package could."""

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from tests.test_architecture import PACKAGES, ROOT, check_circles, check_rooms, loaded_by, modules

FILES = modules(["research"])


@cache
def public_names(package: str) -> frozenset[str]:
    """The names that a package's face declares; empty if it is no package, or declares none."""
    if not (ROOT / package.replace(".", "/") / "__init__.py").exists():
        return frozenset()
    return frozenset(getattr(import_module(package), "__all__", ()))


def private_imports(path: Path) -> Iterator[str]:
    """What a file imports of the product that is no public name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in PACKAGES and not public_names(alias.name):
                    yield f"import {alias.name}"
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in PACKAGES:
            for name in {alias.name for alias in node.names} - public_names(str(node.module)):
                yield f"from {node.module} import {name}"


def test_modules_import_public_names_alone():
    found = {name: list(private_imports(path)) for name, path in FILES.items() if not name.endswith("conftest")}
    assert {name: imports for name, imports in found.items() if imports} == {}


def test_every_public_name_is_there():
    for package in modules(PACKAGES - {"textbench"}):  # whose adapters need what isn't installed
        for name in public_names(package):
            getattr(import_module(package), name)


def test_nothing_is_in_a_circle():
    check_circles(FILES)
    check_rooms("research", FILES)


def test_settings_of_studies_and_improvers_are_read_without_torch():
    assert "torch" not in loaded_by("import research.reproduction.command, research.improve.methods.reinforcing")
