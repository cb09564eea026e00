"""What a warm start imitates: legal, true, from training seeds, and nothing of what is held out."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from agents.episode import Episode, EpisodeTask
from agents.loop.rollout import rollout
from agents.msgrpo import ConfigError
from agents.msgrpo.warmup import TaughtDecision, demonstrate, demonstrations
from agents.prompt import PromptMap
from agents.turn import Turn, TurnRequest
from textgames import TRAINING_SEEDS

DIRECT, THINK = PromptMap("direct"), PromptMap("think")


@cache
def explored() -> list[TaughtDecision]:
    return demonstrate(["frozen-lake"], ["planner"], 200, DIRECT, explore=0.5)


def text(decision: TaughtDecision) -> str:
    return decision.prompt[-1].content


def layouts(decisions: list[TaughtDecision]) -> set[str]:
    """The lake of each prompt, wherever its player stands."""
    return {re.sub(r"P", "_", text(one).partition("Holes:")[2].partition("Moves left")[0]) for one in decisions}


def plan(decision: TaughtDecision) -> list[str]:
    return decision.response.partition("<plan>")[2].partition("</plan>")[0].split(", ")


def test_the_planner_shows_its_moves_in_the_form_of_direct_answers():
    decisions = demonstrate(["frozen-lake"], ["planner"], 60, DIRECT)
    assert len(decisions) == 60
    assert all(re.fullmatch("<action>(down|right)</action>", one.response) for one in decisions[:3])
    assert all(re.fullmatch("<action>(left|down|right|up)</action>", one.response) for one in decisions)
    assert demonstrate(["frozen-lake"], ["planner"], 60, DIRECT) == decisions
    assert demonstrate(["frozen-lake"], ["planner"], 60, DIRECT, seed=1) != decisions
    assert len(layouts(decisions)) >= 8


def test_only_training_seeds_are_played_and_each_once(monkeypatch):
    seeds: list[int] = []

    def noting(policy: Any, tasks: list[EpisodeTask], **options: Any) -> Iterator[Episode]:
        seeds.extend(task.seed for task in tasks)
        return rollout(policy, tasks, **options)

    monkeypatch.setattr(demonstrations, "rollout", noting)
    for part in (0, 1):
        demonstrate(["frozen-lake"], ["random", "planner"], 300, DIRECT, part=part)
    assert len(seeds) > 60
    assert len(set(seeds)) == len(seeds)
    assert set(seeds) <= set(TRAINING_SEEDS)


def test_what_is_held_out_are_other_layouts_whatever_the_teachers():
    teachers = ["random", "planner"]
    learnt = layouts(demonstrate(["frozen-lake-big"], teachers, 120, DIRECT))
    held_out = layouts(demonstrate(["frozen-lake-big"], teachers, 120, DIRECT, part=1))
    assert len(learnt) > 8
    assert len(held_out) > 8
    assert not learnt & held_out


@pytest.mark.slow
def test_teachers_and_scenarios_have_equal_parts():
    decisions = demonstrate(["frozen-lake", "snake"], ["random", "planner"], 41, DIRECT)
    assert len(decisions) == 41
    games = Counter("Frozen Lake" in text(one) for one in decisions)
    assert sorted(games.values()) == [20, 21]


def test_of_equally_good_moves_any_is_shown_and_no_position_twice():
    decisions = demonstrate(
        ["frozen-lake"], ["planner"], 200, PromptMap.from_file("without-clock", "direct"), explore=0.5
    )
    assert len({one.prompt for one in decisions}) > 170  # some lakes come up again
    begun = Counter(one.response for one in explored() if "included: 8." in text(one))
    assert min(begun["<action>down</action>"], begun["<action>right</action>"]) > 5  # both lead to most goals


def test_where_no_move_is_better_than_another_nothing_is_shown():
    for one in explored():
        left = int(re.findall(r"included: (\d+)\.", text(one))[0])
        x, y = map(int, re.findall(r"Player: \((\d+), (\d+)\)", text(one))[0])
        assert abs(3 - x) + y <= left  # the goal stands at (3, 0): further away, all is lost


def test_with_exploration_the_planner_answers_where_it_would_never_have_been():
    # six moves lead to the goal, so whoever has two moves left isn't on the way any more
    assert not any("included: 2." in text(one) for one in demonstrate(["frozen-lake"], ["planner"], 200, DIRECT))
    assert sum("included: 2." in text(one) for one in explored()) > 3


def test_a_plan_on_the_lake_leads_to_the_goal_and_ends_where_chance_decides():
    for one in demonstrate(["frozen-lake"], ["planner"], 40, THINK):
        left = int(re.findall(r"included: (\d+)\.", text(one))[0])
        x, y = map(int, re.findall(r"Player: \((\d+), (\d+)\)", text(one))[0])
        goal = tuple(map(int, re.findall(r"Goal: \((\d+), (\d+)\)", text(one))[0]))
        for move in plan(one):
            x, y = x + {"right": 1, "left": -1}.get(move, 0), y + {"up": 1, "down": -1}.get(move, 0)
        assert (x, y) == goal
        assert len(plan(one)) <= left
    slippery = demonstrate(["frozen-lake-slippery"], ["planner"], 40, THINK)
    # into a corner's wall three ways lead nowhere else; everywhere else the ice decides after one move
    assert min(len(plan(one)) for one in slippery) == 1
    random = demonstrate(["frozen-lake"], ["random"], 40, THINK)
    assert {len(plan(one)) for one in random} == {1}


def test_a_game_without_words_for_its_board_has_the_teachers_own():
    for one in demonstrate(["sliding-puzzle"], ["planner"], 20, THINK):
        assert one.response.startswith("<think>Playing ahead, ")
    for one in demonstrate(["kuhn-poker"], ["random"], 20, THINK):
        assert re.fullmatch(r"<think>Any legal .+</think><plan>(\w+)</plan><action>\1</action>", one.response)


def test_who_can_not_teach_is_said():
    with pytest.raises(ConfigError, match="the teacher 'planer' can't play frozen-lake: unknown agent"):
        demonstrate(["frozen-lake"], ["planer"], 10, DIRECT)
    with pytest.raises(ConfigError, match="can't play mastermynd: unknown scenario"):
        demonstrate(["mastermynd"], ["random"], 10, DIRECT)
    with pytest.raises(ConfigError, match="the teacher 'planner' can't play TestButtons-v0: greedy and planner"):
        demonstrate(["TestButtons-v0"], ["planner"], 10, DIRECT)


def test_a_teacher_without_a_valid_answer_is_refused():
    with pytest.raises(ConfigError, match=r"none of the answers of .* in 16 episodes of frozen-lake"):
        demonstrate(["frozen-lake"], [f"{__file__}:Mute"], 10, DIRECT)


class Mute:
    """Never says an action."""

    name = "mute"

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [Turn("well") for _ in requests]
