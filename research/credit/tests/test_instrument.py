"""The whole measurement: what must hold of any game and policy, its document, its picture and its command."""

import json
import xml.etree.ElementTree as ElementTree
from typing import ClassVar

import numpy as np
import pytest
from pydantic import TypeAdapter

from agents import load_agent
from agents.msgrpo.credit import Credit
from research.credit.instrument.batches import Setting
from research.credit.instrument.instrument import Instrument, measure, methods_of
from research.credit.instrument.pictures import board_picture
from research.credit.instrument.results import CreditDocument
from research.credit.tests.helpers import SMALL, direct_policy
from textgames import SCENARIOS


class HalfTrue:
    """Half of the true advantage, in every second episode with the wrong sign."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, truth):
        self.truth = truth

    def assign(self, batch, rng):
        signs = [1 if i % 2 else -1 for i in range(len(batch))]
        true = [self.truth.advantages(each) for each in batch.trajectories]
        return Credit.of([0.5 * sign * each for sign, each in zip(signs, true, strict=True)])


class TokenByToken(HalfTrue):
    """The true advantage, told token by token."""

    def assign(self, batch, rng):
        pairs = [zip(each.response_ids, self.truth.advantages(each), strict=True) for each in batch.trajectories]
        return Credit.of([[np.full(len(ids), a) for ids, a in own] for own in pairs])


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


@pytest.mark.slow
def test_the_oracle_has_no_bias_and_noise_has_no_direction():
    report = measure(direct_policy(), SMALL, ["rloo", "vine"], groups=1, group_size=64, batches=32)
    assert report["vine"].extra_tokens > 0 == report["rloo"].extra_tokens  # of rollouts, which are drawn here
    assert report["vine"].fidelity.correlation.low > report["rloo"].fidelity.correlation.high
    oracle, noise, rloo = (report[name].gradient.bias for name in ("oracle", "noise", "rloo"))
    assert oracle.low <= 1 <= oracle.high
    assert oracle.value == pytest.approx(1, abs=0.1)
    assert oracle.high - oracle.low < 0.7
    assert rloo.low <= 1 <= rloo.high  # leave-one-out baselines leave the direction as it is
    assert noise.low <= 0 <= noise.high
    assert abs(noise.value) < 1
    assert noise.high - noise.low > 1
    assert not report.weak


def test_the_same_credit_told_token_by_token_is_the_same_gradient():
    instrument = Instrument(direct_policy(), Setting(SMALL, groups=1, group_size=24), batches=3)
    report = instrument.measure({"by token": TokenByToken(instrument.truth)}, draws=["uniform"])
    oracle, by_token = report["oracle"], report["by token"]
    assert by_token.gradient.cosine.value == pytest.approx(oracle.gradient.cosine.value, abs=1e-4)
    # equal seeds draw the same episodes, so this looks at each one's own gradient
    assert by_token.draws[0].cosine.value == pytest.approx(oracle.draws[0].cosine.value, abs=1e-4)
    assert by_token.draws[0].variance.value == pytest.approx(oracle.draws[0].variance.value, rel=1e-3)
    assert by_token.fidelity.correlation.value == pytest.approx(1)
    TypeAdapter(CreditDocument).validate_python(report.to_json(), strict=True)


class Parts(HalfTrue):
    needs: ClassVar[frozenset[str]] = frozenset({"segments"})
    parts: tuple[str, ...] = ("action",)

    def assign(self, batch, rng):
        told = [own for each in batch.trajectories for own, ok in zip(each.segments, each.valid, strict=True) if ok]
        assert {own[-1].name for own in told} == {"action"}
        return super().assign(batch, rng)


def test_methods_that_look_at_parts_of_responses_get_them():
    policy = load_agent("tiny", temperature=1.25)
    instrument = Instrument(policy, Setting(SCENARIOS["frozen-lake"], 1, 4, 2), batches=1, samples=2, gradient=False)
    methods = {"parts": Parts(instrument.truth), "subgoals": Parts(instrument.truth)}
    methods["subgoals"].parts = ("subgoal",)
    skipped = instrument.measure(methods).skipped
    assert list(skipped) == ["subgoals"]
    assert "<subgoal>" in skipped["subgoals"]


def test_methods_get_values_for_every_head_that_they_name_or_are_left_out_with_their_reason():
    class Picky(HalfTrue):
        def assign(self, batch, rng):
            raise ValueError("it wants groups of five")

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
    methods = {"reader": Reader(instrument.truth), "picky": Picky(instrument.truth)}
    assert instrument.measure(methods).skipped == {"picky": "it wants groups of five"}


def test_a_critic_is_as_good_as_the_prompts_allow():
    """In Frozen Lake the prompt doesn't tell the time: the value is the mean over the times of a visit."""
    instrument = Instrument(direct_policy(), Setting(SMALL, groups=1, group_size=4), batches=1, gradient=False)
    truth = instrument.truth
    (trajectory, *_) = instrument.batches[0].trajectories
    start = truth.graph.starts[0]
    visits, values = truth.solution.visits[:, start], truth.solution.values[:-1, start, 0]
    assert truth.prompt_values(trajectory)[0] == pytest.approx(visits @ values / visits.sum())


def test_settings_that_cannot_be_measured():
    with pytest.raises(ValueError, match="at least 2 episodes"):
        Setting(SCENARIOS["frozen-lake"], groups=2, group_size=1)
    with pytest.raises(ValueError, match="at least 1"):
        Instrument(load_agent("random"), Setting(SCENARIOS["frozen-lake"]), batches=0)
    with pytest.raises(TypeError, match="grops"):
        measure(load_agent("random"), SCENARIOS["frozen-lake"], draws=["aaw"], grops=2)
    assert list(methods_of(["msgrpo", "oracle"], Setting(SCENARIOS["frozen-lake"]))) == ["msgrpo"]


# ---------------------------------------------------------------- the picture

SVG = "{http://www.w3.org/2000/svg}"


def test_every_move_that_was_made_is_drawn_with_its_figures_and_wrong_signs_with_an_edge():
    setting = Setting(SCENARIOS["frozen-lake"], groups=2, group_size=8, max_steps=8)
    instrument = Instrument(load_agent("random"), setting, batches=2, gradient=False)
    instrument.measure(methods_of(["msgrpo"], setting))
    root = ElementTree.fromstring(board_picture(instrument, ["msgrpo", "oracle", "noise"]))
    assert "oracle, times 1" in [text.text for text in root.iter(f"{SVG}text")]
    polygons = list(root.iter(f"{SVG}polygon"))
    each, rest = divmod(len(polygons), 9)
    assert rest == 0  # three methods with three panels of the same moves
    # the last panel of the oracle: nothing is left of the difference, so all of it is white
    assert {polygon.get("fill") for polygon in polygons[5 * each : 6 * each]} == {"#ffffff"}
    edged = [number for number, polygon in enumerate(polygons) if polygon.get("stroke") == "black"]
    for number in edged:
        told = polygons[number].findtext(f"{SVG}title") or ""
        true, assigned = [float(part.split()[1]) for part in told.split(": ")[1].split(", ")[:2]]
        assert true * assigned <= 0
    assert not any(3 * each <= number < 6 * each for number in edged)  # the oracle's
    assert any(number >= 6 * each for number in edged)  # those of noise


# ---------------------------------------------------------------- the command

FEW = ("--groups", "2", "--group-size", "4", "--batches", "2")


def test_the_checklist_is_filled_in_with_what_is_known_and_no_more(textbench):
    wanted = ("--method", "msgrpo", "--method", "vine", "--method", "ppo_turn", "--checklist", "--quiet")
    arguments = ("credit", "random", "--game", "frozen-lake", *FEW, *wanted)
    done = textbench(*arguments)
    assert (done.code, done.err) == (0, "")
    for line in (
        "credit of random on frozen-lake", "No gradients", "True advantages: exact",
        "[x] Granularity of the credit*: episode: msgrpo; step: vine, ppo_turn, oracle, noise",
        "[x] Family of the method*: Monte Carlo: msgrpo, vine; temporal difference: ppo_turn",
        "[x] A baseline by episode on the same model*: msgrpo",
        "[ ] Hours of training*",
    ):  # fmt: skip
        assert line in done.out
    document = json.loads(textbench(*arguments, "--json").out)
    open_items = [each["item"] for each in document["checklist"] if each["said"] is None]
    assert (len(document["checklist"]), open_items) == (15, ["Ablation of the credit's parts", "Hours of training"])
    assert 0 < document["truth"]["forks"] < 1
    least, median, most = document["episode_lengths"]
    assert 1 <= least <= median <= most <= 8


def test_every_method_is_measured_or_left_out_with_a_reason(textbench):
    done = textbench("credit", "random", "--game", "kuhn-poker", *FEW, "--method", "all", "--json")
    assert done.code == 0
    document = json.loads(done.out)
    TypeAdapter(CreditDocument).validate_python(document, strict=True)
    by_name = {method["name"]: method for method in document["methods"]}
    assert {"hcapo", "hiper", "ppo_bilevel", "empg"} <= document["skipped"].keys()
    assert {"noise", "gagpo", "beacon", "vine"} <= by_name.keys()
    assert by_name["oracle"]["correlation"]["value"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("random", "--draws", "awa"), "did you mean 'aaw'"),
        (("random", "--m", "4"), "name one with --draws"),
        (("random", "--draws", "aaw", "--m", "999"), "--m 999: a batch has"),
        (("random", "--draws", "aaw", "--no-gradient"), "leave out --no-gradient"),
        (("random", "--draws", "aaw"), "there are none: random has no model in this process"),
        (("random", "--max-states", "10"), "more than 10 states can be reached"),
        (("random", "--game", "word-guess"), "word-guess: "),
        (("random", "--horizon", "8"), "there is no option '--horizon'; it is called --max-steps"),
    ],
)
def test_a_mistake_is_one_sentence(textbench, arguments, said):
    done = textbench("credit", *FEW, *arguments)  # of an option that is given twice the last one counts
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_credit_draws_a_picture(textbench, tmp_path):
    file = tmp_path / "credit.svg"
    done = textbench("credit", "random", "--method", "msgrpo", *FEW, "--quiet", "--picture", str(file))
    assert done.code == 0
    assert file.read_text().startswith("<svg")
    done = textbench("credit", "random", "--game", "kuhn-poker", *FEW, "--picture", str(file))
    assert done.code == 2
    assert "can't be drawn" in done.err
    done = textbench("credit", "random", *FEW, "--picture", str(tmp_path / "no" / "file.svg"))
    assert done.code == 2
    assert done.err.startswith("textbench: can't write ")
    assert "played" not in done.err  # which is told as progress
