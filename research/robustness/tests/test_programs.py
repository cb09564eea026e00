"""A program that was registered in a season is asked again when its entry is checked."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from benchmark.cli import main
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from research.robustness.seasons.season import Season, new_season

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's locks are Linux's")

SETTINGS = {"name": "winter", "scenarios": ["frozen-lake"], "episodes": 3, "protocol": "random", "moves": "listed"}
DRAWING = "import random\ndef act(observation, legal):\n    return random.choice(legal)\n"


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    place = tmp_path_factory.mktemp("season")
    season, program, mask = place / "winter", place / "drawing.py", place / "mask.py"
    program.write_text(DRAWING)
    mask.write_text("def allowed(observation, legal):\n    return [legal[0], legal[-1]]\n")
    agents = (["--agent", f"p=program:{program}"], ["--agent", "m=masked(random)", "--set", f"m.program={mask}"])
    new_season(season, place / "secret", SETTINGS)
    for agent in agents:
        assert main(["season", "commit", str(season), *agent]) == 0
    assert main(["season", "reveal", str(season), "--secret", str(place / "secret")]) == 0
    for number, agent in enumerate(agents):
        assert main(["run", "--season", str(season), *agent, "--out", str(place / f"run{number}"), "--quiet"]) == 0
        entries = ["--season", str(season), "--out", str(season / "entries")]
        assert main(["submit", str(place / f"run{number}"), *entries]) == 0
    program.unlink()  # whoever checks has the published folder alone
    mask.unlink()
    return season


@pytest.fixture
def season(played, tmp_path):
    return Path(shutil.copytree(played, tmp_path / "winter"))


def test_published_programs_give_the_answers_of_their_entries(played, capsys):
    registered = json.loads((played / "agents" / "p.json").read_text())
    assert list(registered["programs"].values()) == [DRAWING]
    capsys.readouterr()
    assert main(["season", "check", str(played)]) == 0
    assert capsys.readouterr().out.count("re-run here") == 2


def test_the_key_follows_from_the_secret_and_the_registrations(played):
    season = Season.open(played)
    entry = RunFolder.open(played / "entries" / "p")
    assert entry.manifest["settings"]["agent_options"]["p"]["key"] == season.key_of("p") != season.key_of("m")
    unrevealed = Season(season.path, season.about, season.agents, None)
    with pytest.raises(UsageError, match="isn't revealed yet"):
        unrevealed.key_of("p")


@pytest.mark.parametrize("name", ["p", "m"])
def test_answers_that_arent_the_programs_own_are_refused(season, name, capsys):
    file = season / "entries" / name / "episodes.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0]["steps"][0]["response"] = "<think>better</think>" + lines[0]["steps"][0]["response"]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["season", "check", str(season)]) == 1
    assert "answers" in capsys.readouterr().err


def test_where_nothing_holds_a_program_the_check_says_so(season, monkeypatch, capsys):
    monkeypatch.setattr("platform.machine", lambda: "vax")
    assert main(["season", "check", str(season)]) == 3
    told = capsys.readouterr().err
    assert "the program of 'p' isn't asked again" in told
    assert "the program of 'm' isn't asked again" in told


def test_a_registered_program_that_isnt_the_cards_is_refused(played):
    season = Season.open(played)
    other = {**season.agents["p"], "programs": dict.fromkeys(season.agents["p"]["programs"], DRAWING + "#")}
    changed = Season(season.path, season.about, {**season.agents, "p": other}, season.revealed)
    (problem,) = [one for one in changed.check(played / "entries" / "p").problems if "sha256" in one]
    assert "its card says" in problem
