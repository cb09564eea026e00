"""``run --prompts all``: the wordings stand on the agent's card, and a resume draws them again."""

import json
from pathlib import Path

import pytest

from agents import PromptTexts
from benchmark.results import read_results
from benchmark.runs.folder import MANIFEST_NAME


@pytest.mark.slow
def test_a_run_in_all_wordings_is_kept_and_goes_on(textbench):
    command = ("run", "--agent", "tiny", "--scenario", "frozen-lake", "--mode", "direct", "--prompts", "all")
    assert textbench(*command, "--episodes", "6", "--out", "r").code == 0
    (card,) = json.loads((Path("r") / MANIFEST_NAME).read_text())["agents"]
    assert PromptTexts.from_data(card["settings"]["prompt_map"]["texts"]) == PromptTexts.from_file("all")
    assert textbench("resume", "r", "--episodes", "12").code == 0
    (cell,) = read_results("r").columns.cells.values()
    assert (cell.episodes, cell.complete) == (12, True)
