"""A real server: ``transformers serve`` with a model that ships, played by ``textbench run`` as people do it."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from agents.models.embedded import FOLDER
from benchmark.runs.folder import RunFolder
from tests.agents.transformers_serve import serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("fastapi") is None, reason="transformers serve needs fastapi: the extra test has it"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The server's URL and the model's name there, which is its folder."""
    folder = tmp_path_factory.mktemp("served") / "tiny"
    shutil.copytree(FOLDER / "tiny", folder)
    with serving(folder) as url:
        yield url, str(folder)


@pytest.mark.parametrize("route", ["chat", "responses", "completions"])
def test_a_real_server_plays(served, textbench, route):
    url, model = served
    command = ("run", "--agent", f"m=openai:{model}", "--base-url", url, "--scenario", "frozen-lake", "--episodes", 2)
    done = textbench(*command, "--set", f"m.route={route}", "--max-tokens", 64, "--out", "r", "--quiet")
    assert done.code == 0, done.err
    steps = [step for record in RunFolder.open(Path("r")).records() for step in record.steps]
    assert len(steps) >= 2
    assert all(min(step.turn.usage[:2]) > 0 for step in steps)
    if route == "chat":  # the template is what the model was made with, so it answers in form
        assert sum(step.valid for step in steps) > len(steps) / 2
        assert all(step.turn.response.count("<action>") == 1 for step in steps if step.valid)


def test_a_real_server_takes_a_tool_and_text_in_place_of_its_call_does_not_count(served, textbench):
    """The model that ships knows no tools: the server gives its text, in which it plays well."""
    url, model = served
    command = ("run", "--agent", f"m=openai:{model}", "--base-url", url, "--scenario", "frozen-lake", "--episodes", 1)
    done = textbench(*command, "--protocol", "tools", "--max-tokens", 64, "--out", "r", "--quiet")
    assert done.code == 0, done.err
    steps = [step for record in RunFolder.open(Path("r")).records() for step in record.steps]
    assert steps
    assert {(step.turn.response, step.valid, bool(step.turn.cut)) for step in steps} == {("", False, True)}
