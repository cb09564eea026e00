"""What came of training is handed back where it plays better, on seeds that nothing was learnt from."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from agents.models.provider import model_folder
from research.improve.budget import Budget, SpendingMeter
from research.improve.methods import learning
from research.improve.plays import Play
from research.improve.task import ImprovementTask


@pytest.fixture
def said(monkeypatch):
    monkeypatch.setattr(learning, "COMPARED", 20)
    return []


@pytest.fixture(autouse=True)
def few_compared(monkeypatch):
    """As many episodes as tell tiny from tiny-lake, which succeed in 0.28 and 0.98."""
    monkeypatch.setattr(learning, "COMPARED", 20)


def task_of(agent: str, trained: str, out: Path, said: list[str], **budget: float) -> ImprovementTask:
    """A task whose training has just made one of the models that ship out of another one."""
    shutil.copytree(model_folder(trained), out / learning.MODEL)
    meter = SpendingMeter(Budget(**budget), out / "seconds.json")
    return ImprovementTask({"spec": agent}, ("frozen-lake",), meter, 0, out, said.append, quiet=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "trained", "made"), [("tiny-lake", "tiny", "tiny-lake"), ("tiny", "tiny-lake", f"hf:{learning.MODEL}")]
)
def test_what_plays_better_is_handed_back_and_compared_where_the_budget_is_spent_too(
    tmp_path, said, agent, trained, made
):
    task = task_of(agent, trained, tmp_path, said, seconds=1.0, tokens=1)
    assert learning.learnt(task, task.agent, 2.0) == {"spec": made}
    assert "before" in "".join(said)
    assert ("no better" in said[-1]) == (made == agent)  # a model that was spoilt
    assert task.meter.spent.tokens > 1  # the comparison is part of what it costs
    assert task.meter.budget == Budget(seconds=1.0, tokens=1)


def test_an_agent_that_nobody_could_compare_stays_as_it_was(tmp_path, said):
    task = task_of("tiny", "tiny-lake", tmp_path, said, calls=30)
    assert not learning.plays_better(task, task.agent, {"spec": "tiny-lake"})
    assert "nobody knows" in said[-1]


def met_in(scenario: str, out: Path, said: list[str]) -> tuple[ImprovementTask, Play, Play]:
    meter = SpendingMeter(Budget(), out / "seconds.json")
    task = ImprovementTask({"spec": "random"}, (scenario,), meter, 0, out, said.append, quiet=True)
    return task, *task.both({"spec": "random"}, {"spec": "planner"}, task.seeds(5))


@pytest.mark.parametrize(("scenario", "seats"), [("tic-tac-toe", 2), ("werewolf-5", 5)])
def test_in_a_game_for_several_two_agents_meet_and_each_has_every_seat_once(scenario, seats, tmp_path, said):
    _, before, after = met_in(scenario, tmp_path, said)
    assert len(before.returns) == len(after.returns) == 5
    held = Counter((one.seed, player, who) for one in after.records for player, who in one.agents.items())
    assert set(held.values()) == {1}
    assert len(held) == 5 * seats * 2


@pytest.mark.slow
def test_who_wins_such_meetings_is_the_better_one(tmp_path, said):
    task, before, after = met_in("tic-tac-toe", tmp_path, said)
    assert before.mean == -after.mean < 0  # the same games, in which one wins what the other loses
    assert task.is_better(after, before)
    assert not task.is_better(before, after)


@pytest.mark.slow
def test_a_spent_budget_is_mended_by_a_larger_one_in_the_same_folder(textbench):
    offline = ("improve", "offline", "--agent", "tiny", "--scenario", "frozen-lake", "--out", "o", "--eval-episodes", 1)
    small = ("--set", "method=context", "--set", "episodes=6", "--set", "attempts=1")
    done = textbench(*offline, *small, "--budget-calls", "20")
    assert done.code == 2
    assert "of 20 calls, before 6 episodes were played, which is what it learns from: the same command with" in done.err
    (own,) = Path("o/plays").glob("own-1-*/episodes.jsonl")
    played = own.read_text()
    done = textbench(*offline, *small, "--budget-calls", "2000")
    assert done.code == 0, done.err
    assert own.read_text().startswith(played)
    assert own.read_text().count("\n") == 6
    assert (
        "was made with budget, calls = 2000, now it is 3000"
        in textbench(*offline, *small, "--budget-calls", "3000").err
    )
