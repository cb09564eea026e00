"""Training through servers: requests shared, weights sent, faults found out; with real vLLM in ``tests/engines``."""

import asyncio
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agents import Decoding
from agents.msgrpo import ConfigError, MSGRPOTrainer
from agents.msgrpo.errors import RolloutError
from agents.turn import Message
from tests.agents.models.local.test_transformers import make_tokenizer
from tests.agents.msgrpo.engines.routes import Routes, serving
from tests.agents.msgrpo.runs import SHORT

CONFIG = replace(SHORT, iterations=3, temperature=1.25, learning_rate=5e-3, engine="vllm")


@pytest.fixture
def serve(tokenizer, make_llama):
    with ExitStack() as stack:
        yield lambda **faults: stack.enter_context(serving(make_llama(len(tokenizer)), tokenizer, **faults))


@pytest.fixture
def make_trainer(tokenizer, make_llama, prompt_file):
    def make(*servers: Routes, **settings: Any) -> MSGRPOTrainer:
        model = make_llama(len(tokenizer), initializer_range=0.15)
        config = replace(CONFIG, prompt_file=prompt_file, engine_urls=tuple(s.url for s in servers), **settings)
        return MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", config, quiet=True)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("scale_out", [True, False])
def test_training_through_servers_equals_training_the_live_model(make_trainer, serve, scale_out):
    servers = serve(scale_out=scale_out), serve(scale_out=scale_out)
    trainer = make_trainer(*servers)
    history = trainer.train()
    assert all(metrics["mismatch_max"] < 1e-4 for metrics in history if not metrics["skipped"])
    assert any(not metrics["skipped"] for metrics in history)
    assert min(server.sampled for server in servers) > 10  # both played
    assert [server.version for server in servers] == [str(trainer.source.version)] * 2
    update = ["pause", "collective_rpc", "collective_rpc", "reset_prefix_cache", "update_weight_version", "resume"]
    assert servers[0].log[1:7] == [f"/{route}" for route in update]
    trainer.engine.close()


@pytest.mark.slow
def test_a_server_that_goes_is_left_out_and_taken_up_again(make_trainer, serve):
    staying, leaving = serve(), serve()
    trainer = make_trainer(staying, leaving)
    leaving.kill()
    with pytest.warns(RuntimeWarning, match="1 of 2 servers continue"):
        trainer.rollout()
    leaving.start()  # with weights of its own, and a label that says so
    assert trainer.engine.up == [trainer.engine.servers[0]]
    trainer.source.renew(1)
    assert len(trainer.engine.up) == 2
    assert leaving.version == "1"
    staying.kill()
    leaving.kill()
    with (
        pytest.warns(RuntimeWarning, match="servers continue"),
        pytest.raises(RolloutError, match="no other server is left"),
    ):
        trainer.rollout()
    trainer.source.renew(2)  # tried again before the next episode, and then it is an error
    with pytest.raises(RolloutError, match="Start them again, then resume"):
        trainer.source.settle()


@pytest.mark.slow
def test_a_server_that_was_restarted_in_between_is_left_out(make_trainer, serve):
    server, other = serve(), serve()
    trainer = make_trainer(server, other)
    server.kill()
    server.start()
    with pytest.warns(RuntimeWarning, match="answers with weights 'default' and was sent 0: it was restarted"):
        trainer.rollout()


@pytest.mark.parametrize(
    ("faults", "settings", "error", "words"),
    [
        ({"dev_mode": False}, {}, ConfigError, "VLLM_SERVER_DEV_MODE=1"),
        ({"processed": False}, {}, RolloutError, "--logprobs-mode processed_logprobs"),
        ({}, {"engine_options": {"model": "n"}}, ConfigError, "serves no model 'n'; it has m"),
        ({}, {"engine_options": {"updater": "nccl"}}, ConfigError, "GPU"),
        ({}, {"engine_options": {"updater": "lora"}}, ConfigError, "lora_rank"),
        ({}, {"engine_options": {"updator": "disk"}}, ConfigError, "did you mean 'updater'"),
        ({}, {"engine_options": {"llm": {"seed": 1}}}, ConfigError, "vLLM in this process"),
        ({"dev_mode": False}, {"lora_rank": 2}, ConfigError, "VLLM_SERVER_DEV_MODE=1"),
        ({}, {"lora_rank": 2}, RolloutError, "doesn't have the learner's weights"),  # an adapter on another base model
    ],
)
def test_servers_and_settings_that_can_not_be_used(make_trainer, serve, faults, settings, error, words):
    with pytest.raises(error, match=words):
        make_trainer(serve(**faults), **settings)


def test_a_tied_output_layer_that_is_not_renewed_is_found_out(make_trainer, serve):
    with pytest.raises(RolloutError, match=r"doesn't have the learner's weights.*tied to its embedding"):
        make_trainer(serve(renews_output=False))


@pytest.mark.parametrize(
    ("urls", "words"),
    [
        (("http://127.0.0.1:1", "http://127.0.0.1:1/v1"), "twice"),
        (("host:8000",), "accepted: addresses like"),
        (("http://127.0.0.1:1",), "doesn't answer"),
    ],
)
def test_addresses_are_checked(make_trainer, urls, words):
    with pytest.raises((ConfigError, RolloutError), match=words):
        make_trainer(*[SimpleNamespace(url=url) for url in urls])


def test_of_several_learning_processes_the_first_brings_the_weights(make_trainer, serve, make_llama, tokenizer):
    from agents.msgrpo.engines.engine import EngineParts
    from agents.msgrpo.engines.vllm import VLLM

    server = serve()
    trainer = make_trainer(server)
    parts = EngineParts(trainer.model, tokenizer, trainer.config, torch.float32, rank=1, processes=2)
    second: Any = VLLM().build(parts)
    asked = len(server.log)
    second.update_weights(iter([]), 0)
    assert len(server.log) == asked
    (answer,) = second.answers((Message("user", "left"),), trainer.policy.decoding, (1,))
    assert {span.version for span in answer.weights} == {0}


@pytest.mark.slow
@pytest.mark.parametrize("staleness", [1, 2])
def test_rollouts_of_servers_go_on_while_the_learner_learns(make_trainer, serve, staleness):
    history = make_trainer(serve(), staleness=staleness, iterations=4).train()
    assert max(metrics["lag"] for metrics in history) >= 1
    assert all("importance_mean" in metrics for metrics in history if not metrics["skipped"])


@pytest.mark.slow
@pytest.mark.parametrize("scale_out", [True, False])
def test_servers_are_told_the_legal_answers_and_the_learner_finds_the_same_sets(make_llama, prompt_file, scale_out):
    tokenizer = make_tokenizer()
    config = replace(
        CONFIG, prompt_file=prompt_file, legal_only=True, max_response_tokens=24, importance_cap=2.0, iterations=2
    )
    with serving(make_llama(len(tokenizer)), tokenizer, scale_out=scale_out) as server:
        config = replace(config, engine_urls=(server.url,))
        trainer = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", config, quiet=True)
        history = trainer.train()
        trainer.engine.close()
        assert [each["invalid_rate"] for each in history] == [0.0, 0.0]
        mismatch = [each["mismatch_max"] for each in history if not each["skipped"]]
        assert mismatch
        assert max(mismatch) < 1e-4
        thinking = replace(config, response_mode="think", prompt_file="")
        with pytest.raises(ConfigError, match=r"legal_only = true: .* in the mode direct alone"):
            MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", thinking, quiet=True)


@pytest.mark.parametrize("scale_out", [True, False])
def test_a_stop_in_a_think_is_gone_on_from(make_llama, prompt_file, monkeypatch, scale_out):
    tokenizer = make_tokenizer()
    text = "<think>or <action>left</action>?</think><action>right</action>"
    said = tuple(tokenizer(text + " so", add_special_tokens=False)["input_ids"])
    asked: list[int] = []

    def sample(self: Routes, ids: list[int], fields: dict[str, Any]) -> Any:
        """As vLLM does: it stops at the first stop string, wherever it is."""
        asked.append(len(ids))
        rest = said[len(ids) - asked[0] :]
        ends = (n for n in range(1, len(rest) + 1) if fields["stop"][0] in tokenizer.decode(rest[:n]))
        row = SimpleNamespace(ids=rest[: next(ends)], stopped=True)
        return row, [-1.0] * len(row.ids), tokenizer.decode(row.ids).partition("</action>")[0] + "</action>"

    with serving(make_llama(len(tokenizer)), tokenizer, scale_out=scale_out) as server:
        config = replace(CONFIG, prompt_file=prompt_file, engine_urls=(server.url,))
        engine = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", config, quiet=True).engine
        monkeypatch.setattr(Routes, "sample", sample)

        async def ask() -> Any:
            try:
                return await engine.generate_async((Message("user", "go"),), Decoding(max_tokens=len(said) + 1), (1,))
            finally:
                await engine.aclose()

        turn = asyncio.run(ask())
        engine.close()
    assert (turn.error, turn.response, turn.finish_reason) == (None, text, "stop")
    assert turn.response_ids == said[: len(turn.response_ids)]
    assert len(turn.logprobs) == len(turn.response_ids)
    first = asked[1] - asked[0]
    assert [span[1:] for span in turn.weights] == [(0, first), (first, len(turn.response_ids))]
