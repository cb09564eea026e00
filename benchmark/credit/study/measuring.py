"""What is measured at a stage of training: methods of credit, and draw rules, under the instrument.

Draw rules are compared on two references: the exact gradient, and, as one can do where there is none, the mean gradient
of all other batches, every episode in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.msgrpo.credit import METHODS, Credit, CreditMethod
from agents.msgrpo.errors import ConfigError
from benchmark.credit.batches import Setting, play
from benchmark.credit.draws import DrawnBatch, compare_draws
from benchmark.credit.episode_gradients import BatchRows, EpisodeGradients, RowProducts, means_of_others, numbered
from benchmark.credit.instrument import Instrument
from benchmark.credit.scores import ScoreModel
from benchmark.credit.study.jobs import StudyFolder, StudyJob
from benchmark.credit.study.players import load, policy_of
from benchmark.credit.study.settings import DrawMeasurement, Measurement, Study
from benchmark.reproduce.work import Report
from textgames.scenarios import SCENARIOS

DRAWN_METHODS = ("msgrpo",)
"""The methods whose episodes are drawn from: the paper's own, whose draw rule AAW is."""


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


class Played(NamedTuple):
    """One batch under one method, ready to be drawn from."""

    rows: BatchRows
    credit: Credit


def draws_at(job: StudyJob, study: Study, folder: StudyFolder, report: Report) -> dict[str, Any]:
    """Draw rules at one stage of training, against the exact gradient and against that of all other batches."""
    instrument = _instrument(job, study, folder, study.draws, report)
    assert instrument.exact is not None
    assert instrument.model is not None
    exact, model = instrument.exact.vector.float(), instrument.model
    credits = {name: instrument.assign(name, _made(name, instrument.setting)).credits for name in DRAWN_METHODS}
    parts = numbered(instrument.batches, model.size)
    rows = [each for part in parts for each in part]
    others = {
        name: _others(model, [Played(*each) for each in zip(rows, own, strict=True)]) for name, own in credits.items()
    }
    columns = {name: slice(1 + i * len(rows), 1 + (i + 1) * len(rows)) for i, name in enumerate(credits)}
    references = torch.stack([exact, *(each for name in credits for each in others[name])], dim=1)
    drawn: dict[str, list[DrawnBatch]] = {name: [] for name in credits}
    number = 0
    for part in parts:
        report(0.5 + 0.5 * number / len(rows))
        products = RowProducts(model, part[0].rows, references)
        for each in part:
            for name, own in credits.items():
                found = products.episodes(each, own[number])
                # of the references, the exact gradient and that of this batch's others
                along = np.stack([found.along[:, 0], found.along[:, columns[name]][:, number]], axis=1)
                drawn[name].append(
                    DrawnBatch(each.batch, own[number], EpisodeGradients(found.products, along), each.tokens)
                )
            number += 1
    results = []
    for name, batches in drawn.items():
        norms = {"exact": [float(exact.norm())] * len(rows), "others": [float(each.norm()) for each in others[name]]}
        results.append({"name": name, **_compared(batches, study.draws, norms)})
    return {"methods": results, "expected_return": float(instrument.truth.solution.returns.mean())}


def _others(model: ScoreModel, played: Sequence[Played]) -> list[Tensor]:
    """For every batch the mean gradient of all the others, (size,) each."""
    return means_of_others([each.rows.gradient(model, each.credit).float() for each in played])


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
    rows = [each for part in numbered(batches, model.size) for each in part]
    method = _made("msgrpo", setting)
    played = [Played(each, method.assign(each.batch, np.random.default_rng(0))) for each in rows]
    others = _others(model, played)
    drawn = []
    for number, (each, reference) in enumerate(zip(played, others, strict=True)):
        report(0.4 + 0.6 * number / thinking.batches)
        gradients = _by_episode(model, each, reference)
        drawn.append(DrawnBatch(each.rows.batch, each.credit, gradients, each.rows.tokens))
    norms = {"others": [float(each.norm()) for each in others]}
    return {"methods": [{"name": "msgrpo", **_compared(drawn, thinking, norms)}]}


def _by_episode(model: ScoreModel, played: Played, reference: Tensor) -> EpisodeGradients:
    """The gradients of a batch's episodes, a backward pass for each that has an advantage.

    Responses that reason are nearly all different, so there are fewer episodes than different rows.
    """
    found = torch.zeros(len(played.rows.batch), model.size)
    for index, (numbers, own) in enumerate(zip(played.rows.row_of, played.credit.advantages, strict=True)):
        if np.any(np.asarray(own)):
            rows = [played.rows.rows[number] for number in numbers]
            found[index] = model.weighted(rows, [float(each) for each in own]).float()
    products = (found @ found.T).double().numpy()
    return EpisodeGradients(products, (found @ reference[:, None]).double().numpy())
