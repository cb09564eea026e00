"""The scripts in ``examples``: five of a page each and the method in one file, run as their first lines say."""

import ast
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PUBLIC = {"agents", "agents.msgrpo", "benchmark", "gymnasium", "textgames", "textgames.conformance"}
SCRIPTS = [
    ("play.py", [], "return 0, success False"),
    ("play.py", ["TextWordGuess-v0"], "executed"),
    ("evaluate.py", ["--episodes", "10"], "planner: "),
    ("add_a_game.py", [], "0 = blind"),
    ("add_an_agent.py", [], "careful is better than blind in frozen-lake"),
]
TRAINING = [
    ("train.py", ["--iterations", "1", "--episodes", "2"], "A = after, B = before"),
    ("msgrpo_minimal.py", ["--iterations", "1"], "iteration 1: return"),
]


def test_there_are_five_of_at_most_60_lines_that_use_public_names():
    pages = sorted(path for path in EXAMPLES.glob("*.py") if path.name != "msgrpo_minimal.py")
    assert [page.stem for page in pages] == ["add_a_game", "add_an_agent", "evaluate", "play", "train"]
    for page in pages:
        text = page.read_text()
        assert len(text.splitlines()) <= 60
        tree = ast.parse(text)
        said = ast.get_docstring(tree) or ""
        assert said.splitlines()[0].endswith(".")
        assert f"python examples/{page.name}\n" in said
        named = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
        named |= {name.name for each in ast.walk(tree) if isinstance(each, ast.Import) for name in each.names}
        assert named - sys.stdlib_module_names <= PUBLIC


@pytest.mark.parametrize(("script", "options", "printed"), SCRIPTS)
def test_it_runs(tmp_path, script, options, printed):
    command = [sys.executable, "-W", "error::UserWarning", str(EXAMPLES / script), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


@pytest.mark.slow
@pytest.mark.filterwarnings("default", "error::UserWarning")
@pytest.mark.parametrize(("script", "options", "printed"), TRAINING)
def test_it_trains(tmp_path, monkeypatch, capsys, script, options, printed):
    """In this process, which has imported transformers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [script, *options])
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert printed in capsys.readouterr().out
