"""vLLM in this process, on a CPU: as a player, and as the engine that a run samples from."""

from dataclasses import replace

import pytest

from agents.models.local.transformers import TransformersModel
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.errors import RolloutError
from tests.engines import beside
from tests.engines.conftest import IN_PROCESS, WEIGHTS

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]  # of vLLM and what it imports

CONFIG = MSGRPOConfig(
    groups=2, group_size=6, iterations=3, max_response_tokens=128, temperature=1.25, learning_rate=3e-4, minibatches=1,
    eval_every=0, samples_every=0, engine="vllm", engine_options={"llm": IN_PROCESS},
)  # fmt: skip


@pytest.mark.parametrize(("name", "scenario"), [("tiny-lake", "frozen-lake"), ("tiny-snake", "snake")])
def test_the_player_answers_as_transformers_does(vllm, name, scenario):
    from agents.models.vllm import VLLMModel

    theirs = VLLMModel(str(WEIGHTS / name), engine=IN_PROCESS)
    ours = TransformersModel.from_pretrained(WEIGHTS / name, device="cpu")
    greedy = [beside.play(model, scenario, 4, 0.0) for model in (theirs, ours)]
    assert beside.responses(greedy[0]) == beside.responses(greedy[1])
    sampled = beside.play(theirs, scenario, 4, 0.7)
    assert beside.worst_difference(sampled, ours.model, 0.7) < beside.LOGPROBS
    assert beside.responses(beside.play(theirs, scenario, 4, 0.7)) == beside.responses(sampled)  # seeds hold


def test_training_samples_with_the_learners_weights(vllm, monkeypatch):
    """Tied embeddings and all; and where the output layer isn't packed again, the canary stops the run."""
    trainer = make_trainer(CONFIG)
    history = trainer.train()
    live = make_trainer(replace(CONFIG, engine="live", engine_options={}, iterations=1)).train()
    assert abs(history[0]["return"] - live[0]["return"]) < 0.5  # the same tasks; other random numbers
    for metrics in history:
        assert metrics["lag"] == 0
        if not metrics["skipped"]:
            assert metrics["mismatch_max"] < 1e-4
            assert metrics["importance_mean"] == pytest.approx(1, abs=1e-4)
    assert trainer.source.version >= 1, "no update was made, so nothing was shown"
    assert trainer.source._check.difference < beside.LOGPROBS  # type: ignore[union-attr]

    from agents.msgrpo.engines.vllm import in_process

    monkeypatch.setattr(in_process, "renew_output_layer", lambda model: None)
    beside.disturb(trainer.model)
    trainer.source.renew(trainer.source.version + 1)
    with pytest.raises(RolloutError, match=r"doesn't have the learner's weights.*tied to its embedding"):
        trainer.source.settle()


def make_trainer(config: MSGRPOConfig) -> MSGRPOTrainer:
    made = TransformersModel.from_pretrained(WEIGHTS / "tiny-lake", device="cpu")
    return MSGRPOTrainer(made.model, made.tokenizer, "frozen-lake", config, quiet=True)
