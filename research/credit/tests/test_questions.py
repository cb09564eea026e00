"""The questions that an exact gradient decides: figures whose truth is known, and a miniature from end to end."""

from typing import Any

import numpy as np
import pytest
import torch

from agents.msgrpo.credit import Batch, Credit, Trajectory
from benchmark.errors import UsageError
from research.credit.command import WORK
from research.credit.instrument.batches import Setting
from research.credit.instrument.exact.truth import Truth
from research.credit.instrument.gradients import exact_gradient
from research.credit.instrument.scores import ScoreModel
from research.credit.questions import work
from research.credit.questions.answers import (
    Asked,
    collapses,
    group_sizes,
    penalties,
    read_findings,
    shorts,
    splits,
    staleness,
)
from research.credit.questions.settings import Questions, jobs_of
from research.credit.settings import StudyFolder
from research.credit.tests.helpers import SMALL, direct_policy

MINIATURE = """
kind = "questions"
seeds = 2
evaluation_starts = 2
staleness = { lags = [1], batches = 2, groups = 2, group_size = 4 }
groups = { sizes = [2, 4], methods = ["dr_grpo"], episodes = 8, batches = 2, starts = 4 }
penalty = { penalties = [0.0, 1.0], tokens = 1_500, evaluations = 2 }
[msgrpo]
credit = "msgrpo"
learning_rate = 1e-2
response_mode = "direct"
groups = 2
group_size = 4
temperature = 1.0
max_response_tokens = 8
minibatches = 1
samples_every = 0
episode_sampling = "off"
[games.blackjack]
base = { examples = 200, steps = 10, batch_size = 8, hidden_size = 16, intermediate_size = 32, layers = 1 }
tokens = 3_000
imitation = [2]
"""


def test_with_weights_the_old_policys_batches_expect_the_new_ones_gradient():
    """Of a logit z with pi = sigmoid(z), ``grad log pi(1) = 1 - pi``; the exact gradient is ``pi (1 - pi)``.

    Both actions of a game of one step, whose responses are an action and an end that is certain, are paid 1 and 0."""
    new, old = 0.8, 0.3
    played = [
        Trajectory(group=0, rewards=np.array([paid]), old_logprobs=(np.log([chance, 1.0]),))
        for paid, chance in ((1.0, old), (0.0, 1 - old))
    ]
    now = [[np.log([chance, 1.0])] for chance in (new, 1 - new)]
    found = work.weighted(Batch(played), Credit.of([np.array([1.0]), np.array([0.0])]), now, 2.0)
    expected = {name: old * float(each.advantages[0][0][0]) * (1 - new) for name, each in found.items()}
    assert expected["token"] == pytest.approx(new * (1 - new))
    assert expected["episode"] == pytest.approx(new * (1 - new))
    assert expected["none"] == pytest.approx(old * (1 - new))
    assert expected["truncated"] == pytest.approx(2 * old * (1 - new))  # the ratio is 2.67
    assert list(found) == list(work.WEIGHTS)


@pytest.mark.slow
def test_lag_0_is_on_policy_and_drift_makes_the_cosine_fall():
    policy, far = direct_policy(), direct_policy()
    with torch.no_grad():
        generator = torch.Generator().manual_seed(0)
        for each in ScoreModel(far).parameters.values():
            each += 0.5 * torch.randn(each.shape, generator=generator, dtype=each.dtype)
    older = {0: policy, 1: direct_policy(), 2: far}
    rows = {
        (row["lag"], row["weights"]): row
        for row in work.staleness(policy, older, Setting(SMALL, 1, 32), batches=2, cap=2.0)
    }
    for weights in work.WEIGHTS:  # an older policy with the same weights is the policy itself
        assert rows[1, weights]["cosine"]["value"] == pytest.approx(rows[0, "none"]["cosine"]["value"], abs=1e-5)
    assert rows[0, "none"]["minus_fresh"]["value"] == 0
    assert abs(rows[1, "none"]["kl"]) < 1e-5 < 0.1 < rows[2, "none"]["kl"]
    assert rows[2, "none"]["cosine"]["value"] < rows[0, "none"]["cosine"]["value"]


def test_the_parts_of_the_gradient_add_up_to_the_whole():
    policy, setting = direct_policy(), Setting(SMALL, 1, 2, format_penalty=0.7)
    model, truth = ScoreModel(policy), setting.truth(policy)
    whole = exact_gradient(model, truth.answers, truth.solution, ()).vector
    parts = work.parts_of(model, truth)
    reward, penalty = work.solutions_of_parts(truth)
    for name in ("own_values", "choice_values", "invalid_values", "returns"):
        total = getattr(reward, name) + 0.7 * getattr(penalty, name)
        np.testing.assert_allclose(total, getattr(truth.solution, name), atol=1e-10)
    # the model's norms are computed in float32, so its gradients have seven digits
    assert float((parts.reward + 0.7 * parts.penalty - whole).norm()) < 1e-6 * float(whole.norm())
    assert float(parts.penalty.norm()) > 0
    assert -1 <= parts.figures()["cosine"] <= 1


def test_where_a_policy_stands_is_what_its_probabilities_say():
    setting = Setting(SMALL, 1, 2, format_penalty=0.0, max_steps=1)
    truth: Truth = setting.truth(direct_policy())
    shares = np.array([each.weight for each in truth.answers.responses[0]])
    given = shares / shares.sum()
    found = work.standing(truth)
    assert found["valid"] == pytest.approx(shares.sum())
    assert found["entropy"] == pytest.approx(-(given * np.log(given)).sum() / np.log(4))


def test_every_batch_draws_its_starts_from_the_same_few():
    starts = work.FewStarts(SMALL, groups=3, population=5)
    drawn = [starts.layouts(batch) for batch in range(20)]
    assert {len(set(each)) for each in drawn} == {3}
    assert {layout for each in drawn for layout in each} == set(starts.layouts())


@pytest.fixture
def miniature(tmp_path):
    (tmp_path / "mine.toml").write_text(MINIATURE, encoding="utf-8")
    return Questions.read(tmp_path / "mine.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lags = [1]", "lags = [0]", "staleness.lags.0 must .* greater than or equal to 1, got 0"),
        ("sizes = [2, 4]", "sizes = [3]", r"sizes = \[3\] must divide episodes = 8"),
        ("starts = 4 }", "starts = 3 }", r"in groups of 2 take 4 starts, and starts = 3"),
        (MINIATURE[MINIATURE.index("staleness") : MINIATURE.index("[msgrpo]")], "", "nothing is asked"),
    ],
)
def test_sizes_that_cannot_be_are_refused(tmp_path, old, new, message):
    (tmp_path / "mine.toml").write_text(MINIATURE.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        Questions.read(tmp_path / "mine.toml")


def test_the_recipe_asks_every_game_and_every_job_has_what_it_needs():
    jobs = {job.name: job for job in jobs_of(Questions.read("credit-questions"))}
    assert len(jobs) == 3 * (3 * 2 + 4)
    assert jobs["ask/blackjack/2/plain"].needs == ("base/blackjack/2",)
    only = jobs_of(Questions.read("credit-questions", {"games": ["blackjack"], "seeds": 1}))
    assert [job.name for job in only] == ["base/blackjack/0", "ask/blackjack/0/plain"]


def test_a_collapse_counts_before_the_first_success_alone(miniature):
    def run(penalty: float, success: list[float], entropy: list[float]) -> dict[str, Any]:
        points = [
            {"iterations": 2 * at, "entropy": each, "valid": 1.0, "returns": penalty} for at, each in enumerate(entropy)
        ]
        return {"penalty": penalty, "points": points, "success": success}

    runs = [run(0.0, [0, 0, 1, 0], [1.0, 0.2, 0.01]), run(1.0, [0, 0, 0, 1], [1.0, 0.05, 0.5])]
    asked = {f"ask/blackjack/{n}/2": {"standing": {}, "runs": runs} for n in range(2)}
    findings = Asked(miniature, bases={}, missing=(), seconds={}, code=(), asked=asked)
    assert [(each.penalty, each.collapsed) for each in shorts(findings)[:2]] == [(0.0, False), (1.0, True)]
    assert {penalty: each.value for penalty, each in collapses(findings).items()} == {0.0: 0.0, 1.0: 1.0}
    assert [each.difference.value for each in penalties(findings)] == [-1.0, 0.0]


def test_a_lag_is_compared_on_the_stages_that_have_it(miniature):
    """The middle has no policy 16 iterations older: its fresh batches are no part of what that lag costs."""

    def rows(**cosines: float) -> dict[str, Any]:
        told = {"weights": "none"}
        return {"staleness": [told | {"lag": int(lag[1:]), "cosine": {"value": own}} for lag, own in cosines.items()]}

    asked = {f"ask/blackjack/{n}/plain": {"stages": [rows(_0=0.9), rows(_0=0.3, _16=0.1 - 0.1 * n)]} for n in range(2)}
    findings = Asked(miniature, bases={}, missing=(), seconds={}, code=(), asked=asked)
    assert [each.difference.value for each in staleness(findings)] == pytest.approx([0.0, -0.25])


@pytest.mark.slow
def test_a_miniature_is_asked_everything_and_ends_in_a_report(miniature, tmp_path):
    pytest.importorskip("matplotlib")
    from research.credit.questions.report import draw_plots, report_data, report_markdown
    from research.credit.stored import recomputed
    from research.jobs.work import do

    folder = StudyFolder(tmp_path / "out")
    for job in jobs_of(miniature):
        do(WORK[job.kind], job, miniature, folder, lambda share: None)
    findings = read_findings(miniature, folder)
    assert not findings.missing
    assert {each.what for each in staleness(findings)} == {(0, "none"), *((1, name) for name in work.WEIGHTS)}
    assert [each.what for each in group_sizes(findings)] == [("dr_grpo", 2), ("dr_grpo", 4)]
    assert [each.place for each in splits(findings)] == ["base", "middle", "end", "2"] * 2
    assert [each.what for each in penalties(findings)] == [(0.0,), (1.0,)]
    names = [name for name, _ in draw_plots(findings, tmp_path)]
    text = report_markdown(findings, {"textbench": "1"}, plots=[(name, name) for name in names])
    for part in ("## Staleness", "## Group size at equal tokens", "### Training under it", "(penalty.svg)"):
        assert part in text
    data = report_data(findings, {})
    again = recomputed(data)
    assert [each["what"] for each in again["staleness"]] == [each["what"] for each in data["staleness"]]
    assert again["splits"][3]["share"] == pytest.approx(data["splits"][3]["share"], rel=1e-4)
