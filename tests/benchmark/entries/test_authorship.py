"""Who vouches for an entry: its tier, names that look alike, and actions that are another player's."""

import json
import shutil
from pathlib import Path

import pytest

from benchmark.entries import alike
from benchmark.entries.alike import same_to_a_reader
from benchmark.entries.validation import check_entry
from benchmark.runs import authorship
from benchmark.runs.authorship import REPORTED, REPRODUCED, RERUN, digest_of, tier_of
from benchmark.runs.folder import RunFolder
from tests.benchmark.helpers import change_manifest, lines_of, play_and_submit, write_lines

LEADERBOARDS = Path(__file__).parents[3] / "leaderboards"


@pytest.fixture(scope="module", autouse=True)
def short_entries():
    """Entries of a few episodes a scenario, and few decisions that are enough to be compared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmark.entries.entry.MIN_EPISODES", 2)
        patch.setattr("benchmark.entries.alike.ENOUGH", 8)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory, reference_cache, short_entries):
    """A folder of two entries: greedy, which ships, and mine, a class of its user's that plays as the planner does."""
    run = ("--agent", "greedy", "--agent", "mine=tests.benchmark.players_for_tests:Copied", "--episodes", "2")
    return play_and_submit(tmp_path_factory.mktemp("made"), reference_cache, ("greedy", "mine"), *run)


@pytest.fixture
def boards(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "boards"))


def renamed(boards: Path, old: str, new: str, folder: str) -> Path:
    """The entry under another name, everywhere where it stands."""
    shutil.move(boards / old, boards / folder)

    def rename(manifest):
        manifest["agent"] = manifest["agents"][0]["name"] = new
        manifest["settings"]["agents"] = [f"{new}={manifest['agents'][0]['spec']}"]
        for matchup in manifest["matchups"]:
            matchup["agents"] = [new]

    change_manifest(boards / folder, rename)
    write_lines(boards / folder, [{**line, "agents": {"player_0": new}} for line in lines_of(boards / folder)])
    return boards / folder


def test_the_verdict_says_who_vouches_for_an_entry_and_whose_actions_it_repeats(boards, textbench):
    rerun, reported = check_entry(boards / "greedy"), check_entry(boards / "mine")
    assert (rerun.problems, rerun.authorship) == ([], RERUN)
    assert (reported.problems, reported.authorship) == ([], REPORTED)
    assert any("who answered" in sentence for sentence in reported.on_trust)
    assert not any("who answered" in sentence for sentence in rerun.on_trust)
    told = json.loads(textbench("validate", boards, "--json").out)
    assert {Path(name).name: one["authorship"] for name, one in told.items()} == {"greedy": RERUN, "mine": REPORTED}
    assert told[str(boards / "mine")]["digest"] == digest_of(boards / "mine")
    assert "re-run here" in textbench("validate", boards / "greedy").out
    done = textbench("validate", boards / "mine")
    out = " ".join(done.out.split())
    assert "self-reported" in out
    assert "on trust: who answered" in out
    assert done.code == 0, "it may be chance, or a very good player"
    assert "warning: all actions are those of the player 'planner'" in done.err
    (warning,) = [one for one in reported.warnings if "'planner'" in one]
    records = [*RunFolder.open(boards / "mine").records()]
    for name in ("frozen-lake", "frozen-lake-slippery", "snake", "snake-poison"):
        count = sum(len(record.steps) for record in records if record.scenario == name)
        assert f"{count} in {name}" in warning


def test_an_entry_cannot_claim_a_tier(boards, textbench):
    """Neither by a field of its own, nor by a file beside it, nor by its spec on a board."""
    change_manifest(boards / "mine", lambda m: m.update(authorship=REPRODUCED))
    assert textbench("validate", boards / "mine").code == 2  # no manifest has such a key
    change_manifest(boards / "mine", lambda m: m.pop("authorship"))
    shutil.copy(Path(authorship.__file__).with_name("known.toml"), boards)
    assert tier_of(boards / "mine") == REPORTED
    assert tier_of(boards / "greedy") == REPORTED, "nothing was asked again for a board"


def test_maintainers_list_what_they_have_reproduced_and_not_a_letter_else(boards, monkeypatch):
    found = {digest_of(boards / "mine"): REPRODUCED}
    monkeypatch.setattr(authorship, "listed", lambda: found)
    assert check_entry(boards / "mine").authorship == tier_of(boards / "mine") == REPRODUCED
    file = boards / "mine/episodes.jsonl"
    file.write_text(file.read_text() + "\n")
    assert tier_of(boards / "mine") == REPORTED


def test_what_is_listed_is_published():
    entries = [file.parent.relative_to(LEADERBOARDS).as_posix() for file in LEADERBOARDS.rglob("manifest.json")]
    published = {digest_of(LEADERBOARDS / entry): entry for entry in entries}
    assert authorship.listed().keys() <= published.keys(), "a digest of benchmark/runs/known.toml is of no entry"
    rerun = {published[digest] for digest, tier in authorship.listed().items() if tier == RERUN}
    scripts = {"blind", "greedy", "planner", "random"}
    in_suites = {f"{suite}/{name}" for suite in ("planning", "exploration") for name in scripts}
    assert rerun == {*scripts, *in_suites, "tiny", "tiny-msgrpo-frozen-lake", "tiny-msgrpo-snake"}


def test_the_board_names_the_tier_of_entries_alone(boards, small_run, textbench, monkeypatch):
    found = {digest_of(boards / "greedy"): RERUN}
    monkeypatch.setattr(authorship, "listed", lambda: found)
    document = json.loads(textbench("leaderboard", boards, "--json", "--quiet").out)
    assert {one["name"]: one["authorship"] for one in document["agents"]} == {"greedy": RERUN, "mine": REPORTED}
    for form in ((), ("--stats",), ("--html", "page.html")):
        done = textbench("leaderboard", boards, *form, "--quiet")
        told = " ".join((done.out if "--html" not in form else Path("page.html").read_text()).split()).lower()
        assert "re-run here: greedy" in told, form
        assert "self-reported: mine" in told, form
    assert "self-reported" not in textbench("leaderboard", small_run, "--quiet").out


# ---- equal actions ---------------------------------------------------------------------------------------------------


def test_the_actions_of_another_entry_are_warned_of_but_not_if_one_is_another(boards, monkeypatch):
    shutil.copytree(boards / "mine", boards / "first")
    verdict = check_entry(renamed(boards, "mine", "second", "second"))
    assert any("all actions are those of the entry 'first'" in one for one in verdict.warnings)
    ours = alike.actions_in(boards / "first")
    assert alike.equal_decisions(ours, ours).keys() == ours.keys()
    scenario, seeds = next(iter(ours.items()))
    seed, actions = next(iter(seeds.items()))
    for changed in ({**seeds, seed: (*actions[:-1], "another")}, {10**6 + one: its for one, its in seeds.items()}):
        assert alike.equal_decisions(ours, {**ours, scenario: changed}).keys() == {*ours} - {scenario}
    monkeypatch.setattr(alike, "ENOUGH", 10**6)
    assert alike.equal_decisions(ours, ours) == {}


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("planner.", "planner"), ("tiny-msgrpo-frozen-Iake", "tiny-msgrpo-frozen-lake"), ("p1anner", "planner")),
        *(("srnoIlm2", "smollm2"), ("ｐｌａｎｎｅｒ", "planner"), ("gpt-40", "gpt-4o"), ("gpt_4o", "gpt-4o")),
        *(("vvide", "wide"), ("my.model--", "my-model")),
    ],
)
def test_names_that_a_reader_takes_for_each_other(one, other):
    assert same_to_a_reader(one, other)


def test_names_that_differ_in_a_number_or_a_word_are_told_apart():
    different = [("planner", "planner-2"), ("gpt-4.1", "gpt-41"), ("tiny-lake", "tiny-snake"), ("model-a", "model-b")]
    assert not any(same_to_a_reader(*pair) for pair in different)
    names = [RunFolder.open(file.parent).manifest["agent"] for file in LEADERBOARDS.glob("*/manifest.json")]
    assert not [(a, b) for a in names for b in names if a < b and same_to_a_reader(a, b)]


@pytest.mark.parametrize(
    ("name", "folder", "taken"), [("planner.", "planner", "planner"), ("hurnan", "hurnan", "human")]
)
def test_a_name_like_a_shipped_players_is_refused(boards, name, folder, taken):
    problems = check_entry(renamed(boards, "mine", name, folder)).problems
    said = f"can't be told from {taken!r}, which is a player of the project"
    assert any(said in problem for problem in problems), problems


def test_a_name_like_another_entrys_is_refused_in_the_folder_that_the_entry_gets_into(boards, made, textbench):
    shutil.copytree(boards / "mine", boards.parent / "kept")
    assert check_entry(renamed(boards, "mine", "rnine.", "rnine")).problems == []
    done = textbench("submit", made.parent / "run", "--agent", "mine", "--out", boards)
    assert done.code == 1
    assert "can't be told from 'rnine.', the entry beside it" in done.err
    (problem,) = check_entry(boards / "rnine").problems
    assert "can't be told from 'mine', the entry beside it" in problem
