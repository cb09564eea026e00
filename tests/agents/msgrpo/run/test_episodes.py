"""Rollouts that go on while the learner learns: which weights play what, and what a stop and a resume do."""

import signal
from dataclasses import replace
from typing import Any

import pytest

from agents.episode import Episode, Step
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer, RolloutError
from agents.msgrpo.rollouts import updates_behind
from agents.turn import Turn, WeightsSpan
from tests.agents.msgrpo.engines.test_live import Elsewhere
from tests.agents.msgrpo.runs import ALONE, SHORT, same_weights, untimed

CONFIG = replace(SHORT, groups=4, group_size=8, iterations=5, learning_rate=5e-3, staleness=1, **ALONE)


@pytest.fixture
def make_trainer(make_trainer, tokenizer, make_llama):
    def make(config: MSGRPOConfig, *, elsewhere: dict[str, Any] | None = None, **options: Any) -> MSGRPOTrainer:
        if elsewhere is not None:
            options["engine"] = Elsewhere(make_llama(len(tokenizer)), tokenizer, **elsewhere)
        trainer: MSGRPOTrainer = make_trainer(config, model={"initializer_range": 0.15}, **options)
        return trainer

    return make


@pytest.mark.parametrize("staleness", [1, 2])
def test_a_batch_is_played_by_the_weights_of_its_number(make_trainer, staleness):
    """Whoever is faster: equal seeds give equal runs, and the batch of iteration i is played by weights i - k."""
    one, two = (make_trainer(replace(CONFIG, staleness=staleness)) for _ in range(2))
    assert untimed(one.train()) == untimed(two.train())
    assert same_weights(one, two)
    assert not any(metrics["skipped"] for metrics in one.history)
    assert [metrics["lag"] for metrics in one.history] == [min(i, staleness) for i in range(5)]
    assert [metrics["weights_version"] for metrics in one.history] == [1, 2, 3, 4, 5]


def test_stale_tokens_and_those_of_another_engine_are_weighted_and_the_mismatch_is_logged(make_trainer):
    history = make_trainer(CONFIG).train()
    assert history[0]["importance_mean"] == pytest.approx(1.0, abs=1e-4)
    assert max(metrics["importance_max"] for metrics in history[1:]) > 1.01
    assert max(metrics["mismatch_mean"] for metrics in history[1:]) > 1e-3
    capped = make_trainer(replace(CONFIG, importance_cap=0.9)).train()
    assert all(metrics["importance_mean"] < 0.9 + 1e-9 for metrics in capped)
    off = make_trainer(replace(CONFIG, importance_cap=0.0)).train()
    assert "importance_mean" not in off[-1]
    assert max(abs(metrics["ratio"] - 1) for metrics in off[1:]) > 1e-3  # the ratio is then with the sampler's
    strict = replace(CONFIG, staleness=0)
    elsewhere, live = make_trainer(strict, elsewhere={}).train(), make_trainer(strict).train()
    assert [one["importance_mean"] for one in elsewhere] == pytest.approx([1.0] * 5, abs=1e-4)
    assert "importance_mean" not in live[0]
    assert [one["return"] for one in elsewhere] == [one["return"] for one in live]


def test_evaluations_are_played_by_the_newest_weights_and_the_last_updates_are_sent_for_them_alone(make_trainer):
    trainer = make_trainer(replace(CONFIG, eval_every=2, eval_episodes=3), elsewhere={})
    versions, play = list[int](), trainer.evaluator.play

    def noted(policies: Any, tasks: Any) -> Any:
        episodes = play(policies, tasks)
        versions.extend({span.version for e in episodes for step in e.steps for span in step.turn.weights})
        return episodes

    trainer.evaluator.play = noted
    trainer.train()
    assert versions == [0, 2, 4, 5]
    assert trainer.engine.updates == [0, 1, 2, 3, 4, 5]


def test_a_stopped_run_plays_again_what_was_in_flight(make_trainer, tmp_path):
    """Resuming is well defined: equal to every resume of that checkpoint, and begins like a new run."""
    config = replace(CONFIG, out=str(tmp_path / "run"), iterations=5)
    trainer = make_trainer(config)
    update = trainer.learner.update

    def interrupted(*arguments: Any) -> Any:
        if trainer.iteration == 2:
            signal.raise_signal(signal.SIGINT)
        return update(*arguments)

    trainer.learner.update = interrupted
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert not trainer.source._ahead
    one, two = (make_trainer(replace(config, out=str(tmp_path / n)), resume=tmp_path / "run") for n in ("one", "two"))
    assert one.source.version == one.iteration == 3
    assert untimed(one.train()) == untimed(two.train())
    assert same_weights(one, two)
    assert [metrics["lag"] for metrics in one.history] == [0, 1, 1, 0, 1]


def test_an_engine_that_keeps_old_weights_is_found_out_and_nothing_is_lost(make_trainer, tmp_path):
    config = replace(CONFIG, staleness=0, out=str(tmp_path / "run"))
    trainer = make_trainer(config, elsewhere={"deaf_after": 1})
    with pytest.raises(RolloutError, match=r"doesn't have the learner's weights: .* nats per token.*tied"):
        trainer.train()
    assert trainer.iteration == 2
    resumed = make_trainer(
        config, elsewhere={}, resume=tmp_path / "run"
    )  # what was done is kept, and goes on with an engine that works
    assert [metrics["iteration"] for metrics in resumed.train()] == [1, 2, 3, 4, 5]


def test_weights_that_are_too_old_or_not_told_are_errors():
    def episodes(*spans: WeightsSpan) -> list[Episode]:
        turn = Turn("left", response_ids=(4, 5, 6), weights=spans)
        step = Step(0, "player_0", "", turn, "left", True, None, 0.0, None, None)
        told = {"player_0": "x"}, (step,), {"player_0": 0.0}, {"player_0": False}
        return [Episode("corridor", 7, None, *told, True, False)]

    mixed = episodes(WeightsSpan(4, 0, 1), WeightsSpan(5, 1, 3))
    assert updates_behind(mixed, 5, 1, "x") == pytest.approx(1 / 3)
    with pytest.raises(RolloutError, match=r"weights 4 .*staleness = 0 allows 5 alone"):
        updates_behind(mixed, 5, 0, "x")
    with pytest.raises(RolloutError, match="weights 6"):
        updates_behind(episodes(WeightsSpan(6, 0, 3)), 5, 9, "x")
    for gap in [(), (WeightsSpan(5, 0, 2),), (WeightsSpan(5, 0, 1), WeightsSpan(5, 2, 3))]:
        with pytest.raises(RolloutError, match="doesn't say which weights made its tokens"):
            updates_behind(episodes(*gap), 5, 0, "x")


def test_settings_that_do_not_go_together(make_trainer):
    for settings, words in [
        ({"engine_urls": ("http://h:1",)}, "engine_urls = .* with engine = 'live'"),
        ({"task_sampling": "dynamic"}, "staleness = 1 with task_sampling = 'dynamic'"),
    ]:
        with pytest.raises(ConfigError, match=words):
            replace(CONFIG, **settings)
    for config, options, words in [
        (replace(CONFIG, credit="vine"), {}, "credit = 'vine'"),
        (replace(CONFIG, engine="vllm"), {"elsewhere": {}}, "an engine object"),
        (CONFIG, {"engine": object()}, "update_weights"),
    ]:
        with pytest.raises(ConfigError, match=words):
            make_trainer(config, **options)
