"""``gepa``, ``library`` and ``evolve``: a gain with a perfect helper, none with a useless one. All is hand-written."""

import json
from pathlib import Path

import numpy as np
import pytest

from agents.prompt_texts import PromptTexts
from agents.turn import TurnRequest
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import replay
from research.improve.agents import write_prompts
from research.improve.budget import Budget, SpendingMeter, Spent
from research.improve.methods.evolving import agent_of, crossed, space_of
from research.improve.methods.library import (
    HEADING,
    Judge,
    Lesson,
    LessonsPlayer,
    read_lessons,
    refined,
    write_lessons,
)
from research.improve.tests.written_server import ADVICE, EDGE
from textgames import SCENARIOS

SMALL = {
    "gepa": {"seeds": 6, "batch": 2, "rounds": 3, "parts": "opening"},
    "library": {"seeds": 6, "tries": 3, "lessons": 2},
}


@pytest.fixture
def rewrite(server, improve):
    def run(method, helper, *more, agent="openai:heeding", scored=0, **own):
        given = ("--mode", "direct", "--temperature", 0, *more)
        return improve(method, agent, *given, scored=scored, writer=f"openai:{helper}", **(SMALL[method] | own))

    return run


@pytest.mark.slow
@pytest.mark.parametrize("method", SMALL)
def test_a_perfect_helper_makes_a_perfect_player_whose_folder_plays(
    rewrite, textbench, method, heeding_url, monkeypatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # where nobody is: --base-url is the helper's too
    done = rewrite(method, "wise", "--base-url", heeding_url.replace("127.0.0.1", "localhost"), scored=4)
    assert done.scores() == [0, 1]
    agent, spent = done.agent, done.about["spent"]
    assert agent["spec"] == "openai:heeding"
    assert PromptTexts.from_file(Path("o", agent["prompts"])).opening.count(ADVICE) == 1
    calls = [json.loads(line) for line in Path("o/calls.jsonl").read_text().splitlines()]
    assert "expected return; best was" in calls[0]["question"]  # what the moves lost, exactly
    assert spent["calls"] > len(calls) > 0
    assert spent["tokens"] > sum(sum(call["tokens"]) for call in calls) > 0
    run = ("run", "--scenario", "frozen-lake", "--episodes", 2, "--quiet", "--agent")
    assert textbench(*run, "o", "--out", "one").code == 0
    Path("o").rename("moved")  # the folder is whole, and as good as a stranger's
    told = f"moved names the paid model {agent['spec']}, the base_url {agent['base_url']}, which you haven't"
    assert told in textbench(*run, "moved", "--out", "two").err
    said = ("--allow", agent["spec"], "--set", f"moved.base_url={agent['base_url']}")
    assert textbench(*run, "moved", "--out", "two", *said).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("helper", ["useless", "broken"])
@pytest.mark.parametrize("method", SMALL)
def test_a_useless_helper_changes_nothing(rewrite, method, helper):
    done = rewrite(method, helper)
    assert "no better agent was found" in done.err
    assert (done.changed, "prompts" in done.agent) == (False, False)


@pytest.mark.parametrize("method", [pytest.param("gepa", marks=pytest.mark.slow), "library"])
def test_a_spent_budget_ends_it_with_the_best_so_far(rewrite, method):
    done = rewrite(method, "wise", "--budget-calls", 10)
    assert "the budget is spent: " in done.err
    assert not done.changed
    (first, *_) = sorted(Path("o/plays").glob("*/episodes.jsonl"))
    kept = first.read_bytes()
    with pytest.raises(AssertionError, match="was made with budget, calls = 10, now it is 9"):
        rewrite(method, "wise", "--budget-calls", 9)
    done = rewrite(method, "wise", "--budget-calls", 100_000)  # resumes with what was played
    assert done.changed
    assert done.about["spent"]["calls"] > 10
    assert first.read_bytes().startswith(kept)
    with pytest.raises(AssertionError, match="was made with budget, calls = 100000, now it is 200000"):
        rewrite(method, "wise", "--budget-calls", 200_000)  # it ended by itself


@pytest.mark.slow
@pytest.mark.parametrize(("helper", "refine", "gains"), [("wise", 1, True), ("wise", 0, False), ("useless", 1, False)])
def test_a_lesson_that_harms_elsewhere_is_read_only_where_it_helps(rewrite, helper, refine, gains):
    done = rewrite("library", helper, scored=4, agent="openai:minding", refine=refine)
    assert (done.scores(), done.changed) == ([0, int(gains)], gains)
    if gains:
        file = done.agent["spec"].removeprefix("advised(openai:minding, lessons:").removesuffix(")")
        assert read_lessons(Path("o", file)) == (Lesson(ADVICE, (EDGE,)),)
        told = LessonsPlayer(str(Path("o", file))).act([TurnRequest(f"{EDGE} 3)"), TurnRequest("Player: (1, 3)")])
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
def test_no_more_is_in_flight_than_the_budget_reaches_for(rewrite, unit, most):
    done = rewrite("library", "wise", f"--budget-{unit}", most, seeds=50)
    assert "the budget is spent: " in done.err
    assert done.about["spent"][unit] < 1.2 * most
    (folder,) = Path("o/plays").iterdir()
    assert len(RunFolder.open(folder).index()) > 0


@pytest.mark.parametrize(("name", "mode"), [("default", "think"), ("without-clock", "direct"), ("prefixed", "think")])
def test_prompts_that_are_written_are_read_as_they_were(tmp_path, name, mode):
    texts = PromptTexts.from_file(name)
    write_prompts(tmp_path / "p.toml", texts)
    ours, theirs = texts.read_in(mode), PromptTexts.from_file(tmp_path / "p.toml").read_in(mode)
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


GOOD = "temperature=0.3,temperature=4.0,spec=search(AGENT),rank_by=exact"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choices", "made"),
    [(GOOD, {"spec": "search(tiny)", "rank_by": "exact"}), ("temperature=4.0,max_tokens=9", {"spec": "tiny"})],
)
def test_a_search_that_pays_is_found_and_useless_choices_change_nothing(improve, choices, made):
    agent = improve("evolve", "tiny", "--temperature", 2.0, choices=choices, seeds=20, children=12).agent
    assert made.items() <= agent.items()
    assert "rank_by" in made or agent == {"spec": "tiny", "temperature": 2.0}


@pytest.mark.slow
def test_the_best_is_handed_back_only_if_it_gains_on_other_seeds(improve):
    options = {"choices": "temperature=0.3,spec=search(AGENT)", "seeds": 20, "children": 2, "surety": 99}
    done = improve("evolve", "tiny", "--temperature", 2.0, **options)
    assert "on 20 other seeds: " in done.err
    assert done.agent == {"spec": "tiny", "temperature": 2.0}


@pytest.mark.slow
@pytest.mark.parametrize("helper", ["wise", "broken"])
def test_a_writer_makes_the_text(server, improve, helper):
    options = {"choices": "temperature=0.0", "writer": f"openai:{helper}", "seeds": 6, "children": 6}
    done = improve("evolve", "openai:heeding", "--mode", "direct", "--temperature", 0.5, **options)
    assert (ADVICE in done.agent.get("system", "")) == (helper == "wise")


def test_children_have_settings_of_both_parents():
    mother, father, names = {"a": 1, "b": 2}, {"c": 3}, ["a", "b", "c"]
    children = [crossed(mother, father, names, np.random.default_rng(seed)) for seed in range(200)]
    assert {"".join(child) for child in children} == {"", "a", "b", "c", "ab", "ac", "bc", "abc"}
    assert all(child[name] == {**mother, **father}[name] for child in children for name in child)


def test_choices_are_options_of_the_agent_and_of_players_around_it():
    space = space_of("tiny", ["temperature=1", "spec=router(AGENT, tiny-lake)", "least=0.5", "temperature=0.5"])
    assert space == {"temperature": [1.0, 0.5], "spec": ["router(AGENT, tiny-lake)"], "least": [0.5]}
    assert agent_of({"spec": "tiny", "mode": "think"}, {"least": 0.5}) == {"spec": "tiny", "mode": "think"}
    for choice, said in (("proposals=4", "no setting in choices named 'proposals'"), ("spec=serch(AGENT)", "search")):
        with pytest.raises(UsageError, match=said):
            space_of("tiny", [choice])


def test_a_budget_keeps_what_the_comparison_takes(tmp_path):
    meter = SpendingMeter(Budget(calls=100), tmp_path / "seconds")
    meter.charge(Spent(calls=40))
    assert meter.reaches(2, 3)  # 20 each
    assert not meter.reaches(2, 4)
