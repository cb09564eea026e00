"""CAMEL: whose decisions are masked, with which probabilities they are trained, and that a good mask teaches."""

from typing import Any

import numpy as np
import pytest

from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer, load
from agents.msgrpo.tasks import SAMPLERS
from research.tests.rooms import RIGHT, SPARSE
from tests.agents.msgrpo.played import iteration_of

GOOD = f"def allowed(observation, legal):\n    return [{RIGHT!r}[observation[5:].split(',')[0]]]\n"
ALL = "def allowed(observation, legal):\n    return legal\n"


@pytest.fixture
def make(reader, tmp_path):
    """Return a trainer of the reader, without a document, whose decisions a program masks."""

    def made(source: str, iterations: int = 12, **own: Any) -> MSGRPOTrainer:
        (tmp_path / "mask.py").write_text(source)
        config = MSGRPOConfig(
            model=reader.removeprefix("hf:"), scenarios=(SPARSE,), response_mode="direct", max_response_tokens=8,
            lora_rank=0, groups=3, group_size=8, temperature=1.0, iterations=iterations, minibatches=1, eval_every=0,
            samples_every=0, stop_after=0, episode_sampling="off", learning_rate=3e-3, task_sampling="camel",
            method_settings={"tasks": {"camel": {"program": str(tmp_path / "mask.py"), **own}}},
        )  # fmt: skip
        return MSGRPOTrainer(*load(config), config=config, quiet=True)

    return made


def test_epsilon_falls_evenly_to_nothing():
    """From 0.8 within half of 8 iterations: by 0.2 in each."""
    sampler = SAMPLERS.make("camel", {"epsilon": 0.8, "fade": 0.5})
    made = [sampler.epsilon_of(iteration_of("frozen-lake", number=k, iterations=8)) for k in range(8)]
    assert made == pytest.approx([0.8, 0.6, 0.4, 0.2, 0, 0, 0, 0])


@pytest.mark.slow
def test_masked_tokens_have_the_probabilities_that_they_were_sampled_with(make):
    """Right doors alone are forced: probability 1 among the allowed ones, and about 1/2 among all."""
    forced = make(GOOD, among="allowed").rollout().trajectories
    assert all(each.success and each.allowed is not None for each in forced)
    assert all(np.exp(step) == pytest.approx(1) for each in forced for step in each.old_logprobs)
    trainer = make(GOOD, among="all")
    played = trainer.rollout().trajectories
    assert all(each.success and each.allowed is None for each in played)
    assert all(np.exp(step) == pytest.approx(1) for each in played for step in each.old_logprobs)
    told = [logprobs for logprobs, _ in trainer.learner.logprobs_and_entropies(played[0].rows)]
    assert all(0.2 < float(step.exp().prod()) < 0.8 for step in told)
    half = make(GOOD, epsilon=0.5)
    half.rollout()
    assert 0.35 < half.methods.sampler.metrics["masked"] < 0.65


@pytest.mark.slow
def test_a_good_mask_teaches_and_one_that_allows_everything_does_not(make):
    """Eight rooms: by chance one episode in 256 wins, so without a mask there is nothing to learn from."""
    after = {}
    for name, source in {"good": GOOD, "all": ALL}.items():
        trainer = make(source, epsilon=0.9, fade=0.75)
        history = trainer.train()
        assert [metrics["masked"] for metrics in history[9:]] == [0, 0, 0]
        (result,) = trainer.evaluate()
        after[name] = result.success
    assert after["good"] > 0.5
    assert after["all"] < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "said"),
    [("allowed = 3", "fails|no function"), ("def allowed(o, l):\n    return 3", "returned 3; accepted is a list")],
)
def test_a_program_that_allows_nothing_readable_is_refused(make, source, said):
    with pytest.raises(ConfigError, match=said):
        make(source).rollout()


def test_a_program_is_wanted():
    (task, *_) = iteration_of("frozen-lake", groups=1, group_size=2).tasks()
    with pytest.raises(ConfigError, match="has no program; accepted is a file with allowed"):
        SAMPLERS.make("camel").check(task)


@pytest.mark.parametrize(
    ("setting", "said"),
    [({"legal_only": True}, "accepted is among = 'allowed'"), ({"engine": "ray"}, "whose program runs here")],
)
def test_other_masks_and_other_places_are_refused(setting, said):
    with pytest.raises(ConfigError, match=said):
        SAMPLERS.make("camel").sample(iteration_of("frozen-lake", **setting), np.random.default_rng(0))
