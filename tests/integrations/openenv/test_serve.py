"""``textbench serve`` as a process, and OpenEnv's own judgement of it."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="needs OpenEnv: pip install -e '.[openenv]', or .ci/adapters openenv")

import requests

from tests.integrations.openenv.serving import play

pytestmark = pytest.mark.adapters

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
FOLDER = ROOT / "textbench/integrations/openenv"


def start(*arguments: str, command: str | Path = BIN / "textbench", cwd: Path = ROOT) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [command, "serve", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd
    )


@pytest.fixture(scope="module")
def server():
    process = start("frozen-lake-slippery", "--set", "format_penalty=1", "--port", "0")
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def test_validates_and_has_a_page(server):
    _, url = server
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
        (["all"], "serve one scenario, 'all' is several"),
        (["frozen-lake", "--against", "random"], "frozen-lake is played alone: leave out --against"),
        (["tic-tac-toe", "--against", "plannner"], "did you mean 'planner'"),
        (["tic-tac-toe", "--against", "random", "--self-play"], "--self-play leaves no seat"),
        (["tic-tac-toe", "--seat", "player_7"], "unknown seat 'player_7'"),
        (["frozen-lake", "--mode", "dirct"], "did you mean 'direct'"),
        (["frozen-lake", "--prompts", "nowhere.toml"], "can't read the prompt file 'nowhere.toml'"),
        (["frozen-lake", "--set", "size"], "--set takes NAME=VALUE, got 'size'"),
        (["frozen-lake", "--set", "sise=4"], "sise"),
        (["frozen-lake", "--set", "size=0"], "size"),
        (["frozen-lake", "--set", "size=1000000000"], "size"),
        (["frozen-lake", "--token", "short"], "the token has at least 8 characters"),
        (["frozen-lake", "--allow-host", "http://games.example.com"], "takes a name without scheme and port"),
        (["frozen-lake", "--allow-host", "games.example.com:80"], "takes a name without scheme and port"),
        (["frozen-lake", "--idle-timeout", "soon"], "--idle-timeout must be a whole number"),
        (["frozen-lake", "--host", "192.0.2.1"], "can't listen on 192.0.2.1:0"),  # nobody's address
        (["frozen-lake", "--port", "70000"], "--port must be a whole number from 0 to 65,535, got '70000'"),
        (["frozen-lake", "--port", "many"], "--port must be a whole number from 0 to 65,535, got 'many'"),
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


def dockerfile() -> dict[str, list[str]]:
    """``{instruction: its arguments, in order}``."""
    text = (FOLDER / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    return {name: [rest for other, rest in lines if other == name] for name, _ in lines}


@pytest.mark.slow
def test_image_can_be_built_and_started(tmp_path):
    """There is no docker here: its steps are run in a folder and an environment of their own."""
    steps = dockerfile()
    app, venv = tmp_path / "app", tmp_path / "venv"
    app.mkdir()
    for copied in steps["COPY"]:
        *sources, target = copied.split()
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, app / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (app / target).mkdir(exist_ok=True)  # a file's target ends with a slash
                shutil.copy(ROOT / source, app / target)
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    environment = {**os.environ, "PATH": f"{venv / 'bin'}:{os.environ['PATH']}", "VIRTUAL_ENV": str(venv)}
    environment.pop("PYTHONPATH", None)
    for step in steps["RUN"]:
        subprocess.run(step, shell=True, cwd=app, env=environment, check=True)
    (entry,), (command,) = steps["ENTRYPOINT"], steps["CMD"]
    arguments = [word.replace("8000", "0") for word in eval(entry) + eval(command)]  # a free port
    assert arguments[:2] == ["textbench", "serve"]
    process = start(*arguments[2:], command=venv / "bin/textbench", cwd=app)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip().replace("0.0.0.0", "127.0.0.1")
        check = shlex.split(steps["HEALTHCHECK"][0].partition("CMD")[2])
        check[-1] = check[-1].replace("http://127.0.0.1:8000", url)
        subprocess.run(check, check=True, env=environment)
        assert play(url, seed=3)[1].done
    finally:
        process.kill()
        process.communicate()
