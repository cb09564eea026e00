"""The jobs of the questions: a plain run that is asked at its stages, and runs from a base that hardly answers."""

from collections import deque
from copy import deepcopy
from dataclasses import replace
from typing import Any

from research.credit.instrument.batches import Setting
from research.credit.instrument.exact.truth import Truth
from research.credit.instrument.gradients.scores import ScoreModel
from research.credit.jobs import StudyFolder, StudyJob
from research.credit.questions.measures import MAX_STATES, FewStarts, group_sizes, parts_of, staleness, standing
from research.credit.questions.settings import Questions
from research.credit.settings import STAGES
from research.credit.training import examples_of, policy_of, train
from research.jobs.bases import load
from research.jobs.work import Report


def ask(job: StudyJob, questions: Questions, folder: StudyFolder, report: Report) -> dict[str, Any]:
    """Train the plain run and ask its policies at its stages; with steps of imitation, ask a weak base of its own."""
    if job.steps:
        return _from_a_weak_base(job, questions, report)
    lags = () if questions.staleness is None else questions.staleness.lags
    weights: deque[dict[str, Any]] = deque(maxlen=max(lags, default=0))  # of the last iterations, the last one last
    live: list[Any] = []
    stages: list[dict[str, Any]] = []

    def asked(model: Any, tokenizer: Any, milestone: int) -> float:
        live[:] = [model]
        stage = STAGES[milestone]
        older = {0: _player(model, tokenizer, questions)}
        for lag in lags if milestone else ():
            if lag <= len(weights):
                old = deepcopy(model)
                old.load_state_dict(weights[-lag])
                older[lag] = _player(old, tokenizer, questions)
        stages.append({"stage": stage, **_at_a_stage(job, questions, older, last=stage == STAGES[-1])})
        if not milestone:
            keep(0.0)
        return float(stages[-1]["standing"]["returns"])

    def keep(share: float) -> None:
        report(share)
        weights.append({name: each.detach().clone() for name, each in live[0].state_dict().items()})

    model, tokenizer = load(folder.stage(job.game, "base", job.run))
    settings = questions.training_settings(job.game, job.run)
    budget = questions.games[job.game].tokens
    _, record = train(model, tokenizer, questions.scenario(job.game), settings, budget, len(STAGES) - 1, asked, keep)
    return {"stages": stages, "points": record.points, "settings": settings}


def _at_a_stage(job: StudyJob, questions: Questions, older: dict[int, Any], *, last: bool) -> dict[str, Any]:
    policy, scenario = older[0], questions.scenario(job.game)
    truth = _evaluated(policy, job, questions)
    found: dict[str, Any] = {"standing": standing(truth)}
    if questions.penalty is not None:
        found["parts"] = parts_of(ScoreModel(policy), truth).figures()
    if (stale := questions.staleness) is not None and len(older) > 1:
        setting = Setting(scenario, stale.groups, stale.group_size, seed=job.run)
        found["staleness"] = staleness(policy, older, setting, stale.batches, stale.cap)
    if (groups := questions.groups) is not None and not last:
        starts = FewStarts(scenario, seed=job.run, population=groups.starts)
        found["groups"] = group_sizes(policy, starts, groups.episodes, groups.sizes, groups.methods, groups.batches)
    return found


def _from_a_weak_base(job: StudyJob, questions: Questions, report: Report) -> dict[str, Any]:
    """Imitate for a few steps, split the exact gradient, and train under every format penalty from there."""
    from agents.tiny import pretrain

    penalty = questions.penalty
    assert penalty is not None  # there are no such jobs otherwise
    recipe = replace(questions.recipe(job.game, job.run), steps=job.steps)
    draft = pretrain(recipe, examples=examples_of(questions, job.game, recipe))
    policy = _player(draft.model, draft.tokenizer, questions)
    truth = _evaluated(policy, job, questions)
    found = {"standing": standing(truth), "parts": parts_of(ScoreModel(policy), truth).figures()}
    runs = []
    for number, size in enumerate(penalty.penalties):
        points: list[dict[str, float]] = []

        def evaluate(model: Any, tokenizer: Any, milestone: int, points: list[dict[str, float]] = points) -> float:
            points.append(standing(_evaluated(_player(model, tokenizer, questions), job, questions)))
            return points[-1]["returns"]

        def tell(share: float, number: int = number) -> None:
            report((number + share) / len(penalty.penalties))

        settings = questions.training_settings(job.game, job.run) | {"format_penalty": size}
        _, record = train(
            deepcopy(draft.model), draft.tokenizer, questions.scenario(job.game), settings, penalty.tokens,
            penalty.evaluations, evaluate, tell,
        )  # fmt: skip
        told = [{"iterations": at.iterations} | point for at, point in zip(record.points, points, strict=True)]
        runs.append({"penalty": size, "points": told, "success": [each["success"] for each in record.history]})
    return {**found, "runs": runs}


def _player(model: Any, tokenizer: Any, questions: Questions) -> Any:
    return policy_of(model, tokenizer, questions.temperature, "asked")


def _evaluated(policy: Any, job: StudyJob, questions: Questions) -> Truth:
    """Return the truth of a policy without format penalty, from the starts of its run."""
    starts = questions.evaluation_starts
    setting = Setting(questions.scenario(job.game), starts, format_penalty=0.0, seed=job.run)
    return setting.truth(policy, max_states=MAX_STATES)
