"""The exact gradient against finite differences of the exact return, and the score gradients that it is made of."""

import numpy as np
import pytest
import torch

from agents import load_agent
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.credit.batch import TokenRow
from agents.policy import LanguageAgentPolicy
from research.credit.instrument.exact.answers import ask, behaviour_of
from research.credit.instrument.exact.gradient import exact_gradient
from research.credit.instrument.exact.solution import expand, solve
from research.credit.instrument.gradients.scores import ScoreModel, why_no_gradient
from research.credit.tests.helpers import direct_policy, lake, solved
from textgames import SCENARIOS


def test_it_is_the_derivative_of_the_exact_return():
    """Along random directions; the model's norms are computed in float32, so a difference has about five digits."""
    policy, graph, step = direct_policy(), lake(), 3e-3
    model = ScoreModel(policy)
    answers, solution = solved(policy, graph, 1.0)
    gradient = exact_gradient(model, answers, solution, ()).vector
    assert answers.source == "scored"
    for seed in range(3):
        direction = torch.randn(model.size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        direction = direction / direction.norm() + gradient / gradient.norm()
        returns = []
        for sign in (1, -1):
            before = [p.detach().clone() for p in model.parameters.values()]
            for p, part in zip(before, direction.split([p.numel() for p in before]), strict=True):
                p += sign * step * part.view_as(p)
            with torch.no_grad():
                kept = [p.clone() for p in model.parameters.values()]
                for p, moved in zip(model.parameters.values(), before, strict=True):
                    p.copy_(moved)
                returns.append(solved(policy, graph, 1.0)[1].returns[0])
                for p, old in zip(model.parameters.values(), kept, strict=True):
                    p.copy_(old)
        assert (returns[0] - returns[1]) / (2 * step) == pytest.approx(float(gradient @ direction), rel=2e-3)


@pytest.mark.slow
def test_of_a_thinking_model_it_is_estimated_and_says_how_well():
    game = SCENARIOS["frozen-lake"].game()
    graph = expand(game, [game.initial_state(np.random.default_rng(0))], 7)
    policy = load_agent("tiny", temperature=1.25)
    answers = ask(policy, graph, samples=24)
    solution, *halves = [
        solve(graph, behaviour_of(graph, answers, each), format_penalty=1.0)
        for each in (answers.responses, *answers.halves)
    ]
    gradient = exact_gradient(ScoreModel(policy), answers, solution, halves)
    assert answers.source == "sampled"
    assert len(gradient.halves) == 2
    assert 0.5 < gradient.reliability < 1
    # noise enlarges the norm of the estimate, and hardly the product of its halves
    assert 0 < gradient.squared_norm < float(gradient.vector @ gradient.vector) * 1.2


def test_the_rows_gradients_are_those_of_one_row_at_a_time():
    model = ScoreModel(direct_policy())
    rows = [TokenRow((3, 4, 5), (2, 6)), TokenRow((7, 8), (9, 2, 3)), TokenRow((3, 4, 5), (2, 7))]
    found = {}
    for numbers, chunk in model.chunks(rows):
        found.update(zip(numbers, chunk, strict=True))
    for number, row in enumerate(rows):
        torch.testing.assert_close(found[number].double(), model.weighted([row], [1.0]), atol=1e-5, rtol=1e-4)
    together = model.weighted(rows, [2.0, -1.0, 0.5])
    torch.testing.assert_close(together, (2 * found[0] - found[1] + 0.5 * found[2]).double(), atol=1e-5, rtol=1e-4)


def test_tokens_of_a_row_may_have_weights_of_their_own():
    model = ScoreModel(direct_policy())
    whole, first = TokenRow((3, 4), (2, 6)), TokenRow((3, 4), (2,))
    by_token = model.weighted([whole], [torch.tensor([1.0, 0.0])])
    torch.testing.assert_close(by_token, model.weighted([first], [1.0]), atol=1e-9, rtol=1e-6)


def test_a_sketch_keeps_inner_products(monkeypatch):
    monkeypatch.setattr("research.credit.instrument.gradients.scores.SKETCH_ABOVE", 10)
    sketched, plain = ScoreModel(direct_policy()), direct_policy()
    rows = [TokenRow((3, 4, 5), (2, 6)), TokenRow((7, 8), (9, 2, 3))]
    short = torch.stack([sketched.weighted([row], [1.0]) for row in rows])
    monkeypatch.setattr("research.credit.instrument.gradients.scores.SKETCH_ABOVE", 10**9)
    model = ScoreModel(plain)
    full = torch.stack([model.weighted([row], [1.0]) for row in rows])
    assert sketched.sketched
    assert not model.sketched
    norms = full.norm(dim=1)
    scale = norms[:, None] * norms
    torch.testing.assert_close(short @ short.T / scale, full @ full.T / scale, atol=0.05, rtol=0)


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft asks for an old name
def test_an_adapter_that_was_loaded_to_play_is_what_the_gradient_is_by():
    """Loading it freezes all weights; it was trained by its own, and the base's are none of its gradient."""
    peft, policy = pytest.importorskip("peft"), direct_policy()
    settings = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
    adapted = peft.get_peft_model(policy.model.model, settings).requires_grad_(False).eval()
    local = TransformersModel(adapted, policy.model.tokenizer, name="adapted")
    model = ScoreModel(LanguageAgentPolicy(local, policy.prompt_map, policy.decoding))
    assert model.parameters
    assert all("lora_" in name for name in model.parameters)
    assert model.size == sum(p.numel() for p in model.parameters.values())
    assert bool(model.weighted([TokenRow((3, 4, 5), (2, 6))], [1.0]).any())
    assert not any(p.requires_grad for p in adapted.parameters())


def test_policies_without_a_gradient_say_why():
    assert "no model in this process" in (why_no_gradient(load_agent("random")) or "")
    assert "temperature 0" in (why_no_gradient(load_agent("tiny", temperature=0.0)) or "")
    assert "top_p" in (why_no_gradient(load_agent("tiny", top_p=0.9)) or "")
    with pytest.raises(ValueError, match="no model"):
        ScoreModel(load_agent("random"))


def test_the_model_is_left_as_it_was():
    policy = direct_policy()
    model = ScoreModel(policy)
    for p in model.parameters.values():
        p.requires_grad_(False)
    model.module.train()
    model.weighted([TokenRow((3, 4), (2,))], [1.0])
    list(model.chunks([TokenRow((3, 4), (2,))]))
    assert model.module.training
    assert not any(p.requires_grad for p in model.parameters.values())
