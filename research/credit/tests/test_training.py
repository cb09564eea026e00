"""Training at a budget of tokens: what is counted, and where a run ends."""

from typing import Any

import numpy as np
import pytest

from agents.msgrpo.credit import METHODS, Batch, Credit, Start
from research.credit.settings import Study
from research.credit.training import RunRecord

GAME = "blackjack"


@pytest.fixture(scope="module")
def study():
    return Study.read("credit-miniature")


@pytest.fixture(scope="module")
def base(study):
    """A model of a few thousand random weights, and a tokenizer that reads the game."""
    pytest.importorskip("torch")
    from agents.tiny.data import legal_play
    from agents.tiny.imitation import make_model, make_tokenizer

    examples = legal_play(study.scenario(GAME), 60, np.random.default_rng(0))
    tokenizer = make_tokenizer(examples)
    return lambda: (make_model(study.recipe(GAME), tokenizer), tokenizer)


def run(study: Study, base: Any, arm: dict[str, Any], budget: int = 2_000, milestones: int = 3) -> RunRecord:
    from research.credit.training import train

    model, tokenizer = base()
    settings = study.training_settings(GAME, "msgrpo", 0, 1e-3) | arm
    _, record = train(
        model, tokenizer, study.scenario(GAME), settings, budget, milestones, lambda *_: 0.5, lambda share: None
    )
    return record


def test_a_run_spends_its_budget_and_ends_with_the_iteration_that_crosses_it(study, base):
    record = run(study, base, {})
    spent = [each["tokens"] for each in record.history]
    assert record.rollout_tokens + record.update_tokens == spent[-1] >= 2_000 > spent[-2]
    # what the trainer itself says of its rollouts and updates, added up
    played = sum(each["prompt_tokens"] + each["response_tokens"] for each in record.history)
    assert record.rollout_tokens == played
    assert record.update_tokens == sum(each["update_tokens"] for each in record.history)
    # an evaluation at the start, and one at the first iteration past each third of the budget
    assert [point.tokens for point in record.points] == [0] + [
        next(tokens for tokens in spent if tokens >= share * 2_000 / 3) for share in (1, 2, 3)
    ]
    assert [point.iterations for point in record.points[1:]] == [
        1 + spent.index(point.tokens) for point in record.points[1:]
    ]


class Restless:
    """Plays fresh episodes from every first state, and counts what they cost by itself."""

    needs = frozenset({"rollouts"})
    response_tokens = 0

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        starts = [Start(each.task, each.states[0], 0, each.player) for each in batch.trajectories if each.task]
        batch.rollouts.returns_from(starts, 2)
        Restless.response_tokens += batch.rollouts.tokens
        return Credit.per_episode(batch, rng.standard_normal(len(batch)))


def test_fresh_rollouts_cost_tokens_too(study, base, monkeypatch):
    monkeypatch.setitem(METHODS._registered, "restless", Restless)
    Restless.response_tokens = 0
    record = run(study, base, {"credit": "restless"})
    own = sum(each["prompt_tokens"] + each["response_tokens"] for each in record.history)
    fresh = record.rollout_tokens - own
    # two fresh episodes for each one: all of their responses, and prompts that are longer than the responses
    assert Restless.response_tokens > 0
    assert fresh > 2 * Restless.response_tokens


def test_equal_seeds_give_equal_runs(study, base):
    one, two = run(study, base, {}), run(study, base, {})
    without = [[{k: v for k, v in each.items() if k != "seconds"} for each in record.history] for record in (one, two)]
    assert without[0] == without[1]
    assert one.points == two.points
