"""The figures of credit and of gradients: by hand, from few batches, and of what draw rules draw."""

import numpy as np
import pytest
import torch

from agents import load_agent
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.credit import Batch, Credit, Trajectory
from agents.msgrpo.credit.batch import TokenRow
from agents.policy import LanguageAgentPolicy
from research.credit.instrument.batches import Setting
from research.credit.instrument.draws import DrawnBatch, compare_draws
from research.credit.instrument.exact.answers import ask, behaviour_of
from research.credit.instrument.exact.solution import expand, solve
from research.credit.instrument.fidelity import BatchGradient, Compared, compare, fidelity, quality
from research.credit.instrument.gradients import EpisodeGradients, exact_gradient
from research.credit.instrument.instrument import Instrument, methods_of
from research.credit.instrument.scores import ScoreModel, why_no_gradient
from research.credit.measuring import gradients_of_others, ready_to_draw
from research.credit.tests.helpers import SMALL, direct_policy, lake, solved
from textgames import SCENARIOS


class OneEpisode:
    """Two batches of an episode each, and the true advantages of its four steps, of which one is 0."""

    batches = tuple(Batch([Trajectory(group=group, rewards=np.zeros(4))]) for group in "ab")

    def advantages(self, trajectory):
        return np.array([1.0, -1.0, 2.0, 0.0])

    def cells(self, trajectory):
        return [(step, 0, 0) for step in range(4)]


@pytest.mark.parametrize(("assigned", "agreement"), [([1, -1, 1, 1], 1.0), ([0, 0, 0, 0], 0.5), ([-1, 1, -1, 0], 0.0)])
def test_credit_of_nothing_agrees_with_neither_sign(assigned, agreement):
    truth = OneEpisode()
    credits = [Credit.of([np.array(assigned, dtype=float)]) for _ in truth.batches]
    found = fidelity(compare(truth.batches, credits, truth))
    assert found.sign_agreement.value == pytest.approx(agreement)
    assert found.mean_sign_agreement.value == pytest.approx(agreement)


def gradients(mean, noise, batches, rng):
    """Batches' gradients with the exact one along the first axis, noise of several directions around a mean."""
    scale = noise * np.array([0.3, 1.0, 0.8, 0.6, 0.4, 0.3, 0.2])
    vectors = (np.array([*mean, 0, 0, 0, 0, 0]) + scale * rng.standard_normal((batches, 7))).astype(np.float32)
    return [BatchGradient(torch.tensor(each), float(each[0]), 1.0, 1.0) for each in vectors]


def test_the_bias_and_the_variance_of_two_batches_by_hand():
    """Products of the pair: along g 2 * 1, in all 2 * 1 + 1 * 1, so the squared cosine is 2 / 3; across it is 1.

    The squared lengths are 5 and 2: 7/2 on average, and so 1/6 more than 3."""
    found = quality([BatchGradient(torch.tensor([x, 1.0]), x, 1.0, 1.0) for x in (2.0, 1.0)], 1.0)
    assert found.bias.value == pytest.approx(np.sqrt(2 * 3 / (9 + 2 * 1 / 2)))
    assert found.variance.value == pytest.approx(1 / 6)
    nothing = quality([BatchGradient(torch.zeros(2), 0.0, 1.0, 1.0)] * 3, 1.0)
    assert nothing.bias.to_json() == dict.fromkeys(("value", "low", "high"))


@pytest.mark.parametrize(("mean", "bias"), [((1.0, 0.0), 1.0), ((-0.7, 0.714), -0.7)])
def test_bias_is_estimated_on_both_sides_of_the_truth(mean, bias):
    rng = np.random.default_rng(1)
    found = [quality(gradients(mean, 0.8, 16, rng), 1.0).bias for _ in range(150)]
    values = np.array([each.value for each in found])
    assert values.mean() == pytest.approx(bias, abs=0.02)
    assert 0.25 < np.mean(values > bias) < 0.75  # without being cut off at 1
    assert np.mean([each.low <= bias <= each.high for each in found]) >= 0.88


def test_gradients_without_a_mean_have_a_bias_of_about_0_and_say_that_it_isnt_known():
    rng = np.random.default_rng(2)
    found = [quality(gradients((0.0, 0.0), 1.0, 16, rng), 1.0).bias for _ in range(150)]
    assert np.mean([each.value for each in found]) == pytest.approx(0, abs=0.1)
    assert max(abs(each.value) for each in found) < 1.5
    assert np.mean([each.low <= 0 <= each.high for each in found]) >= 0.95
    assert np.median([each.high - each.low for each in found]) > 1


def test_an_exact_gradient_that_was_estimated_widens_the_interval_of_the_bias():
    batches = gradients((1.0, 0.0), 0.5, 16, np.random.default_rng(3))
    sure, unsure = quality(batches, 1.0).bias, quality(batches, 1.0, reliability=0.9).bias
    assert unsure.value == sure.value
    assert (unsure.low**2, unsure.high**2) == pytest.approx((0.9 * sure.low**2, 1.1 * sure.high**2))


@pytest.fixture(scope="module")
def population():
    """A hundred batches of random play in kuhn-poker, whose truth is exact: batches are drawn from these."""
    setting = Setting(SCENARIOS["kuhn-poker"], groups=2, group_size=8)
    instrument = Instrument(load_agent("random"), setting, batches=100, gradient=False)
    credits = instrument.assign("msgrpo", methods_of(["msgrpo"], setting)["msgrpo"]).credits
    return compare(instrument.batches, credits, instrument.truth)


def some(compared, size, rng):
    chosen = rng.integers(len(compared.cells), size=size)
    return fidelity(Compared(compared.parts[chosen], [compared.cells[i] for i in chosen]))


def expected_correlation(compared):
    """That of the population: its own means are the expected advantages."""
    cells = sorted({cell for met in compared.cells for cell in met})
    visits, sums = (
        np.array([sum(met.get(cell, (0, 0, 0))[part] for met in compared.cells) for cell in cells]) for part in (0, 1)
    )
    true = [next(met[cell][2] for met in compared.cells if cell in met) for cell in cells]
    covariance = np.cov(sums / visits, true, aweights=visits)
    return covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])


@pytest.mark.parametrize("size", [4, 16])
def test_the_correlation_of_expected_advantages_does_not_climb_with_the_number_of_batches(population, size):
    rng, expected = np.random.default_rng(size), expected_correlation(population)
    found = [some(population, size, rng).mean_correlation for _ in range(100)]
    assert np.median([each.value for each in found]) == pytest.approx(expected, abs=0.01)
    assert np.mean([each.low <= expected <= each.high for each in found]) >= 0.93


def test_noise_has_a_correlation_of_about_0_and_says_that_it_isnt_known(population):
    """Random numbers in the place of credit: their means have no variance that batches have in common."""
    rng = np.random.default_rng(1)
    cells = [
        {cell: (n, n**0.5 * rng.standard_normal(), y) for cell, (n, _, y) in met.items()} for met in population.cells
    ]
    found = some(Compared(population.parts, cells), 8, rng).mean_correlation
    assert abs(found.value) < 1
    assert found.low <= 0 <= found.high
    assert found.high - found.low > 1


def test_the_truth_itself_has_the_correlation_1_and_one_batch_tells_nothing(population):
    cells = [{cell: (n, n * y, y) for cell, (n, _, y) in met.items()} for met in population.cells]
    exact = fidelity(Compared(population.parts[:5], cells[:5]))
    assert exact.mean_correlation == pytest.approx((1, 1, 1))
    assert exact.mean_sign_agreement == (1.0, None, None)  # depends on the number of batches, so it has no interval
    assert np.isnan(fidelity(Compared(population.parts[:1], cells[:1])).mean_correlation.value)


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
        weights, returns = torch.nn.utils.parameters_to_vector(model.parameters.values()).detach(), []
        for moved in (weights + step * direction, weights - step * direction, weights):
            torch.nn.utils.vector_to_parameters(moved, model.parameters.values())
            returns.append(solved(policy, graph, 1.0)[1].returns[0])
        assert (returns[0] - returns[1]) / (2 * step) == pytest.approx(float(gradient @ direction), rel=2e-3)


@pytest.mark.slow
def test_of_a_thinking_model_it_is_estimated_and_says_how_well():
    game = SCENARIOS["frozen-lake"].game()
    graph = expand(game, [game.initial_state(np.random.default_rng(0))], 7)
    policy = load_agent("tiny", temperature=1.25)
    answers = ask(policy, graph, samples=24)
    behaviours = [behaviour_of(graph, answers, each) for each in (answers.responses, *answers.halves)]
    solution, *halves = [solve(graph, each, format_penalty=1.0) for each in behaviours]
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
    by_token = model.weighted(rows[:1], [torch.tensor([1.0, 0.0])])  # tokens may have weights of their own
    first = model.weighted([TokenRow((3, 4, 5), (2,))], [1.0])
    torch.testing.assert_close(by_token, first, atol=1e-9, rtol=1e-6)


def test_a_sketch_keeps_inner_products(monkeypatch):
    rows, gradients = [TokenRow((3, 4, 5), (2, 6)), TokenRow((7, 8), (9, 2, 3))], []
    for above in (10, 10**9):
        monkeypatch.setattr("research.credit.instrument.scores.SKETCH_ABOVE", above)
        model = ScoreModel(direct_policy())
        assert model.sketched == (above == 10)
        gradients.append(torch.stack([model.weighted([row], [1.0]) for row in rows]))
    short, full = gradients
    scale = full.norm(dim=1)[:, None] * full.norm(dim=1)
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
    model.module.train()
    list(model.chunks([TokenRow((3, 4), (2,))]))
    assert model.module.training  # the model is left as it was
    assert not any(p.requires_grad for p in adapted.parameters())


def test_policies_without_a_gradient_say_why():
    assert "no model in this process" in (why_no_gradient(load_agent("random")) or "")
    assert "temperature 0" in (why_no_gradient(load_agent("tiny", temperature=0.0)) or "")
    assert "top_p" in (why_no_gradient(load_agent("tiny", top_p=0.9)) or "")
    with pytest.raises(ValueError, match="no model"):
        ScoreModel(load_agent("random"))


def by_hand() -> DrawnBatch:
    """Four episodes whose gradients are 2x, 0, x and y, in two dimensions; the reference is x."""
    vectors = np.array([[2.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    trajectories = [Trajectory(group="a", rewards=np.zeros(1)) for _ in vectors]
    credit = Credit(np.array([2.0, 0.0, 1.0, 1.0]), [np.zeros(1)] * 4)
    gradients = EpisodeGradients(vectors @ vectors.T, vectors @ np.array([[1.0], [0.0]]))
    return DrawnBatch(Batch(trajectories), credit, gradients, np.array([10.0, 20.0, 30.0, 40.0]))


def test_all_episodes_have_the_cosine_of_their_sum():
    """The sum is 3x + y."""
    ((off,),) = [compare_draws([by_hand()] * 2, ["off"], [2], [1.0, 1.0])]
    assert off.cosine.value == pytest.approx(3 / np.sqrt(10))
    assert off.mean_cosine.value == pytest.approx(3 / np.sqrt(10))
    assert (off.drawn, off.tokens, off.variance.value, off.empty) == (4, 100, 0, 0)
    assert off.effective_episodes == pytest.approx(16 / 6)
    assert off.cosine_per_kilotoken.value == pytest.approx(off.cosine.value * 10)
    nothing = by_hand()._replace(credit=Credit(np.zeros(4), [np.zeros(1)] * 4))  # without any advantage: no update
    (aaw,) = compare_draws([nothing, nothing], ["aaw"], [2], [1.0, 1.0])
    assert (aaw.cosine.value, aaw.empty, aaw.tokens) == (0, 1, 0)
    assert aaw.cosine_per_kilotoken.to_json()["value"] is None


@pytest.mark.slow
def test_one_drawn_episode_is_right_as_often_as_its_rule_draws_it():
    """Of one draw the cosine is 1 for the first and third episode and 0 for the others."""
    results = compare_draws([by_hand()] * 4, ["aaw", "uniform", "uniform_nonzero"], [1], [1.0] * 4, repeats=500)
    expected = {"aaw": 3 / 4, "uniform": 2 / 4, "uniform_nonzero": 2 / 3}
    for result in results:
        assert result.cosine.value == pytest.approx(expected[result.rule], abs=0.04)
    aaw, uniform, _ = results
    assert aaw.minus_uniform.value == pytest.approx(aaw.cosine.value - uniform.cosine.value)
    assert uniform.minus_uniform.value == 0
    # the mean update of uniform draws is that of all episodes, x and y in the proportion 3 to 1
    assert uniform.mean_cosine.value == pytest.approx(3 / np.sqrt(10), abs=0.01)
    # E |f|^2 - |E f|^2 = (4 + 1 + 1) / 4 - 10 / 16 = 14 / 16, relative to 10 / 16
    assert uniform.variance.value == pytest.approx(1.4, rel=0.1)
    assert uniform.empty == 0


def test_what_is_left_of_gradients_that_cancel_is_no_direction():
    """Two episodes did the same; their float32 gradients differ by rounding, and their advantages sum to zero."""
    vectors = np.array([[1.0, 0.0], [1.0, 1e-8]])
    gradients = EpisodeGradients(vectors @ vectors.T, vectors @ np.array([[1e-3], [1.0]]))
    assert gradients.cosine(np.array([1.0, -1.0]), 0, 1.0) == 0
    assert gradients.square(np.array([1.0, -1.0])) == 0
    assert gradients.cosine(np.array([1.0, -0.5]), 0, 1.0) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.slow
def test_rules_are_compared_by_the_same_episodes_and_two_references():
    setting = Setting(SMALL, groups=2, group_size=32)
    instrument = Instrument(direct_policy(), setting, batches=4)
    credits = instrument.assign("msgrpo", methods_of(["msgrpo"], setting)["msgrpo"]).credits
    model, exact = instrument.model, instrument.exact
    others = gradients_of_others(model, instrument.batches, credits)
    drawn = ready_to_draw(model, instrument.batches, credits, exact=exact.vector, others=others)
    norms = [float(exact.vector.norm())] * 4, [float(each.norm()) for each in others]
    for column, lengths in enumerate(norms):
        found = compare_draws(drawn, ("aaw", "uniform", "off"), (2, 16), lengths, reference=column)
        results = {(each.rule, each.m): each for each in found}
        whole = results["off", 16]
        assert results["off", 2].cosine == whole.cosine
        assert results["uniform", 2].cosine.value < results["uniform", 16].cosine.value < whole.cosine.value
        assert results["aaw", 2].tokens < results["aaw", 16].tokens < whole.tokens
