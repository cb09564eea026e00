"""``modes(AGENT, TOOL)``: a model takes the dear mode where instant answers fail, and not with a useless tool."""

import pytest

from agents import TurnRequest
from agents.load import check_agent
from agents.msgrpo.rewards import REWARDS
from research.improve.around.modes import MODES, ModesPolicy
from research.improve.tests.around.conftest import DEEPER, WORDS, Scripted, late
from tests.agents.msgrpo.hand_made import batch, trajectory

HERE = "research.improve.tests.around.conftest"


@pytest.mark.parametrize(
    ("mode", "below", "tool_asked"),
    [
        ("instant", "", 0),
        ("neither", "", 0),
        ("reasoning", "\n\nwords, then up", 0),
        ("agentic", "\n\nThe tool answers: left", 1),
    ],
)
def test_what_is_read_in_each_mode(mode, below, tool_asked):
    read, says = list[str](), iter([mode, *["words, then up"] * (mode == "reasoning"), "up"])

    def agent(request: TurnRequest) -> str:
        read.append(request.observation)
        return next(says)

    tool = Scripted(lambda request: "<action>left</action>")
    (turn,) = ModesPolicy(Scripted(agent), tool).act([TurnRequest("where", legal_actions=("left", "up"))])
    assert (turn.response, read[-1], tool.asked) == ("up", f"where{below}", tool_asked)
    assert turn.served_by == ("instant" if mode == "neither" else mode)


def test_a_share_of_modes_is_drawn():
    agent, tool = Scripted(lambda request: "instant"), Scripted(lambda request: "up")
    ModesPolicy(agent, tool, forced=0.6).act([TurnRequest("where", seed=(at,)) for at in range(300)])
    assert tool.asked == pytest.approx(60, abs=20)  # 300 x 0.6 / 3
    assert agent.asked == pytest.approx(300 + 120 + 60, abs=40)  # answers, modes that it chose, and words
    with pytest.raises(ValueError, match="forced is a number from 0 to 1, and less than 1, got 1"):
        check_agent("modes(random, planner)", forced=1)


def test_dear_modes_are_paid_less_only_if_instant_answers_do():
    def chose(mode: str, paid: float, group: int):
        return trajectory([0.0, paid], actions=(mode, "red"), group=group)

    easy = [chose("instant", 1.0, 0)] * 4 + [chose("instant", 0.0, 0), chose("agentic", 1.0, 0)]
    hard = [chose("instant", 0.0, 1)] * 3 + [chose("instant", 1.0, 1), chose("agentic", 1.0, 1)]
    both = trajectory([1.0, -1.0, 0.0, 1.0], actions=("agentic", "a", "instant", "b"), group=2)
    forced = trajectory([0.0], actions=("red",), group=2)  # no mode was chosen
    mixed = [chose("instant", 1.0, 2), both, forced]
    paid = [each.tolist() for each in REWARDS.make("a2fm").pay(batch(*easy, *hard, *mixed))]
    assert paid[4:6] == [[0.0, 0.0], [0.0, pytest.approx(1 - 0.8**2)]]
    assert paid[6:11] == [each.rewards.tolist() for each in hard]
    assert paid[11:] == [[0.0, 1.0], [0.5, -1.0, 0.0, 0.5], [0.0]]


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["Lit", "Unlit"])
def test_the_dear_mode_is_learnt_where_the_cheap_one_fails(make, tool):
    """The model can read half of the lights and guess the others; a tool that says any colour helps with none."""
    words = (*WORDS, "instant", "reasoning", "agentic", "The tool answers: ")
    settings = {"reward": "a2fm", "iterations": 30, "around_options": {"forced": 0.5}}
    trainer = make(f"modes(learner, {HERE}:{tool})", DEEPER, "TestHalfDim-v0", words, **settings)
    gained = late(trainer, "game_return")
    chosen = [
        (each.states[0].dim, each.actions[0]) for each in trainer.rollout().trajectories if each.actions[0] in MODES
    ]
    dim, bright = ([mode for at, mode in chosen if at == want] for want in (True, False))
    assert bright.count("instant") > 0.8 * len(bright) > 0
    if tool == "Lit":
        assert gained > 0.8
        assert dim.count("agentic") > 0.8 * len(dim) > 0
    else:
        assert gained < 0.75
