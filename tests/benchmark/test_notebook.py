"""In a real notebook kernel: progress and results show in the cell, and the stop button keeps what was played.

The kernel is started by a process of its own, whose libraries warn of this and that.
"""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("nbclient", reason="nbclient isn't installed (extra test)")
pytest.importorskip("ipykernel", reason="ipykernel isn't installed (extra test)")
pytestmark = pytest.mark.slow

PROGRAM = '''
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
    "results = benchmark.evaluate(['random', 'greedy', 'planner'], scenarios='frozen-lake', episodes=20)",
    "results",
    "results.compare('greedy', 'planner')",
    "results.to_pandas().head()",
    'results = benchmark.evaluate(Slow(), scenarios="frozen-lake", episodes=50, max_concurrency=1, out="stopped")',
    'kept = benchmark.read_results("stopped"); print(kept.columns.played, kept.complete)',
    "import json; print(json.load(open('stopped/manifest.json'))['agents'][0]['settings'])",
]
notebook = new_notebook(cells=[new_code_cell(text) for text in cells])
client = NotebookClient(notebook, timeout=300, kernel_name="python3", allow_errors=True)
with client.setup_kernel():
    for place, cell in enumerate(notebook.cells):
        if place == 5:
            kernel = int(notebook.cells[0].outputs[0]["text"])
            threading.Timer(2, os.kill, (kernel, signal.SIGINT)).start()  # what the stop button does
        client.execute_cell(cell, place)
json.dump([cell.outputs for cell in notebook.cells], sys.stdout)
'''


def test_progress_and_results_show_in_the_cell_and_the_stop_button_keeps_what_was_played(tmp_path):
    pytest.importorskip("pandas", reason="pandas isn't installed (extra pandas)")
    folders = {"TEXTBENCH_CACHE_DIR": str(tmp_path / "cache"), "IPYTHONDIR": str(tmp_path / "ipython")}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **folders})
    assert done.returncode == 0, done.stderr
    _, *cells, stopped, kept, settings = json.loads(done.stdout)
    assert not [output for outputs in cells for output in outputs if output.get("name") == "stdout"]
    progress, board, compared, frame = (
        output["data"]["text/html"] for outputs in cells for output in outputs if "data" in output
    )
    assert "60/60 episodes" in progress  # as it ended
    assert "frozen-lake, 20 episodes" in board
    assert "greedy" in compared
    assert "<table" in frame

    assert "data" in stopped[0]
    (error,) = [output for output in stopped if output["output_type"] == "error"]
    assert error["ename"] == "KeyboardInterrupt"
    assert "episodes are kept in stopped" in error["evalue"]
    played, complete = kept[0]["text"].split()
    assert 0 < int(played) < 50
    assert complete == "False"
    assert "'code': {'Slow':" in settings[0]["text"]
