"""Games of several players: seats, baselines, late rewards, evaluation, and opponents that the model meets."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import textgames
from agents import Turn, load_agent
from agents.analysis.exploitability import measure
from agents.analysis.inspection import exact_regret, expected_regret, random_positions
from agents.episode import EpisodeTask
from agents.loop.live import Teams
from agents.loop.rollout import rollout
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer, group_advantages, trajectories_of
from agents.msgrpo.credit import Batch
from agents.msgrpo.run.evaluating import evaluate, evaluation_tasks
from agents.msgrpo.trajectories import LEARNER, frozen_before, training_tasks
from agents.tiny import Recipe, pretrain
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
    for one, value, advantage in zip(trajectories, returns, advantages, strict=True):
        group = [
            sum(other.rewards.tolist())
            for other in trajectories
            if (other.player, other.task.layout_seed) == (one.player, one.task.layout_seed)
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
    trajectories = played("TestBidding-v0", policy, replace(SHORT, groups=1, group_size=64))
    advantages = group_advantages(Batch(trajectories).returns(), [each.group for each in trajectories])
    first, second = ([n for n, t in enumerate(trajectories) if t.player == seat] for seat in Bidding.players)
    assert len(first) == 64
    assert 0 < len(second) == sum(trajectories[n].task.seed % 2 for n in first) < 64
    assert not advantages[second].any()  # each of them was paid the same, fold for fold
    assert set(np.sign(advantages[first])) == {-1, 1}


def test_the_draw_takes_the_same_share_of_the_parts_as_of_the_episodes(make_trainer):
    assert [MSGRPOConfig(groups=2, group_size=4).draws_of(parts) for parts in (8, 16, 12)] == [4, 8, 6]
    assert MSGRPOConfig(groups=2, group_size=4, episodes_drawn=1).draws_of(8) == 1
    config = replace(SHORT, groups=4, episodes_drawn=12, episode_sampling="aaw_replacement", max_response_tokens=1)
    metrics = make_trainer(config, "TestBidding-v0").iterate()
    assert metrics["episodes"] > 16  # the parts of both players
    assert metrics["episodes_drawn"] == config.draws_of(int(metrics["episodes"])) > 12
    first, second = metrics["return_player_0"], metrics["return_player_1"]
    assert first * 16 + second * (metrics["episodes"] - 16) == pytest.approx(metrics["return"] * metrics["episodes"])


# ---------------------------------------------------------------- evaluation


def test_playing_itself_every_seat_is_reported_and_the_interval_knows_that_seats_depend():
    episodes = list(rollout(load_agent("random"), evaluation_tasks("tic-tac-toe", 50)))
    result = evaluate("tic-tac-toe", episodes)
    assert result.seats is not None
    for seat, mean in result.seats.items():
        assert mean == pytest.approx(np.mean([episode.returns[seat] for episode in episodes]))
    assert result.seats["player_0"] == -result.seats["player_1"] != 0
    assert (result.mean_return, result.low, result.high) == (0, None, None)  # of a zero-sum game, whatever was played


def test_against_an_opponent_the_model_has_every_seat_in_turn(make_trainer):
    config = replace(SHORT, eval_opponent="planner", eval_episodes=2, eval_temperature=1.0, eval_protocol="default")
    trainer = make_trainer(config, "nim")
    seen, play = list[Any](), trainer.evaluator.play

    def watched(policies: Any, tasks: Any) -> Any:
        episodes = play(policies, tasks)
        seen.extend((episode.seed, *episode.agents.values()) for episode in episodes)
        return episodes

    trainer.evaluator.play = watched
    (result,) = trainer.evaluate()
    model, seeds = trainer.eval_policy.name, (410_000, 410_001)
    assert seen == [(seed, model, "planner") for seed in seeds] + [(seed, "planner", model) for seed in seeds]
    assert (result.opponent, result.episodes) == ("planner", 4)
    assert result.seats == {"player_0": -1.0, "player_1": -1.0}  # an untrained model against perfect play
    assert result.mean_return == -1
    assert result.invalid_rate > 0.9  # the planner's valid answers are not the model's


def test_the_regret_of_a_policy_is_what_its_probabilities_cost():
    """Random play knows its probabilities: its regret is that of uniform play; perfect play has none."""
    positions = random_positions(evaluation_tasks("tic-tac-toe", 6))
    found = exact_regret(load_agent("random"), positions)
    assert found.mean == pytest.approx(found.uniform)
    by_hand = [max(values.values()) - sum(values.values()) / len(values) for _, values, _ in positions]
    assert found.mean == pytest.approx(sum(by_hand) / len(by_hand))
    assert found.low < found.mean < found.high
    best: Any = Scripted({})
    answers = {position.request: max(position.values.items(), key=lambda item: item[1])[0] for position in positions}
    best.action_probabilities = lambda request: {answers[request]: 1.0}
    assert exact_regret(best, positions).mean == 0.0
    with pytest.raises(ValueError, match="aren't known"):
        exact_regret(Scripted({"player_0": "b2", "player_1": "b2"}), positions)
    # an invalid response costs what the default action costs
    assert expected_regret({"a": 0.25, "b": 0.25}, {"a": -1.0, "b": 1.0}) == 1.0 - (0.25 - 0.25 - 0.5)


def test_the_exploitability_of_kuhn_poker_is_measured_during_training(make_llama, tokenizer):
    """An untrained model names no action: it checks and folds, which loses exactly what the theory says."""
    wanted = {"eval_exploitability": True, "eval_episodes": 2}
    parts = make_llama(len(tokenizer)), tokenizer, "kuhn-poker"
    (result,) = MSGRPOTrainer(*parts, replace(SHORT, **wanted), quiet=True).evaluate()
    always_default: Any = Scripted(lambda request: request.legal_actions[0])
    always_default.action_probabilities = lambda request: {request.legal_actions[0]: 1.0}
    exact = measure(always_default, textgames.SCENARIOS["kuhn-poker"].game()).value
    assert result.exploitability == pytest.approx(exact, abs=1e-3)
    assert result.score == -result.exploitability
    with pytest.raises(ConfigError, match="response_mode = 'direct'"):
        MSGRPOTrainer(*parts, replace(SHORT, response_mode="think", **wanted), quiet=True)


# ---------------------------------------------------------------- whole runs


@pytest.mark.slow
def test_a_run_of_tic_tac_toe_with_its_yardstick(tmp_path, capsys):
    shape = {"hidden_size": 32, "intermediate_size": 64, "layers": 1}
    base = pretrain(Recipe.legal_play(["tic-tac-toe"], examples=600, steps=40, batch_size=16, **shape))
    config = replace(
        SHORT, max_response_tokens=8, eval_every=1, eval_episodes=2, eval_regret_episodes=2, eval_opponent="random",
        eval_temperature=1.0, out=str(tmp_path / "run"), checkpoint_every=1, keep_checkpoints=4,
    )  # fmt: skip
    MSGRPOTrainer(base.model, base.tokenizer, "tic-tac-toe", config).train()
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


def test_of_equally_good_checkpoints_the_latest_is_the_best(make_trainer, tmp_path):
    """Playing itself a model has a mean return of 0 in every evaluation, and the first must not stay the best."""
    make_trainer(replace(SHORT, eval_every=1, eval_episodes=2, out=str(tmp_path / "run")), "TestBidding-v0").train()
    assert (tmp_path / "run/best").resolve().name == "iteration-000002"


GAME = "TestBidding-v0"
LEAGUE = replace(runs.SHORT, **runs.ALONE, group_size=8, opponents={"checkpoint": 2, "random": 1}, opponent_every=1)


def teams_of(config: MSGRPOConfig, iterations: int, games: Any = (GAME,)) -> list[list[tuple[str, ...]]]:
    """The teams of each iteration, one a group; a group has one team."""
    found = []
    for iteration in range(iterations):
        tasks = training_tasks(config, games, iteration)
        groups = [tasks[k : k + config.group_size] for k in range(0, len(tasks), config.group_size)]
        assert all(len({task.team for task in group}) == 1 for group in groups)
        found.append([group[0].team for group in groups])
    return found


def test_seats_rotate_over_groups_and_opponents_come_by_their_weights():
    config = replace(LEAGUE, groups=3, opponents={"random": 3, "learner": 1})
    teams = [team for own in teams_of(config, 200) for team in own]
    seats = [team.index(LEARNER) for team in teams if "random" in team]
    assert teams.count((LEARNER, LEARNER)) == pytest.approx(150, abs=40)
    assert sum(seats) == pytest.approx(len(seats) / 2, abs=1.5 * len(seats) ** 0.5)
    (single,) = teams_of(config, 1, ("frozen-lake", "kuhn-poker"))
    assert [len(team) for team in single] == [1, 2, 1]


def test_with_opponents_the_same_episodes_are_played_as_without():
    alone, met = (training_tasks(config, [GAME], 3) for config in (replace(LEAGUE, opponents={}), LEAGUE))
    assert all(task.team for task in met)
    assert alone == [replace(task, team=()) for task in met]


def test_a_checkpoint_is_one_of_the_latest_that_are_known_when_it_is_played():
    config = replace(LEAGUE, opponents="checkpoint", opponent_every=3, opponents_kept=2)
    assert [list(frozen_before(config, i)) for i in (0, 2, 3, 7, 9)] == [[0], [0], [0, 3], [3, 6], [6, 9]]
    assert list(frozen_before(replace(config, staleness=2), 7)) == [0, 3]
    met = {name for own in teams_of(config, 9)[7:] for team in own for name in team}
    assert met == {LEARNER, "checkpoint-3", "checkpoint-6"}


@pytest.mark.parametrize("rank", [0, 2])
def test_a_copy_plays_as_the_model_was_and_nothing_of_it_is_learnt_from(make_trainer, rank):
    trainer = make_trainer(replace(LEAGUE, opponents="checkpoint", learning_rate=0.05, lora_rank=rank), GAME)
    before = [each.clone() for each in trainer.model.parameters() if each.requires_grad]
    metrics = trainer.iterate()
    assert metrics["return_against_checkpoint"] == metrics["return"]
    assert metrics["opponent_response_tokens"] > 0
    batch = trainer.rollout()
    assert all(each.task.team[("player_0", "player_1").index(each.player)] == LEARNER for each in batch.trajectories)
    trainer.opponents.tokens()
    trainer.iterate()
    assert trainer.history[-1]["response_tokens"] == sum(each.tokens for each in batch.trajectories)
    frozen = trainer.opponents.state_dict()
    assert all(map(torch.equal, before, frozen[0].values()))
    assert not all(map(torch.equal, before, frozen[1].values()))
    for copy in trainer.opponents._frozen.values():  # with an adapter, the base model is shared
        pairs = zip(trainer.model.named_parameters(), copy.parameters(), strict=True)
        shared = [name for (name, one), two in pairs if one.data_ptr() == two.data_ptr()]
        assert bool(shared) == bool(rank)
        assert not any("lora_" in name for name in shared)


def test_what_is_played_ahead_meets_the_copies_of_then_and_a_checkpoint_without_them_is_refused(make_trainer, tmp_path):
    ahead = replace(LEAGUE, opponents="checkpoint", opponents_kept=1, staleness=1, out=str(tmp_path / "run"))
    trainer = make_trainer(ahead, GAME)
    assert {metrics["lag"] for metrics in trainer.train()} == {0, 1}
    assert list(trainer.opponents.state_dict()) == [2, 3]
    make_trainer(replace(LEAGUE, iterations=1, opponents={}, out=str(tmp_path / "other")), GAME).train()
    with pytest.raises(ConfigError, match="meets the weights of iteration 0, and the checkpoint has those of none"):
        make_trainer(ahead, GAME).resume(tmp_path / "other")


def test_one_seat_of_a_scenario_is_trained_and_evaluated(make_trainer):
    table = {"seat": "player_1", "opponents": "random"}
    trainer = make_trainer(replace(LEAGUE, opponents={}, game=table, eval_game=table, eval_episodes=3), GAME)
    assert {task.team for task in training_tasks(trainer.config, trainer.games, 0)} == {("random", LEARNER)}
    assert {each.player for each in trainer.rollout().trajectories} == {"player_1"}
    (result,) = trainer.evaluate()
    assert (result.opponent, result.seats) == ("random", None)
    by_player = {"seat": "player_0", "opponents": {"player_1": "random"}}
    games = make_trainer(replace(LEAGUE, opponents={}, game=by_player), GAME).games
    assert training_tasks(LEAGUE, games, 0)[0].team == (LEARNER, "random")


def test_teams_reach_an_engine_that_plays_elsewhere(make_trainer):
    from agents.msgrpo.engines.engine import each_policy

    trainer = make_trainer(replace(LEAGUE, opponents="random"), GAME)
    seated = trainer.opponents.seated(trainer.policy, training_tasks(trainer.config, trainer.games, 0))
    assert isinstance(seated, Teams)
    changed = each_policy(seated, lambda policy: policy.name)
    assert changed.policies[LEARNER, "random"] == [trainer.policy.name, "random"]
    assert trainer.opponents.seated(trainer.policy, [EpisodeTask.of(GAME, 0)]) is trainer.policy


def test_one_opponent_s_name_or_a_list_stands_for_equal_weights_which_are_positive():
    mixed = MSGRPOConfig(opponents=["random", "hf:runs/a"])
    assert MSGRPOConfig().with_overrides(['opponents={"hf:runs/a" = 1, random = 1}']).opponents == mixed.opponents
    with pytest.raises(ConfigError, match="opponents"):
        MSGRPOConfig(opponents={"random": 0})
