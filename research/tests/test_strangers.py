"""The commands credit, reproduce and improve with the wrong kind of file, and with folders whose texts name code."""

import pytest

from tests.benchmark.cli import test_hostile_folders, test_wrong_files
from tests.benchmark.cli.test_hostile_folders import place

__all__ = ["place"]  # a fixture

LAKE = ("--scenario", "frozen-lake")
WRONG_FILES = (
    ("reproduce", "--quick", "--out", "{}"),
    ("credit", "{}"),
    ("improve", "imitate", *LAKE, "--agent", "{}"),
    ("improve", "imitate", *LAKE, "--agent", "tiny", "--out", "{}"),
    ("improve", "offline", *LAKE, "--agent", "tiny", "--set", "learn_from={}"),
    ("improve", "library", *LAKE, "--agent", "tiny", "--set", "writer={}"),
)
FOLDERS = (
    *WRONG_FILES,
    ("reproduce", "--config", "smollm2", "--agent", "{}", "--dry-run"),
    ("reproduce", "--quick", "--ship", "{}", "--out", "made", "--dry-run"),
)


@pytest.mark.parametrize("command", ["credit", "reproduce"])
def test_every_argument_that_takes_a_folder_is_here(command):
    assert [*test_hostile_folders.untried(command, FOLDERS)] == []


@pytest.mark.parametrize("case", WRONG_FILES, ids=" ".join)
def test_the_wrong_kind_of_file_is_one_sentence(textbench, workplace, case):
    test_wrong_files.test_the_wrong_kind_of_file_is_one_sentence(textbench, workplace, case)


@pytest.mark.parametrize("case", FOLDERS, ids=" ".join)
def test_no_command_imports_what_a_folder_names(textbench, place, case):
    test_hostile_folders.test_no_command_imports_what_a_folder_names(textbench, place, case)
