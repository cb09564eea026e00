"""Rewards by hand, what they are paid for by enumeration, and what models learn by them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from agents.episode import EpisodeTask
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.rewards import REWARDS
from agents.turn import Turn
from research.methods.regret_loss import hedge, main, measured, regret_loss, sequences
from research.methods.rewards import game_for, stated
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.runs import iteration_of
from tests.agents.msgrpo.test_trainer import BANDIT
from tests.tiny_models import word_tokenizer
from textgames import game_of
from textgames.exploration.online_learning import OnlineState
from textgames.frozen_lake.rules import FrozenLakeState

SMALL: dict[str, Any] = {
    "groups": 2, "group_size": 16, "response_mode": "direct", "max_response_tokens": 1, "temperature": 1.0,
    "learning_rate": 5e-3, "minibatches": 1, "eval_every": 0, "samples_every": 0, "min_valid_share": 0,
    "stop_after": 0, "preflight_episodes": 0,
}  # fmt: skip


OF_TWO = "gtalign' takes a game of two players that act at once.*"


@pytest.mark.parametrize(
    ("name", "settings", "game", "said"),
    [
        ("coverage", {"part": "cell"}, "frozen-lake", "part = 'cell' is no part of a state of frozen-lake; accepted: "),
        ("coverage", {"reach": 1}, "prisoners-dilemma", "reach = 1 takes a game of one player whose rules list"),
        ("regret", {}, "bandit", "metric = 'external_regret' is none of the metrics of bandit"),
        ("gtalign", {}, "kuhn-poker", f"{OF_TWO}kuhn-poker isn't"),  # one moves at a time
        ("gtalign", {}, "werewolf-5", f"{OF_TWO}werewolf-5 isn't"),  # two of five act at first
    ],
)
def test_games_that_a_reward_cannot_pay_are_refused(name, settings, game, said):
    with pytest.raises(ConfigError, match=said):
        REWARDS.make(name, settings).check(EpisodeTask.of(game, 0))


def test_a_game_is_made_once_for_each_of_its_settings():
    made: dict[str, Any] = {}
    episodes = [trajectory([0.0], task=EpisodeTask.of("online-iid", 0, rounds=days)) for days in (3, 5, 3)]
    first, second, again = (game_for(each, made) for each in episodes)
    assert (first.rounds, second.rounds) == (3, 5)
    assert again is first


# ---------------------------------------------------------------- coverage


def covers(desc: list[str], reach: int) -> list[frozenset[int]]:
    """The cells that each tile of a lake covers but for its goal, which is the last."""
    start = game_of("TextFrozenLake-v0", desc=desc).initial_state(np.random.default_rng(0))
    each = trajectory([0.0], task=EpisodeTask.of("TextFrozenLake-v0", 0, max_steps=9, desc=desc))
    rule: Any = REWARDS.make("coverage", {"part": "position", "reach": reach})
    return [rule.cover(each, FrozenLakeState(start.lake, cell), {}) for cell in range(len(start.lake.tiles) - 1)]


def test_steps_are_paid_the_cells_that_they_are_the_first_to_cover():
    """The start isn't paid, and nor is what was visited before; another episode begins anew."""
    rule = REWARDS.make("coverage")
    played = batch(trajectory([0.0] * 4, "abac", end_state="d"), trajectory([1.0], "b", end_state="b"))
    assert [each.tolist() for each in rule.pay(played)] == [[1.0, 0.0, 1.0, 1.0], [0.0]]
    assert rule.metrics == {"covered": 2.5}
    assert covers(["SF", "FG"], 1) == [{0, 1, 2}, {0, 1, 3}, {0, 2, 3}]
    assert covers(["SF", "FG"], 2)[0] == {0, 1, 2, 3}


@pytest.mark.parametrize(("game", "paid"), [("frozen-lake", True), ("TestCorridor-v0", False)])
def test_an_evaluation_on_a_game_that_has_no_such_part_is_not_paid(make_trainer, game, paid):
    config = MSGRPOConfig(
        reward="coverage", method_settings={"reward": {"coverage": {"part": "position"}}}, eval_scenarios=(game,),
        eval_episodes=2, response_mode="direct", max_response_tokens=1, samples_every=0,
    )  # fmt: skip
    (result,) = make_trainer(config, "frozen-lake").evaluate()
    assert (result.reward is not None) == paid


@pytest.mark.slow
def test_a_model_trained_by_coverage_visits_more_than_one_trained_by_the_game(prompt_file, make_llama):
    """The goal lies below the start: by the game an episode ends there, and by coverage it goes elsewhere first."""
    lake, seen = {"desc": ["SFF", "GFF", "FFF"], "grid": False}, {}
    for name, settings in {"coverage": {}, "game": {"reward_mode": "add", "reward_weight": 0.0}}.items():
        spots = [f"Player: ({x}, {y})" for x in range(3) for y in range(3)]
        tokenizer = word_tokenizer(("left", "down", "right", "up", *spots), gaps=True)
        lake_of = {"max_steps": 8, "format_penalty": 0.5, "prompt_file": prompt_file, "game": lake}
        config = MSGRPOConfig.preset("subpo", iterations=9, **SMALL, **lake_of, **settings)
        model = make_llama(len(tokenizer), initializer_range=0.15)
        history = MSGRPOTrainer(model, tokenizer, "frozen-lake", config, quiet=True).train()
        seen[name] = [np.mean([one["covered"] for one in part]) for part in (history[:1], history[-3:])]
    assert seen["coverage"][0] == seen["game"][0] < 2.5
    assert seen["coverage"][1] > 3 > 2.4 > seen["game"][1]


# ---------------------------------------------------------------- EMPO


def answering(states: str, actions: str, **others: Any) -> Any:
    """An episode through states of one letter by actions of one letter, with a limit of three rounds."""
    return trajectory([0.0] * len(states), list(states), actions=tuple(actions), horizon=3, **others)


def test_an_answer_is_paid_the_share_of_its_groups_episodes_that_gave_it_there():
    """In s three of four say r, one d; in a, with two rounds left, two of four say r; an invalid answer is paid 0."""
    played = batch(
        answering("sab", "rrx"), answering("sa", "rr"), answering("s", "r"),
        answering("sa", "dd", valid=np.array([True, False])), answering("s", "r", group=1),
    )  # fmt: skip
    rule = REWARDS.make("empo")
    paid = [each.tolist() for each in rule.pay(played)]
    assert paid == [
        pytest.approx([0.75 / 3, 0.5 / 3, 0.25 / 3]), pytest.approx([0.75 / 2, 0.5 / 2]), [0.75], [0.25 / 2, 0.0], [1.0]
    ]  # fmt: skip
    of_s, of_a = -0.75 * np.log(0.75) - 0.25 * np.log(0.25), np.log(3) - 2 / 3 * np.log(2)
    assert rule.metrics["answer_entropy"] == pytest.approx((4 * of_s + 3 * of_a) / 7)
    # of answers in s, 0.41 of the largest entropy; of those in a, 0.58
    (first, *_) = REWARDS.make("empo", {"least_entropy": 0.5}).pay(played)
    assert first.tolist() == pytest.approx([0.0, 0.5 / 3, 0.0])


# ---------------------------------------------------------------- GTAlign


class Stating:
    """Plays one action in each seat and states payoffs, of which one of four is wrong."""

    name, history_turns = "stating", None
    payoffs = "cooperate, cooperate: 3, 3; cooperate, defect: 0, 5; defect, cooperate: 5, 0; defect, defect: 2, 1"

    def act(self, requests: Any) -> list[Turn]:
        chosen = {"player_0": "cooperate", "player_1": "defect"}
        told = f"<payoffs>{self.payoffs}</payoffs>"
        return [Turn(f"{told if r.player == 'player_0' else ''}<action>{chosen[r.player]}</action>") for r in requests]


def test_both_players_welfare_and_the_payoffs_that_an_answer_states_rightly():
    """A dilemma's rounds pay 0 and 5: the geometric mean is 0 to both, whom the game pays 0 and 50."""
    iteration = iteration_of("prisoners-dilemma", Stating())
    played = batch(*iteration.play([EpisodeTask.of("prisoners-dilemma", 3)]))
    rule = REWARDS.make("gtalign", {"matrix_weight": 2.0})
    paid = {each.player: own.tolist() for each, own in zip(played.trajectories, rule.pay(played), strict=True)}
    assert paid == {"player_0": [1.5] * 10, "player_1": [0.0] * 10}
    assert rule.metrics == {"payoffs_right": 0.375}
    assert stated(played.trajectories[0], 0)["defect", "defect"] == (2.0, 1.0)
    first = played.trajectories[0]
    asked_first = replace(  # a question in the first round, before its answer
        first,
        rewards=np.insert(first.rewards, 0, -1.0),
        states=(first.states[0], *first.states),
        responses=("", *first.responses),
        rounds=(0, *first.rounds),
    )
    assert rule.pay(batch(asked_first, played.trajectories[1]))[0].tolist() == [0.0, *[1.5] * 10]
    rule.check(EpisodeTask.of("prisoners-dilemma", 0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("reward", "paid"), [("gtalign", 3.0), ("game", 1.0)])
def test_two_seats_come_to_mutual_welfare_by_it_and_to_defection_by_their_own_payoffs(
    make_llama, prompt_file, reward, paid, seed
):
    """In a dilemma of one round both get 3 if they cooperate, 1 if they defect, and 2.25 by chance."""
    tokenizer = word_tokenizer(("cooperate", "defect", "\n"), gaps=True)
    settings: dict[str, Any] = {"game": {"rounds": 1}, "invalid_action": "random", "prompt_file": prompt_file}
    if reward == "gtalign":
        settings["method_settings"] = {"reward": {"gtalign": {"matrix_weight": 0.0}}}
    config = replace(BANDIT, seed=seed, reward=reward, iterations=20, stop_after=0, **settings)
    model = make_llama(len(tokenizer), seed=seed, initializer_range=0.15)
    history = MSGRPOTrainer(model, tokenizer, "prisoners-dilemma", config, quiet=True).train()
    assert sum(each["game_return"] for each in history[-5:]) / 5 == pytest.approx(paid, abs=0.2)


# ---------------------------------------------------------------- OTC


def test_a_gain_is_worth_less_with_more_calls_than_the_shortest_best_episode_and_a_loss_stays():
    played = batch(
        trajectory([0.0, 1.0]), trajectory([0.0, -0.5, 0.0, 1.5]), trajectory([-1.0]),
        trajectory([0.0, 0.0, 1.0], group=1),
    )  # fmt: skip
    paid = [each.tolist() for each in REWARDS.make("otc").pay(played)]
    assert paid == [[0.0, 1.0], pytest.approx([0.0, -0.5, 0.0, 1.5 * np.sin(np.pi * 4 / 6)]), [-1.0], [0.0, 0.0, 1.0]]
    ppo = REWARDS.make("otc", {"constant": 2.0, "calls": "tokens"})
    assert ppo.evaluates
    assert ppo.pay(played)[0].tolist() == pytest.approx([0.0, np.cos(4 * np.pi / 10)])


def test_calls_of_a_second_player_are_those_that_were_bought():
    """In the first group the best took 1 and 3 calls, in the second none and 2: sin(3 pi / 4), and cos(2 pi / 5)."""
    played = batch(
        trajectory([0.0, 1.0], bought=(0, 1)), trajectory([0.0, 0.0, 1.0], bought=(1, 1, 1)),
        trajectory([0.0], bought=(0,)),
        trajectory([1.0], bought=(0,), group=1), trajectory([0.0, 1.0], bought=(1, 1), group=1),
    )  # fmt: skip
    rule = REWARDS.make("otc", {"calls": "calls"})
    factors = [each[-1] for each in rule.pay(played)]
    assert factors == pytest.approx([1.0, np.sin(np.pi * 3 / 4), 0.0, 1.0, np.cos(np.pi * 2 / 5)])
    assert rule.metrics["calls"] == pytest.approx(6 / 5)
    for bought in ((), (None, None)):
        with pytest.raises(ConfigError, match="there is none beside the learner; accepted: around = 'router"):
            rule.pay(batch(trajectory([0.0, 1.0], bought=bought)))


# ---------------------------------------------------------------- regret


def driven(losses, chosen, group):
    """An episode of two roads, by the losses of each day and the road that was taken."""
    *states, end = [OnlineState(losses, chosen[:t]) for t in range(len(chosen) + 1)]
    task = EpisodeTask.of("online-iid", 0)
    return trajectory([0.0] * len(chosen), states, end_state=end, task=task, group=group)


def test_steps_pay_what_they_add_to_the_loss_of_regret():
    """Roads cost 1 and 3, then 4 and 0, then 2 and 2: the first one all along has regrets 0, 2, 2 after the days, the
    second one 2, 0, 0. In another group a day costs 1 more than it had to."""
    days = ((1.0, 3.0), (4.0, 0.0), (2.0, 2.0))
    first, second, other = driven(days, (0, 0, 0), 0), driven(days, (1, 1, 1), 0), driven(((0.0, 1.0),), (1,), 1)

    def paid(*episodes, **settings):
        return [each.tolist() for each in REWARDS.make("regret", settings).pay(batch(*episodes))]

    assert paid(first, second, other, h="linear") == [[0, -2, 0], [-2, 2, 0], [-1]]
    assert paid(first, second, other) == [[0, -4, 0], [-4, 4, 0], [-1]]
    assert paid(first, other, focus=1.0) == [pytest.approx([0, -4 * 4 / 3, 0]), pytest.approx([-2 / 3])]
    assert paid(second, other, focus=1.0) == [[0, 0, 0], [-2]]  # without regret at the end it weighs nothing
    rule = REWARDS.make("regret")
    rule.pay(batch(first, second, other))
    assert rule.metrics == {"external_regret": 1.0}


def test_the_loss_of_chances_by_hand():
    """Even chances lose 2.5 of 3 and 7 in two days and have regret 1 for the second road, or 0 for equal roads."""
    losses = torch.tensor([[[1.0, 2.0], [5.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]]])
    even = torch.full_like(losses, 0.5)
    assert regret_loss(even, losses) == 0.5
    assert regret_loss(even, losses, focus=1.0) == 1.0
    assert hedge(losses, np.log(2))[0].tolist() == [[0.5, 0.5], pytest.approx([2 / 3, 1 / 3])]


def test_attention_becomes_hedge_where_there_is_something_to_learn(capsys):
    """Losses lie around a mean of each action; uniform ones, which nothing foresees, leave it no better than even."""
    found = measured(sequences("gaussian", 3, 15, 64, 0), sequences("gaussian", 3, 15, 128, 1), 0)
    assert found["trained"] < 0.4 * min(found["untrained"], found["even"])
    assert found["trained"] == pytest.approx(found["hedge"], rel=0.1)
    assert found["apart"] < 0.08
    main(["--pattern", "uniform", "--rounds", "5", "--seeds", "0", "1"])
    told = {name: float(value) for name, value, *_ in map(str.split, capsys.readouterr().out.splitlines())}
    assert told["trained"] > 0.9 * told["even"]


@pytest.mark.slow
def test_a_model_trained_by_regret_defects_where_the_game_pays_cooperation(prompt_file, make_llama):
    """Against tit for tat cooperation earns most, but the other's play held fixed, defection has no regret."""
    seen = {}
    for name, weight in (("regret", 1.0), ("game", 0.0)):
        tokenizer = word_tokenizer(("cooperate", "defect"), gaps=True)
        dilemma = {"format_penalty": 2.0, "prompt_file": prompt_file, "game": {"rounds": 4}}
        mode = {"reward_weight": weight, "reward_mode": "replace" if weight else "add"}
        config = MSGRPOConfig.preset("regret", iterations=8, **SMALL, **dilemma, **mode)
        model = make_llama(len(tokenizer), initializer_range=0.15)
        history = MSGRPOTrainer(model, tokenizer, "prisoners-dilemma-tft", config, quiet=True).train()
        seen[name] = [[one[key] for one in (history[0], history[-1])] for key in ("external_regret", "game_return")]
    assert seen["regret"][0][0] == seen["game"][0][0]
    assert seen["regret"][0][1] < 0.5 * seen["game"][0][1]
    assert seen["regret"][1][1] < seen["game"][1][1]
