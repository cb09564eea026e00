"""``textbench serve`` as a process, OpenEnv's own judgement of it, and the tutorial on it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="needs OpenEnv: pip install -e '.[openenv]', or .ci/adapters openenv")

import requests

from tests.integrations.openenv.serving import ROOT, a_process, play

pytestmark = pytest.mark.adapters

BIN = Path(sys.executable).parent
FOLDER = ROOT / "textbench/integrations/openenv"
PAGE = (ROOT / "docs/tutorials/serve.md").read_text()
CELLS = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
MARK = "---- end of cell ----"


@pytest.fixture(scope="module")
def url():
    with a_process("frozen-lake-slippery", "--set", "format_penalty=1") as address:
        yield address


def test_validates_and_has_a_page(url):
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
    validated = subprocess.run(
        [BIN / "openenv", "validate", "--url", url, "--timeout", "60"], capture_output=True, text=True
    )
    assert validated.returncode == 0, validated.stdout + validated.stderr
    assert validated.stdout.count("PASS") == 7
    assert "Verdict: PASS" in validated.stdout
    assert requests.get(f"{url}/").url == f"{url}/web/"
    asked = requests.post(f"{url}/web/reset", json={"seed": 3}).json()["observation"]
    assert "Board: 4 wide, 4 high" in asked["text"]
    stepped = requests.post(f"{url}/web/step", json={"action": {"message": "no idea"}}).json()
    assert (stepped["observation"]["valid"], stepped["reward"]) == (False, -1.0)  # the setting counts
    assert play(url, seed=3)[1].done


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["snak"], "no scenario named 'snak'; did you mean 'snake'?"),
        (["frozen-lake", "--against", "random"], "frozen-lake is played alone: leave out --against"),
        (["tic-tac-toe", "--against", "random", "--self-play"], "--self-play leaves no seat"),
        (["frozen-lake", "--prompts", "nowhere.toml"], "can't read the prompt file 'nowhere.toml'"),
        (["frozen-lake", "--set", "size"], "--set takes NAME=VALUE, got 'size'"),
        (["frozen-lake", "--set", "size=1000000000"], "size"),
        (["frozen-lake", "--token", "short"], "the token has at least 8 characters"),
        (["frozen-lake", "--allow-host", "http://games.example.com"], "takes a name without scheme and port"),
        (["frozen-lake", "--host", "192.0.2.1"], "can't listen on 192.0.2.1:0"),  # nobody's address
        (["frozen-lake", "--port", "70000"], "--port must be a whole number from 0 to 65,535, got '70000'"),
    ],
)
def test_mistakes_are_one_sentence(arguments, message, capsys):
    from benchmark.cli import main

    port = [] if "--port" in arguments else ["--port", "0"]
    assert main(["serve", *arguments, *port]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_folder_validates():
    validated = subprocess.run(
        [BIN / "openenv", "validate", FOLDER, "--level", "static"], capture_output=True, text=True
    )
    assert validated.returncode == 0, validated.stdout + validated.stderr
    assert "static.manifest" in validated.stdout


def test_the_image_has_all_that_is_installed_and_starts_the_command():
    """There is no docker here."""
    text = (FOLDER / "Dockerfile").read_text()
    copied = [source for line in re.findall(r"^COPY (.*)", text, re.MULTILINE) for source in line.split()[:-1]]
    assert all((ROOT / source).exists() for source in copied)
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*build["packages"], "pyproject.toml", "constraints.txt", ".ci/readme.py"} <= set(copied)
    assert 'ENTRYPOINT ["textbench", "serve", "--host", "0.0.0.0", "--port", "8000"]\nCMD ["frozen-lake"]' in text


def test_every_cell_of_the_tutorial_prints_what_stands_below_it(tmp_path):
    assert len(CELLS) == PAGE.count("{code-cell}") >= 5
    program = "\n".join(f"{code}\nprint({MARK!r}, flush=True)" for code, _ in CELLS)
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(f"{MARK}\n")
    for (code, expected), shown in zip(CELLS, printed, strict=False):
        assert shown == expected, code
