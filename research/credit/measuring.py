"""What is measured at a stage of training: methods of credit, and draw rules, under the instrument.

Draw rules are compared on two references: the exact gradient, and the mean gradient of all other batches, which exists
without an exact one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.msgrpo import ConfigError
from agents.msgrpo.credit import METHODS, Batch, Credit, CreditMethod
from research.credit.instrument.batches import Setting, play
from research.credit.instrument.draws import DrawnBatch, compare_draws
from research.credit.instrument.gradients import EpisodeGradients, RowProducts, episode_by_episode, numbered
from research.credit.instrument.instrument import Instrument
from research.credit.instrument.scores import ScoreModel
from research.credit.settings import DrawMeasurement, Measurement, Study, StudyFolder, StudyJob
from research.credit.training import policy_of
from research.jobs.bases import load
from research.jobs.work import Report
from textgames import SCENARIOS

DRAWN_METHOD = "msgrpo"
"""The method whose episodes are drawn from: the paper's own, whose draw rule AAW is."""


def methods_at(job: StudyJob, study: Study, folder: StudyFolder, report: Report) -> dict[str, Any]:
    """Return the methods that the measurement lacks, beside those that it has."""
    assert study.measurement is not None  # there are no such jobs otherwise
    instrument = _instrument(job, study, folder, study.measurement, report)
    able: dict[str, CreditMethod] = {}
    refused: dict[str, str] = {}
    for name in folder.unmeasured(job.name):
        try:
            able[name] = METHODS.make(name, {}, vars(instrument.setting.config))
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


def _instrument(job: StudyJob, study: Study, folder: StudyFolder, size: Measurement, report: Report) -> Instrument:
    model, tokenizer = load(folder.stage(job.game, job.stage, job.run))
    policy = policy_of(model, tokenizer, study.temperature, job.stage)
    game = study.games[job.game]
    setting = Setting(study.scenario(job.game), size.groups, size.group_size, seed=job.run)
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
    """Return draw rules at one stage, against the exact gradient and against that of all other batches."""
    assert study.draws is not None
    instrument = _instrument(job, study, folder, study.draws, report)
    assert instrument.exact is not None
    assert instrument.model is not None
    credits = instrument.assign(DRAWN_METHOD, METHODS.make(DRAWN_METHOD, {}, vars(instrument.setting.config))).credits
    exact = instrument.exact.vector.float()
    found = _compared(instrument.model, instrument.batches, credits, study.draws, report, exact)
    return {"methods": [found], "expected_return": float(instrument.truth.solution.returns.mean())}


def draws_of_thinking(job: StudyJob, study: Study, folder: StudyFolder, report: Report) -> dict[str, Any]:
    """Return draw rules for a model that reasons, against the mean gradient of all other batches."""
    from agents import load_agent
    from agents.models import Decoding

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
    method = METHODS.make(DRAWN_METHOD, {}, vars(setting.config))
    credits = [method.assign(batch, np.random.default_rng(0)) for batch in batches]
    return {"methods": [_compared(model, batches, credits, thinking, report)]}


def _compared(
    model: ScoreModel,
    batches: Sequence[Batch],
    credits: Sequence[Credit],
    size: DrawMeasurement,
    report: Report,
    exact: Tensor | None = None,
) -> dict[str, Any]:
    """Return the figures of every rule and number of draws, by every reference that there is."""
    others = gradients_of_others(model, batches, credits)
    norms: dict[str, list[float]] = {} if exact is None else {"exact": [float(exact.norm())] * len(others)}
    norms["others"] = [float(each.norm()) for each in others]
    drawn = ready_to_draw(model, batches, credits, exact=exact, others=others, report=report)
    results = []
    for column, (name, lengths) in enumerate(norms.items()):
        compared = compare_draws(drawn, size.rules, size.sizes, lengths, reference=column, reference_name=name)
        results += [each.to_json() for each in compared]
    silent = float(np.mean([float(np.mean(each.draw_weight == 0)) for each in credits]))
    return {"name": DRAWN_METHOD, "draws": results, "without_signal": silent, "batches": len(drawn)}


def gradients_of_others(model: ScoreModel, batches: Sequence[Batch], credits: Sequence[Credit]) -> list[Tensor]:
    """Return (size,) for every batch, the mean gradient of all other batches."""
    rows = [each for part in numbered(batches, model.size) for each in part]
    gradients = [each.gradient(model, credit) for each, credit in zip(rows, credits, strict=True)]
    total = torch.stack(gradients).sum(dim=0)
    return [(total - own) / max(1, len(gradients) - 1) for own in gradients]


def ready_to_draw(
    model: ScoreModel,
    batches: Sequence[Batch],
    credits: Sequence[Credit],
    *,
    exact: Tensor | None = None,
    others: Sequence[Tensor] | None = None,
    report: Report = lambda share: None,
) -> list[DrawnBatch]:
    """Return batches with the gradients of their episodes, along ``exact`` (size,) and each batch's own of
    ``others``."""
    drawn: list[DrawnBatch] = []
    shared = [] if exact is None else [exact.float()]
    for part in numbered(batches, model.size):
        first, last = len(drawn), len(drawn) + len(part)
        report(0.5 + 0.5 * first / len(batches))
        own = [] if others is None else [each.float() for each in others[first:last]]
        references = torch.stack([*shared, *own], dim=1)
        products = None
        # episodes with an advantage have a gradient: where responses reason, they are fewer than different rows
        episodes = [own for each in credits[first:last] for own in each.advantages]
        if len(part[0].rows) <= sum(any(np.any(each) for each in own) for own in episodes):
            products = RowProducts(model, part[0].rows, references)
        for place, (rows, credit) in enumerate(zip(part, credits[first:last], strict=True)):
            found = products.episodes(rows, credit) if products else episode_by_episode(model, rows, credit, references)
            columns = [*range(len(shared)), *([len(shared) + place] if own else [])]
            gradients = EpisodeGradients(found.products, found.along[:, columns])
            drawn.append(DrawnBatch(rows.batch, credit, gradients, rows.tokens))
    return drawn
