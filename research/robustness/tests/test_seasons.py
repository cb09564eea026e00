"""A season from its opening to its checked entries, programs that are asked again there, and the ways to cheat it."""

import json
import re
import shlex
import shutil
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from benchmark.cli import main
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from research.robustness.seasons.season import Season, new_season, reveal

SCENARIOS = ["frozen-lake", "bandit"]
SETTINGS = {"name": "autumn", "scenarios": SCENARIOS, "episodes": 4, "protocol": "random", "moves": "listed"}
ALL = [word for name in SCENARIOS for word in ("--scenario", name)]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("season")
    season, run = str(folder / "autumn"), str(folder / "run")
    assert main(["season", "new", season, *ALL, "--episodes", "4"]) == 0
    assert main(["season", "commit", season, "--agent", "planner", "--author", "somebody"]) == 0
    assert main(["season", "commit", season, "--agent", "other=random"]) == 0
    assert main(["season", "reveal", season]) == 0
    assert main(["run", "--season", season, "--agent", "planner", "--out", run, "--quiet"]) == 0
    assert main(["submit", run, "--season", season, "--out", f"{season}/entries"]) == 0
    return folder / "autumn"


@pytest.fixture
def season(played, tmp_path):
    return Path(shutil.copytree(played, tmp_path / "autumn"))


def change(file, **values):
    data = json.loads(file.read_text())
    data.update(values)
    file.write_text(json.dumps(data, indent=1) + "\n")


@pytest.mark.slow
def test_the_commands_of_the_page_hold_a_season_between_machines(tmp_path, monkeypatch, capsys):
    """Everybody has a folder of their own, and of the others' only what is published: the season's folder."""
    page = (Path(__file__).parents[3] / "docs" / "research" / "seasons.md").read_text()
    steps = re.findall(r"^\*\*(?:The )?(\w+)\*\* .*?```sh\n(.*?)```", page, re.MULTILINE | re.DOTALL)
    assert [who for who, _ in steps] == ["organiser", "players", "organiser", "players", "Anybody"]
    commands = 0
    for who, block in steps:
        machine = tmp_path / who
        machine.mkdir(exist_ok=True)
        published = tmp_path / "published" / "autumn"
        if published.exists():
            shutil.copytree(published, machine / "autumn", dirs_exist_ok=True)
        monkeypatch.chdir(machine)
        for command in block.splitlines():
            assert main(shlex.split(command.removeprefix("textbench "))) == 0, command
            commands += 1
        shutil.copytree(machine / "autumn", published, dirs_exist_ok=True)
    assert commands == len(re.findall(r"^textbench ", page, re.MULTILINE)) == 7
    assert "valid, 200 episodes replayed" in capsys.readouterr().out
    held = {who: {file.name for file in (tmp_path / who).iterdir()} for who, _ in steps}
    assert held == {"organiser": {"autumn", "autumn.secret"}, "players": {"autumn", "runs"}, "Anybody": {"autumn"}}


def test_nobody_knows_the_seeds_before_the_reveal(tmp_path, capsys):
    folder = tmp_path / "winter"
    new_season(folder, tmp_path / "secret", SETTINGS)
    assert main(["season", "commit", str(folder), "--agent", "planner"]) == 0
    assert main(["run", "--season", str(folder), "--agent", "planner"]) == 2
    assert "a secret that isn't revealed yet" in capsys.readouterr().err
    assert main(["season", "check", str(folder)]) == 0
    assert "the registrations fit; lock and seeds can be checked when the secret is revealed" in capsys.readouterr().err
    published = "".join(file.read_text() for file in folder.rglob("*.json"))
    secret = (tmp_path / "secret").read_text().strip()
    assert secret not in published
    assert Season.open(folder).about["lock"] == sha256(secret.encode()).hexdigest()
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0


def test_an_agent_without_an_entry_stands_there_as_withdrawn(season, capsys):
    assert main(["season", "check", str(season)]) == 1
    assert capsys.readouterr().out.endswith("\nother: withdrawn, it is registered and has no entry\n")
    assert main(["season", "check", str(season), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["withdrawn"] == [{"agent": "other", "author": ""}]
    assert [entry["valid"] for entry in told["entries"].values()] == [True]
    assert main(["validate", str(season / "entries" / "planner"), "--season", str(season)]) == 0
    assert "valid, 8 episodes replayed" in capsys.readouterr().out
    shutil.rmtree(season / "entries")
    assert main(["season", "check", str(season)]) == 1
    assert "planner (by somebody): withdrawn" in capsys.readouterr().out
    play = ["--season", str(season), "--out", str(season.parent / "all")]
    assert main(["run", *play, "--quiet"]) == 0
    for agent in ("other", "planner"):
        submit = ["submit", str(season.parent / "all"), "--agent", agent, "--out", str(season / "entries")]
        assert main([*submit, "--season", str(season)]) == 0
    assert main(["season", "check", str(season)]) == 0
    assert "withdrawn" not in capsys.readouterr().out


def test_a_name_like_another_isnt_registered(tmp_path, capsys):
    folder = tmp_path / "winter"
    new_season(folder, tmp_path / "secret", SETTINGS)
    for name in ("planner.", "pIanner"):
        assert main(["season", "commit", str(folder), "--agent", f"{name}=random"]) == 2
        assert "can't be told from 'planner', which is a player of the project" in capsys.readouterr().err
    assert main(["season", "commit", str(folder), "--agent", "mine=random"]) == 0
    assert main(["season", "commit", str(folder), "--agent", "rnine=random"]) == 2
    assert "'rnine', which can't be told from 'mine'" in capsys.readouterr().err
    assert [file.name for file in folder.glob("agents/*")] == ["mine.json"]


def test_another_agent_means_other_seeds(tmp_path):
    """So the organiser, who knows the secret, can't choose it by its seeds before the others have registered."""
    secret = tmp_path / "secret"
    new_season(tmp_path / "a", secret, SETTINGS)
    assert main(["season", "commit", str(tmp_path / "a"), "--agent", "planner"]) == 0
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert main(["season", "commit", str(tmp_path / "b"), "--agent", "random"]) == 0
    one, other = (reveal(Season.open(tmp_path / name), secret.read_text().strip()) for name in "ab")
    assert one.seed_offset != other.seed_offset


# ---- ways to cheat ---------------------------------------------------------------------------------------------------


def test_cheat_1_the_organiser_exchanges_the_secret(season):
    change(season / "secret.json", secret="0" * 64)
    with pytest.raises(UsageError, match="isn't the one that the season was locked with"):
        Season.open(season)


def test_cheat_2_the_organiser_chooses_other_seeds(season):
    change(season / "secret.json", seed_offset=2**32 + 5)
    with pytest.raises(UsageError, match="seeds aren't those that follow"):
        Season.open(season)


def test_cheat_3_an_agent_is_registered_when_the_seeds_are_known(season, capsys):
    assert main(["season", "commit", str(season), "--agent", "peeker=planner"]) == 2
    assert "no more agents can be registered" in capsys.readouterr().err
    shutil.copy(season / "agents" / "planner.json", season / "agents" / "peeker.json")  # by hand, then
    card = json.loads((season / "agents" / "planner.json").read_text())["card"] | {"name": "peeker"}
    change(season / "agents" / "peeker.json", card=card)
    with pytest.raises(UsageError, match="'peeker' was registered after the secret was revealed"):
        Season.open(season)


def test_cheat_4_a_registration_is_changed_when_the_seeds_are_known(season):
    change(season / "agents" / "planner.json", author="somebody else")
    with pytest.raises(UsageError, match="'planner' was changed after the secret was revealed"):
        Season.open(season)
    (season / "agents" / "planner.json").unlink()
    with pytest.raises(UsageError, match="registration of 'planner' is gone"):
        Season.open(season)


def test_cheat_5_another_agent_plays_under_a_registered_name(season, tmp_path, capsys):
    run, out = str(tmp_path / "run"), str(tmp_path / "entries")
    assert main(["run", "--season", str(season), "--agent", "other=planner", "--out", run, "--quiet"]) == 2
    assert "isn't the registered one: its spec is 'planner', registered is 'random'" in capsys.readouterr().err
    offset = str(Season.open(season).seed_offset)  # without the check at the start of a run, then
    play = ["run", "--agent", "other=planner", *ALL, "--seed-offset", offset, "--episodes", "4", "--out", run]
    assert main([*play, "--quiet"]) == 0
    assert main(["submit", run, "--season", str(season), "--out", out]) == 1
    assert "its spec is 'planner', registered is 'random'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("played_otherwise", "refused"),
    [
        (["--seed-offset", "0"], "needs the first 4 episodes of"),  # seeds that everybody knows
        (["--episodes", "3"], "needs the first 4 episodes of"),
        (["--episodes", "9"], "bandit: 9 episodes, an entry has 4"),  # stopped where it looked best
        (["--protocol", "retry:3"], "settings.protocol is 'retry:3', an entry has 'random'"),
        (["--scenario", "snake"], "scenario 'snake' isn't one of frozen-lake, bandit"),
    ],
)
def test_cheat_6_a_run_of_other_terms(season, tmp_path, capsys, played_otherwise, refused):
    run, out, offset = str(tmp_path / "run"), str(tmp_path / "entries"), str(Season.open(season).seed_offset)
    play = ["run", "--agent", "planner", *ALL, "--seed-offset", offset, "--episodes", "4", "--out", run]
    assert main([*play, *played_otherwise, "--quiet"]) == 0
    assert main(["submit", run, "--season", str(season), "--out", out]) != 0
    assert refused in capsys.readouterr().err


def test_a_run_of_a_season_doesnt_grow(played, tmp_path, capsys):
    run = shutil.copytree(played.parent / "run", tmp_path / "run")
    before = (run / "manifest.json").read_bytes()
    assert main(["resume", str(run), "--episodes", "6", "--quiet"]) == 2
    assert f"{run} is of the season 'autumn', which has 4 episodes" in capsys.readouterr().err
    assert (run / "manifest.json").read_bytes() == before
    assert main(["resume", str(run), "--quiet"]) == 0


def test_cheat_7_better_episodes_are_written_by_hand(season):
    """Every episode is played again from its seed, and a player that ships is asked again."""
    file = season / "entries" / "planner" / "episodes.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    step = lines[0]["steps"][0]
    step["response"] = step["response"].replace("<think>", "<think>I know better. ")  # the same move, by somebody else
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert any("the agent 'planner' answers" in problem for problem in Season.open(season).check(file.parent).problems)
    step["reward"], lines[0]["returns"] = 100.0, {"player_0": 100.0}
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    problems = Season.open(season).check(file.parent).problems
    assert any("reward" in problem for problem in problems)


@pytest.mark.parametrize("claim", [None, {"name": "spring", "sha256": "0" * 64}])
def test_cheat_8_an_entry_says_that_it_is_of_another_season(season, claim):
    file = season / "entries" / "planner" / "manifest.json"
    change(file, season=claim)
    if claim is None:
        file.write_text(json.dumps({k: v for k, v in json.loads(file.read_text()).items() if k != "season"}))
    (problem,) = Season.open(season).check(file.parent).problems
    assert "an entry of the season 'autumn' is checked" in problem


# ---- what a user may get wrong ---------------------------------------------------------------------------------------


def test_a_season_decides_what_is_played(season, capsys):
    for flag, value in (("--scenario", "snake"), ("--seed-offset", "1"), ("--resample", "1")):
        assert main(["run", "--season", str(season), "--agent", "planner", flag, value]) == 2
        assert f"{flag} can't be given with --season" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["new", "{season}", "--scenario", "frozen-lake"], "holds a season already"),
        (["new", "{new}", "--scenario", "gathering-duel"], "is for several players"),
        (["new", "{new}", "--scenario", "evil.plugin:Game-v0"], "'evil.plugin:Game-v0' can't be in a season"),
        (["new", "{new}", "--scenario", "frozen-lake", "--secret", "{new}/s"], "which is published"),
        (["check", "{season}s"], "(did you mean '{name}'?)"),
        (["reveal", "{season}"], "secret can't be read: No such file or directory"),
        (["reveal", "{season}", "--secret", "{season}/season.json"], "revealed already"),
    ],
)
def test_wrong_use_is_one_sentence(season, tmp_path, capsys, arguments, sentence):
    places = {"season": str(season), "new": str(tmp_path / "new"), "name": season.name}
    assert main(["season", *(word.format(**places) for word in arguments)]) == 2
    assert sentence.format(**places) in capsys.readouterr().err


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's locks are Linux's")

WINTER = {"name": "winter", "scenarios": ["frozen-lake"], "episodes": 3, "protocol": "random", "moves": "listed"}
DRAWING = "import random\ndef act(observation, legal):\n    return random.choice(legal)\n"


@pytest.fixture(scope="module")
def with_programs(tmp_path_factory):
    place = tmp_path_factory.mktemp("season")
    season, program, mask = place / "winter", place / "drawing.py", place / "mask.py"
    program.write_text(DRAWING)
    mask.write_text("def allowed(observation, legal):\n    return [legal[0], legal[-1]]\n")
    agents = (["--agent", f"p=program:{program}"], ["--agent", "m=masked(random)", "--set", f"m.program={mask}"])
    new_season(season, place / "secret", WINTER)
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
def winter(with_programs, tmp_path):
    return Path(shutil.copytree(with_programs, tmp_path / "winter"))


@linux
def test_published_programs_give_the_answers_of_their_entries(with_programs, capsys):
    registered = json.loads((with_programs / "agents" / "p.json").read_text())
    assert list(registered["programs"].values()) == [DRAWING]
    capsys.readouterr()
    assert main(["season", "check", str(with_programs)]) == 0
    assert capsys.readouterr().out.count("re-run here") == 2


@linux
def test_the_key_follows_from_the_secret_and_the_registrations(with_programs):
    season = Season.open(with_programs)
    entry = RunFolder.open(with_programs / "entries" / "p")
    assert entry.manifest["settings"]["agent_options"]["p"]["key"] == season.key_of("p") != season.key_of("m")
    unrevealed = Season(season.path, season.about, season.agents, None)
    with pytest.raises(UsageError, match="isn't revealed yet"):
        unrevealed.key_of("p")


@linux
@pytest.mark.parametrize("name", ["p", "m"])
def test_answers_that_arent_the_programs_own_are_refused(winter, name, capsys):
    file = winter / "entries" / name / "episodes.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0]["steps"][0]["response"] = "<think>better</think>" + lines[0]["steps"][0]["response"]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["season", "check", str(winter)]) == 1
    assert "answers" in capsys.readouterr().err


@linux
def test_where_nothing_holds_a_program_the_check_says_so(winter, monkeypatch, capsys):
    monkeypatch.setattr("platform.machine", lambda: "vax")
    assert main(["season", "check", str(winter)]) == 3
    told = capsys.readouterr().err
    assert "the program of 'p' isn't asked again" in told
    assert "the program of 'm' isn't asked again" in told


@linux
def test_a_registered_program_that_isnt_the_cards_is_refused(with_programs):
    season = Season.open(with_programs)
    other = {**season.agents["p"], "programs": dict.fromkeys(season.agents["p"]["programs"], DRAWING + "#")}
    changed = Season(season.path, season.about, {**season.agents, "p": other}, season.revealed)
    (problem,) = [one for one in changed.check(with_programs / "entries" / "p").problems if "sha256" in one]
    assert "its card says" in problem
