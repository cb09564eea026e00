"""In a real notebook kernel: progress and results show in the cell, and the stop button keeps what was played.

The kernels are started by a process of their own, whose libraries warn of this and that.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="nbclient isn't installed (extra test)")
pytest.importorskip("ipykernel", reason="ipykernel isn't installed (extra test)")
pytestmark = pytest.mark.slow

EXECUTE = """
import json, sys
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
cells = [
    "import benchmark",
    "results = benchmark.evaluate(['random', 'greedy', 'planner'], scenarios='frozen-lake', episodes=20)",
    "results",
    "results.compare('greedy', 'planner')",
    "results.to_pandas().head()",
]
notebook = new_notebook(cells=[new_code_cell(text) for text in cells])
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
json.dump([cell.outputs for cell in notebook.cells], sys.stdout)
"""

INTERRUPT = '''
import json, os, signal, sys, threading
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

SLOW = """
import os, time
import benchmark
from agents import Turn

class Slow:
    name = "slow"
    def act(self, requests):
        time.sleep(0.1)
        return [Turn(response="up") for _ in requests]
print(os.getpid())
"""
cells = [
    SLOW,
    'results = benchmark.evaluate(Slow(), scenarios="frozen-lake", episodes=50, max_concurrency=1, out="stopped")',
    'kept = benchmark.read_results("stopped"); print(kept.columns.played, kept.complete)',
    "import json; print(json.load(open('stopped/manifest.json'))['agents'][0]['settings'])",
]
notebook = new_notebook(cells=[new_code_cell(text) for text in cells])
client = NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True)
with client.setup_kernel():
    client.execute_cell(notebook.cells[0], 0)
    kernel = int(notebook.cells[0].outputs[0]["text"])
    threading.Timer(4, os.kill, (kernel, signal.SIGINT)).start()  # what the stop button does
    for place in (1, 2, 3):
        client.execute_cell(notebook.cells[place], place)
json.dump([cell.outputs for cell in notebook.cells], sys.stdout)
'''


def run(program: str, folder: Path, *arguments: str) -> list:
    """The outputs of a notebook's cells."""
    environment = {**os.environ, "TEXTBENCH_CACHE_DIR": str(folder / "cache"), "IPYTHONDIR": str(folder / "ipython")}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, cwd=folder, env=environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_progress_and_results_show_in_the_cell(tmp_path):
    pytest.importorskip("pandas", reason="pandas isn't installed (extra pandas)")
    cells = run(EXECUTE, tmp_path)
    assert not [output for outputs in cells for output in outputs if output.get("name") == "stdout"]
    shown = [output["data"]["text/html"] for outputs in cells for output in outputs if "data" in output]
    assert len(shown) == 4
    progress, board, compared, frame = shown
    assert "60/60 episodes" in progress  # as it ended
    assert "frozen-lake, 20 episodes" in board
    assert "greedy" in compared
    assert "<table" in frame


def test_the_stop_button_keeps_what_was_played(tmp_path):
    _, stopped, kept, settings = run(INTERRUPT, tmp_path)
    assert "data" in stopped[0]
    (error,) = [output for output in stopped if output["output_type"] == "error"]
    assert error["ename"] == "KeyboardInterrupt"
    assert "episodes are kept in stopped" in error["evalue"]
    played, complete = kept[0]["text"].split()
    assert 0 < int(played) < 50
    assert complete == "False"
    assert "'code': {'Slow':" in settings[0]["text"]
