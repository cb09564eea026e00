"""``textbench improve`` with the wrong kind of file, and with folders whose texts name code."""

import pytest

from tests.benchmark.cli import test_hostile_folders, test_wrong_files
from tests.benchmark.cli.test_hostile_folders import place

__all__ = ["place"]  # a fixture

LAKE = ("improve", "imitate", "--scenario", "frozen-lake")
CASES = (
    (*LAKE, "--agent", "{}"),
    (*LAKE, "--agent", "tiny", "--out", "{}"),
    ("improve", "offline", "--scenario", "frozen-lake", "--agent", "tiny", "--set", "learn_from={}"),
    ("improve", "library", "--scenario", "frozen-lake", "--agent", "tiny", "--set", "reflect={}"),
)


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_the_wrong_kind_of_file_is_one_sentence(textbench, workplace, case):
    test_wrong_files.test_the_wrong_kind_of_file_is_one_sentence(textbench, workplace, case)


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_no_command_imports_what_a_folder_names(textbench, place, case):
    test_hostile_folders.test_no_command_imports_what_a_folder_names(textbench, place, case)
