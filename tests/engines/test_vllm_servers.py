"""Real vLLM servers on a CPU: behind ``openai:``, and as what a run samples from; killed, and with wrong weights."""

from dataclasses import replace
from typing import Any

import pytest

from agents import load_agent
from agents.models.local.transformers import TransformersModel
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.errors import RolloutError
from tests.engines import beside
from tests.engines.conftest import WEIGHTS

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

CONFIG = MSGRPOConfig(
    groups=2, group_size=6, iterations=2, max_response_tokens=128, temperature=1.25, learning_rate=3e-4, minibatches=1,
    eval_every=0, samples_every=0, engine="vllm",
)  # fmt: skip
LORA = ("--enable-lora", "--max-lora-rank", "8")


@pytest.fixture(scope="module")
def whole(start_server):
    """Serves tiny-lake, and packs a tied output layer again after a reload."""
    extension = ("--worker-extension-cls", "agents.models.vllm_worker.OutputLayer")
    return start_server(WEIGHTS / "tiny-lake", *extension).ready()


@pytest.fixture(scope="module")
def plain(start_server):
    """Serves tiny-lake as vLLM does it by itself, and adapters on it."""
    return start_server(WEIGHTS / "tiny-lake", *LORA).ready()


@pytest.fixture
def doomed(start_server):
    """Another one like it."""
    return start_server(WEIGHTS / "tiny-lake", *LORA).ready()


def make_trainer(*urls: str, **settings: Any) -> MSGRPOTrainer:
    made = TransformersModel.from_pretrained(WEIGHTS / "tiny-lake", device="cpu")
    config = replace(CONFIG, engine_urls=urls, **settings)
    return MSGRPOTrainer(made.model, made.tokenizer, "frozen-lake", config, quiet=True)


def check_run(trainer: MSGRPOTrainer) -> None:
    """It learnt something, and the servers' log-probabilities are the learner's."""
    strict = trainer.config.staleness == 0
    for metrics in trainer.train():
        if not metrics["skipped"]:
            assert not strict or metrics["mismatch_max"] < 1e-4
            assert metrics["importance_mean"] == pytest.approx(1, abs=1e-4 if strict else 0.1)
    assert trainer.source.version >= 1, "no update was made, so nothing was shown"


def test_the_player_behind_openai_answers_as_transformers_does(whole):
    served = load_agent("openai:m", base_url=f"{whole.url}/v1", temperature=0, max_tokens=128)
    ours = TransformersModel.from_pretrained(WEIGHTS / "tiny-lake", device="cpu")
    theirs = beside.play(served.model, "frozen-lake", 4, 0.0)  # type: ignore[attr-defined]
    assert beside.responses(theirs) == beside.responses(beside.play(ours, "frozen-lake", 4, 0.0))


def test_log_probabilities_of_both_routes_are_those_of_transformers(whole):
    trainer = make_trainer(whole.url)
    ours = TransformersModel.from_pretrained(WEIGHTS / "tiny-lake", device="cpu")
    played = []
    for reports in (True, False):
        trainer.engine.servers[0].reports_versions = reports  # type: ignore[union-attr]
        played.append(beside.play(trainer.engine, "frozen-lake", 3, 0.7))
        assert beside.worst_difference(played[-1], ours.model, 0.7) < beside.LOGPROBS
    assert beside.responses(played[0]) == beside.responses(played[1])


def test_training_by_files_with_a_tied_output_layer(whole):
    check_run(make_trainer(whole.url))
    check_run(make_trainer(whole.url, staleness=1, iterations=3))


def test_training_an_adapter_while_a_server_is_killed(plain, doomed):
    """Two servers share the requests; one is killed in the middle, and the run goes on with the other."""
    urls = plain.url, doomed.url
    trainer = make_trainer(*urls, lora_rank=4, learning_rate=3e-3, iterations=4)
    trainer.iterate()
    assert len(trainer.engine.up) == 2  # type: ignore[union-attr]
    doomed.kill()
    with pytest.warns(RuntimeWarning, match="1 of 2 servers continue"):
        check_run(trainer)
    assert len(trainer.engine.up) == 1  # type: ignore[union-attr]


def test_a_tied_output_layer_that_is_not_renewed_stops_the_run(plain):
    trainer = make_trainer(plain.url)  # the first weights are those it has
    beside.disturb(trainer.model)
    trainer.source.renew(1)
    with pytest.raises(RolloutError, match=r"doesn't have the learner's weights.*tied to its embedding"):
        trainer.source.settle()
    # its base model is now neither the old nor the new one, so an adapter on it is found out as well
    with pytest.raises(RolloutError, match="doesn't have the learner's weights"):
        make_trainer(plain.url, lora_rank=4)
