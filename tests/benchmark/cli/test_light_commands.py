"""What ``list`` leaves alone: tables that only play needs, and torch."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def loaded_by(*command: str) -> tuple[str, set[str]]:
    """What a command prints, and the modules that its process has loaded."""
    code = (
        "import sys\nfrom benchmark.cli import main\n"
        f"code = main({list(command)!r})\n"
        "from textgames.exploration import word_guess\n"
        "print('TABLES', word_guess._table.cache_info().currsize)\n"
        "print('LOADED', *sys.modules)\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    printed, _, loaded = done.stdout.partition("LOADED ")
    return printed, set(loaded.split())


def test_a_list_names_yardsticks_without_computing_them() -> None:
    printed, loaded = loaded_by("list")
    assert "exact (dynamic programming over what is possible)" in printed
    assert "TABLES 0" in printed
    assert not {"torch", "pyspiel"} & loaded
