"""The Python of docs/benchmark.md runs as it stands there, one block after the other."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "benchmark.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_page_runs(tmp_path, reference_cache):
    pytest.importorskip("pandas", reason="pandas isn't installed (extra pandas)")
    assert len(BLOCKS) == 3
    program = tmp_path / "page.py"  # a file, as the identity of a class in it is its source
    program.write_text("\n".join(BLOCKS))
    environment = {**os.environ, "TEXTBENCH_CACHE_DIR": str(reference_cache), "PYTHONPATH": str(PAGE.parents[1])}
    done = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "A = greedy, B = planner" in done.stdout
    assert "difference_low" in done.stdout
    assert (tmp_path / "runs/first/manifest.json").exists()
