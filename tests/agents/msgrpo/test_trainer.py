"""The whole trainer on games that take milliseconds: learning, groups, files, resuming, stopping."""

import json
import signal
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
import torch

import textgames
from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from agents.models.local.transformers import TransformersModel
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.draws import Drawn
from agents.msgrpo.errors import TrainingDivergedError, UnusableModelError
from agents.msgrpo.run.evaluating import EvaluationResult
from agents.msgrpo.trajectories import games_of, training_rows, training_tasks
from tests.agents.msgrpo import runs
from tests.agents.msgrpo.remembering import MOVING
from tests.agents.msgrpo.runs import same_weights, untimed
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


@pytest.mark.slow
def test_episodes_of_a_group_share_the_initial_state_and_differ_after_it(make_trainer):
    """Mistakes seen in the wild: maps drawn at construction; labels in another order than the rows."""
    config = replace(SHORT, groups=3, group_size=5, rollout_batch=4)
    trainer = make_trainer(config, "frozen-lake-slippery")
    tasks = training_tasks(trainer.config, trainer.games, 0)
    rollouts = trainer.rollout().trajectories
    assert [t.task for t in rollouts] == tasks
    starts: dict[Any, set[Any]] = {}
    for trajectory in rollouts:
        starts.setdefault(trajectory.group, set()).add(trajectory.states[0])
    assert len(starts) == 3
    assert all(len(same) == 1 for same in starts.values())
    assert len(set.union(*starts.values())) == 3
    responses = {t.response_ids[0] for t in rollouts if t.group == rollouts[0].group}
    assert len(responses) > 1  # sampling noise differs


@pytest.mark.parametrize(
    ("settings", "evaluated"),
    [
        ({"game": {"size": 3}}, 4),
        ({"game": {"frozen-lake": {"size": 3}, "snake": {"width": 5}}}, 4),
        ({"game": {"size": 3}, "eval_game": {"size": 2}}, 2),
        ({"game": {"size": 3}, "scenarios": ("frozen-lake",), "eval_scenarios": ("frozen-lake",)}, 4),
    ],
)
def test_games_are_trained_with_settings_of_the_run_and_evaluated_by_their_own(make_trainer, settings, evaluated):
    config = replace(SHORT, eval_every=1, eval_episodes=2, format_penalty=0.0, **settings)
    trainer = make_trainer(config, "" if "scenarios" in settings else "frozen-lake")
    played = trainer.rollout().trajectories
    assert {(each.task.scenario, each.task.kwargs["size"]) for each in played} == {("frozen-lake", 3)}
    assert {each.states[0].lake.nrow for each in played} == {3}
    seen, play = [], trainer.evaluator.play
    trainer.evaluator.play = lambda policy, tasks: seen.extend(tasks) or play(policy, tasks)
    assert [result.scenario for result in trainer.evaluate()] == ["frozen-lake"]
    assert [task.kwargs["size"] for task in seen] == [evaluated] * 2


def test_a_larger_board_has_the_steps_that_gymnasium_gives_it():
    games = games_of("", replace(SHORT, game={"size": 6}, scenarios=("frozen-lake", "frozen-lake(size=8)")))
    by_gym = gymnasium.make("TextFrozenLake-v0", size=6).unwrapped.rules.max_steps
    assert [EpisodeTask.of(game, 0).kwargs["max_steps"] for game in games] == [by_gym, by_gym]


def test_groups_may_share_the_chance_of_transitions():
    """On slippery ice and beside random snakes, equal answers then lead to equal episodes, and only then."""
    for game in ("frozen-lake-slippery", "snake"):
        ends = {}
        for shared in (False, True):
            config = replace(SHORT, groups=4, group_size=8, shared_chance=shared, max_steps=8)
            tasks = training_tasks(config, [game], 0)
            assert len({task.seed for task in tasks}) == 32  # of what the model samples
            by_seed = {each.seed: each.end_state for each in rollout(Always(), tasks)}
            ends[shared] = [{by_seed[task.seed] for task in tasks[k : k + 8]} for k in range(0, 32, 8)]
        assert [len(group) for group in ends[True]] == [1] * 4
        assert max(len(group) for group in ends[False]) > 1


def test_seeds_are_training_seeds_and_differ_by_iteration_and_run(make_trainer):
    config = replace(SHORT, groups=10, group_size=50)
    games = ["frozen-lake", "snake"]
    first, again = training_tasks(config, games, 0), training_tasks(config, games, 0)
    assert first == again
    for task in first:
        assert 0 <= task.seed < 10_000
        assert task.layout_seed is not None
        assert 0 <= task.layout_seed < 10_000
    assert len({task.seed for task in first}) == 500
    assert {task.scenario for task in first} == set(games)
    for group in range(10):
        assert len({(t.layout_seed, t.scenario) for t in first[group * 50 : group * 50 + 50]}) == 1
    others = [training_tasks(config, games, 1), training_tasks(replace(config, seed=1), games, 0)]
    for other in others:
        assert other[0].noise != first[0].noise
    one = replace(SHORT, groups=1)
    assert [training_tasks(one, games, i)[0].scenario for i in range(4)] == games * 2
    with pytest.raises(ConfigError, match="at most 10000"):
        make_trainer(replace(SHORT, groups=200, group_size=100))


def test_a_batch_has_every_step_of_every_episode_once_as_it_was_sampled(make_trainer):
    """Mistakes seen in the wild: a bump into a wall dropped; an episode that is over repeated with its last reward."""
    trainer = make_trainer(replace(SHORT, groups=4, rollout_batch=3, max_response_tokens=3, format_penalty=0.25))
    played = trainer.rollout().trajectories
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
    assert [h["skipped"] for h in history] == [True] * 4
    assert history[-1]["skipped_so_far"] == 4
    assert history[0]["zero_advantage_groups"] == 1.0
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))


def test_the_draw_comes_before_any_learner_forward(make_trainer, monkeypatch):
    trainer, order = make_trainer(SHORT), []
    forward = trainer.learner.scorer.forward
    monkeypatch.setattr(trainer.learner.scorer, "forward", lambda *a: (order.append("learner"), forward(*a))[1])
    rule = trainer.methods.draw
    draw = rule.draw
    monkeypatch.setattr(rule, "draw", lambda *a: (order.append("draw"), draw(*a))[1])
    trainer.iterate()
    assert order[0] == "draw"
    assert "learner" in order


def test_sampler_and_learner_agree(make_trainer):
    """In float32 on one machine the two paths differ by rounding alone."""
    metrics = make_trainer(replace(SHORT, temperature=1.25)).iterate()
    assert metrics["mismatch_max"] < 1e-4
    assert abs(metrics["ratio"] - 1) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lora", "credit", "mixup"),
    [
        (0, "msgrpo", 0.3),  # with a reference that moves
        (4, "msgrpo", 0.0),
        (4, "msgrpo", 0.3),
        (0, MOVING, 0.0),  # remembers a mean from one iteration to the next
    ],
)
def test_resume_equals_the_uninterrupted_run_bit_for_bit(make_trainer, tmp_path, lora, credit, mixup):
    config = replace(
        SHORT, iterations=6, checkpoint_every=3, eval_every=2, eval_episodes=4, keep_checkpoints=9, schedule="cosine",
        kl_coefficient=0.05, minibatches=2, lora_rank=lora, learning_rate=1e-2, credit=credit, stop_after=0,
        reference_mixup=mixup,
    )  # fmt: skip
    whole = make_trainer(replace(config, out=str(tmp_path / "whole")))
    whole.train()
    part = make_trainer(replace(config, out=str(tmp_path / "part")))
    stop_after(part, 3)
    with pytest.raises(KeyboardInterrupt):
        part.train()
    resumed = make_trainer(replace(config, out=str(tmp_path / "part")), resume=tmp_path / "part")
    assert resumed.iteration == 3
    resumed.train()
    assert untimed(whole.history) == untimed(resumed.history)
    assert whole.evaluations == resumed.evaluations
    assert same_weights(whole, resumed)
    a, b = (t.learner.optimizer.state_dict()["state"] for t in (whole, resumed))
    assert all(torch.equal(a[i][k], b[i][k]) for i in a for k in a[i])
    records = [
        [json.loads(line) for line in (tmp_path / run / "metrics.jsonl").read_text().splitlines()]
        for run in ("whole", "part")
    ]
    assert len(records[0]) == len(records[1]) == 6 + 4
    assert untimed(records[0]) == untimed(records[1])


def test_a_resumed_run_continues_with_adam_s_moments(make_trainer, tmp_path):
    """The metrics of a run that was stopped are bit-equal to those of one that wasn't, and only with its moments."""
    config = replace(BANDIT, iterations=4, groups=3, group_size=8, episodes_drawn=0, threads=1, stop_after=0)
    whole = make_trainer(config, "TestButtons-v0")
    whole.train()
    assert not any(metrics["skipped"] for metrics in whole.history)
    part = make_trainer(replace(config, out=str(tmp_path / "part")), "TestButtons-v0")
    stop_after(part, 2)
    with pytest.raises(KeyboardInterrupt):
        part.train()
    for forgets in (False, True):
        resumed = make_trainer(config, "TestButtons-v0", resume=tmp_path / "part")
        if forgets:
            resumed.learner.optimizer.state.clear()
        resumed.train()
        assert untimed(whole.history[:2]) == untimed(resumed.history[:2])
        assert (untimed(whole.history) == untimed(resumed.history)) == (not forgets)


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


def test_training_in_another_thread_leaves_signals_alone(make_trainer):
    trainer, done = make_trainer(replace(SHORT, iterations=1)), []
    thread = threading.Thread(target=lambda: done.append(trainer.train()))
    thread.start()
    thread.join()
    assert len(done[0]) == 1


@pytest.mark.slow
def test_checkpoints_play_at_once(make_trainer, tmp_path):
    out = tmp_path / "run"
    config = replace(SHORT, iterations=2, out=str(out), checkpoint_every=1, eval_every=1, eval_episodes=2)
    trainer = make_trainer(config)
    trainer.train()
    for name in ("last", "best"):
        model = TransformersModel.from_pretrained(out / name, device="cpu")
        assert model.generate_ids([(1, 2)], trainer.policy.decoding, [(0,)])
        assert MSGRPOConfig.from_toml(out / name / "msgrpo.toml") == trainer.config
    for a, b in zip(
        TransformersModel.from_pretrained(out / "last").model.parameters(), trainer.model.parameters(), strict=True
    ):
        assert torch.equal(a, b)
    assert not list((out / "checkpoints").glob(".*.draft"))


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


@pytest.mark.slow
def test_a_run_that_goes_on_from_an_earlier_checkpoint_forgets_the_best_of_the_other_course(make_trainer, tmp_path):
    config = replace(SHORT, out=str(tmp_path), checkpoint_every=1, keep_checkpoints=9, eval_every=1, eval_episodes=1)
    scored(make_trainer(config), 0.1, 0.3, 0.2, 0.2, 0.9).train()
    assert best_in(tmp_path) == 4
    again = scored(make_trainer(config), 0.1, 0.1)
    again.resume(tmp_path / "checkpoints" / "iteration-000002")
    assert best_in(tmp_path) == 1
    again.train()
    assert best_in(tmp_path) == 1


@pytest.mark.slow
def test_a_run_that_goes_on_in_another_folder_looks_for_the_best_that_lies_there(make_trainer, tmp_path):
    config = replace(SHORT, checkpoint_every=1, keep_checkpoints=9, eval_every=1, eval_episodes=1, iterations=2)
    scored(make_trainer(replace(config, out=str(tmp_path / "a"))), 0.1, 0.9, 0.2).train()
    other = scored(make_trainer(replace(config, iterations=5, out=str(tmp_path / "b"))), 0.5, 0.8, 0.4)
    other.resume(tmp_path / "a")
    other.train()
    assert best_in(tmp_path / "b") == 4


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"eval_temperature": 0.1}, {"scenarios": ("snake",)}, {"max_response_tokens": 3}])
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


@pytest.mark.slow
def test_evaluation_uses_its_own_seeds_temperature_and_no_penalty(make_trainer):
    seen: list[Any] = []

    config = replace(SHORT, iterations=1, eval_every=1, eval_episodes=3, eval_scenarios=("snake",))
    trainer = make_trainer(config)
    play = trainer.evaluator.play

    def played(policy: Any, tasks: Any) -> Any:
        seen.extend([policy.decoding.temperature, [t.seed for t in tasks], tasks[0].kwargs["format_penalty"]])
        return play(policy, tasks)

    trainer.evaluator.play = played
    trainer.train()
    assert seen[:3] == [0.5, [40_000, 40_001, 40_002], 0.0]
    assert len(seen) == 6
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
    text = str(error.value)
    assert "iteration 1" in text
    assert "abort_grad_norm" in text
    assert "learning_rate" in text
    rows = [json.loads(line) for line in (tmp_path / "run/diverged-iteration-1.jsonl").read_text().splitlines()]
    assert rows
    assert rows[0]["tokens"]["response"]
    assert "advantage" in rows[0]


def test_unusable_models_and_games_are_refused_with_a_reason(make_trainer, make_llama, tokenizer, prompt_file):
    from transformers import LlamaModel, T5Config, T5ForConditionalGeneration

    small = make_llama(len(tokenizer))
    t5 = T5ForConditionalGeneration(T5Config(vocab_size=200, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2))
    broken = make_llama(len(tokenizer))
    broken.lm_head.weight.data[0, 0] = float("nan")
    config = replace(SHORT, prompt_file=prompt_file)
    for model, tok, words in [
        (object(), tokenizer, "not a transformers model"),
        (t5, tokenizer, "encoder-decoder"),
        (small, None, "without a tokenizer"),
        (make_llama(5), tokenizer, "5 rows"),
        (make_llama(len(tokenizer)).requires_grad_(False), tokenizer, "lora_rank"),
        (broken, tokenizer, "not finite"),
        (LlamaModel(small.config), tokenizer, "AutoModelForCausalLM"),
    ]:
        with pytest.raises((UnusableModelError, ValueError), match=words):
            MSGRPOTrainer(model, tok, "TestCorridor-v0", config, quiet=True)
    with pytest.raises(
        ConfigError, match=r"takes a scenario's name, an id or a Scenario, .* got MSGRPOConfig and MSGRPO"
    ):
        MSGRPOTrainer(small, tokenizer, SHORT, quiet=True)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="prompt_file"):
        MSGRPOTrainer(small, tokenizer, "TestCorridor-v0", replace(SHORT, prompt_file="none.toml"), quiet=True)
    textgames.register("TestEndless-v0", textgames.settings_of("TestCorridor-v0")["game"])
    textgames.register("TestMap-v0", FrozenLake, desc=["SFFFFG"], max_steps="auto")
    long = {"eval_scenarios": ("snake",), "max_prompt_tokens": 4000, "max_response_tokens": 4000}
    for game, settings, words in [
        ("TestCorridor-v0", {"max_response_tokens": 4096}, "max_response_tokens"),
        ("frozen-lakes", {}, "frozen-lake"),
        ("", {}, "scenarios is empty"),
        ("TestEndless-v0", {}, r"TestEndless-v0 has no step limit, .* textgames\.register\(..., max_steps=20\)"),
        ("TestCorridor-v0", {"eval_scenarios": ("TestEndless-v0",)}, "TestEndless-v0 has no step limit"),
        ("TestMap-v0", {"max_steps": 3}, r"TestMap-v0: max_steps=3 ends every episode .* takes 5 rounds"),
        ("frozen-lake", {"invalid_action": "noop"}, "frozen-lake: invalid_action='noop' needs a game with an action"),
        ("TestCorridor-v0", {"max_prompt_tokens": 3}, "max_prompt_tokens is 3"),
        ("TestCorridor-v0", long, r"snake: its prompt has .* too little room"),
        ("frozen-lake", {"game": {"sizes": 3}}, r"frozen-lake: FrozenLake has no setting 'sizes'.*did you mean 'size'"),
        ("frozen-lake", {"game": {"size": 1}}, "frozen-lake: size must be a whole number from 2 to 100, got 1"),
        ("frozen-lake", {"eval_game": {"size": 1}}, "frozen-lake: size must be a whole number from 2 to 100, got 1"),
        ("frozen-lake", {"game": {"snak": {"width": 3}}}, "game: unknown scenario 'snak'; did you mean 'snake'?"),
        ("frozen-lake", {"game": {"format_penalty": 0.5}}, r"format_penalty is no setting of \[game\]: it stands in"),
    ]:
        with pytest.raises((UnusableModelError, ConfigError), match=words):
            make_trainer(replace(SHORT, **settings), game)
    assert make_trainer(replace(SHORT, max_steps=5), "TestEndless-v0").games == ["TestEndless-v0"]
    assert make_trainer(SHORT, "TestMap-v0").games == ["TestMap-v0"]


@pytest.mark.slow
def test_lora_trains_the_adapter_alone_and_its_reference_is_the_adapter_off(make_trainer):
    trainer = make_trainer(replace(SHORT, lora_rank=2, kl_coefficient=0.1, learning_rate=0.05))
    before = {n: p.detach().clone() for n, p in trainer.model.named_parameters()}
    history = trainer.train()
    changed = {n for n, p in trainer.model.named_parameters() if not torch.equal(before[n], p)}
    assert changed
    assert all("lora_" in name for name in changed)
    assert history[0]["kl"] == pytest.approx(0, abs=1e-9)
    assert history[-1]["kl"] > 1e-6


@pytest.mark.parametrize("settings", [{"dtype": "bfloat16"}, {"gradient_checkpointing": True}, {"packing": "rows"}])
def test_other_ways_to_compute_an_iteration(make_trainer, settings):
    metrics = make_trainer(replace(SHORT, **settings)).iterate()
    assert metrics["grad_norm"] > 0
    assert metrics["mismatch_max"] < 0.2
