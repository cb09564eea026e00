"""Seasons as a stranger may send them: damaged files, links, names that are code, and control characters.

The cases are tried as those of the product's commands are, by the functions of its tests.
"""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from research.robustness.seasons.season import SEASON_NAME, SECRET_NAME, Season, new_season
from tests.benchmark.cli import test_bounds, test_hostile_folders, test_links, test_terminal_text, test_wrong_files
from tests.benchmark.cli.test_hostile_folders import game, place, player, write
from tests.links import TARGETS, drafts_of, planted

__all__ = ["place"]  # a fixture

WRONG_FILES = (
    ("season", "new", "{}", "--scenario", "frozen-lake"),
    ("season", "new", "autumn", "--scenario", "frozen-lake", "--secret", "{}"),
    ("season", "commit", "{}", "--agent", "random"),
    ("season", "reveal", "{}"),
    ("season", "check", "{}"),
    ("run", "--season", "{}"),
)
FOLDERS = (
    *WRONG_FILES,
    ("run", "--season", "{}", "--agent", "random", "--quiet"),
    ("season", "commit", "{}", "--agent", "{}"),
    ("season", "new", "made", "--scenario", "{}.plugin:Game-v0"),  # which no season could be of
    ("submit", "{run}", "--agent", "random", "--out", "made", "--season", "{}"),
    ("validate", "{}", "--season", "{}"),
    ("validate", "{run}", "--season", "{}"),
)


@pytest.mark.parametrize("case", WRONG_FILES, ids=" ".join)
def test_the_wrong_kind_of_file_is_one_sentence(textbench, workplace, case):
    test_wrong_files.test_the_wrong_kind_of_file_is_one_sentence(textbench, workplace, case)


# ---- folders whose texts name code -----------------------------------------------------------------------------------


def season(folder: Path, scenario: str = "frozen-lake", spec: str = "planner", revealed: bool = False) -> None:
    secret = "0" * 64
    about = {
        **{"kind": "textbench-season", "name": "autumn", "scenarios": [scenario], "episodes": 1},
        **{"protocol": "random", "moves": "listed", "lock": sha256(secret.encode()).hexdigest()},
        **{"opened": "2026-01-01T00:00:00Z", "textbench": "0.1.0"},
    }
    digest = sha256(write(folder, "season.json", about)).hexdigest()
    card = {"name": "one", "spec": spec, "kind": "scripted", "settings": {}}
    write(folder, "agents/one.json", {"season": digest, "card": card, "author": ""})
    if revealed:
        held = Season(folder, about, {"one": {}}, None)
        registered = {"secret": secret, "agents": held._registered(), "seed_offset": held._offset(secret)}
        write(folder, "secret.json", registered)


SEASONS = (
    lambda it: season(it, game(it)),
    lambda it: season(it, game(it), revealed=True),
    lambda it: season(it, f"{game(it)}-level-2", revealed=True),
    lambda it: season(it, spec=player(it), revealed=True),
)


def test_every_argument_that_takes_a_folder_is_here():
    assert [*test_hostile_folders.untried("season", FOLDERS)] == []


@pytest.mark.parametrize("case", FOLDERS, ids=" ".join)
def test_no_command_imports_what_a_season_names(textbench, place, case, monkeypatch):
    plain = test_hostile_folders.make

    def make(number: int, place: Path) -> Path:
        folder = plain(number, place)
        SEASONS[number % len(SEASONS)](folder)
        return folder

    monkeypatch.setattr(test_hostile_folders, "make", make)
    test_hostile_folders.test_no_command_imports_what_a_folder_names(textbench, place, case)


# ---- damaged files, links, control characters ------------------------------------------------------------------------


def opened(name: str = "autumn") -> Path:
    about = {"name": "autumn", "scenarios": ["frozen-lake"], "episodes": 2, "protocol": "default", "moves": "listed"}
    new_season(Path(name), Path(f"{name[:3]}.secret"), about)
    return Path(name)


@pytest.mark.parametrize("kind", [*test_bounds.KINDS, "[]", '{"kind": 1}'])
@pytest.mark.parametrize("name", ["season.json", "secret.json", "agents/planner.json"])
def test_no_file_of_a_season_gives_a_traceback(textbench, name, kind):
    file = opened() / name
    test_bounds.hostile(file, kind) if kind in test_bounds.KINDS else file.write_text(kind)
    for command in (("season", "check", "autumn"), ("run", "--season", "autumn"), ("season", "reveal", "autumn")):
        done = textbench(*command)
        assert (done.code, done.err.count("\n"), done.out) == (2, 1, ""), done


NAMES = [SEASON_NAME, SECRET_NAME, "agents", "agents/random.json", "agents/greedy.json", "entries"]
NAMES += [draft for name in (SEASON_NAME, SECRET_NAME) for draft in drafts_of(name)]
NAMES += [f"agents/{draft}" for draft in drafts_of("random.json")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("season", "new", "{}", "--scenario", "frozen-lake", "--episodes", "2"),
        ("season", "commit", "{}", "--agent", "random"),
        ("season", "reveal", "{}", "--secret", "s.secret"),
        ("season", "check", "{}"),
        ("run", "--season", "{}", "--agent", "greedy", "--quiet", "--out", "{}/run"),
    ],
    ids=" ".join,
)
def test_no_season_is_written_through_a_link(textbench, workplace, command):
    assert textbench("season", "new", "s", "--scenario", "frozen-lake", "--episodes", "2").code == 0
    if "commit" not in command:
        assert textbench("season", "commit", "s", "--agent", "greedy").code == 0
    if "check" in command or "run" in command:
        assert textbench("season", "reveal", "s").code == 0
    refused = 0
    for folder, what in planted(Path("s"), NAMES, TARGETS):
        refused += test_links.goes_well_or_is_refused(textbench, command, folder, what) > 0
    assert refused


def test_no_control_characters_of_a_season_are_repeated(textbench):
    with_a_name = opened(test_terminal_text.IN_A_NAME)
    with_a_key = opened()
    about = json.loads((with_a_key / "season.json").read_text())
    (with_a_key / "season.json").write_text(json.dumps({**about, test_terminal_text.EVIL: 1}))
    for path in (with_a_name, with_a_key):
        done = textbench("season", "check", path)
        assert "EVIL" in done.out + done.err
        assert test_terminal_text.CONTROL.findall(done.out + done.err) == []
