"""``consult(FIRST, SECOND, CHOOSER)``: a chooser that knows beats every mixture at fewer calls, and one is learnt."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from agents import SearchPlayers, TurnRequest, load_agent
from agents.msgrpo import ConfigError
from agents.msgrpo.credit.fresh import expected, realised
from agents.msgrpo.trajectories import training_tasks
from research.improve.around.consult import ConsultPolicy
from research.improve.around.router import RouterPolicy
from research.improve.tests.around.conftest import DEEPER, WORDS, Lit, Scripted, late, light, mean_return

SEARCHERS = SearchPlayers()


def counted(name: str) -> Scripted:
    player = load_agent(name)
    return Scripted(lambda request: player.act([request])[0].response, name)


def knows(request: TurnRequest) -> str:
    """Asks the first, and plays what was read if it loses nothing by the true values; else asks the second."""
    shown, *read = request.observation.split("\n\nThe ")
    if not read:
        return "<action>first</action>"
    named = read[-1].split("answers: ")[1].split("\n")[0]
    values = SEARCHERS.of(request).values(replace(request, observation=shown))
    return f"<action>{named if values[named] == max(values.values()) else 'second'}</action>"


def test_a_chooser_that_knows_beats_the_mixture_at_its_share_and_asks_the_second_less_than_always():
    first, second, chooser = counted("random"), counted("planner"), Scripted(knows)
    assert mean_return(ConsultPolicy(first, second, chooser)) == 1.0
    share = second.asked / first.asked
    assert 0.3 < share < 0.9
    mixed = RouterPolicy(load_agent("random"), load_agent("planner"), route_by="share", share=share)
    assert mean_return(mixed) < 0.9
    useless = ConsultPolicy(load_agent("random"), load_agent("planner"), load_agent("random"))
    assert mean_return(useless) < mean_return(mixed) / 2


def test_it_reads_every_answer_and_without_one_of_its_own_plays_the_latest():
    first, second = Scripted(lambda request: "<action>left</action>"), Scripted(lambda request: "perhaps up")
    says, read = iter(["first", "second", "?"]), list[str]()

    def chooser(request: TurnRequest) -> str:
        read.append(request.observation)
        return next(says)

    player = ConsultPolicy(first, second, Scripted(chooser), rounds=2)
    (turn,) = player.act([TurnRequest("where", legal_actions=("left", "up"))])
    assert read[2] == "where\n\nThe first player answers: left\n\nThe second player answers: perhaps up\n\nAnswer."
    assert (turn.response, turn.usage[:2]) == ("perhaps up", (50, 5))


def test_a_player_that_is_asked_again_draws_anew():
    seeds = list[tuple[int, ...]]()
    second = Scripted(lambda request: seeds.append(request.seed) or "up")
    player = ConsultPolicy(Scripted(light), second, Scripted(lambda request: "second"))
    player.act([TurnRequest("where", legal_actions=("up",), seed=(5,))])
    assert len({*seeds}) == 3


def test_a_chooser_answers_in_words_if_no_actions_are_listed():
    words = "<action>I am no wolf.</action>"
    asked, player = list[TurnRequest](), load_agent("random")
    chooser = Scripted(lambda request: asked.append(request) or words)
    unlisted = TurnRequest("where", legal_actions=("left",), moves_listed=False)
    (turn, _) = ConsultPolicy(player, player, chooser).act([TurnRequest("where", action_help="words"), unlisted])
    assert turn.response == words
    assert [(one.legal_actions, one.action_help, one.moves_listed) for one in asked] == [
        ((), "words", True),
        (("first", "second", "left"), "", False),  # what the protocol keeps back is kept back
    ]


class Sometimes(Scripted):
    """Knows the light in a third of the cases, and says when it doesn't."""

    def __init__(self) -> None:
        super().__init__(lambda request: "none" if np.random.default_rng(request.seed).integers(3) else light(request))


@pytest.fixture
def trainer(make):
    words = (*WORDS, "The first player answers: ", "The second player answers: ")
    around = f"consult({__name__}:Sometimes, {Lit.__module__}:Lit, learner)"
    return make(around, DEEPER, "TestDim-v0", words, cost=0.25, around_options={"rounds": 2})


def test_each_of_the_learners_answers_is_a_step_and_the_game_pays_the_last(trainer):
    played = trainer.rollout().trajectories
    assert {len(each) for each in played} == {1, 2, 3}
    for each in played:
        *before, last = each.rewards.tolist()
        assert before == [-0.25 * (named == "second") for named in each.actions[:-1]]
        assert all(each.valid[:-1])
        right = each.actions[-1] == each.states[0].light
        assert last == right - 0.5 * (not each.valid[-1])
    for episode in trainer.source.play(trainer.policy, training_tasks(trainer.config, trainer.games, 1)):
        assert episode.returns["player_0"] == pytest.approx(sum(step.reward for step in episode.steps))


def test_what_comes_of_a_question_includes_the_rest_of_its_decision(trainer):
    longest = max(trainer.rollout().trajectories, key=len)
    for t in range(3):
        assert realised(longest, t) == (1.0, pytest.approx(longest.rewards[t:].sum()), None)
    with pytest.raises(ConfigError, match="nor what came of its questions: set expected = false"):
        expected(longest, 0)


def test_a_tree_branches_between_decisions_and_not_within_one(make):
    words = ("left", "right", "first", "second", "cell 0", "cell 1", "cell 2", "\n")
    tree = {"task_sampling": "tree", "groups": 8, "group_size": 8, "around_options": {"rounds": 2}}
    played = make("consult(random, random, learner)", DEEPER, "TestCorridor-v0", words, **tree).rollout().trajectories
    assert max(len(each) for each in played) > 4  # longer than its rounds
    assert all(max(Counter(each.rounds).values()) <= 3 for each in played)


@pytest.mark.slow
def test_a_model_learns_to_ask_the_dear_one_only_where_the_cheap_one_does_not_know(trainer):
    """Of one answer 0.75 is the most, the dear one's less its cost; 5/6 is that of asking it after the cheap one."""
    assert late(trainer) > 0.76
    assert trainer.history[0]["return"] < 0.3
    result = trainer.evaluate()[0]
    assert result.mean_return > 0.76
    assert result.layouts_seen_in_training == result.episodes  # there are three, however often it was asked
