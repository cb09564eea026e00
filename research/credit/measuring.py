"""What is measured at a stage of training: methods of credit, and draw rules, under the instrument.

Draw rules are compared on two references: the exact gradient, and, as one can do where there is none, the mean gradient
of all other batches, every episode in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from agents.msgrpo.credit import METHODS, CreditMethod
from agents.msgrpo.errors import ConfigError
from benchmark.credit.batches import Setting, play
from benchmark.credit.draws.comparison import DrawnBatch, compare_draws
from benchmark.credit.draws.study import gradients_of_others, ready_to_draw
from benchmark.credit.exact.answers import Progress
from benchmark.credit.gradients.scores import ScoreModel
from benchmark.credit.instrument import Instrument
from research.credit.jobs import StudyFolder, StudyJob
from research.credit.players import load, policy_of
from research.credit.settings import DrawMeasurement, Measurement, Study
from research.jobs.work import Report
from textgames.scenarios import SCENARIOS

DRAWN_METHOD = "msgrpo"
"""The method whose episodes are drawn from: the paper's own, whose draw rule AAW is."""


def methods_at(job: StudyJob, study: Study, folder: StudyFolder, report: Report) -> dict[str, Any]:
    """Every method that the measurement lacks, beside what it has already."""
    instrument = _instrument(job, study, folder, study.measurement, report)
    able: dict[str, CreditMethod] = {}
    refused: dict[str, str] = {}
    for name in folder.unmeasured(job.name):
        try:
            able[name] = _made(name, instrument.setting)
        except ConfigError as error:
            refused[name] = str(error)
    found = instrument.measure(able).to_json()
    found["skipped"] |= refused
    if folder.result_file(job.name).exists():  # the batches are the same, as their seeds and the model are
        before = folder.result(job.name)
        new = {method["name"] for method in found["methods"]}
        found["methods"] = [each for each in before["methods"] if each["name"] not in new] + found["methods"]
        found["skipped"] = before["skipped"] | found["skipped"]
    return dict(found)


def _made(name: str, setting: Setting) -> CreditMethod:
    return METHODS.make(name, {}, vars(setting.config))


def _instrument(job: StudyJob, study: Study, folder: StudyFolder, size: Measurement, report: Report) -> Instrument:
    model, tokenizer = load(folder.stage(job.game, job.stage))
    policy = policy_of(model, tokenizer, study.temperature, job.stage)
    game = study.games[job.game]
    setting = Setting(study.scenario(job.game), size.groups, size.group_size)
    return Instrument(
        policy,
        setting,
        batches=size.batches,
        max_states=game.max_states,
        progress=lambda what, done, total: report(_SHARES.get(what, 0.0) + 0.3 * done / max(1, total)),
    )


_SHARES = {"batches played": 0.0, "credit assigned": 0.3, "batches' gradients": 0.6}
"""Where in a measurement its parts begin, for the progress display."""


def draws_at(job: StudyJob, study: Study, folder: StudyFolder, report: Report) -> dict[str, Any]:
    """Draw rules at one stage of training, against the exact gradient and against that of all other batches."""
    instrument = _instrument(job, study, folder, study.draws, report)
    assert instrument.exact is not None
    assert instrument.model is not None
    credits = instrument.assign(DRAWN_METHOD, _made(DRAWN_METHOD, instrument.setting)).credits
    exact, model = instrument.exact.vector.float(), instrument.model
    others = gradients_of_others(model, instrument.batches, credits)
    norms = {"exact": [float(exact.norm())] * len(others), "others": [float(each.norm()) for each in others]}
    drawn = ready_to_draw(model, instrument.batches, credits, exact=exact, others=others, tell=_second_half(report))
    found = {"name": DRAWN_METHOD, **_compared(drawn, study.draws, norms)}
    return {"methods": [found], "expected_return": float(instrument.truth.solution.returns.mean())}


def draws_of_thinking(job: StudyJob, study: Study, folder: StudyFolder, report: Report) -> dict[str, Any]:
    """Draw rules of the plain method for a model that reasons, against the mean gradient of all other batches."""
    from agents.load import load_agent
    from agents.models.base import Decoding

    thinking = study.thinking
    assert thinking is not None
    setting = Setting(SCENARIOS[job.game], thinking.groups, thinking.group_size)
    policy: Any = load_agent(thinking.agent)
    policy.decoding = replace(policy.decoding or Decoding(), temperature=thinking.temperatures[job.game], max_tokens=48)
    model = ScoreModel(policy)
    batches = []
    for number in range(thinking.batches):
        report(0.4 * number / thinking.batches)
        batches.append(play(policy, setting, number, fresh_starts=True))
    method = _made(DRAWN_METHOD, setting)
    credits = [method.assign(batch, np.random.default_rng(0)) for batch in batches]
    others = gradients_of_others(model, batches, credits)
    drawn = ready_to_draw(model, batches, credits, others=others, tell=_second_half(report))
    found = _compared(drawn, thinking, {"others": [float(each.norm()) for each in others]})
    return {"methods": [{"name": DRAWN_METHOD, **found}]}


def _second_half(report: Report) -> Progress:
    return lambda what, done, total: report(0.5 + 0.5 * done / max(1, total))


def _compared(
    drawn: Sequence[DrawnBatch], size: DrawMeasurement, norms: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """The figures of every rule and number of draws, and how much of a batch has no signal.

    ``norms`` are the lengths of every batch's references, in the order of their columns.
    """
    results = []
    for column, (name, lengths) in enumerate(norms.items()):
        compared = compare_draws(drawn, size.rules, size.sizes, lengths, reference=column, reference_name=name)
        results += [each.to_json() for each in compared]
    silent = [float(np.mean(each.credit.draw_weight == 0)) for each in drawn]
    return {"draws": results, "without_signal": float(np.mean(silent)), "batches": len(drawn)}
