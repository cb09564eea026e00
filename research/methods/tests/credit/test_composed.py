"""Choice and EMPG by hand and by plain loops, over base methods of every kind, and within the trainer."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.credit import METHODS, Batch, Credit, Floats, Segment, register
from agents.msgrpo.credit.batch import Preferences
from tests.agents.msgrpo.hand_made import batch, trajectory

RNG = np.random.default_rng(0)
PARTS = (Segment("think", 0, 3), Segment("plan", 3, 4), Segment("action", 4, 6))


def spoken() -> Batch:
    """Two episodes of a group that return 1 and 0: z-values of 1/sqrt(2) and -1/sqrt(2)."""
    won, lost = trajectory([0.0, 1.0], "AB"), trajectory([0.0], "A")
    return batch(
        replace(won, response_ids=((1,) * 7, (1,) * 4), segments=(PARTS, (Segment("action", 1, 3),))),
        replace(lost, response_ids=((1,) * 3,), segments=((Segment("think", 0, 3),),)),
    )


def test_only_the_tokens_of_the_named_parts_have_advantages():
    credit = METHODS.make("choice").assign(spoken(), RNG)
    a = np.sqrt(0.5)
    np.testing.assert_allclose(credit.advantages[0][0], [0, 0, 0, a, a, a, 0], rtol=1e-5)
    np.testing.assert_allclose(credit.advantages[0][1], [0, a, a, 0], rtol=1e-5)
    # nothing was chosen in the form that is asked for, and that is what the update has to be about
    np.testing.assert_allclose(credit.advantages[1][0], [-a, -a, -a], rtol=1e-5)
    np.testing.assert_allclose(credit.draw_weight, [a, a], rtol=1e-5)  # the base method's own


def test_the_parts_can_be_chosen():
    credit = METHODS.make("choice", {"credited": ("action",)}).assign(spoken(), RNG)
    assert np.flatnonzero(credit.advantages[0][0]).tolist() == [4, 5]
    with pytest.raises(ConfigError, match="nothing would be learnt"):
        METHODS.make("choice", {"credited": ()})
    with pytest.raises(ConfigError, match="another method"):
        METHODS.make("choice", {"base": "choice"})


def test_a_base_method_that_tells_tokens_apart_keeps_its_own_where_something_was_chosen():
    @register("counting")
    class Counting:
        needs = frozenset({"old_logprobs"})

        def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
            return Credit.of([[np.arange(1.0, len(ids) + 1) for ids in t.response_ids] for t in batch.trajectories])

    method = METHODS.make("choice", {"base": "counting"})
    assert method.needs == {"old_logprobs", "segments"}
    credit = method.assign(spoken(), RNG)
    assert credit.advantages[0][0].tolist() == [0, 0, 0, 4, 5, 6, 0]


def ragged() -> Batch:
    rng = np.random.default_rng(3)
    made = []
    for i in range(8):
        steps = 1 + i % 3
        entropies = rng.uniform(0, 2, size=steps)
        rewards = rng.normal(size=steps).round(2).tolist()
        made.append(trajectory(rewards, rng.integers(2, size=steps).tolist(), group=i % 2, entropies=entropies))
    return batch(*made)


def plain(given: Batch, base: Credit, zeta: float) -> list[list[float]]:
    flat = [h for each in given.trajectories for h in each.entropies.tolist()]  # type: ignore[union-attr]
    least, most = min(flat), max(flat)

    def sure(entropy: float) -> float:
        return math.exp(-(entropy - least) / (most - least + 1e-8))

    mean = sum(map(sure, flat)) / len(flat)
    rows: list[list[float]] = []
    for i, each in enumerate(given.trajectories):
        entropies = each.entropies.tolist()  # type: ignore[union-attr]
        rows.append([])
        for t in range(len(each)):
            bonus = zeta * sure(entropies[t + 1]) if t + 1 < len(each) else 0.0
            rows[-1].append(float(base.advantages[i][t]) * sure(entropies[t]) / mean + bonus)  # type: ignore[arg-type]
    level = sum(map(sum, rows)) / len(flat)
    return [[value - level for value in row] for row in rows]


@pytest.mark.parametrize("base", ["msgrpo", "rtg", "gigpo", "dr_grpo"])
@pytest.mark.parametrize("zeta", [0.0, 0.05, 0.7])
def test_equals_the_formula_over_any_method(base, zeta):
    given = ragged()
    credit = METHODS.make("empg", {"base": base, "zeta": zeta}).assign(given, RNG)
    wanted = plain(given, METHODS.make(base).assign(given, RNG), zeta)
    for row, expected in zip(credit.advantages, wanted, strict=True):
        np.testing.assert_allclose(row, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(credit.draw_weight, [np.abs(row).mean() for row in wanted])


class Tokens:
    needs = frozenset({"values"})
    heads = {"own": "token"}  # noqa: RUF012

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        targets: dict[str, list[Floats]] = {"own": [np.zeros(2)]}
        told: dict[str, Any] = {"metrics": {"seen": 1.0}, "preferences": Preferences([(0, 0)], 1.0)}
        return Credit.of([[np.array([1.0, 3.0]), np.array([4.0])]], value_targets=targets, **told)


def test_a_method_that_tells_tokens_apart_is_modulated_step_by_step():
    method: Any = METHODS.make("empg", {"base": f"{__name__}:Tokens", "zeta": 0.5})
    assert method.needs == {"values", "entropies"}
    assert method.heads == {"own": "token"}
    credit = method.assign(batch(trajectory([0.0, 0.0], entropies=np.array([1.0, 0.0]))), RNG)
    mean = (1 + 1 / math.e) / 2
    g = (1 / math.e / mean, 1 / mean)
    rows = [[g[0] + 0.5, 3 * g[0] + 0.5], [4 * g[1]]]
    level = (sum(rows[0]) / 2 + rows[1][0]) / 2
    for got, row in zip(credit.advantages[0], rows, strict=True):
        np.testing.assert_allclose(got, [each - level for each in row], rtol=1e-6)
    assert credit.value_targets is not None
    assert credit.metrics == {"seen": 1.0}
    assert credit.preferences == Preferences([(0, 0)], 1.0)


def test_the_base_method_keeps_what_it_learns_and_its_own_table_of_settings():
    settings = {"credit": {"empg": {"base": "rae"}, "rae": {"decay": 0.5}}}
    methods = Methods.of(MSGRPOConfig(credit="empg", method_settings=settings))
    assert methods.needs == {"entropies"}
    given = ragged()
    methods.credit.assign(given, RNG)
    learnt = methods.state_dict()
    assert learnt["credit"]
    alone: Any = METHODS.make("rae", {"decay": 0.5})
    alone.assign(given, RNG)
    assert learnt["credit"] == alone.state_dict()
    other = Methods.of(MSGRPOConfig(credit="empg", method_settings=settings))
    other.load_state_dict(learnt)
    assert other.state_dict() == learnt
    assert "credit" not in Methods.of(MSGRPOConfig()).state_dict()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"base": "empg"}, r"\[credit.empg\] base = 'empg' can't be used: accepted is another method"),
        ({"base": "msgrop"}, "'msgrop' can't be used .did you mean 'msgrpo'"),
        ({"zeta": -1.0}, r"\[credit.empg\] zeta must be .* got -1.0"),
    ],
)
def test_wrong_settings(settings, said):
    with pytest.raises(ConfigError, match=said):
        METHODS.make("empg", settings)


def test_the_trainer_gives_it_entropies(tokenizer, make_llama, prompt_file):
    config = MSGRPOConfig(
        groups=2, group_size=4, iterations=2, response_mode="direct", max_response_tokens=2, learning_rate=1e-3,
        temperature=1.0, eval_every=0, samples_every=0, prompt_file=prompt_file, credit="empg",
    )  # fmt: skip
    trainer = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", config, quiet=True)
    batch = trainer.rollout()
    assert all(each.entropies is not None and (each.entropies > 0).all() for each in batch.trajectories)
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    trainer.train()
    assert any((old != new).any() for old, new in zip(before, trainer.model.parameters(), strict=True))
