"""A real server: ``transformers serve`` with a model that ships, played by ``textbench run`` as people do it."""

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from agents.models.embedded import FOLDER
from benchmark.runs.folder import RunFolder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("fastapi") is None, reason="transformers serve needs fastapi: the extra test has it"),
]
READY_SECONDS = 240


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The server's URL and the model's name there, which is its folder."""
    folder = tmp_path_factory.mktemp("served") / "tiny"
    shutil.copytree(FOLDER / "tiny", folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder.parent / "log"
    script = Path(sys.executable).parent / "transformers"
    command = [str(script)] if script.exists() else [sys.executable, "-m", "transformers.cli.transformers"]
    command += ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        for _ in range(READY_SECONDS):
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                break
            if process.poll() is not None:
                pytest.fail(f"the server ended:\n{log.read_text()[-2000:]}")
            time.sleep(1)
        else:
            pytest.fail(f"the server isn't ready:\n{log.read_text()[-2000:]}")
        yield f"http://127.0.0.1:{port}/v1", str(folder)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("route", ["chat", "responses", "completions"])
def test_a_real_server_plays(served, textbench, route):
    url, model = served
    command = ("run", "--agent", f"m=openai:{model}", "--base-url", url, "--scenario", "frozen-lake", "--episodes", 2)
    done = textbench(*command, "--set", f"m.route={route}", "--max-tokens", 64, "--out", "r", "--quiet")
    assert done.code == 0, done.err
    steps = [step for record in RunFolder.open(Path("r")).records() for step in record["steps"]]
    assert len(steps) >= 2
    assert all(min(step["tokens"]) > 0 for step in steps)
    if route == "chat":  # the template is what the model was made with, so it answers in form
        assert sum(step["valid"] for step in steps) > len(steps) / 2
        assert all(step["response"].count("<action>") == 1 for step in steps if step["valid"])
