"""Opponents in training: whose seats are learnt from, who is met when, copies of the model itself, and resuming."""

from dataclasses import replace
from typing import Any

import pytest
import torch

import textgames
from agents.episode import EpisodeTask
from agents.loop.live import Teams
from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.trajectories import LEARNER, frozen_before, training_tasks
from tests.agents.msgrpo import runs
from tests.agents.msgrpo.test_self_play import Bidding

textgames.register("TestOpponents-v0", Bidding, max_steps=3)
GAME = "TestOpponents-v0"
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
    assert teams_of(config, 3) == teams_of(config, 3)
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


def test_a_copy_plays_as_the_model_was_and_nothing_of_it_is_learnt_from(make_trainer):
    trainer = make_trainer(replace(LEAGUE, opponents="checkpoint", learning_rate=0.05), GAME)
    before = [each.clone() for each in trainer.model.parameters()]
    metrics = trainer.iterate()
    assert metrics["optimizer_steps"]
    assert metrics["return_against_checkpoint"] == metrics["return"]
    assert metrics["opponent_response_tokens"] > 0
    batch = trainer.rollout()
    tokens = sum(each.tokens for each in batch.trajectories)
    assert all(each.task.team[("player_0", "player_1").index(each.player)] == LEARNER for each in batch.trajectories)
    trainer.opponents.tokens()
    trainer.iterate()
    assert trainer.history[-1]["response_tokens"] == tokens
    frozen = trainer.opponents.state_dict()
    assert all(map(torch.equal, before, frozen[0].values()))
    assert not all(map(torch.equal, before, frozen[1].values()))


def test_a_resumed_run_meets_the_same_opponents(make_trainer, tmp_path):
    config = replace(LEAGUE, groups=4, opponents_kept=2, learning_rate=0.05)
    whole = make_trainer(config, GAME)
    whole.train()
    assert {"return_against_checkpoint", "return_against_random"} <= {name for each in whole.history for name in each}
    kept = replace(config, iterations=2, out=str(tmp_path / "run"))
    make_trainer(kept, GAME).train()
    resumed = make_trainer(replace(kept, iterations=4), GAME)
    resumed.resume(tmp_path / "run")
    resumed.train()
    assert runs.untimed(resumed.history) == runs.untimed(whole.history)
    assert runs.same_weights(resumed, whole)
    assert list(resumed.opponents.state_dict()) == [2, 3]


def test_weights_that_a_checkpoint_lacks_are_told_when_it_is_resumed(make_trainer, tmp_path):
    kept = replace(LEAGUE, iterations=1, opponents={}, out=str(tmp_path / "run"))
    make_trainer(kept, GAME).train()
    with pytest.raises(ConfigError, match="meets the weights of iteration 0, and the checkpoint has those of none"):
        make_trainer(replace(kept, opponents="checkpoint"), GAME).resume(tmp_path / "run")


def test_what_is_played_ahead_meets_the_copies_of_then(make_trainer):
    trainer = make_trainer(replace(LEAGUE, opponents="checkpoint", opponents_kept=1, staleness=1), GAME)
    assert {metrics["lag"] for metrics in trainer.train()} == {0, 1}
    assert list(trainer.opponents.state_dict()) == [2, 3]


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


@pytest.mark.parametrize(
    ("settings", "game", "words"),
    [
        ({"opponents": "plannner"}, GAME, "opponents = 'plannner' can't be used.*did you mean 'planner'"),
        ({"opponents": "random"}, "frozen-lake", "no game that is trained on has another seat"),
        ({"opponents": "checkpoint", "around": "advised(random, learner)"}, GAME, "around"),
        ({"game": {"seat": "player_2", "opponents": "random"}}, GAME, "unknown seat 'player_2'"),
        ({"game": {"seat": "player_1"}}, GAME, "opponents = None with seat = 'player_1'"),
    ],
)
def test_opponents_that_cannot_be_are_refused(make_trainer, settings, game, words):
    with pytest.raises(ConfigError, match=words):
        make_trainer(replace(LEAGUE, **({"opponents": {}} | settings)), game)


def test_weights_are_positive_and_one_name_will_do():
    assert MSGRPOConfig(opponents="random").opponents == {"random": 1}
    assert MSGRPOConfig(opponents=["random", "hf:x"]).opponents == {"random": 1, "hf:x": 1}
    with pytest.raises(ConfigError, match="opponents"):
        MSGRPOConfig(opponents={"random": 0})
    config = MSGRPOConfig(opponents={"hf:runs/a": 0.5, "learner": 1})
    assert "hf:runs/a" in config.to_toml()
    assert MSGRPOConfig().with_overrides(['opponents={"hf:runs/a" = 0.5, learner = 1}']) == config


def test_of_an_adapter_the_adapter_alone_is_copied(make_trainer):
    trainer = make_trainer(replace(LEAGUE, lora_rank=2), GAME)
    metrics = trainer.iterate()
    assert metrics["opponent_response_tokens"] > 0
    assert all("lora_" in name for name in trainer.opponents.state_dict()[0])
    (copy,) = trainer.opponents._frozen.values()
    pairs = zip(trainer.model.named_parameters(), copy.parameters(), strict=True)
    assert all((one.data_ptr() == two.data_ptr()) == ("lora_" not in name) for (name, one), two in pairs)
