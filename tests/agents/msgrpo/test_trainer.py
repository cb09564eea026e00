"""The whole trainer on games that take milliseconds: learning, groups, files, resuming, stopping."""

import json
import signal
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

import textgames
from agents.loop.rollout import rollout
from agents.msgrpo import ConfigError, Drawn, MSGRPOConfig, MSGRPOTrainer, UnusableModelError
from agents.msgrpo.errors import TrainingDivergedError
from agents.msgrpo.run.evaluating import EvaluationResult
from agents.msgrpo.trajectories import training_rows, training_tasks
from tests.agents.msgrpo import runs, test_self_play  # noqa: F401 - which registers a game
from tests.agents.msgrpo.runs import MOVING, untimed
from tests.benchmark.players_for_tests import Always
from textgames.frozen_lake import FrozenLake

BANDIT = MSGRPOConfig(
    groups=6, group_size=16, episodes_drawn=64, iterations=30, response_mode="direct", max_response_tokens=1,
    temperature=1.0, format_penalty=0.5, learning_rate=3e-3, minibatches=4, update_passes=2, entropy_coefficient=0.01,
    eval_every=0, samples_every=0,
)  # fmt: skip
SHORT = replace(runs.SHORT, format_penalty=0.5, entropy_coefficient=0.01)


@pytest.mark.slow
def test_a_random_model_learns_the_one_step_game(make_trainer):
    """From uniform over 11 tokens (9% right) to the known optimum of 1, with the light read off the prompt."""
    trainer = make_trainer(BANDIT, "TestButtons-v0", model={"initializer_range": 0.15})
    history = trainer.train()
    assert history[0]["return"] < 0
    assert np.mean([h["return"] for h in history[-5:]]) > 0.9
    assert history[-1]["invalid_rate"] < 0.05


@pytest.mark.parametrize(
    ("settings", "evaluated"),
    [
        ({"game": {"frozen-lake": {"size": 3}, "snake": {"width": 5}}}, 4),
        ({"game": {"size": 3}, "eval_game": {"size": 2}}, 2),
    ],
)
def test_games_are_trained_with_settings_of_the_run_and_evaluated_by_their_own(make_trainer, settings, evaluated):
    trainer = make_trainer(replace(SHORT, eval_episodes=2, format_penalty=0.0, **settings), "frozen-lake")
    assert {each.states[0].lake.nrow for each in trainer.rollout().trajectories} == {3}
    seen, play = [], trainer.evaluator.play
    trainer.evaluator.play = lambda policy, tasks: seen.extend(tasks) or play(policy, tasks)
    assert [result.scenario for result in trainer.evaluate()] == ["frozen-lake"]
    assert [task.kwargs["size"] for task in seen] == [evaluated] * 2


def test_groups_may_share_the_chance_of_transitions():
    """On slippery ice equal answers then lead to equal episodes, and only then."""
    ends = {}
    for shared in (False, True):
        tasks = training_tasks(
            replace(SHORT, groups=4, group_size=8, shared_chance=shared, max_steps=8), ["frozen-lake-slippery"], 0
        )
        by_seed = {each.seed: each.end_state for each in rollout(Always(), tasks)}
        ends[shared] = [len({by_seed[task.seed] for task in tasks[k : k + 8]}) for k in range(0, 32, 8)]
    assert ends[True] == [1] * 4
    assert max(ends[False]) > 1


def test_seeds_are_training_seeds_and_differ_by_iteration_and_run(make_trainer):
    config = replace(SHORT, groups=10, group_size=50)
    games = ["frozen-lake", "snake"]
    first = training_tasks(config, games, 0)
    assert first == training_tasks(config, games, 0)
    assert {*(task.seed for task in first), *(task.layout_seed for task in first)} <= {*range(10_000)}
    assert len({task.seed for task in first}) == 500
    assert {task.scenario for task in first} == set(games)
    for group in range(10):
        assert len({(t.layout_seed, t.scenario) for t in first[group * 50 : group * 50 + 50]}) == 1
    for other in (training_tasks(config, games, 1), training_tasks(replace(config, seed=1), games, 0)):
        assert other[0].noise != first[0].noise
    assert [training_tasks(replace(SHORT, groups=1), games, i)[0].scenario for i in range(4)] == games * 2
    with pytest.raises(ConfigError, match="at most 10000"):
        make_trainer(replace(SHORT, groups=200, group_size=100))


def test_a_batch_has_every_step_of_every_episode_once_as_it_was_sampled(make_trainer):
    """Mistakes seen in the wild: a bump into a wall dropped; an episode that is over repeated with its last reward."""
    trainer = make_trainer(replace(SHORT, groups=4, rollout_batch=3, max_response_tokens=3, format_penalty=0.25))
    played = trainer.rollout().trajectories
    assert [each.task for each in played] == training_tasks(trainer.config, trainer.games, 0)
    everything = Drawn.plain(np.arange(len(played)))
    rows = training_rows(played, everything, [np.ones(len(t)) for t in played], 1500)
    assert len(rows) == sum(map(len, played))
    assert any(a == b for t in played for a, b in pairwise(t.prompt_ids))
    for each in played:
        paid = each.rewards + 0.25 * ~each.valid
        assert paid.tolist() == [0.0] * (len(each) - 1) + [float(each.terminated)]
        assert len(each) <= 4 if each.terminated else len(each) == 4
    metrics = trainer.iterate()
    assert metrics["truncated_response_rate"] > 0.5  # a random model seldom stops
    assert metrics["response_tokens"] <= 3 * metrics["steps"]
    shorter = make_trainer(replace(SHORT, max_steps=2)).rollout().trajectories
    assert max(map(len, shorter)) == 2


def test_no_advantage_anywhere_is_skipped_and_counted(make_trainer):
    """Nothing is valid and nothing pays: all returns are equal."""
    config = replace(SHORT, format_penalty=0.0, max_steps=1, temperature=1e-3, stop_after=0, preflight_episodes=0)
    trainer = make_trainer(config, model={"hidden": 8})
    before = [p.detach().clone() for p in trainer.model.parameters()]
    history = trainer.train()
    assert [(each["skipped"], each["skipped_so_far"]) for each in history] == [(True, n) for n in (1, 2, 3, 4)]
    assert history[0]["zero_advantage_groups"] == 1.0
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))


def identical(one: Any, two: Any) -> bool:
    """Whether two states are equal to the last bit, tensor by tensor."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(identical(value, two[name]) for name, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(identical, one, two))
    return bool(one == two)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"kl_coefficient": 0.05, "reference_mixup": 0.3}, id="reference that moves"),
        pytest.param({"kl_coefficient": 0.05, "reference_mixup": 0.3, "lora_rank": 4}, id="adapter"),
        pytest.param({"credit": MOVING}, id="mean that is remembered"),
        pytest.param({"credit": "ppo_turn", "critic_learning_rate": 1e-3, "critic_passes": 2}, id="critic"),
        pytest.param({"credit": "ppo_turn", "critic_learning_rate": 1e-3, "lora_rank": 4}, id="critic's adapter"),
        pytest.param({"opponents": {"checkpoint": 2, "random": 1}, "opponent_every": 1}, id="opponents"),
    ],
)
def test_resume_equals_the_uninterrupted_run_bit_for_bit(make_trainer, tmp_path, settings):
    config = replace(
        SHORT, iterations=6, checkpoint_every=3, eval_every=2, eval_episodes=4, keep_checkpoints=9, schedule="cosine",
        minibatches=2, learning_rate=1e-2, stop_after=0, **settings,
    )  # fmt: skip
    game = "TestBidding-v0" if "opponents" in settings else "TestCorridor-v0"
    whole, part = (make_trainer(replace(config, out=str(tmp_path / name)), game) for name in ("whole", "part"))
    whole.train()
    stop_after(part, 3)
    with pytest.raises(KeyboardInterrupt):
        part.train()
    resumed = make_trainer(part.config, game, resume=tmp_path / "part")
    assert resumed.iteration == 3
    resumed.train()
    (_, one, weights), (_, two, others) = whole._state(), resumed._state()
    assert untimed(one.pop("history")) == untimed(two.pop("history"))
    assert identical(one, two)  # optimisers, critic, reference, opponents, memory, evaluations
    assert identical(dict(weights), dict(others))
    records = [
        untimed(map(json.loads, (tmp_path / run / "metrics.jsonl").read_text().splitlines()))
        for run in ("whole", "part")
    ]
    assert records[0] == records[1]
    assert len(records[0]) == 6 + 4


def stop_after(trainer: MSGRPOTrainer, iterations: int) -> None:
    """Press Ctrl-C during the rollout of the next iteration."""
    rollout = trainer.rollout

    def interrupted() -> Any:
        if trainer.iteration == iterations:
            signal.raise_signal(signal.SIGINT)
        return rollout()

    trainer.rollout = interrupted  # type: ignore[method-assign]


def test_ctrl_c_before_the_first_iteration_is_over_can_be_resumed(make_trainer, tmp_path):
    config = replace(SHORT, out=str(tmp_path / "run"))
    trainer = make_trainer(config)
    stop_after(trainer, 0)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    resumed = make_trainer(config, resume=tmp_path / "run")
    assert len(resumed.train()) == 4


def test_old_checkpoints_go_but_last_and_best_stay(make_trainer, tmp_path):
    out = tmp_path / "run"
    trainer = make_trainer(replace(SHORT, out=str(out), checkpoint_every=1, eval_every=4, eval_episodes=1))
    trainer._best = 99.0
    trainer.train()
    left = sorted(path.name for path in (out / "checkpoints").iterdir())
    assert left == ["iteration-000001", "iteration-000004"]  # the first became best for want of another
    assert (out / "last").resolve().name == "iteration-000004"


def scored(trainer: MSGRPOTrainer, *returns: float) -> MSGRPOTrainer:
    """The trainer, whose evaluations find these returns, one after the other."""
    left = iter(returns)
    result = EvaluationResult("TestCorridor-v0", 1, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0)
    cast(Any, trainer).evaluate = lambda: [result._replace(mean_return=next(left))]
    return trainer


def best_in(out: Path) -> int:
    return int((out / "best").resolve().name.rpartition("-")[2])


def test_without_evaluations_the_last_checkpoint_is_the_best_and_no_other_run_replaces_it(make_trainer, tmp_path):
    config = replace(SHORT, out=str(tmp_path), checkpoint_every=2)
    make_trainer(config).train()
    assert best_in(tmp_path) == 4
    with pytest.raises(ConfigError, match="--resume"):
        make_trainer(config).train()


def test_a_run_that_goes_on_from_an_earlier_checkpoint_forgets_the_best_of_the_other_course(make_trainer, tmp_path):
    config = replace(SHORT, out=str(tmp_path), checkpoint_every=1, keep_checkpoints=9, eval_every=1, eval_episodes=1)
    scored(make_trainer(config), 0.1, 0.3, 0.2, 0.2, 0.9).train()
    assert best_in(tmp_path) == 4
    again = scored(make_trainer(config), 0.1, 0.1)
    again.resume(tmp_path / "checkpoints" / "iteration-000002")
    assert best_in(tmp_path) == 1
    again.train()
    assert best_in(tmp_path) == 1


def test_a_run_that_goes_on_in_another_folder_looks_for_the_best_that_lies_there(make_trainer, tmp_path):
    config = replace(SHORT, checkpoint_every=1, keep_checkpoints=9, eval_every=1, eval_episodes=1, iterations=2)
    scored(make_trainer(replace(config, out=str(tmp_path / "a"))), 0.1, 0.9, 0.2).train()
    other = scored(make_trainer(replace(config, iterations=5, out=str(tmp_path / "b"))), 0.5, 0.8, 0.4)
    other.resume(tmp_path / "a")
    other.train()
    assert best_in(tmp_path / "b") == 4


@pytest.mark.parametrize("change", [{"eval_temperature": 0.1}, {"scenarios": ("snake",)}])
def test_after_a_change_of_what_is_evaluated_the_best_waits_for_its_first_score(make_trainer, tmp_path, change):
    config = replace(SHORT, out=str(tmp_path), keep_checkpoints=9, eval_every=1, eval_episodes=1, iterations=2)
    scored(make_trainer(config), 0.1, 0.9, 0.2).train()
    other = scored(make_trainer(replace(config, iterations=4, eval_every=4, **change)), 0.3)
    other.resume(tmp_path)
    other.iteration = 3
    other.save()
    assert best_in(tmp_path) == 1  # nothing has a score by the new measure yet
    other.train()
    assert best_in(tmp_path) == 4


def test_evaluation_uses_its_own_seeds_temperature_and_no_penalty(make_trainer):
    trainer = make_trainer(replace(SHORT, iterations=1, eval_every=1, eval_episodes=3, eval_scenarios=("snake",)))
    seen, play = list[Any](), trainer.evaluator.play

    def played(policy: Any, tasks: Any) -> Any:
        seen.append((policy.decoding.temperature, [t.seed for t in tasks], tasks[0].kwargs["format_penalty"]))
        return play(policy, tasks)

    trainer.evaluator.play = played
    trainer.train()
    assert seen == [(0.5, [40_000, 40_001, 40_002], 0.0)] * 2
    assert [done for done, _ in trainer.evaluations] == [0, 1]


def test_layouts_met_in_training_are_counted(make_trainer):
    """The corridor has two initial states: after a few groups both have been met."""
    trainer = make_trainer(replace(SHORT, groups=8, iterations=1, eval_every=1, eval_episodes=5))
    trainer.train()
    assert [results[0].layouts_seen_in_training for _, results in trainer.evaluations] == [0, 5]


def test_divergence_keeps_the_batch_and_says_what_to_do(make_trainer, tmp_path):
    trainer = make_trainer(replace(SHORT, out=str(tmp_path / "run"), abort_grad_norm=1e-9))
    with pytest.raises(TrainingDivergedError) as error:
        trainer.train()
    for words in ("iteration 1", "abort_grad_norm", "learning_rate"):
        assert words in str(error.value)
    rows = [json.loads(line) for line in (tmp_path / "run/diverged-iteration-1.jsonl").read_text().splitlines()]
    assert rows[0]["tokens"]["response"]
    assert "advantage" in rows[0]


def test_unusable_models_are_refused_with_a_reason(make_llama, tokenizer, prompt_file):
    from transformers import T5Config, T5ForConditionalGeneration

    t5 = T5ForConditionalGeneration(T5Config(vocab_size=200, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2))
    small, broken = make_llama(len(tokenizer)), make_llama(len(tokenizer))
    broken.lm_head.weight.data[0, 0] = float("nan")
    for model, tok, game, words in [
        (object(), tokenizer, "frozen-lake", "not a transformers model"),
        (t5, tokenizer, "frozen-lake", "encoder-decoder"),
        (small, None, "frozen-lake", "without a tokenizer"),
        (make_llama(5), tokenizer, "frozen-lake", "5 rows"),
        (make_llama(len(tokenizer)).requires_grad_(False), tokenizer, "frozen-lake", "lora_rank"),
        (broken, tokenizer, "frozen-lake", "not finite"),
        (small, tokenizer, SHORT, r"takes a scenario's name, an id or a Scenario, .* got MSGRPOConfig and MSGRPO"),
    ]:
        with pytest.raises((UnusableModelError, ValueError), match=words):
            MSGRPOTrainer(model, tok, game, replace(SHORT, prompt_file=prompt_file), quiet=True)


textgames.register("TestEndless-v0", textgames.settings_of("TestCorridor-v0")["game"])
textgames.register("TestMap-v0", FrozenLake, desc=["SFFFFG"], max_steps="auto")
LONG = {"eval_scenarios": ("snake",), "max_prompt_tokens": 4000, "max_response_tokens": 4000}


@pytest.mark.parametrize(
    ("game", "settings", "words"),
    [
        ("", {}, "scenarios is empty"),
        ("TestEndless-v0", {}, r"TestEndless-v0 has no step limit, .* textgames\.register\(..., max_steps=20\)"),
        ("TestMap-v0", {"max_steps": 3}, r"TestMap-v0: max_steps=3 ends every episode .* takes 5 rounds"),
        ("frozen-lake", {"invalid_action": "noop"}, "frozen-lake: invalid_action='noop' needs a game with an action"),
        ("TestCorridor-v0", LONG, r"snake: its prompt has .* too little room"),
        ("frozen-lake", {"game": {"sizes": 3}}, r"frozen-lake: FrozenLake has no setting 'sizes'.*did you mean 'size'"),
        ("frozen-lake", {"eval_game": {"size": 1}}, "frozen-lake: size must be a whole number from 2 to 100, got 1"),
        ("frozen-lake", {"game": {"snak": {"width": 3}}}, "game: unknown scenario 'snak'; did you mean 'snake'?"),
        ("frozen-lake", {"game": {"format_penalty": 0.5}}, r"format_penalty is no setting of \[game\]: it stands in"),
        ("nim", {"eval_opponent": "plannner"}, "did you mean 'planner'"),
        ("frozen-lake", {"eval_opponent": "random"}, "no game that is evaluated on has another seat"),
        ("TestBidding-v0", {"eval_opponent": "planner"}, "eval_opponent = 'planner' can't be used"),
        ("TestBidding-v0", {"eval_regret_episodes": 2}, "no exact yardstick"),
        ("TestBidding-v0", {"eval_exploitability": True}, "eval_exploitability = true"),
        ("nim", {"opponents": "plannner"}, "opponents = 'plannner' can't be used.*did you mean 'planner'"),
        ("frozen-lake", {"opponents": "random"}, "no game that is trained on has another seat"),
        ("nim", {"opponents": "checkpoint", "around": "advised(random, learner)"}, "around"),
        ("nim", {"game": {"seat": "player_2", "opponents": "random"}}, "unknown seat 'player_2'"),
        ("nim", {"game": {"seat": "player_1"}}, "opponents = None with seat = 'player_1'"),
    ],
)
def test_what_can_not_be_trained_or_evaluated_is_refused_before_it_begins(make_trainer, game, settings, words):
    with pytest.raises((UnusableModelError, ConfigError), match=words):
        make_trainer(replace(SHORT, **settings), game)


def test_games_without_a_scenario_are_trained_with_a_step_limit_of_their_own_or_the_run_s(make_trainer):
    assert make_trainer(replace(SHORT, max_steps=5), "TestEndless-v0").games == ["TestEndless-v0"]
    assert make_trainer(SHORT, "TestMap-v0").games == ["TestMap-v0"]


@pytest.mark.parametrize(
    ("settings", "most"),
    [({}, 1e-4), ({"dtype": "bfloat16"}, 0.2), ({"gradient_checkpointing": True}, 1e-4), ({"packing": "rows"}, 1e-4)],
)
def test_sampler_and_learner_agree_however_an_iteration_is_computed(make_trainer, settings, most):
    metrics = make_trainer(replace(SHORT, temperature=1.25, **settings)).iterate()
    assert metrics["grad_norm"] > 0
    assert metrics["mismatch_max"] < most
