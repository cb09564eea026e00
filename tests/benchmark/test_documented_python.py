"""The Python of docs/tutorials/evaluate.md runs as it stands there, one cell after the other."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/tutorials/evaluate.md"
CELLS = re.findall(r"^```\{code-cell\} ipython3\n(?!%%)(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_page_runs(tmp_path, reference_cache):
    pytest.importorskip("pandas", reason="pandas isn't installed (extra pandas)")
    assert len(CELLS) == 6
    program = tmp_path / "page.py"  # a file, as the identity of a class in it is its source
    shown = [
        re.sub(r"^(?![ ]|.* = |import|from|class)(\S.*)\Z", r"print(\1)", cell.rstrip(), flags=re.M) for cell in CELLS
    ]
    program.write_text("\n".join(shown))
    environment = {**os.environ, "TEXTBENCH_CACHE_DIR": str(reference_cache), "PYTHONPATH": str(PAGE.parents[2])}
    done = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "A = tiny, B = planner" in done.stdout
    assert "mean_return_low" in done.stdout
    assert (tmp_path / "runs/notebook/manifest.json").exists()
