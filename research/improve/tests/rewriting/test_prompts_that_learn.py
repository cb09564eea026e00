"""``gepa`` and ``library``: a gain with a perfect helper, none with a useless one. All answers are written by hand."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from agents.prompt_texts import PromptTexts
from agents.turn import TurnRequest
from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import replay
from research.improve.feedback import Judge
from research.improve.methods.rewriting.lessons import (
    HEADING,
    Lesson,
    LessonsPlayer,
    read_lessons,
    refined,
    write_lessons,
)
from research.improve.prompts import write_prompts
from research.improve.tests.heeding_server import ADVICE, EDGE
from textgames import SCENARIOS

GEPA = ("gepa", "--set", "seeds=6", "--set", "batch=2", "--set", "rounds=3", "--set", "parts=opening")
LIBRARY = ("library", "--set", "seeds=6", "--set", "tries=3", "--set", "lessons=2")


@pytest.fixture
def improve(server, textbench):
    def run(method, helper, *more, episodes=0, agent="openai:heeding"):
        if method is GEPA:
            pytest.importorskip("gepa")
        return textbench(
            *("improve", *method, "--agent", agent, "--set", f"writer={helper}", "--out", "better"),
            *("--mode", "direct", "--temperature", 0),
            *("--scenario", "frozen-lake", "--eval-episodes", episodes, *more),
        )

    return run


def about():
    return json.loads(Path("better/improvement.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("method", [GEPA, LIBRARY], ids=["gepa", "library"])
def test_a_perfect_helper_makes_a_perfect_player_whose_folder_plays(
    improve, textbench, method, heeding_url, monkeypatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # where nobody is: --base-url is the helper's too
    done = improve(method, "openai:wise", "--base-url", heeding_url.replace("127.0.0.1", "localhost"), episodes=4)
    assert done.code == 0, done.err
    told = about()
    (before,), (after,) = told["before"], told["after"]
    assert (before["success_rate"]["value"], after["success_rate"]["value"]) == (0, 1)
    agent = tomllib.loads(Path("better/agent.toml").read_text())
    assert agent["spec"] == "openai:heeding"
    assert PromptTexts.from_file(Path("better", agent["prompts"])).opening.count(ADVICE) == 1
    calls = [json.loads(line) for line in Path("better/calls.jsonl").read_text().splitlines()]
    assert all("expected return; best was" in call["question"] for call in calls[:1])  # what the moves lost, exactly
    assert told["spent"]["calls"] > len(calls) > 0
    assert told["spent"]["tokens"] > sum(sum(call["tokens"]) for call in calls) > 0
    run = ("run", "--scenario", "frozen-lake", "--episodes", 2, "--quiet", "--agent")
    assert textbench(*run, "better", "--out", "one").code == 0
    Path("better").rename("moved")  # the folder is whole, and as good as a stranger's
    done = textbench(*run, "moved", "--out", "two")
    assert (
        f"moved names the paid model {agent['spec']}, the base_url {agent['base_url']}, which you haven't" in done.err
    )
    said = ("--allow", agent["spec"], "--set", f"moved.base_url={agent['base_url']}")
    assert textbench(*run, "moved", "--out", "two", *said).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "helper"),
    [
        pytest.param(LIBRARY, "openai:useless", id="library"),
        pytest.param(GEPA, "openai:useless", id="gepa"),
        pytest.param(LIBRARY, "openai:broken", id="library, broken"),
        pytest.param(GEPA, "openai:broken", id="gepa, broken"),
    ],
)
def test_a_useless_helper_changes_nothing(improve, method, helper):
    done = improve(method, helper)
    assert done.code == 0, done.err
    assert "no better agent was found" in done.err
    assert about()["changed"] is False
    assert "prompts" not in tomllib.loads(Path("better/agent.toml").read_text())


@pytest.mark.parametrize("method", [pytest.param(GEPA, marks=pytest.mark.slow), LIBRARY], ids=["gepa", "library"])
def test_a_spent_budget_ends_it_with_the_best_so_far(improve, method):
    done = improve(method, "openai:wise", "--budget-calls", 10)
    assert done.code == 0, done.err
    assert "the budget is spent: " in done.err
    assert about()["changed"] is False
    (first, *_) = sorted(Path("better/plays").glob("*/episodes.jsonl"))
    kept = first.read_bytes()
    done = improve(method, "openai:wise", "--budget-calls", 9)
    assert "was made with budget, calls = 10, now it is 9" in done.err
    done = improve(method, "openai:wise", "--budget-calls", 100_000)  # goes on with what was played
    assert done.code == 0, done.err
    assert about()["changed"] is True
    assert about()["spent"]["calls"] > 10
    assert first.read_bytes().startswith(kept)
    done = improve(method, "openai:wise", "--budget-calls", 200_000)  # it ended by itself
    assert "was made with budget, calls = 100000, now it is 200000" in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("helper", "refine", "gains"),
    [("openai:wise", 1, True), ("openai:wise", 0, False), ("openai:useless", 1, False)],
    ids=["wise", "without conditions", "useless"],
)
def test_a_lesson_that_harms_elsewhere_is_read_only_where_it_helps(improve, helper, refine, gains):
    done = improve(LIBRARY, helper, "--set", f"refine={refine}", episodes=4, agent="openai:minding")
    assert done.code == 0, done.err
    (before,), (after,) = about()["before"], about()["after"]
    assert (before["success_rate"]["value"], after["success_rate"]["value"]) == (0, int(gains))
    assert about()["changed"] is gains
    if gains:
        agent = tomllib.loads(Path("better/agent.toml").read_text())
        file = agent["spec"].removeprefix("advised(openai:minding, lessons:").removesuffix(")")
        (kept,) = read_lessons(Path("better", file))
        assert kept == Lesson(ADVICE, (EDGE,))
        game = SCENARIOS["frozen-lake"].game()
        start = game.observe(game.initial_state(np.random.default_rng(0)), game.players[0])
        player = LessonsPlayer(str(Path("better", file)))
        told = player.act([TurnRequest(start), TurnRequest(start.replace(EDGE, "Player: (1,"))])
        assert [turn.response for turn in told] == [f"{HEADING}\n- {ADVICE}", ""]


def test_conditions_by_hand(tmp_path):
    lesson = refined(Lesson("Jump."), "So: <when>\nPlayer\nnot Holes: none\n</when>")
    assert [lesson.applies(text) for text in ("Player", "Player. Holes: none", "Goal")] == [True, False, False]
    assert refined(lesson, "I don't know.") == lesson
    assert read_lessons(write_lessons(tmp_path, [lesson, Lesson("Run.")])) == (lesson, Lesson("Run."))
    (tmp_path / "wrong.toml").write_text("[[lessons]]\ntext = 3\n")
    with pytest.raises(ValueError, match=r"wrong.toml' are not tables .*textbench improve library --set refine=2"):
        read_lessons(tmp_path / "wrong.toml")


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "most"), [("calls", 130), ("tokens", 60_000)])
def test_no_more_is_in_flight_than_the_budget_reaches_for(improve, unit, most):
    done = improve(LIBRARY, "openai:wise", f"--budget-{unit}", most, "--set", "seeds=50")
    assert done.code == 0, done.err
    assert "the budget is spent: " in done.err
    assert about()["spent"][unit] < 1.2 * most
    (folder,) = Path("better/plays").iterdir()
    assert len(RunFolder.open(folder).index()) > 0


@pytest.mark.parametrize("name", ["default", "without-clock", "brief-coordinates", "brief-grid", "prefixed"])
@pytest.mark.parametrize("mode", ["think", "direct"])
def test_prompts_that_are_written_are_read_as_they_were(tmp_path, name, mode):
    texts = PromptTexts.from_file(name)
    write_prompts(tmp_path / "p.toml", texts)
    read = PromptTexts.from_file(tmp_path / "p.toml")
    ours, theirs = texts.read_in(mode), read.read_in(mode)
    assert {**ours, "open_response": ours["open_response"] or ours["response"]} == theirs


@pytest.mark.parametrize("game", ["kuhn-poker", pytest.param("leduc-poker", marks=pytest.mark.slow)])
def test_no_move_of_an_equilibrium_is_told_as_a_loss(textbench, game):
    """Not even by the error of its solver."""
    played = ("run", "--agent", "planner", "--agent", "random", "--scenario", game, "--episodes", 8, "--quiet")
    assert textbench(*played, "--out", "duel").code == 0
    judge = Judge(SCENARIOS[game])
    for record in RunFolder.open(Path("duel")).records():
        for move in judge.moves(replay(record, SCENARIOS[game])):
            assert move.lost == 0 or record.agents[move.step.player] == "random"


def test_without_values_of_actions_an_episode_is_told_by_its_end(textbench):
    played = ("run", "--agent", "random", "--scenario", "werewolf-5", "--episodes", 1, "--quiet", "--out", "night")
    assert textbench(*played).code == 0
    (record, *_), judge = RunFolder.open(Path("night")).records(), Judge(SCENARIOS["werewolf-5"])
    assert judge.moves(replay(record, SCENARIOS["werewolf-5"])) == []
    assert "Its return was" in judge.words(record)
