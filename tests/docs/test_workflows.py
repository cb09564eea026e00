"""What CI leaves out by the clock is run every night, by name, and a pull request is checked by the usual commands."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from textgames.extras import OWN_VERSIONS

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github/workflows"
RUN = (ROOT / ".ci/run").read_text()
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def workflow(name: str) -> dict[str, Any]:
    """A workflow, with ``on`` under its own name: YAML reads that word as true."""
    read: dict[Any, Any] = yaml.safe_load((WORKFLOWS / name).read_text())
    return {("on" if key is True else key): value for key, value in read.items()}


def runs(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def night() -> list[str]:
    job = workflow("nightly.yml")["jobs"]["everything"]
    assert "${{ matrix.command }}" in runs(job)
    return list(job["strategy"]["matrix"]["command"])


def test_a_pull_request_is_linted_typed_and_tested():
    read = workflow("ci.yml")
    assert "pull_request" in read["on"]
    assert runs(read["jobs"]["checks"]) == [
        'pip install -c constraints.txt -e ".[dev]" -e research',
        '.ci/entries --kept --base "$BASE"',
        "ruff check .",
        "ruff format --check .",
        "mypy",
        "pytest -n logical",
        "pytest -n logical research",
    ]
    for name in ("ci.yml", "nightly.yml"):
        assert workflow(name)["env"]["PIP_EXTRA_INDEX_URL"] == "https://download.pytorch.org/whl/cpu"


def test_actions_are_pinned_by_commit_and_get_no_more_than_they_need():
    """A tag can be moved to other code; a commit can't. The comment behind it names the release, for people."""
    for path in WORKFLOWS.glob("*.yml"):
        uses = re.findall(r"uses: *(.*)", path.read_text())
        assert uses, path.name
        for used in uses:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used), (path.name, used)
        read = workflow(path.name)
        assert read["permissions"] == {"contents": "read"}, path.name
        assert "pull_request_target" not in read["on"], path.name
        assert "secrets." not in path.read_text(), path.name
        for job in read["jobs"].values():
            assert "permissions" not in job, path.name
            for step in job["steps"]:
                if step.get("uses", "").startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] is False, path.name


def pins(file: str) -> dict[str, str]:
    """The version that a file pins of each package, by its normalised name; without the build, such as ``+cpu``."""
    found = re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / file).read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def test_the_lock_has_the_tested_versions_of_all_that_dev_needs():
    """Write it anew by ``.ci/lock`` after every change of ``constraints.txt`` or of what ``dev`` needs."""
    lock, constraints = pins("requirements.lock"), pins("constraints.txt")
    assert {name: version for name, version in lock.items() if constraints.get(name) != version} == {}
    extras: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
    wanted, seen, queue = {"editables", "hatchling"}, set(), ["textbench[dev]", *PROJECT["project"]["dependencies"]]
    while queue:
        one = Requirement(queue.pop())
        if one.name != "textbench":
            wanted.add(canonicalize_name(one.name))
        for extra in one.extras - seen if one.name == "textbench" else ():
            seen.add(extra)
            queue += extras[extra]
    assert len(wanted) > 40
    assert wanted - set(lock) == set()


UV_LOCK: dict[str, Any] = tomllib.loads((ROOT / "uv.lock").read_text())


def test_the_lock_of_uv_has_the_tested_versions():
    """Others, beside them, come with the extras that ``[tool.uv] conflicts`` keeps apart from ``dev``."""
    locked: dict[str, set[str]] = {}
    for one in UV_LOCK["package"]:
        locked.setdefault(canonicalize_name(one["name"]), set()).add(one["version"])
    constraints = pins("constraints.txt")
    assert {
        name: locked[name] for name, version in constraints.items() if version not in locked.get(name, version)
    } == {}
    assert len(constraints.keys() & locked) > 200
    own = {one["extra"] for conflict in PROJECT["tool"]["uv"]["conflicts"] for one in conflict if "extra" in one}
    assert own == {*OWN_VERSIONS, "dev"}


@pytest.mark.parametrize("file", ["pyproject.toml", "research/pyproject.toml"])
def test_the_lock_of_uv_is_of_these_requirements(file):
    """Write it anew by ``.ci/lock``."""
    project = tomllib.loads((ROOT / file).read_text())["project"]
    (locked,) = (one["metadata"] for one in UV_LOCK["package"] if one["name"] == project["name"])
    extras: dict[str, list[str]] = {"": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, list[tuple[str, str]]] = {extra: [] for extra in extras}
    for one in locked["requires-dist"]:
        extra = (re.findall(r"extra == '(\w+)'", one.get("marker", "")) or [""])[0]
        found[extra].append((one["name"], str(SpecifierSet(one.get("specifier", "")))))
    for extra, many in extras.items():
        parsed = [Requirement(text) for text in many]
        versions = ["" if one.name == "textbench" else str(one.specifier) for one in parsed]  # a clone's own, of any
        assert sorted(found[extra]) == sorted(
            zip([canonicalize_name(one.name) for one in parsed], versions, strict=True)
        )


def test_the_lock_of_uv_names_pypi_alone():
    """No index or folder of the machine that it was written on; torch has PyPI's build, and no other index."""
    assert {one["source"].get("registry", "") for one in UV_LOCK["package"]} == {"https://pypi.org/simple", ""}
    assert [one["name"] for one in UV_LOCK["package"] if "editable" in one["source"]] == [
        "textbench",
        "textbench-research",
    ]
    addresses = re.findall(r"\w+://[^/\"]+", (ROOT / "uv.lock").read_text())
    assert set(addresses) == {"https://pypi.org", "https://files.pythonhosted.org"}
    assert "default-index https://pypi.org/simple" in (ROOT / ".ci/lock").read_text()


def test_the_night_installs_from_the_lock_and_asks_for_advisories():
    job = workflow("nightly.yml")["jobs"]["everything"]
    lock, own, *_ = runs(job)
    assert lock == "pip install --require-hashes -r requirements.lock"
    assert own == "pip install --no-deps --no-build-isolation -e . -e research"
    assert ".ci/audit" in night()
    python = next(step["with"]["python-version"] for step in job["steps"] if "setup-python" in step.get("uses", ""))
    assert f"--python-version {python} " in (ROOT / ".ci/lock").read_text()


def test_what_may_be_left_is_run_every_night():
    assert "schedule" in workflow("nightly.yml")["on"]
    left = re.findall(r"if_before \d+ ([^;\"\n]+)", RUN)
    assert len(left) == RUN.count("if_before ") >= 5
    assert set(left) <= set(night())
    assert "skipped" not in RUN
    for command in night():
        program = shlex.split(command)[0]
        assert program == "pytest" or (ROOT / program).stat().st_mode & 0o111, command


def test_all_marked_tests_are_run_somewhere():
    """The default tests leave markers out; each of those is in the night's commands, by itself or in a script."""
    marks = re.findall(r"not (\w+)", PROJECT["tool"]["pytest"]["ini_options"]["addopts"])
    assert "nightly" in marks
    assert {"slow", "browser"} <= set(marks)
    scripts = "".join((ROOT / shlex.split(one)[0]).read_text() for one in night() if one.startswith(".ci/"))
    for mark in marks:
        assert any(re.search(rf"-m .*\b{mark}\b", text) for text in (*night(), *scripts.splitlines())), mark
    adapters = {path.stem.removeprefix("adapters-") for path in (ROOT / ".ci").glob("adapters-*.txt")}
    assert {f".ci/adapters {name}" for name in adapters} <= set(night())


def test_the_night_skips_nothing():
    assert workflow("nightly.yml")["env"]["CI_REQUIRED"] == "1"
    for script in ("adapters", "engines", "litellm", "ray"):
        said = (ROOT / ".ci" / script).read_text()
        assert said.count("skipped,") == said.count('[ -z "${CI_REQUIRED:-}" ] ||') == 1, script
