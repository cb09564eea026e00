"""The whole measurement: what must hold of any game and policy, and the document that is printed."""

from typing import ClassVar

import numpy as np
import pytest
from pydantic import TypeAdapter

from agents import load_agent
from agents.msgrpo.credit import Credit
from research.credit.instrument.batches import Setting
from research.credit.instrument.instrument import Instrument, measure, methods_of
from research.credit.instrument.show.document import CreditDocument
from research.credit.tests.helpers import HORIZON, direct_policy
from textgames import SCENARIOS, Scenario

SMALL = Scenario(
    "small-lake", "TextFrozenLake-v0", {"desc": ["SFF", "FHG"], "is_slippery": True, "grid": False}, HORIZON, 0
)


class HalfTrue:
    """Half of the true advantage, in every second episode with the wrong sign."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, truth):
        self.truth = truth

    def assign(self, batch, rng):
        signs = [1 if i % 2 else -1 for i in range(len(batch))]
        true = [self.truth.advantages(each) for each in batch.trajectories]
        return Credit.of([0.5 * sign * each for sign, each in zip(signs, true, strict=True)])


class TokenByToken:
    """The true advantage, told token by token."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, truth):
        self.truth = truth

    def assign(self, batch, rng):
        return Credit.of(
            [
                [np.full(len(ids), a) for ids, a in zip(each.response_ids, self.truth.advantages(each), strict=True)]
                for each in batch.trajectories
            ]
        )


def test_the_correlation_is_pearsons_over_all_steps():
    instrument = Instrument(load_agent("random"), Setting(SCENARIOS["frozen-lake"], 3, 4), batches=3)
    method = HalfTrue(instrument.truth)
    found = instrument.measure({"half": method})["half"].fidelity
    assigned, true = [], []
    for number, batch in enumerate(instrument.batches):
        credit = method.assign(batch, np.random.default_rng(number))
        for each, own in zip(batch.trajectories, credit.advantages, strict=True):
            assigned += own.tolist()
            true += instrument.truth.advantages(each).tolist()
    assert found.correlation.value == pytest.approx(np.corrcoef(assigned, true)[0, 1])
    agreeing = [x * y > 0 for x, y in zip(assigned, true, strict=True) if abs(y) > 1e-9]
    assert found.sign_agreement.value == pytest.approx(np.mean(agreeing))


GAMES = {
    "dry-lake": {"desc": ["SFF", "FHG"], "is_slippery": False},
    "slippery-lake": {"desc": ["SFF", "FHG"], "is_slippery": True},
    "open-lake": {"desc": ["SFF", "FFG"], "is_slippery": True},
}


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_the_oracle_has_no_bias_and_noise_has_no_direction(game):
    lake = Scenario(game, "TextFrozenLake-v0", {**GAMES[game], "grid": False}, HORIZON, 0)
    report = measure(direct_policy(), lake, ["rloo"], groups=1, group_size=64, batches=32)
    oracle, noise, rloo = (report[name].gradient.bias for name in ("oracle", "noise", "rloo"))
    assert oracle.low <= 1 <= oracle.high
    assert oracle.value == pytest.approx(1, abs=0.1)
    assert oracle.high - oracle.low < 0.7
    assert rloo.low <= 1 <= rloo.high  # leave-one-out baselines leave the direction as it is
    assert noise.low <= 0 <= noise.high
    assert abs(noise.value) < 1
    assert noise.high - noise.low > 1
    assert not report.weak


@pytest.mark.slow
def test_the_same_credit_told_token_by_token_is_the_same_gradient():
    instrument = Instrument(direct_policy(), Setting(SMALL, groups=1, group_size=24), batches=3)
    report = instrument.measure({"by token": TokenByToken(instrument.truth)}, draws=["uniform"], sizes=[4])
    oracle, by_token = report["oracle"], report["by token"]
    assert by_token.gradient.cosine.value == pytest.approx(oracle.gradient.cosine.value, abs=1e-4)
    # equal seeds draw the same episodes, so this looks at each one's own gradient
    assert by_token.draws[0].cosine.value == pytest.approx(oracle.draws[0].cosine.value, abs=1e-4)
    assert by_token.draws[0].variance.value == pytest.approx(oracle.draws[0].variance.value, rel=1e-3)
    assert by_token.fidelity.correlation.value == pytest.approx(1)


def test_the_document_has_the_published_shape():
    report = measure(direct_policy(), SMALL, ["msgrpo"], groups=1, group_size=8, batches=2, draws=["aaw"])
    document = report.to_json()
    TypeAdapter(CreditDocument).validate_python(document, strict=True)
    assert {method["name"] for method in document["methods"]} == {"msgrpo", "oracle", "noise"}
    assert set(document["methods"][0]["correlation"]) == {"value", "low", "high"}


def test_methods_that_look_at_parts_of_responses_get_them():
    class Parts(HalfTrue):
        needs: ClassVar[frozenset[str]] = frozenset({"segments"})
        parts: ClassVar[tuple[str, ...]] = ("action",)

        def assign(self, batch, rng):
            valid = [parts for t in batch.trajectories for parts, ok in zip(t.segments, t.valid, strict=True) if ok]
            assert valid
            assert all([part.name for part in parts][-1] == "action" for parts in valid)
            return super().assign(batch, rng)

    class Subgoals(Parts):
        parts: ClassVar[tuple[str, ...]] = ("subgoal",)

    policy = load_agent("tiny", temperature=1.25)
    instrument = Instrument(policy, Setting(SCENARIOS["frozen-lake"], 1, 4, 2), batches=1, samples=2, gradient=False)
    parts, subgoals = Parts(instrument.truth), Subgoals(instrument.truth)
    skipped = instrument.measure({"parts": parts, "subgoals": subgoals}).skipped
    assert "parts" not in skipped
    assert "<subgoal>" in skipped["subgoals"]


def test_a_method_that_refuses_the_batch_is_left_out_with_its_reason():
    class Picky(HalfTrue):
        def assign(self, batch, rng):
            raise ValueError("it wants groups of five")

    instrument = Instrument(load_agent("random"), Setting(SCENARIOS["frozen-lake"], 1, 4), batches=1)
    assert instrument.measure({"picky": Picky(instrument.truth)}).skipped == {"picky": "it wants groups of five"}


def test_methods_get_values_for_every_head_that_they_name():
    class Reader(HalfTrue):
        needs: ClassVar[frozenset[str]] = frozenset({"values"})
        heads: ClassVar[dict[str, str]] = {"high": "step", "low": "token"}

        def assign(self, batch, rng):
            for each in batch.trajectories:
                assert np.array_equal(each.head_values["high"], each.values)
                assert [len(own) for own in each.head_values["low"]] == [len(ids) for ids in each.response_ids]
                assert [own[-1] for own in each.head_values["low"]] == each.values.tolist()
            return super().assign(batch, rng)

    instrument = Instrument(direct_policy(), Setting(SMALL, 1, 4), batches=1, gradient=False)
    assert "reader" not in instrument.measure({"reader": Reader(instrument.truth)}).skipped


def test_a_critic_is_as_good_as_the_prompts_allow():
    """In Frozen Lake the prompt doesn't tell the time: the value is the mean over the times of a visit."""
    instrument = Instrument(direct_policy(), Setting(SMALL, groups=1, group_size=4), batches=1, gradient=False)
    truth = instrument.truth
    (trajectory, *_) = instrument.batches[0].trajectories
    start = truth.graph.starts[0]
    visits, values = truth.solution.visits[:, start], truth.solution.values[:-1, start, 0]
    assert truth.prompt_values(trajectory)[0] == pytest.approx(visits @ values / visits.sum())


@pytest.mark.slow
def test_equal_seeds_give_equal_documents():
    """Whether the seed is said of a game or stands in a setting of it."""
    kuhn = SCENARIOS["kuhn-poker"]
    first, second = [
        measure(load_agent("random"), played, ["msgrpo"], batches=2, seed=5).to_json()
        for played in (kuhn, Setting(kuhn, seed=3))
    ]
    for document in (first, second):
        for method in document["methods"]:
            method["seconds"] = 0
    assert first == second


def test_settings_that_cannot_be_measured():
    with pytest.raises(ValueError, match="at least 2 episodes"):
        Setting(SCENARIOS["frozen-lake"], groups=2, group_size=1)
    with pytest.raises(ValueError, match="at least 1"):
        Instrument(load_agent("random"), Setting(SCENARIOS["frozen-lake"]), batches=0)
    with pytest.raises(TypeError, match="grops"):
        measure(load_agent("random"), SCENARIOS["frozen-lake"], grops=2)
    assert list(methods_of(["msgrpo", "oracle"], Setting(SCENARIOS["frozen-lake"]))) == ["msgrpo"]
