"""An agent as a folder: what its file says is in the run, what is given by name goes before it, and it may be moved."""

import json
from pathlib import Path

import pytest

from agents.prompt import PromptTexts
from benchmark import evaluate
from benchmark.improve.prompts import write_prompts
from benchmark.play.agents.agent_folder import read_agent_folder, write_agent_folder
from tests.benchmark.helpers import counted

PLAYER = '''
from agents.baselines.random import RandomPlayer


class Mine(RandomPlayer):
    """Random, with a number."""

    def __init__(self, number: int = 0, notes: str = ""):
        super().__init__(number)
        self.number = number

    @property
    def settings(self):
        return {"number": self.number}
'''
RUN = ("run", "--scenario", "frozen-lake", "--episodes", 2, "--quiet", "--json")


@pytest.fixture
def folder(workplace):
    path = workplace / "players" / "mine"
    path.mkdir(parents=True)
    (path / "player.py").write_text(PLAYER)
    write_agent_folder(path, {"spec": "player.py:Mine", "number": 3, "notes": None})
    return path


def settings(out):
    manifest = json.loads(Path(out, "manifest.json").read_text())
    return manifest["agents"][0], manifest["settings"]


def test_it_plays_under_its_own_name_with_its_options_and_what_is_given_goes_before_them(textbench, folder):
    assert textbench(*RUN, "--agent", "players/mine", "--out", "a").code == 0
    card, held = settings("a")
    assert (card["name"], card["spec"]) == ("mine", "players/mine/player.py:Mine")
    assert (card["settings"]["number"], held["agent_options"]) == (3, {"mine": {"number": 3}})
    assert textbench(*RUN, "--agent", "other=players/mine", "--set", "other.number=4", "--out", "b").code == 0
    card, held = settings("b")
    assert (card["name"], card["settings"]["number"]) == ("other", 4)
    assert textbench("resume", "a", "--episodes", 3, "--quiet").code == 0
    assert textbench("replay", "a").code == 0
    assert counted("a").count(b"\n") == 3


def test_a_program_names_it_as_well(folder):
    results = evaluate({"it": "players/mine"}, scenarios="frozen-lake", episodes=2, quiet=True)
    assert results.agents == ("it",)
    assert evaluate("search(players/mine)", scenarios="frozen-lake", episodes=1, quiet=True).agents == ("mine",)


def test_files_are_those_of_the_folder_wherever_it_is_moved(textbench, workplace):
    path = workplace / "one"
    path.mkdir()
    (path / "words.toml").write_text('system = "Be quick."\n')
    write_agent_folder(path, {"spec": "openai:m", "prompts": "words.toml", "temperature": 0.25, "mode": "direct"})
    path.rename("two")
    assert read_agent_folder(Path("two")) == {
        "spec": "openai:m", "prompts": "two/words.toml", "temperature": 0.25, "mode": "direct"
    }  # fmt: skip
    assert read_agent_folder(Path("two"))["prompts"] == "two/words.toml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spec = 3", 'needs spec = "..."'),
        ("spec =", "isn't TOML"),
        ('spec = "tinny"', "did you mean 'tiny'"),
        ('spec = "random"\nsed = 1', "no option of the agent 'x' (random) named 'sed'; did you mean 'seed'"),
    ],
)
def test_what_is_wrong_with_one_is_one_sentence(textbench, workplace, text, said):
    Path("x").mkdir()
    Path("x/agent.toml").write_text(text)
    done = textbench(*RUN, "--agent", "x")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert said in done.err


@pytest.mark.parametrize("name", ["default", "without-clock", "brief-coordinates", "prefixed"])
@pytest.mark.parametrize("mode", ["think", "direct"])
def test_prompts_that_are_written_are_read_as_they_were(tmp_path, name, mode):
    texts = PromptTexts.from_file(name)
    write_prompts(tmp_path / "p.toml", texts)
    read = PromptTexts.from_file(tmp_path / "p.toml")
    ours, theirs = texts.read_in(mode), read.read_in(mode)
    assert {**ours, "open_response": ours["open_response"] or ours["response"]} == theirs
