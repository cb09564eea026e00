"""Imitation: the loss is that of the responses, it falls, and an interrupted one ends as if it never had been."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from agents.common.progress import Progress
from agents.msgrpo import ConfigError, DivergenceError, MSGRPOConfig
from agents.msgrpo.warmup import Imitation, TaughtDecision, imitate, imitation
from agents.turn import Message

CONFIG = MSGRPOConfig(learning_rate=1e-2, schedule="linear", warmup=2, update_passes=6, minibatches=4)
LIGHTS = ("red", "green", "blue")


def asked(light: str, prefix: str = "") -> tuple[Message, ...]:
    begun = (Message("assistant", prefix),) if prefix else ()
    return (Message("user", f"The light is {light}\n"), *begun)


DECISIONS = [TaughtDecision(asked(light), light) for light in LIGHTS * 8]
CHOICES = [TaughtDecision(asked(light), answer) for light in LIGHTS for answer in ("red", "green")]


def test_it_learns_the_responses_and_the_loss_on_decisions_that_it_never_saw_says_so(tokenizer, make_llama):
    model, steps, config = make_llama(len(tokenizer)), list[Progress](), replace(CONFIG, update_passes=15)
    made = imitate(model, tokenizer, DECISIONS, config, held_out=DECISIONS[:3], on_progress=steps.append)
    assert made.held_out_before > 1.5  # of 12 words, log 12 = 2.5
    assert made.held_out < 0.2
    assert [(step.step, step.loss) for step in steps] == list(enumerate(made.losses, 1))
    assert len(steps) == 60
    # three different rows, which are computed once a step, where each is there more than once
    assert made.tokens_computed < made.tokens_alone / 1.5


@pytest.mark.parametrize("prefix", ["", "green"])
def test_the_first_loss_is_the_cross_entropy_of_response_tokens_behind_a_prefix_and_the_end(
    prefix, tokenizer, make_llama
):
    model, expected = make_llama(len(tokenizer)), []
    for light in LIGHTS:
        prompt = tokenizer(f"The light is {light}\n{prefix}")["input_ids"]
        response = [*tokenizer(light)["input_ids"], tokenizer.eos_token_id]
        with torch.no_grad():
            logprobs = model(torch.tensor([prompt + response])).logits[0].log_softmax(-1)
        expected += [-float(logprobs[len(prompt) - 1 + at, token]) for at, token in enumerate(response)]
    decisions = [TaughtDecision(asked(light, prefix), prefix + light) for light in LIGHTS]
    made = imitate(model, tokenizer, decisions, replace(CONFIG, update_passes=1, minibatches=1))
    assert made.losses[0] == pytest.approx(sum(expected) / len(expected), abs=1e-4)
    assert math.isnan(made.held_out)


def test_a_weight_multiplies_a_decisions_loss_and_nothing_is_learnt_with_none(tokenizer, make_llama):
    one = replace(CONFIG, update_passes=1, minibatches=1)

    def first_loss(*weights: float) -> float:
        weighted = [decision._replace(weight=weight) for decision, weight in zip(DECISIONS, weights, strict=False)]
        return imitate(make_llama(len(tokenizer)), tokenizer, weighted, one).losses[0]

    alone = first_loss(1.0), imitate(make_llama(len(tokenizer)), tokenizer, DECISIONS[1:2], one).losses[0]
    assert first_loss(2.0, 0.5) == pytest.approx((2 * alone[0] + 0.5 * alone[1]) / 2, abs=1e-4)
    model = make_llama(len(tokenizer))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    nothing = [decision._replace(weight=0.0) for decision in DECISIONS]
    made = imitate(model, tokenizer, nothing, replace(one, weight_decay=0.0))
    assert all(torch.equal(value, before[name]) for name, value in made.model.state_dict().items())


def test_a_mixture_is_learnt_at_each_prompt_and_no_step_parts_its_answers(tokenizer, make_llama, monkeypatch):
    learnt, pack = list[list[str]](), imitation.SharedWork.pack

    def packed(work: Any, rows: Any) -> Any:
        learnt.append(sorted(tokenizer.decode(row.prompt) for row in rows))
        return pack(work, rows)

    monkeypatch.setattr(imitation.SharedWork, "pack", packed)
    mixture = [choice._replace(weight=0.25 if choice.response == "red" else 0.75) for choice in CHOICES]
    config = replace(CONFIG, update_passes=40, minibatches=2)
    made = imitate(make_llama(len(tokenizer)), tokenizer, mixture, config, mixed=True)
    assert len(learnt) == 80
    assert all(step[::2] == step[1::2] for step in learnt)
    answers = [tokenizer(one)["input_ids"][0] for one in ("red", "green")]
    for light in LIGHTS:
        given = torch.tensor([tokenizer(f"The light is {light}\n")["input_ids"]])
        chances = made.model(given).logits[0, -1].softmax(-1).detach()
        assert chances[answers].tolist() == pytest.approx([0.25, 0.75], abs=0.05)


@pytest.mark.parametrize(("rank", "mixed"), [(4, False), (0, True)])
def test_an_interrupted_imitation_goes_on_and_ends_equal_to_the_last_bit(rank, mixed, tokenizer, make_llama, tmp_path):
    passes = {"update_passes": 4, "minibatches": 2} if mixed else {"update_passes": 2}
    config = replace(CONFIG, lora_rank=rank, **passes)
    file = tmp_path / "state"

    def made(**changes: Any) -> Imitation:
        what = {"held_out": DECISIONS[:2], "mixed": mixed} | changes
        return imitate(make_llama(len(tokenizer)), tokenizer, CHOICES if mixed else DECISIONS, config, **what)

    def interrupt(progress: Progress) -> None:
        if progress.step == 3:
            raise KeyboardInterrupt

    straight = made()
    with pytest.raises(KeyboardInterrupt):
        made(checkpoint=file, on_progress=interrupt)
    went_on: list[int] = []
    resumed = made(checkpoint=file, on_progress=lambda progress: went_on.append(progress.step))
    assert went_on == [4, 5, 6, 7, 8]
    assert resumed.losses == straight.losses
    assert (resumed.held_out_before, resumed.held_out) == (straight.held_out_before, straight.held_out)
    for one, other in zip(resumed.model.parameters(), straight.model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert made(checkpoint=file).losses == straight.losses  # its end is kept as well, until somebody removes it


def test_what_can_not_be_imitated_is_said(tokenizer, make_llama, tmp_path):
    model, file = make_llama(len(tokenizer)), tmp_path / "state"
    with pytest.raises(ValueError, match="no decisions"):
        imitate(model, tokenizer, [], CONFIG)
    with pytest.raises(ConfigError, match="more than max_prompt_tokens = 2 and max_response_tokens = 256: raise them"):
        imitate(model, tokenizer, DECISIONS, replace(CONFIG, max_prompt_tokens=2))
    imitate(model, tokenizer, DECISIONS, CONFIG, checkpoint=file)
    with pytest.raises(ConfigError, match="left by an imitation with other settings or decisions: delete it"):
        imitate(model, tokenizer, DECISIONS[1:], CONFIG, checkpoint=file)
    file.write_bytes(b"not a checkpoint")
    with pytest.raises(ConfigError, match="is no checkpoint of an imitation"):
        imitate(model, tokenizer, DECISIONS, CONFIG, checkpoint=file)


def test_a_loss_that_is_not_finite_ends_it_and_is_not_kept(tokenizer, make_llama, tmp_path):
    def spoil(progress: Progress) -> None:
        if progress.step == 2:
            next(model.parameters()).data.fill_(float("nan"))

    model, file = make_llama(len(tokenizer)), tmp_path / "state"
    with pytest.raises(DivergenceError, match="lower learning_rate"):
        imitate(model, tokenizer, DECISIONS, CONFIG, on_progress=spoil, checkpoint=file)
    assert not file.exists()
