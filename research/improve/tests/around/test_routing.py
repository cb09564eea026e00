"""Players that choose whom to ask, or what: a rule that knows gains over a mixture at equal calls, others don't."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from agents import SearchPlayers, TurnRequest, load_agent, questions
from agents.episode import Episode
from agents.load import check_agent, options_taken
from agents.msgrpo import ConfigError
from agents.msgrpo.credit.fresh import expected, realised
from agents.msgrpo.trajectories import training_tasks
from agents.wrappers import innermost, wrapped_in
from benchmark.play.claims import names_code
from benchmark.play.cost.prices import is_paid
from research.improve.around.routing import ConsultPolicy, RouterPolicy, ThoughtsPolicy
from research.improve.tests.around.conftest import DEEPER, WORDS, Lit, Scripted, episodes_of, late, light, mean_return

SEARCHERS = SearchPlayers()


def asked(played: Sequence[Episode], name: str) -> float:
    """Return the share of the decisions that a player answered."""
    return float(np.mean([step.turn.served_by == name for episode in played for step in episode.steps]))


def test_the_rule_that_knows_beats_the_mixture_at_its_share():
    random, planner = load_agent("random"), load_agent("planner")
    routed = episodes_of(RouterPolicy(random, planner, route_by="loss"))
    share = asked(routed, "planner")
    mixed = episodes_of(RouterPolicy(random, planner, route_by="share", share=share))
    assert mean_return(routed) == 1.0  # no move that loses anything is played
    assert 0.3 < share < 0.9
    assert asked(mixed, "planner") == pytest.approx(share, abs=0.1)
    assert mean_return(mixed) < 0.9


@pytest.mark.slow
def test_a_player_that_agrees_by_chance_alone_is_no_better_than_a_mixture():
    random, planner = load_agent("random"), load_agent("planner")
    routed = episodes_of(RouterPolicy(random, planner, proposals=2, least=1.0), 240)
    mixed = RouterPolicy(random, planner, route_by="share", share=asked(routed, "planner"))
    assert mean_return(routed) <= mean_return(mixed, 240) + 0.1


def said(action: str) -> str:
    return f"<action>{action}</action>"


def test_the_second_is_asked_where_the_first_does_not_agree_with_itself():
    first = Scripted([said("left"), said("left"), said("left"), said("right"), "?", "?"], "first")
    second = Scripted([said("up"), said("down")], "second")
    requests = [TurnRequest("where", legal_actions=("left", "right", "up", "down"), seed=(at,)) for at in range(3)]
    router = RouterPolicy(first, second, proposals=2, least=1.0)
    assert {"route_by": "agreement", "proposals": 2, "least": 1.0}.items() <= router.settings.items()
    turns = router.act(requests)
    assert [turn.response for turn in turns] == [said("left"), said("up"), said("down")]
    assert [turn.served_by for turn in turns] == ["first", "second", "second"]
    assert (first.batches, second.batches) == ([6], [2])  # one batch for each of them
    assert [(*turn.usage[:2], turn.seconds) for turn in turns] == [(20, 2, 1.0), (30, 3, 2.0), (30, 3, 2.0)]


def test_a_third_player_says_who_answers():
    """Either by name; the first where it names neither, as where it answers the game's question."""
    first, second = Scripted([said("left"), said("left")], "first"), Scripted([said("up")], "second")
    chooser = Scripted([said("second"), said("first"), said("up")])
    turns = RouterPolicy(first, second, chooser).act([TurnRequest("where", legal_actions=("left", "up"))] * 3)
    assert [turn.response for turn in turns] == [said("up"), said("left"), said("left")]
    assert [turn.served_by for turn in turns] == ["second", "first", "first"]
    assert (chooser.batches, first.batches, second.batches) == ([3], [2], [1])
    assert {turn.usage[:2] for turn in turns} == {(20, 2)}  # the choice counts


def test_the_form_of_a_spec():
    spec = "router(search(tiny), router(planner, random))"
    assert wrapped_in(spec) == ("router", ("search(tiny)", "router(planner, random)"))
    assert innermost(spec) == ("tiny", "planner", "random")
    form = r"is not of the form (router\(AGENT, AGENT\[, AGENT\]\)|search\(AGENT\[, AGENT\]\))"
    for wrong in ("router(tiny)", "router(tiny,)", "router(a, b, c, d)", "search(a, b, c)"):
        with pytest.raises(ValueError, match=form):
            check_agent(wrong)
    with pytest.raises(ValueError, match="did you mean 'planner'"):
        check_agent("router(tiny, plannr)")


@pytest.mark.parametrize(
    ("spec", "options", "asked"),
    [
        ("search(search(tiny))", {"proposals": 3}, {"tiny": 9}),
        ("search(tiny)", {}, {"tiny": 8}),
        ("imagine(openai:a, openai:b)", {"revisions": 5}, {"openai:a": 6, "openai:b": 5}),
        ("advised(imagine(a, b), b)", {}, {"a": 2, "b": 2}),
        ("router(a, b)", {"route_by": "share"}, {"a": 1, "b": 1}),
        ("router(tiny, planner)", {"proposals": 3}, {"tiny": 3, "planner": 1}),
        ("router(tiny, tiny)", {}, {"tiny": 5}),
        ("router(tiny, planner, random)", {}, {"tiny": 1, "planner": 1, "random": 1}),
        ("thoughts(a)", {"schedule": "propose score"}, {"a": 2}),
        ("thoughts(a, b)", {"operations": 4}, {"a": 4, "b": 3}),
    ],
)
def test_the_questions_of_all_players_inside_are_counted(spec, options, asked):
    assert questions(spec, options) == asked


def test_everybody_inside_counts():
    """For code that a folder names, for money and for options."""
    assert names_code("router(planner, evil.py:Agent)")
    assert names_code("router(hf:, evil.py:Agent)")
    assert not names_code("router(planner, random)")
    assert is_paid("router(tiny, openai:gpt-4o-mini)")
    assert not is_paid("router(tiny, planner)")
    options, others = options_taken("router(random, openai:x)")
    assert {"seed", "temperature", "share", "route_by"} <= set(options)
    assert not others


def counted(name: str) -> Scripted:
    player = load_agent(name)
    return Scripted(lambda request: player.act([request])[0].response, name)


def knows_whom(request: TurnRequest) -> str:
    """Asks the first, and plays what was read if it loses nothing by the true values; else asks the second."""
    shown, *read = request.observation.split("\n\nThe ")
    if not read:
        return "<action>first</action>"
    named = read[-1].split("answers: ")[1].split("\n")[0]
    values = SEARCHERS.of(request).values(replace(request, observation=shown))
    return f"<action>{named if values[named] == max(values.values()) else 'second'}</action>"


def test_a_chooser_that_knows_beats_the_mixture_at_its_share_and_asks_the_second_less_than_always():
    first, second = counted("random"), counted("planner")
    assert mean_return(ConsultPolicy(first, second, Scripted(knows_whom))) == 1.0
    share = second.asked / first.asked
    assert 0.3 < share < 0.9
    mixed = mean_return(RouterPolicy(load_agent("random"), load_agent("planner"), route_by="share", share=share))
    assert mixed < 0.9
    useless = ConsultPolicy(load_agent("random"), load_agent("planner"), load_agent("random"))
    assert mean_return(useless) < mixed / 2


def test_it_reads_every_answer_and_without_one_of_its_own_plays_the_latest():
    first, second = Scripted(["<action>left</action>"]), Scripted(["perhaps up"])
    chooser = Scripted(["first", "second", "?"])
    player = ConsultPolicy(first, second, chooser, rounds=2)
    (turn,) = player.act([TurnRequest("where", legal_actions=("left", "up"))])
    told = "where\n\nThe first player answers: left\n\nThe second player answers: perhaps up\n\nAnswer."
    assert chooser.read[2] == told
    assert (turn.response, turn.usage[:2]) == ("perhaps up", (50, 5))


def test_a_player_that_is_asked_again_draws_anew():
    second = Scripted(lambda request: "up")
    player = ConsultPolicy(Scripted(light), second, Scripted(lambda request: "second"))
    player.act([TurnRequest("where", legal_actions=("up",), seed=(5,))])
    assert len({one.seed for one in second.requests}) == 3


def test_a_chooser_answers_in_words_if_no_actions_are_listed():
    words, player = "<action>I am no wolf.</action>", load_agent("random")
    chooser = Scripted(lambda request: words)
    unlisted = TurnRequest("where", legal_actions=("left",), moves_listed=False)
    (turn, _) = ConsultPolicy(player, player, chooser).act([TurnRequest("where", action_help="words"), unlisted])
    assert turn.response == words
    assert [(one.legal_actions, one.action_help, one.moves_listed) for one in chooser.requests] == [
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
    longest = max(played, key=len)
    for t in range(3):  # what comes of a question includes the rest of its decision
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


def noisy() -> Scripted:
    """Plays the best move with a chance of a half, else any."""
    best, any_move = load_agent("planner"), load_agent("random")

    def answer(request: TurnRequest) -> str:
        right = np.random.default_rng([*request.seed, 3]).random() < 0.5
        shown = replace(request, observation=request.observation.split("\n\n")[0])
        return (best if right else any_move).act([shown])[0].response

    return Scripted(answer)


def knows_when(request: TurnRequest) -> str:
    """Answers when the latest thought loses nothing by the true values, and else proposes another."""
    shown, graph, _ = request.observation.rsplit("\n\n", 2)
    latest = graph.splitlines()[-1].split(". ")[1].split(" (")[0]
    values = SEARCHERS.of(request).values(replace(request, observation=shown))
    return f"<action>{'answer' if values[latest] == max(values.values()) else 'propose'}</action>"


def test_a_policy_that_knows_gains_over_one_answer_at_equal_calls_and_a_random_one_does_not():
    alone, agent, fixed_agent = mean_return(noisy(), 60), noisy(), noisy()
    chosen = mean_return(ThoughtsPolicy(agent, Scripted(knows_when)), 60)
    fixed = mean_return(ThoughtsPolicy(fixed_agent, schedule="propose propose answer"), 60)
    assert agent.asked < fixed_agent.asked
    assert chosen > 0.9 > alone + 0.2
    assert fixed == pytest.approx(alone, abs=0.15)
    assert mean_return(ThoughtsPolicy(noisy(), load_agent("random")), 60) == pytest.approx(alone, abs=0.15)


def test_each_operation_reads_what_it_works_on():
    agent = Scripted(["up", "left", "<think>10</think>8 of 10", "it is 3.5", "hm", "down"])
    policy = Scripted(["propose", "score", "score", "refine", "aggregate", "?"])
    (turn,) = ThoughtsPolicy(agent, policy, operations=8).act([TurnRequest("where", legal_actions=("up", "left"))])
    assert turn.response == "left"  # the answer of the highest score
    scored = "where\n\nHow good an answer is this, from 0 to 10? Write the number alone: "
    assert agent.read[:4] == ["where", "where", f"{scored}left", f"{scored}up"]
    assert "\n\nYour answer so far: left\n" in agent.read[4]
    assert "\n\nYour answers so far: up, left, hm\n" in agent.read[5]
    lines = "1. up (propose, score 3.5)\n2. left (propose, score 8)\n3. hm (refine)\n4. down (aggregate)"
    assert policy.read[-1] == f"where\n\nAnswers so far:\n{lines}\n\nWhich operation is next?"
