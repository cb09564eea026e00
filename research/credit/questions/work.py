"""The jobs of the questions, and the figures of one policy that decide them, all beside its exact gradient."""

from collections import deque
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from agents.common import student
from agents.msgrpo import spreads
from agents.msgrpo.credit import Batch, Credit, CreditMethod, Floats
from research.credit.instrument.batches import Setting, play
from research.credit.instrument.exact.answers import behaviour_of
from research.credit.instrument.exact.solution import Solution, solve
from research.credit.instrument.exact.truth import Truth
from research.credit.instrument.fidelity import BatchGradient, quality
from research.credit.instrument.gradients import BatchRows, exact_gradient, numbered
from research.credit.instrument.instrument import methods_of
from research.credit.instrument.scores import ScoreModel
from research.credit.questions.settings import Questions
from research.credit.settings import STAGES, StudyFolder, StudyJob
from research.credit.training import examples_of, policy_of, train
from research.jobs.bases import load
from research.jobs.work import Report

STALE_METHOD = "dr_grpo"
"""Whose credit stale batches get: the return less the group's mean, whose gradient has the exact one's direction."""

WEIGHTS = ("none", "token", "truncated", "episode")
"""No importance weights; a token's own; a token's own up to the cap, as the trainer has them; and the whole episode's,
with which the mean gradient is the exact one's, whatever the lag."""


MAX_STATES = 200_000
"""The most different states of a game whose policies are asked."""


def compared(gradients: Sequence[BatchGradient], exact: Tensor) -> dict[str, Any]:
    """Return the cosine with its interval over batches, and the bias, of independent batches' gradients."""
    found = quality(gradients, float(exact.norm()))
    return {"cosine": found.cosine.to_json(), "bias": found.bias.to_json()}


def cosines_of(gradients: Sequence[BatchGradient], exact: Tensor) -> Floats:
    """Return (batches,) the cosine of every batch's gradient with the exact one."""
    sizes = float(exact.norm()) * np.array([float(each.vector.norm()) for each in gradients])
    along = np.array([each.along for each in gradients])
    found: Floats = np.divide(along, sizes, out=np.zeros(len(along)), where=sizes > 0)
    return found


def batch_gradient(model: ScoreModel, rows: BatchRows, credit: Credit, exact: Tensor) -> BatchGradient:
    """Return a batch's mean gradient."""
    vector = rows.gradient(model, credit)
    return BatchGradient(vector.float(), float(vector @ exact), len(rows.batch), float(rows.tokens.sum()))


def weighted(batch: Batch, credit: Credit, logprobs: Sequence[Sequence[Floats]], cap: float) -> dict[str, Credit]:
    """Return a batch's credit under each of :data:`WEIGHTS`, token by token; ``logprobs`` are the learner's."""
    found: dict[str, list[list[Floats]]] = {name: [] for name in WEIGHTS}
    for trajectory, steps, now in zip(batch.trajectories, credit.advantages, logprobs, strict=True):
        assert trajectory.old_logprobs is not None  # models in this process tell them
        ratios = [np.exp(new - old) for new, old in zip(now, trajectory.old_logprobs, strict=True)]
        whole = float(np.prod(np.concatenate(ratios)))
        each = {
            "none": [np.ones_like(ratio) for ratio in ratios],
            "token": ratios,
            "truncated": [np.minimum(ratio, cap) for ratio in ratios],
            "episode": [np.full_like(ratio, whole) for ratio in ratios],
        }
        for name, own in each.items():
            found[name].append([advantage * ratio for advantage, ratio in zip(steps, own, strict=True)])
    return {name: Credit.of(own) for name, own in found.items()}


def staleness(
    policy: Any, older: Mapping[int, Any], setting: Setting, batches: int, cap: float
) -> list[dict[str, Any]]:
    """Return how like a policy's exact gradient its estimates from batches of older policies are, by lag and weights.

    Args:
        older: ``{lag: the policy that played}``, lag 0 first, which is the policy itself.
        batches: of each, with equal noise, so differences are paired by batch.
        cap: of truncated weights.
    """
    model, truth = ScoreModel(policy), setting.truth(policy, max_states=MAX_STATES)
    exact = exact_gradient(model, truth.answers, truth.solution, ()).vector
    (method,) = methods_of([STALE_METHOD], setting).values()
    rows: list[dict[str, Any]] = []
    fresh = np.zeros(batches)
    for lag, player in older.items():
        gradients: dict[str, list[BatchGradient]] = {name: [] for name in WEIGHTS}
        drift = []
        for part in numbered([play(player, setting, number) for number in range(batches)], model.size):
            scores = [each.numpy() for each, _ in model.logprobs_and_entropies(part[0].rows)]
            for own in part:
                now = [[scores[number] for number in numbers] for numbers in own.row_of]
                credits = weighted(own.batch, method.assign(own.batch, np.random.default_rng(0)), now, cap)
                drift.append(_drift(own.batch, now, cap))
                for name in WEIGHTS if lag else WEIGHTS[:1]:  # on-policy all weights are 1
                    same = name == "truncated" and not drift[-1]["clipped"]
                    gradients[name].append(
                        gradients["token"][-1] if same else batch_gradient(model, own, credits[name], exact)
                    )
        means = {key: float(np.mean([each[key] for each in drift])) for key in drift[0]}
        plain = cosines_of(gradients["none"], exact)
        fresh = fresh if lag else plain
        for name in WEIGHTS:
            gathered = gradients[name] or gradients["none"]
            cosines = cosines_of(gathered, exact)
            minus = {"minus_fresh": student(cosines - fresh), "minus_none": student(cosines - plain)}
            figures = compared(gathered, exact) | {key: each.to_json() for key, each in minus.items()}
            rows.append({"lag": lag, "weights": name, **figures, **means})
    return rows


def _drift(batch: Batch, now: Sequence[Sequence[Floats]], cap: float) -> dict[str, float]:
    """Return how far the policies are apart: nats an episode, KL(old | new), and the share of tokens above the cap."""
    logs = [
        np.concatenate([new - old for new, old in zip(own, each.old_logprobs or (), strict=True)])
        for each, own in zip(batch.trajectories, now, strict=True)
    ]
    return {
        "kl": -float(np.mean([each.sum() for each in logs])),
        "clipped": float(np.mean(np.concatenate(logs) > np.log(cap))),
    }


@dataclass(frozen=True)
class FewStarts(Setting):
    """A setting of so many starts, from which every batch draws one for each of its groups."""

    population: int = 32

    def layouts(self, batch: int | None = None) -> list[int]:
        """Return all starts, or those of a batch."""
        everyone = Setting(self.scenario, self.population, seed=self.seed).layouts()
        if batch is None:
            return everyone
        drawn = np.random.default_rng((self.seed, batch)).choice(self.population, self.groups, replace=False)
        return [everyone[index] for index in drawn.tolist()]


def group_sizes(
    policy: Any, setting: FewStarts, episodes: int, sizes: Sequence[int], methods: Sequence[str], batches: int
) -> list[dict[str, Any]]:
    """Return how like the exact gradient of all starts a batch's is, by the size of its groups and the method."""
    model, truth = ScoreModel(policy), setting.truth(policy, max_states=MAX_STATES)
    exact = exact_gradient(model, truth.answers, truth.solution, ()).vector
    rows = []
    for size in sizes:
        own = replace(setting, groups=episodes // size, group_size=size)
        played = [play(policy, own, number, fresh_starts=True) for number in range(batches)]
        silent = float(np.mean([np.mean(spreads(batch) == 0) for batch in played]))
        tokens = float(np.mean([sum(each.tokens for each in batch.trajectories) for batch in played]))
        made: dict[str, CreditMethod] = methods_of(methods, own)
        of_batches = [each for part in numbered(played, model.size) for each in part]
        for name, method in made.items():
            credits = [method.assign(each.batch, np.random.default_rng(0)) for each in of_batches]
            pairs = zip(of_batches, credits, strict=True)
            found = compared([batch_gradient(model, *pair, exact) for pair in pairs], exact)
            rows.append({"size": size, "method": name, **found, "silent": silent, "tokens": tokens})
    return rows


class Parts(NamedTuple):
    """The exact gradient's parts, (size,) each: of what the game pays, and of a format penalty of 1."""

    reward: Tensor
    penalty: Tensor

    def figures(self) -> dict[str, float]:
        """Return their lengths and the cosine of the two; another penalty's part is that many times as long."""
        reward, penalty = float(self.reward.norm()), float(self.penalty.norm())
        product = float(self.reward @ self.penalty)
        return {"reward": reward, "penalty": penalty, "cosine": product / max(reward * penalty, 1e-300)}


def parts_of(model: ScoreModel, truth: Truth) -> Parts:
    """Return the parts of the exact gradient, which is linear in what is paid."""
    return Parts(*[exact_gradient(model, truth.answers, solution, ()).vector for solution in solutions_of_parts(truth)])


def solutions_of_parts(truth: Truth) -> tuple[Solution, Solution]:
    """Return a policy's values where only the game pays, and where only a format penalty of 1 does."""
    graph, behaviour = truth.graph, behaviour_of(truth.graph, truth.answers, truth.answers.responses)
    unpaid = replace(graph, space=replace(graph.space, rewards=np.zeros_like(graph.space.rewards)))
    return (
        solve(graph, behaviour, format_penalty=0.0, invalid_action=truth.invalid_action),
        solve(unpaid, behaviour, format_penalty=1.0, invalid_action=truth.invalid_action),
    )


def standing(truth: Truth) -> dict[str, float]:
    """Return where a policy stands, over the steps that it takes: expected return, valid share, its actions' entropy.

    The entropy is that of the action that a valid response names, as a share of the largest: 1 if all are taken alike.
    """
    graph, behaviour = truth.graph, behaviour_of(truth.graph, truth.answers, truth.answers.responses)
    visits = truth.solution.visits[:, [each.state for each in graph.decisions]]  # (horizon, decisions)
    valid = 1 - behaviour.invalid
    given = behaviour.choices / np.maximum(valid, 1e-300)[:, graph.choice_decision]
    surprise = -given * np.log(np.where(given > 0, given, 1.0))
    entropy = np.array([np.bincount(graph.choice_decision, own, len(graph.decisions)) for own in surprise])
    most = np.log([len(each.actions) for each in graph.decisions])
    there = visits * (most > 0)
    return {
        "returns": float(truth.solution.returns.mean()),
        "valid": float((visits * valid).sum() / visits.sum()),
        "entropy": float((there * entropy / np.where(most > 0, most, 1.0)).sum() / max(there.sum(), 1e-300)),
    }


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
