"""Recorded play, histories and a teacher: what of it is imitated and how much, and what a player gains by it."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp
from pathlib import Path

import numpy as np
import pytest

from agents import SearchPlayer, search_player_of
from agents.prompt import PromptMap
from agents.prompt_texts import PromptTexts
from agents.turn import TurnRequest
from benchmark import UsageError
from benchmark.runs import find_scenarios
from benchmark.show.training_data import RecordedDecision
from research.improve.around.choosing import learned_value
from research.improve.methods import learning
from research.improve.methods.imitating import (
    HEAD,
    NONE_IMPROVES,
    Shown,
    _saying,
    imitated,
    improving,
    recorded,
)
from research.improve.methods.weighing import (
    MOST_WEIGHT,
    RecordedEpisode,
    check_measures,
    criticised,
    history_weights,
    measured,
    regularised,
    weights_of,
)
from research.improve.tests.conftest import USELESS
from research.improve.values import About, StepValue, ValuePlayer
from research.improve.values.measure import SCENARIO, random_play
from textgames.scenarios import SCENARIOS


def episodes(*returns: Sequence[float]) -> list[RecordedEpisode]:
    """A seed a list of returns, each of an episode with one decision."""
    places = [(seed, result) for seed, results in enumerate(returns) for result in results]
    return [RecordedEpisode("lake", seed, result, [None]) for seed, result in places]  # type: ignore[list-item]


def shown(found: list[RecordedEpisode], method: str, top: float = 0.25, beta: float = 1.0) -> list[Shown]:
    return imitated(found, method, top, beta)  # type: ignore[arg-type]


def test_filtered_imitates_the_best_share_of_each_scenario_and_never_the_lowest():
    found = episodes([0.0, 3.0, 1.0, 2.0])
    other = [one._replace(scenario="snake", result=10 * one.result) for one in found]
    assert [one.episode.result for one in shown([*found, *other], "filtered", 0.25)] == [3, 30]
    assert [one.episode.result for one in shown(found, "filtered", 0.5)] == [3, 2]
    assert [one.episode.result for one in shown(found, "filtered", 1.0)] == [3, 1, 2]
    # a tie goes together: four of ten succeeded, and a tenth was asked for
    assert len(shown(episodes([1.0] * 4 + [0.0] * 6), "filtered", 0.1)) == 4
    for method in ("filtered", "weighted", "return"):
        assert shown(episodes([1.0, 1.0], [1.0]), method) == []  # equal returns tell nothing


def test_weighted_is_the_exponential_of_the_advantage_over_the_same_start():
    found = episodes([1.0, 0.0], [1.0, 1.0], [0.0, 0.0])
    spread = np.std([1, 0, 1, 1, 0, 0])
    # where the start decided the end, nothing was done well or badly
    expected = np.exp(np.array([0.5, -0.5, 0, 0, 0, 0]) / spread / 2.0)
    weights = [one.weight for one in shown(found, "weighted", beta=2.0)]
    assert weights == pytest.approx(expected / expected.mean())
    # seeds that were played once are compared with their scenario
    alone = [one.weight for one in shown(episodes([0.0], [1.0]), "weighted")]
    assert alone[1] / alone[0] == pytest.approx(np.exp(2.0))
    steep = [one.weight for one in shown(found, "weighted", beta=1e-3)]
    assert steep[0] / steep[2] == pytest.approx(MOST_WEIGHT)


def test_return_tells_how_an_episode_ended_in_the_place_of_the_best():
    found = shown(episodes([-1.0, 0.0, 4.0]), "return")
    assert [one.line for one in found] == [f"Your result: {number} of 10." for number in (0, 2, 10)]
    texts = replace(PromptTexts.default(), opening="$instructions\n\nYour result: 10 of 10.")
    asked = _saying(PromptMap("direct", 0, texts), found[1].line)
    assert asked.texts.opening == "$instructions\n\nYour result: 2 of 10."


RUN = ("run", "--scenario", "frozen-lake", "--quiet", "--json", "--agent")
FREE = ("--mode", "direct", "--seed-offset", 1000)
DIRECT = ("--mode", "direct", "--temperature", 0)


def test_scored_episodes_are_never_learnt_from(textbench):
    first = SCENARIOS["frozen-lake"].first_seed
    assert textbench(*RUN, "random", "--mode", "direct", "--episodes", 3, "--out", "scored").code == 0
    with pytest.raises(UsageError, match=r"there is nothing to learn from for frozen-lake in scored: .*--seed-offset"):
        recorded([Path("scored")], ["frozen-lake"], "direct")
    assert textbench(*RUN, "random", *FREE, "--episodes", 3, "--out", "free").code == 0
    found = recorded([Path("scored"), Path("free")], ["frozen-lake"], "direct")
    assert [one.seed for one in found] == [first + 1000 + number for number in range(3)]
    assert all(one.decisions for one in found)
    apart = {first + 1001}  # on which players are compared
    kept = recorded([Path("free")], ["frozen-lake"], "direct", apart=apart)
    assert [one.seed for one in kept] == [first + 1000, first + 1002]
    with pytest.raises(UsageError, match="nothing to learn from for snake in free: what was played there is frozen-l"):
        recorded([Path("free")], ["snake"], "direct")


WORDY = '''
from agents.turn import Turn


class Wordy:
    """Reasons in the form of the mode think at every other decision."""

    name = "wordy"

    def act(self, requests):
        thought = "<think>a path</think><plan>right</plan>"
        begun = [thought if request.steps_left % 2 else "Well. " for request in requests]
        return [Turn(begin + "<action>right</action>") for begin in begun]
'''


def test_answers_without_the_reasoning_of_their_mode_are_left_out(textbench, workplace):
    for file, text in (("wordy.py", WORDY), ("wordless.py", WORDY.replace("thought if", "'' if"))):
        Path(file).write_text(text)
        played = textbench(*RUN, f"{file}:Wordy", "--episodes", 4, "--seed-offset", 1000, "--out", Path(file).stem)
        assert played.code == 0
    direct, think = (recorded([Path("wordy")], ["frozen-lake"], mode) for mode in ("direct", "think"))
    counts = [sum(len(one.decisions) for one in found) for found in (direct, think)]
    assert 0 < counts[1] < counts[0]
    assert all(decision.response.startswith("<think>") for one in think for decision in one.decisions)
    with pytest.raises(UsageError, match="in wordless: no response there is valid in the mode think"):
        recorded([Path("wordless")], ["frozen-lake"], "think")


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"episodes": 120}, {"method": "a2pr", "episodes": 20, "attempts": 16}])
def test_a_model_plays_better_by_the_best_of_its_own_play(improve, options):
    before, after = improve("offline", "tiny", "--quiet", scored=60, **options).scores()
    assert after > before + 0.15


@pytest.mark.nightly  # two minutes of a core
@pytest.mark.parametrize(("teacher", "examples"), [("planner", 4000), ("random", 1000)])
def test_a_model_plays_better_by_a_planner_and_not_by_a_random_player(improve, teacher, examples):
    options = {"teacher": teacher, "examples": examples, "rank": 0, "explore": 0.5}
    _, after = improve("imitate", "tiny", "--mode", "direct", scored=60, **options).scores()
    assert after > 0.35 if teacher == "planner" else after < 0.25


def played(seed: int, moves: str, rewards: list[float]) -> RecordedEpisode:
    """Decisions as state and action, "sr tl": what was read, and what was answered with which reward."""
    decisions = [
        RecordedDecision(
            {"scenario": "g", "player": "p", "action": act}, TurnRequest(state), None, f"{act}{seed}", 0.0, None, paid
        )
        for (state, act), paid in zip(moves.split(), rewards, strict=True)
    ]
    return RecordedEpisode("g", seed, sum(rewards), decisions)


def answers(*episodes: RecordedEpisode, discount: float = 0.5) -> list[list[str]]:
    found = regularised(episodes, discount, np.random.default_rng(0))
    return [[each.response for each in one.decisions] for one in found]


def test_a_decision_is_imitated_with_the_better_action_of_its_state_if_that_has_an_advantage():
    """In t, r pays 1 and l nothing, so that V(t) = 1 by the guided model; in s, d pays 0.6 and r leads to t, 0.5.

    By beta, which plays l in t half of the time, d would be ahead in s by 0.35 in place of 0.1. In u there is but one
    action, in w two that are alike.
    """
    found = [played(0, "sr tr", [0.0, 1.0]), played(1, "sr tl", [0.0, 0.0])]
    found += [played(2, "sd ua wx", [0.6, 0.0, 0.0]), played(3, "wy", [0.0])]
    assert answers(*found) == [["d2", "r0"], ["d2", "r0"], ["d2"]]
    # less discounted, r is worth 0.9 in s; of both responses that say it, either is taken
    (first, second, third) = answers(*found, discount=0.9)
    assert (first, second) == (["r0", "r0"], ["r1", "r0"])
    assert third in (["r0"], ["r1"])


def test_a_recorded_action_of_an_advantage_stays_if_a_worse_one_is_drawn():
    """a, b and c pay 3, 2 and 0: a and b are above the mean, so a decision with a stays, and b may become a."""
    found = [played(seed, f"s{action}", [paid]) for seed, (action, paid) in enumerate([("a", 3), ("b", 2), ("c", 0)])]
    drawn = [regularised(found, 0.5, np.random.default_rng(seed)) for seed in range(20)]
    said = [{each[at].decisions[0].action for each in drawn} for at in range(3)]
    assert said == [{"a"}, {"a", "b"}, {"a", "b"}]


def test_play_in_which_nothing_is_better_than_the_rest_teaches_nothing():
    assert answers(played(0, "sr tr", [0.0, 1.0]), played(1, "sr tr", [0.0, 0.0])) == []


SOLVER = search_player_of(find_scenarios([SCENARIO])[SCENARIO].game())


class Useless(SearchPlayer):
    """Values that have nothing to do with the game."""

    def values(self, request):
        rng = np.random.default_rng(len(request.observation) + (request.steps_left or 0))
        return dict(zip(request.legal_actions, rng.random(4), strict=True))


@pytest.fixture(scope="module")
def play():
    return random_play(SCENARIO, 150, 0)


def mean_loss(episodes, weights=None) -> float:
    losses = []
    for one in episodes:
        values = [(SOLVER.values(each.request), each.action) for each in one.decisions]
        losses.append(np.mean([max(own.values()) - own[action] for own, action in values]))
    return float(np.average(losses, weights=weights))


def loss_by(play, critic: SearchPlayer, method: str) -> float:
    """Return what is lost by a decision that is imitated."""
    found = criticised(play, critic, advantages=True)
    if method == "weighted":
        return mean_loss(found, weights_of([one.result for one in found], 1.0))
    return mean_loss([one.episode for one in imitated(found, "filtered", 0.25, 1.0)])


@pytest.mark.parametrize("method", ["filtered", "weighted"])
def test_what_is_imitated_loses_less_by_a_critic_that_knows_and_not_by_a_useless_one(play, method):
    everything = mean_loss(criticised(play, SOLVER, advantages=True))
    assert loss_by(play, SOLVER, method) < 0.5 * everything
    assert loss_by(play, Useless(""), method) > 0.8 * everything


@pytest.mark.slow
def test_a_learned_critic_knows_and_one_that_has_learnt_nothing_does_not(play, values):
    learnt, *useless = [loss_by(play, learned_value(values / name)[0], "filtered") for name in ("learned", *USELESS)]
    assert learnt < 0.4 * mean_loss(criticised(play, SOLVER, advantages=True))
    assert np.mean(useless) > 1.5 * learnt  # they prefer one action everywhere, which may be good


def test_results_weights_and_lines_by_hand(play):
    one = play[0].decisions[0]
    values = SOLVER.values(one.request)
    advantage, value = (criticised(play[:1], SOLVER, advantages=each)[0].result for each in (True, False))
    assert value == values[one.action]
    assert advantage == pytest.approx(value - max(values.values()))
    mean = (exp(0.5) + exp(-0.5)) / 2
    assert weights_of([1.0, -1.0], 2.0) == pytest.approx([exp(0.5) / mean, exp(-0.5) / mean])
    steep = weights_of([1.0, 0.0], 0.01)
    assert steep[0] / steep[1] == pytest.approx(20.0)
    found = criticised(play, SOLVER, advantages=False)
    best = max(range(len(found)), key=lambda at: found[at].result)
    assert imitated(found, "return", 0.25, 1.0)[best].line == "Your result: 10 of 10."


def test_without_a_list_of_legal_actions_there_is_a_value_and_no_advantage(play):
    critic = ValuePlayer(StepValue(About(scenarios=(SCENARIO,), targets="mc", decisions=1)))
    one = play[0].decisions[0]
    unlisted = [play[0]._replace(decisions=[one._replace(request=replace(one.request, legal_actions=()))])]
    (found,) = criticised(unlisted, critic, advantages=False)
    assert found.result == pytest.approx(critic.values(one.request)[one.action], rel=1e-4)
    with pytest.raises(UsageError, match="lists no legal actions, which a critic compares: --set method=return"):
        criticised(unlisted, critic, advantages=True)


def test_episodes_are_taken_from_the_worst_to_the_best():
    found = episodes([3.0], [0.0], [2.0], [1.0], [4.0])
    assert [one.result for one in improving(found, 3)] == [0, 2, 4]
    assert [one.result for one in improving(found, 1)] == [4]
    assert [one.result for one in improving(found, 9)] == [0, 1, 2, 3, 4]  # there are no more, and none comes twice


@pytest.mark.parametrize(
    ("curve", "improvement", "stability"),
    [
        ([0, 1, 2, 3], 0.5, 1),  # (2.5 - 0.5) / 4, and only rises
        ([0, 3, 1, 4], 0.25, 6 / 8),  # (2.5 - 1.5) / 4; it rises by 3 and 3, and falls by 2
        ([3, 2, 1, 0], 0, 0),
        ([2, 2], 0, 1),
        ([0, 0, 4, 0, 4, 4, 4, 4], 0.75, 1),  # as 0, 2, 4, 4
    ],
)
def test_measures_of_a_curve_by_hand(curve, improvement, stability):
    assert measured(curve, span=4) == pytest.approx({"improvement": improvement, "stability": stability})


def test_noisy_histories_are_dropped_and_those_left_are_weighed():
    curves = {1: [0.0, 1.0], 2: [1.0, 0.0], 3: [1.0, 1.0], 4: [0.0, 2.0]}
    found = [RecordedEpisode("lake", seed, curves[seed][at], [None] * 2) for at in (0, 1) for seed in curves]
    both = ["improvement", "stability"]
    assert history_weights(found, both, 1.0) == pytest.approx([2 / 3, 0, 0, 4 / 3] * 2)
    assert history_weights(found, both, 0.25) == pytest.approx([0, 0, 0, 1] * 2)
    assert history_weights(found, ["stability"], 1.0) == pytest.approx([1, 0, 1, 1] * 2)
    assert history_weights([one for one in found if one.seed == 2], both, 1.0) == [0, 0]
    with pytest.raises(UsageError, match="weigh has 'size'; histories are weighed by improvement and stability"):
        check_measures(["improvement", "size"])


@pytest.fixture
def histories(server, textbench):
    """Folders of play by a planner and by a random player."""
    for player in ("planner", "random"):
        assert textbench(*RUN, player, *FREE, "--episodes", 60, "--out", player).code == 0


TELL = {"method": "context", "learn_from": "planner,random", "told": 2}


@pytest.mark.slow
@pytest.mark.parametrize(("top", "returns"), [(1, ["0", "1"]), (0.25, ["1", "1"])], ids=["all", "filtered"])
def test_who_heeds_histories_gains_by_them(improve, histories, top, returns):
    done = improve("offline", "openai:studying", *DIRECT, scored=6, top=top, **TELL)
    assert (done.scores(), done.changed) == ([0, 1], True)
    opening = PromptTexts.from_file(Path("o", done.agent["prompts"])).opening
    assert opening.index("$instructions") < opening.index(HEAD)
    assert [line.removeprefix("Return: ") for line in opening.splitlines() if line.startswith("Return")] == returns


WEIGHED = {"weigh": "improvement,stability", "top": 1, "told": 4}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("player", "options", "after"),
    [
        ("heeding", {}, 0),  # a player that doesn't heed them
        ("studying", {**WEIGHED, "learn_from": "random,planner"}, 1),  # a learner that improves
        ("studying", {**WEIGHED, "learn_from": "planner,random"}, 0),  # and one that gets worse
    ],
)
def test_what_is_told_changes_a_player_that_heeds_it_if_it_improves(improve, histories, player, options, after):
    done = improve("offline", f"openai:{player}", *DIRECT, scored=6, **(TELL | options))
    assert (done.scores(), done.changed, "prompts" in done.agent) == ([0, after], bool(after), bool(after))


@pytest.mark.slow
@pytest.mark.parametrize(("order", "gains"), [("random,planner,planner", True), ("planner,planner,random", False)])
def test_weights_are_trained_on_histories_that_improve_alone(improve, histories, monkeypatch, order, gains):
    monkeypatch.setattr(learning, "COMPARED", 20)
    options = {"method": "weighted", "weigh": "improvement", "top": 1, "learning_rate": 0.003, "learn_from": order}
    done = improve("offline", "tiny", "--mode", "direct", **options)
    assert ((NONE_IMPROVES in done.err), done.changed) == (not gains, gains)
