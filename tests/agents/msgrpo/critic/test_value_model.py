"""The critic's model: what it reads, what it copies and what it shares, for several architectures."""

from typing import Any

import pytest
import torch

from agents.models.local.forward.llama_forward import unwrap
from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.critic import ValueModel, own_weights
from agents.msgrpo.errors import UnusableModelError
from agents.msgrpo.learner.prepare import prepare_model
from agents.msgrpo.learner.scoring.packing import pack
from tests.tiny_models import tiny_gpt2

ROWS = [TokenRow((1, 2, 3), (4, 5)), TokenRow((1, 2), (6,)), TokenRow((1, 2, 3), (4, 7, 1))]


def with_random_heads(policy: Any, names: tuple[str, ...] = ("a", "b")) -> ValueModel:
    model = ValueModel(policy, names)
    torch.manual_seed(1)
    torch.nn.init.normal_(model.heads.weight)
    torch.nn.init.normal_(model.heads.bias)
    return model


@pytest.mark.parametrize("kind", ["llama", "gpt2", "lora"])
def test_values_are_linear_in_the_last_hidden_states_before_each_response_token(kind, make_llama):
    policy = tiny_gpt2(11) if kind == "gpt2" else make_llama(11)
    if kind == "lora":
        policy = prepare_model(policy, [], MSGRPOConfig(lora_rank=2))
    model, said = with_random_heads(policy), dict[int, torch.Tensor]()
    packing = "rows" if kind == "gpt2" else "tree"
    for batch in pack(ROWS, packing=packing, micro_batch_tokens=100, tree_tokens=100):
        values = model(*model.inputs(batch))[batch.places]
        parts = torch.split(values, [len(ROWS[n].response) for n in batch.rows])
        said.update(zip(batch.rows.tolist(), parts, strict=True))
    for number, row in enumerate(ROWS):
        hidden = unwrap(policy)(torch.tensor([row.prompt + row.response]), output_hidden_states=True).hidden_states[-1]
        first = len(row.prompt) - 1
        read = hidden[0, first : first + len(row.response)]  # the token before each response token
        torch.testing.assert_close(said[number], read @ model.heads.weight.T + model.heads.bias, atol=1e-5, rtol=1e-5)


def test_it_starts_at_zero_and_without_randomness(make_llama):
    policy = make_llama(11)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    model = ValueModel(policy, ("state",))
    assert torch.equal(torch.get_rng_state(), before)
    (batch,) = pack(ROWS, packing="rows", micro_batch_tokens=100, tree_tokens=1)
    assert not model(*model.inputs(batch)).any()


def test_trained_weights_are_copied(make_llama):
    policy = make_llama(11)
    model = ValueModel(policy, ("state",))
    mine = {each.data_ptr() for each in model.parameters()}
    assert not mine & {each.data_ptr() for each in policy.parameters()}
    copied = dict(model.backbone.named_parameters())
    for name, each in policy.base_model.named_parameters():
        assert torch.equal(each, copied[name])
    assert set(own_weights(model)) == {name for name, _ in model.named_parameters()}


def test_with_an_adapter_the_base_model_is_shared_and_the_adapter_is_its_own(make_llama):
    policy = prepare_model(make_llama(11), [], MSGRPOConfig(lora_rank=2))
    model = ValueModel(policy, ("state",))
    theirs = {each.data_ptr() for each in policy.parameters()}
    for name, each in model.named_parameters():
        assert (each.data_ptr() in theirs) == ("lora_" not in name and not name.startswith("heads")), name
    own = own_weights(model)
    assert own
    assert all("lora_" in name or name.startswith("heads") for name in own)
    adapter = [each for each in policy.parameters() if each.requires_grad]
    with torch.no_grad():
        for each in model.parameters():
            if each.requires_grad:
                each.add_(1.0)
    assert not any(bool((each > 0.9).all()) for each in adapter)  # the policy's adapter is as it was


def test_a_model_without_a_backbone_of_its_own_is_refused():
    class Bare(torch.nn.Module):
        pass

    with pytest.raises(UnusableModelError, match=r"Bare has no base_model .* choose a method of credit"):
        ValueModel(Bare(), ("state",))
