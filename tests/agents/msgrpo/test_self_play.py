"""Games of several players, all of them the model: seats, baselines, turns, late rewards, evaluation, learning."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import textgames
from agents import Turn, load_agent
from agents.analysis.exploitability import measure
from agents.analysis.inspection import expected_regret
from agents.analysis.regret import exact_regret, random_positions
from agents.loop.rollout import rollout
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer, group_advantages
from agents.msgrpo.credit import Batch
from agents.msgrpo.filters import Kept, spreads
from agents.msgrpo.run.evaluating import evaluate, evaluation_tasks
from agents.msgrpo.trajectories import training_tasks, trajectories_of
from agents.turn import TurnRequest
from tests.agents.msgrpo import runs
from textgames import TSMG

SHORT = replace(runs.SHORT, iterations=2)


class Bid(NamedTuple):
    """The stake, and what the first player has done."""

    stake: int
    bid: bool | None = None


class Bidding(TSMG[Bid]):
    """The first player bids (right) or folds (left), which ends it. After a bid the second calls or folds.

    A call pays the stake to the first player. So the first is paid late, after the second's decision, and the second
    pays an ante before its own first decision.
    """

    players = ("player_0", "player_1")
    actions = ("right", "left")  # which the tests' tokenizer knows

    def initial_state(self, rng: np.random.Generator) -> Bid:
        return Bid(int(rng.integers(1, 5)))

    def to_move(self, state: Bid) -> tuple[str, ...]:
        return ("player_0",) if state.bid is None else ("player_1",)

    def transition(
        self, state: Bid, joint_action: Mapping[str, str], rng: np.random.Generator
    ) -> tuple[Bid, dict[str, float], bool]:
        if state.bid is None:
            if joint_action["player_0"] == "left":
                return state, {"player_0": -1.0, "player_1": 1.0}, True
            return Bid(state.stake, True), {"player_0": 0.25, "player_1": -0.25}, False
        won = float(state.stake) if joint_action["player_1"] == "right" else -0.5
        return state, {"player_0": won, "player_1": -won}, True

    def observe(self, state: Bid, player: str) -> str:
        return f"stake {state.stake}"

    def instructions(self, player: str) -> str:
        return "You bid or fold." if player == "player_0" else "The other has bid. You call or fold. " + "Think. " * 30


textgames.register("TestBidding-v0", Bidding, max_steps=3)


class Scripted:
    """Plays ``{player: action}``; an action that isn't legal stands for itself, an invalid response."""

    name = "scripted"

    def __init__(self, actions: Mapping[str, str] | Callable[[TurnRequest], str]) -> None:
        self.choose = actions if callable(actions) else lambda request: actions[request.player]

    def act(self, requests: Any) -> list[Turn]:
        return [Turn(f"<action>{self.choose(one)}</action>") for one in requests]


def played(game: str, policy: Any, config: MSGRPOConfig = SHORT) -> Any:
    """The trajectories of an iteration in which ``policy`` plays."""
    tasks = training_tasks(config, [game], 0)
    return trajectories_of(list(rollout(policy, tasks)), tasks)


# ---------------------------------------------------------------- credit


def test_every_seat_has_a_baseline_of_its_own():
    """Against plain loops; opposite returns of the two seats never meet in one mean."""
    trajectories = played("nim", load_agent("random"), replace(SHORT, groups=3, group_size=8))
    returns = Batch(trajectories).returns()
    advantages = group_advantages(returns, [trajectory.group for trajectory in trajectories])
    assert len(trajectories) == 3 * 8 * 2
    for trajectory, value, advantage in zip(trajectories, returns, advantages, strict=True):
        group = [
            sum(other.rewards.tolist())
            for other in trajectories
            if other.player == trajectory.player and other.task.layout_seed == trajectory.task.layout_seed
        ]
        assert len(group) == 8
        spread = np.std(group, ddof=1)
        assert advantage == pytest.approx((value - np.mean(group)) / (spread + 1e-6) if spread else 0.0)


def test_late_and_early_rewards_belong_to_the_decisions_of_those_they_are_paid_to():
    trajectories = played("TestBidding-v0", Scripted({"player_0": "right", "player_1": "right"}))
    for trajectory in trajectories:
        stake = trajectory.states[0].stake
        (reward,) = trajectory.rewards
        assert reward == (0.25 + stake if trajectory.player == "player_0" else -0.25 - stake)
        assert reward == trajectory.returned()


def test_a_player_without_a_decision_has_no_part_and_is_not_in_its_seats_baseline():
    """Half of the first player's episodes end before the second is asked."""
    policy = Scripted(lambda r: "right" if r.player == "player_0" and r.seed[0] % 2 else "left")
    config = replace(SHORT, groups=1, group_size=64)
    trajectories = played("TestBidding-v0", policy, config)
    returns = Batch(trajectories).returns()
    by_seat = {seat: [t for t in trajectories if t.player == seat] for seat in ("player_0", "player_1")}
    asked = sum(t.task.seed % 2 for t in by_seat["player_0"])
    assert len(by_seat["player_0"]) == 64
    assert len(by_seat["player_1"]) == asked
    assert 0 < asked < 64
    advantages = group_advantages(returns, [trajectory.group for trajectory in trajectories])
    seats = np.array([t.player for t in trajectories])
    assert not advantages[seats == "player_1"].any()  # each of them was paid the same, fold for fold
    assert set(np.sign(advantages[seats == "player_0"])) == {-1, 1}


def test_the_draw_takes_the_same_share_of_the_parts_as_of_the_episodes(make_trainer):
    assert [MSGRPOConfig(groups=2, group_size=4).draws_of(parts) for parts in (8, 16, 12)] == [4, 8, 6]
    assert MSGRPOConfig(groups=2, group_size=4, episodes_drawn=1).draws_of(8) == 1
    config = replace(SHORT, groups=4, episodes_drawn=12, episode_sampling="aaw_replacement", max_response_tokens=1)
    metrics = make_trainer(config, "TestBidding-v0").iterate()
    assert metrics["episodes"] > 16  # the parts of both players
    assert metrics["episodes_drawn"] == config.draws_of(int(metrics["episodes"])) > 12
    first, second = metrics["return_player_0"], metrics["return_player_1"]
    assert first * 16 + second * (metrics["episodes"] - 16) == pytest.approx(metrics["return"] * metrics["episodes"])


class Widest:
    """Keeps the group whose returns differ most."""

    def keep(self, batch: Batch) -> Kept:
        return Kept.of_groups(batch, [list(batch.groups)[int(spreads(batch).argmax())]])


WIDEST = f"{__name__}:Widest"


@pytest.mark.slow
@pytest.mark.parametrize("game", ["TestCorridor-v0", "TestBidding-v0"])
def test_a_group_filter_changes_whose_episodes_are_drawn_and_not_how_many(make_trainer, game):
    drawn, kept = {}, {}
    for name in ("off", "nonzero", WIDEST):
        for rule in ("aaw", "aaw_replacement", "uniform"):
            config = replace(SHORT, groups=8, episodes_drawn=8, group_filter=name, episode_sampling=rule)
            trainer = make_trainer(config, game)
            if name not in kept:  # equal episodes whatever the rule is
                batch = trainer.rollout()
                kept[name] = len(trainer.methods.filter.keep(batch).indices)
            drawn[name, rule] = trainer.iterate()["episodes_drawn"]
    trajectories = len(batch)
    m = config.draws_of(trajectories)
    assert 0 < kept[WIDEST] < trajectories
    assert {drawn[name, "aaw_replacement"] for name in kept} == {m}
    assert drawn["nonzero", "aaw"] == drawn["off", "aaw"] > 0
    assert drawn[WIDEST, "uniform"] == min(m, kept[WIDEST])


def test_actions_that_cannot_be_listed_are_trained_on(make_trainer):
    assert make_trainer(replace(SHORT, max_steps=2, max_prompt_tokens=4000), "guess-number").iterate()["episodes"] == 8


# ---------------------------------------------------------------- evaluation


def test_playing_itself_every_seat_is_reported_and_the_interval_knows_that_seats_depend():
    episodes = list(rollout(load_agent("random"), evaluation_tasks("tic-tac-toe", 50)))
    result = evaluate("tic-tac-toe", episodes)
    assert result.seats is not None
    for seat, mean in result.seats.items():
        assert mean == pytest.approx(np.mean([episode.returns[seat] for episode in episodes]))
    assert result.seats["player_0"] == -result.seats["player_1"] != 0
    assert (result.mean_return, result.low, result.high) == (0, None, None)  # of a zero-sum game, whatever was played


def test_returns_that_are_all_equal_have_no_interval():
    lost = [
        replace(episode, returns={"player_0": 0.0})
        for episode in rollout(load_agent("random"), evaluation_tasks("frozen-lake", 4))
    ]
    won = replace(lost[0], returns={"player_0": 1.0})
    for equal in (lost, [won] * 2, [won]):
        assert (evaluate("frozen-lake", equal).low, evaluate("frozen-lake", equal).high) == (None, None)
    mixed = evaluate("frozen-lake", [*lost, replace(won, seed=1)])
    assert mixed.low is not None
    assert mixed.low < mixed.mean_return


def test_against_an_opponent_the_model_has_every_seat_in_turn(make_trainer):
    config = replace(SHORT, eval_opponent="planner", eval_episodes=3, eval_temperature=1.0, eval_protocol="default")
    trainer = make_trainer(config, "nim")
    seen: list[tuple[int, str, str]] = []
    play = trainer.evaluator.play

    def watched(policies: Any, tasks: Any) -> Any:
        episodes = play(policies, tasks)
        seen.extend((episode.seed, *episode.agents.values()) for episode in episodes)
        return episodes

    trainer.evaluator.play = watched
    (result,) = trainer.evaluate()
    model = trainer.eval_policy.name
    seeds = [410_000, 410_001, 410_002]
    assert seen == [(seed, model, "planner") for seed in seeds] + [(seed, "planner", model) for seed in seeds]
    assert (result.opponent, result.episodes) == ("planner", 6)
    assert result.mean_return == -1  # an untrained model against perfect play
    assert result.invalid_rate > 0.9  # the planner's valid answers are not the model's
    assert result.seats == {"player_0": -1.0, "player_1": -1.0}


@pytest.mark.parametrize(
    ("settings", "game", "words"),
    [
        ({"eval_opponent": "plannner"}, "nim", "planner"),
        ({"eval_opponent": "random"}, "frozen-lake", "no game that is evaluated on has another seat"),
        ({"eval_opponent": "planner"}, "TestBidding-v0", "eval_opponent = 'planner' can't be used"),
        ({"eval_regret_episodes": 2}, "TestBidding-v0", "no exact yardstick"),
        ({"eval_exploitability": True}, "TestBidding-v0", "eval_exploitability = true"),
    ],
)
def test_an_evaluation_that_cannot_be_is_refused_before_training(make_trainer, settings, game, words):
    with pytest.raises(ConfigError, match=words):
        make_trainer(replace(SHORT, **settings), game)


@pytest.mark.parametrize("wanted", [{"eval_regret_episodes": 2}, {"eval_exploitability": True}])
def test_exact_yardsticks_need_direct_answers(make_llama, tokenizer, wanted):
    config = replace(SHORT, response_mode="think", **wanted)
    with pytest.raises(ConfigError, match="response_mode = 'direct'"):
        MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "kuhn-poker", config, quiet=True)


def test_the_regret_of_a_policy_is_what_its_probabilities_cost():
    """Random play knows its probabilities: its regret is that of uniform play; perfect play has none."""
    positions = random_positions(evaluation_tasks("tic-tac-toe", 6))
    assert [position.seed for position in positions] == sorted(position.seed for position in positions)
    found = exact_regret(load_agent("random"), positions)
    assert found.mean == pytest.approx(found.uniform)
    by_hand = []
    for request, values, _ in positions:
        assert tuple(values) == request.legal_actions
        by_hand.append(max(values.values()) - sum(values.values()) / len(values))
    assert found.mean == pytest.approx(sum(by_hand) / len(by_hand))
    assert found.low < found.mean < found.high
    best: Any = Scripted({})
    answers = {position.request: max(position.values.items(), key=lambda item: item[1])[0] for position in positions}
    best.action_probabilities = lambda request: {answers[request]: 1.0}
    assert exact_regret(best, positions).mean == 0.0
    with pytest.raises(ValueError, match="aren't known"):
        exact_regret(Scripted({"player_0": "b2", "player_1": "b2"}), positions)


def test_an_invalid_response_costs_what_the_default_action_costs():
    assert expected_regret({"a": 0.25, "b": 0.25}, {"a": -1.0, "b": 1.0}) == 1.0 - (0.25 - 0.25 - 0.5)
    assert expected_regret({"a": 0.0, "b": 1.0}, {"a": -1.0, "b": 1.0}) == 0.0


@pytest.mark.slow
def test_the_exploitability_of_kuhn_poker_is_measured_during_training(make_llama, tokenizer):
    """An untrained model names no action: it checks and folds, which loses exactly what the theory says."""
    config = replace(SHORT, eval_exploitability=True, eval_episodes=2, iterations=1, eval_every=1)
    trainer = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "kuhn-poker", config, quiet=True)
    (result,) = trainer.evaluate()
    always_default: Any = Scripted(lambda request: request.legal_actions[0])
    always_default.action_probabilities = lambda request: {request.legal_actions[0]: 1.0}
    assert result.exploitability == pytest.approx(
        measure(always_default, textgames.SCENARIOS["kuhn-poker"].game()).value, abs=1e-3
    )
    assert result.exploitability is not None
    assert result.score == -result.exploitability


# ---------------------------------------------------------------- whole runs


@pytest.fixture(scope="module")
def base():
    from agents.tiny import Recipe, pretrain

    shape = {"hidden_size": 32, "intermediate_size": 64, "layers": 1}
    return pretrain(Recipe.legal_play(["tic-tac-toe"], examples=600, steps=40, batch_size=16, **shape))


@pytest.mark.slow
def test_a_run_of_tic_tac_toe_with_its_yardstick(base, tmp_path, capsys):
    weights = {name: tensor.clone() for name, tensor in base.model.state_dict().items()}
    config = replace(
        SHORT, max_response_tokens=8, eval_every=1, eval_episodes=2, eval_regret_episodes=2, eval_opponent="random",
        eval_temperature=1.0, out=str(tmp_path / "run"), checkpoint_every=1, keep_checkpoints=4,
    )  # fmt: skip
    trainer = MSGRPOTrainer(base.model, base.tokenizer, "tic-tac-toe", config)
    trainer.train()
    base.model.load_state_dict(weights)
    told = " ".join(capsys.readouterr().err.split())
    assert "against random (player_0" in told
    assert "exact regret per decision" in told
    records = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    evaluations = [record["evaluation"] for record in records if "evaluation" in record]
    assert len(evaluations) == 3
    for one in evaluations:
        assert 0 <= one["regret_low"] < one["regret"] < one["regret_high"]
        assert one["positions"] >= 10
        assert 0.2 < one["random_regret"] < 1
    least = min(range(3), key=lambda index: evaluations[index]["regret"])
    assert (tmp_path / "run/best").resolve().name == f"iteration-{least:06}"
    resumed = MSGRPOTrainer(base.model, base.tokenizer, "tic-tac-toe", replace(config, iterations=3), quiet=True)
    resumed.resume(tmp_path / "run")
    assert resumed.evaluations == trainer.evaluations
    resumed.train()
    assert len(resumed.evaluations) == 4


def test_of_equally_good_checkpoints_the_latest_is_the_best(make_trainer, tmp_path):
    """Playing itself a model has a mean return of 0 in every evaluation, and the first must not stay the best."""
    make_trainer(replace(SHORT, eval_every=1, eval_episodes=2, out=str(tmp_path / "run")), "TestBidding-v0").train()
    assert (tmp_path / "run/best").resolve().name == "iteration-000002"
