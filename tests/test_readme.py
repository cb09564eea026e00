"""Every command and every program of the README is run as it stands there.

The two commands that install are what ``.ci/run`` and a person on a fresh machine run; here it is checked that
``.ci/run`` still does. Commands that ask a server get a local one that speaks the OpenAI protocol.
"""

import os
import re
import runpy
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from tests.agents.openai_server import OpenAIServer

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PROGRAMS = [code for language, code in BLOCKS if language == "python"]
COMMANDS = [
    line
    for language, code in BLOCKS
    if language == "sh"
    for line in code.replace("\\\n", " ").splitlines()
    if line.strip() and not line.startswith("#")
]
INSTALLS = [line for line in COMMANDS if "pip install" in line or line.startswith("python3 -m venv")]
"""Run by ``.ci/run`` and by whoever tries the README on a fresh machine."""
OTHERS = (
    "pip install xllamacpp",
    "pip install --no-index --no-deps --target site wheels/*",
    "pip install --no-deps gym-sokoban==0.0.6",
)
"""A server that runs beside textbench, packages for a machine without the internet, and a peer of a measurement."""


def test_the_readme_has_what_it_promises():
    assert len(PROGRAMS) >= 3
    assert len(COMMANDS) >= 12
    assert any("while not done" in program and "gym.make" in program for program in PROGRAMS)


@pytest.mark.slow
@pytest.mark.filterwarnings("default", "error::UserWarning")
@pytest.mark.parametrize("code", PROGRAMS, ids=lambda code: code.strip().splitlines()[-1][:40])
def test_program(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(code)
    runpy.run_path("program.py", run_name="__main__")


@pytest.mark.slow
def test_programs_have_the_types_that_mypy_wants(tmp_path):
    """In the strict mode of pyproject.toml, whose cache .ci/run has filled."""
    files = [tmp_path / f"program_{number}.py" for number in range(len(PROGRAMS))]
    for file, code in zip(files, PROGRAMS, strict=True):
        file.write_text(code)
    done = subprocess.run([sys.executable, "-m", "mypy", *files], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert f"no issues found in {len(files)} source files" in done.stdout


@pytest.fixture(scope="module")
def server():
    with OpenAIServer() as server:
        yield server.base_url


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One working folder for all commands, in the README's order: later ones read what earlier ones wrote."""
    folder = tmp_path_factory.mktemp("readme")
    for name in ("configs", "research", "leaderboards", "tests"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def run(command: str, folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OPENAI_API_KEY": "not-a-real-key",
        "COLUMNS": "120",
    }
    words = [url if word.startswith("http://localhost") else word for word in shlex.split(command)]
    # the same commands, shorter: minutes become seconds; making a base model has tests of its own
    if words[:3] == ["python", "-m", "agents.msgrpo"]:
        # two threads wait for each other beside other workers
        small = ("iterations=1", "groups=2", "episodes_drawn=8", "eval_episodes=4", "threads=1")
        small += ("model=tiny", "response_mode=think", "max_response_tokens=40")
        words += [word for setting in small for word in ("--set", setting)]
    if words[:2] == ["textbench", "run"]:
        if "--episodes" not in words:
            words += ["--episodes", "1"]
        words[words.index("--episodes") + 1] = "4" if "greedy" in words else "1"
    if words[0] == "textbench" and "--base-url" not in words and any(word.startswith("openai:") for word in words):
        words += ["--base-url", url]
    return subprocess.run(words, capture_output=True, text=True, cwd=folder, env=environment, timeout=600)


@pytest.mark.slow
def test_commands_in_order(folder, server):
    for command in [line for line in COMMANDS if line not in INSTALLS]:
        done = run(command, folder, server)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, command


def test_installing_is_what_ci_does():
    ci = (ROOT / ".ci/run").read_text()
    assert any('pip install -c constraints.txt -e ".[dev]"' in line for line in INSTALLS)
    assert 'pip install --quiet -c constraints.txt -e ".[dev]"' in ci
    assert re.search(r"^pytest", ci, re.MULTILINE)


def test_the_versions_that_are_installed_run_on_the_oldest_python():
    """Debian 12 has 3.11.2, for which a release of soupsieve was too new, so that `.[dev]` wasn't installed."""
    oldest = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert oldest is not None
    pinned = [line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    wanted = {}
    for name in pinned:
        try:
            wanted[name] = metadata(name).get("Requires-Python", "")
        except PackageNotFoundError:  # of an extra that isn't installed here
            continue
    assert len(wanted) > 100
    assert [name for name in wanted if not SpecifierSet(wanted[name]).contains(f"{oldest[1]}.0")] == []


def test_advice_on_installing_works_from_a_clone():
    """There is no release on a package index yet, so nothing of ours may be installed by its name alone.

    A program of somebody else's that stands beside ours, such as a server, has no extra and comes by its own name.
    """
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for advice in re.findall(r"pip install (?!\.\.\.)[^`\n]*", page.read_text()):
            if advice in OTHERS:
                continue
            assert re.search(r' (-e (\.|"\.|research)|\./textgames)', advice), f"{page.name}: {advice}"
