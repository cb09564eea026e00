"""Players that read something more before they answer: what is true helps those that heed it; what is useless, none."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from agents import EpisodeTask, load_agent
from agents.analysis.world_model import world_fidelity
from agents.msgrpo.rewards import REWARDS
from agents.msgrpo.trajectories import trajectories_of
from agents.tiny import Recipe, pretrain, save
from agents.turn import Policy, Turn, TurnRequest
from research.improve.around.reading import (
    LINE,
    MODES,
    AdvisedPolicy,
    BoundsAdvisor,
    DecomposedPolicy,
    FalseWorld,
    ImaginePolicy,
    ModesPolicy,
    TrueWorld,
    UCBPlayer,
    WithPayoffs,
    payoffs_in,
)
from research.improve.methods import learning
from research.improve.tests.around.conftest import DEEPER, WORDS, Scripted, Unlit, episodes_of, late, light, mean_return
from tests.agents.msgrpo.hand_made import batch, trajectory
from textgames.exploration import Bandit
from textgames.scenarios import SCENARIOS

LAKE = "frozen-lake"


def heeds(request: TurnRequest) -> str:
    """Do what the advice says, and else the first legal action."""
    told = re.search(r"Advice: (.+)", request.observation)
    return f"<action>{told[1] if told else request.legal_actions[0]}</action>"


def test_true_advice_is_worth_everything_and_random_advice_nothing():
    random = load_agent("random")
    assert mean_return(AdvisedPolicy(Scripted(heeds), load_agent("planner")), 60) == 1.0
    assert mean_return(AdvisedPolicy(Scripted(heeds), random), 60) <= mean_return(random, 60) + 0.15


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("<think>the hole is right</think><action>down</action>", "where\n\nTold: down"),
        (" There is a hole on your right. ", "where\n\nTold: There is a hole on your right."),
        ("", "where"),
    ],
)
def test_what_the_player_reads(answer, read):
    player = Scripted(["<action>down</action>"])
    policy = AdvisedPolicy(player, Scripted([answer]), advice="Told: {advice}")
    (turn,) = policy.act([TurnRequest("where", legal_actions=("down", "up"))])
    assert player.read == [read]
    assert (turn.response, turn.usage[:2]) == ("<action>down</action>", (20, 2))


def test_an_error_of_the_advisor_is_the_decisions():
    player = Scripted(["<action>down</action>"])
    (turn,) = AdvisedPolicy(player, Scripted([Turn("", error="no connection")])).act(["where"])
    assert (turn.error, player.read) == ("no connection", [])


SHOWN = "Round 7 of 25. Total reward so far: 4.\nred: pressed 4 times, total reward 3, average 0.75\n"
TWICE = "blue: pressed 2 times, total reward 1, average 0.50"


@pytest.mark.parametrize(
    ("blue", "settings", "arm", "told"),
    [
        # 3/4 + sqrt(.5 ln 6 / 4) = 1.223 against 1/2 + sqrt(.5 ln 6 / 2) = 1.169
        (TWICE, {}, "red", ["0.75 + 0.47 = 1.22", "0.50 + 0.67 = 1.17"]),
        (TWICE, {"prior": "gaussian", "scale": 2.0}, "blue", ["0.75 + 0.95 = 1.70", "0.50 + 1.34 = 1.84"]),
        ("blue: not pressed yet", {}, "blue", ["0.75 + 0.42 = 1.17", "not pressed yet, so try it first"]),
    ],
)
def test_bounds_by_hand(blue, settings, arm, told):
    asked = TurnRequest(SHOWN + blue, legal_actions=("red", "blue"), game=Bandit(num_arms=2, **settings))
    assert f"<action>{arm}</action>" in UCBPlayer().act([asked])[0].response
    _, red, other = BoundsAdvisor().act([asked])[0].response.splitlines()
    assert [red, other] == [f"red: {told[0]}", f"blue: {told[1]}"]


def reads_bounds(request: TurnRequest) -> str:
    """Choose the first arm that the guide says to try, else the largest bound; without a guide, the first arm."""
    _, _, guide = request.observation.partition("Advice: ")
    if untried := re.search(r"^(\w+): .* try it first", guide, re.MULTILINE):
        return untried[1]
    bounds = re.findall(r"^(\w+): .* = (-?[\d.]+)$", guide, re.MULTILINE)
    return max(bounds, key=lambda one: float(one[1]))[0] if bounds else request.legal_actions[0]


def best_arm_share(policy: Policy) -> float:
    return float(np.mean([one.metrics["player_0"]["best_arm_share"] for one in episodes_of(policy, 80, "bandit")]))


def test_a_player_that_reads_the_bounds_finds_the_best_arm_and_useless_words_do_not_help_it():
    reader = Scripted(reads_bounds)
    guided, alone = best_arm_share(AdvisedPolicy(reader, load_agent("bounds"))), best_arm_share(reader)
    assert guided == pytest.approx(best_arm_share(load_agent("ucb")), abs=0.02)  # two decimals of a bound are shown
    assert guided > alone + 0.15
    assert best_arm_share(AdvisedPolicy(reader, load_agent("random"))) <= alone


@pytest.mark.slow
def test_a_model_that_imitates_ucb_has_less_regret(improve, monkeypatch):
    monkeypatch.setattr(learning, "COMPARED", 20)
    save(pretrain(Recipe.legal_play(["bandit-bayes"], steps=150, hidden_size=32, intermediate_size=64)), Path("base"))
    options = {"teacher": "ucb", "passes": 3, "examples": 1000, "rank": 0, "learning_rate": 0.003}
    improve("imitate", "hf:base", "--mode", "direct", scenario="bandit-bayes", scored=30, **options)
    regrets = {"before": list[float](), "after": list[float]()}
    for line in map(json.loads, Path("o/evaluation/episodes.jsonl").read_text().splitlines()):
        regrets[line["agents"]["player_0"]].append(line["metrics"]["player_0"]["regret"])
    assert np.mean(regrets["after"]) < 0.7 * np.mean(regrets["before"])


def careful(request: TurnRequest) -> str:
    """Answer at random, and otherwise than before if the player is told that it would be in a hole."""
    drowned, fine = [], []
    for part in request.observation.split("If you answer ")[1:]:
        player, holes = re.search(r"Player: (.*)", part), re.search(r"Holes: (.*)", part)
        (drowned if player and holes and player[1] in holes[1] else fine).append(part.partition(",")[0])
    left = [each for each in request.legal_actions if each not in drowned] or list(request.legal_actions)
    return f"<action>{fine[-1] if fine else np.random.default_rng(request.seed).choice(left)}</action>"


def drowned(policy: Policy) -> float:
    """Return the share of the episodes that end in a hole."""
    return float(np.mean([one.terminated and not all(one.successes.values()) for one in episodes_of(policy)]))


@pytest.mark.slow
def test_a_true_world_model_keeps_a_player_out_of_the_holes_and_a_false_one_does_not():
    alone = drowned(load_agent("random"))
    assert alone > 0.4
    assert drowned(ImaginePolicy(Scripted(careful), TrueWorld(), revisions=6)) == 0.0
    assert drowned(ImaginePolicy(Scripted(careful), FalseWorld(), revisions=6)) >= alone - 0.15


def test_what_a_player_and_its_world_are_asked():
    player, world = Scripted(["<action>up</action>", "<action>down</action>"]), Scripted(["a wall"])
    (turn,) = ImaginePolicy(player, world).act([TurnRequest("where", legal_actions=("up", "down"))])
    assert turn.response == "<action>down</action>"
    assert player.read == ["where", "where\n\nIf you answer up, this is what you will see:\na wall\nNow answer."]
    assert world.read == ["where\n\nThe player answers: up\nWhat is shown next?"]
    for answers in (["?"], ["<action>up</action>", "?"]):  # what can't be read is neither imagined nor played instead
        (turn,) = ImaginePolicy(Scripted(answers), Scripted("x")).act([TurnRequest("w", legal_actions=("up",))])
        assert turn.response == answers[0]


def test_what_is_measured_of_a_world_model():
    true = world_fidelity(TrueWorld(), SCENARIOS["frozen-lake-slippery"], starts=6, samples=40)
    assert true.possible == (1.0, None, None)
    assert 0.3 < true.probability.value < true.attainable.value < 0.7  # three directions, some of them walls
    assert true.distance.value < 0.12
    false = world_fidelity(FalseWorld(), SCENARIOS[LAKE], starts=6, samples=8)
    assert false.possible.high < 0.6
    assert false.attainable == (1.0, None, None)
    assert false.distance.low > 0.4
    nothing = world_fidelity(Scripted(careful), SCENARIOS[LAKE], starts=3)  # a move is no prediction
    assert nothing.possible.value == 0
    for player, scenario, why in ((TrueWorld(), "mastermind", "mastermind"), (load_agent("planner"), LAKE, "planner")):
        with pytest.raises(ValueError, match=why):
            world_fidelity(player, SCENARIOS[scenario], starts=2)


def test_the_command_measures_a_world_model(textbench):
    world = ("inspect", "research.improve.around.reading:TrueWorld", "--world-model", "--starts", 2, "--samples", 1)
    told = textbench(*world, "--scenario", "cliff-walking").out
    assert re.search(r"predictions that can come about +1\.000\n", told)


GOOD, USELESS = "Which light is on?", "Which day is it?"


class Solver(Unlit):
    """Knows the light if it is asked for it, presses what it has read there, and else any button."""

    def __init__(self) -> None:
        super().__init__()
        guess, self.answer = self.answer, lambda request: self.solve(request) or guess(request)

    def solve(self, request: TurnRequest) -> str:
        if f"alone: {GOOD}" in request.observation:
            return light(request)
        return request.observation.partition(f"{GOOD}\n")[2].partition("\n")[0]


@pytest.mark.parametrize(
    ("written", "least", "most"),
    [(f"\n{USELESS}\n\n {GOOD}", 1.0, 1.0), ("", 0.2, 0.47), (f"{USELESS}\n" * 3 + GOOD, 0.2, 0.47)],
)
def test_the_questions_decide(written, least, most):
    player = DecomposedPolicy(Solver(), Scripted(lambda request: written))
    assert least <= mean_return(player, 90, "TestDim-v0") <= most


def test_what_a_solver_is_asked_and_reads():
    solver = Scripted(f"<action>answer {number}</action>" for number in (1, 2, 3))
    player = DecomposedPolicy(solver, Scripted(["<think>\nHm?\n</think>\na?\nb?\nc?"]), subproblems=2)
    (turn,) = player.act([TurnRequest("where")])
    asked = [f"where\n\nAnswer this question alone: {one}?" for one in "ab"]
    assert solver.read == [*asked, "where\n\na?\n<action>answer 1</action>\n\nb?\n<action>answer 2</action>"]
    assert (turn.usage[:2], len({one.seed for one in solver.requests})) == ((40, 4), 3)


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
    agent = Scripted([mode, *["words, then up"] * (mode == "reasoning"), "up"])
    tool = Scripted(lambda request: "<action>left</action>")
    (turn,) = ModesPolicy(agent, tool).act([TurnRequest("where", legal_actions=("left", "up"))])
    assert (turn.response, agent.read[-1], tool.asked) == ("up", f"where{below}", tool_asked)
    assert turn.served_by == ("instant" if mode == "neither" else mode)


def test_a_share_of_modes_is_drawn():
    agent, tool = Scripted(lambda request: "instant"), Scripted(lambda request: "up")
    ModesPolicy(agent, tool, forced=0.6).act([TurnRequest("where", seed=(at,)) for at in range(300)])
    assert tool.asked == pytest.approx(60, abs=20)  # 300 x 0.6 / 3
    assert agent.asked == pytest.approx(300 + 120 + 60, abs=40)  # answers, modes that it chose, and words


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
    trainer = make(f"modes(learner, {Unlit.__module__}:{tool})", DEEPER, "TestHalfDim-v0", words, **settings)
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


TOLD = "cooperate, cooperate: 1, 1; defect, defect: 4, 4"


def fair(request: TurnRequest) -> str:
    """State the payoffs of the rules, and take part in the outcome of the most mutual welfare."""
    cells = payoffs_in(LINE.sub(r"\1, \2: \3, \4;", request.instructions))
    mine, _ = max(cells, key=lambda pair: np.prod(cells[pair]))
    stated = "; ".join(f"{own}, {other}: {u:g}, {v:g}" for (own, other), (u, v) in cells.items())
    return f"<payoffs>{stated}</payoffs><action>{mine}</action>"


def blind(request: TurnRequest) -> str:
    return "<action>cooperate</action>"


def outcome(player, payoffs: str = TOLD) -> tuple[list[str], float, float]:
    """Return the actions of a dilemma's first round, the share of payoffs stated rightly, and a seat's return."""
    agent = WithPayoffs(Scripted(player), payoffs=payoffs) if payoffs else Scripted(player)
    (episode,) = played = episodes_of(agent, 1, "prisoners-dilemma")
    rule = REWARDS.make("gtalign")
    rule.pay(batch(*trajectories_of(played, [EpisodeTask.of("prisoners-dilemma", 0)])))
    return [step.action for step in episode.steps[:2]], rule.metrics["payoffs_right"], episode.returns["player_0"]


def test_a_player_that_reads_payoffs_aims_at_the_outcome_that_is_best_by_those_it_is_told():
    assert outcome(fair, "") == (["cooperate"] * 2, 1.0, 30.0)
    # the game pays as before, by which two of the four cells that it states are right
    assert outcome(fair) == (["defect"] * 2, 0.5, 10.0)
    assert outcome(blind) == outcome(blind, "") == (["cooperate"] * 2, 0.0, 30.0)
