"""The exact policy gradient, and those of a batch's episodes as inner products.

For one player, with the policy's response ``y`` at the prompt of a state and ``a(y)`` the action that it names,

``grad J = sum_h sum_s d_h(s) sum_y pi(y|s) A_h(s, a(y)) grad log pi(y|s)``

where ``d_h(s)`` is how probable ``s`` is after ``h`` steps (the policy gradient theorem for a finite horizon). Where
the policy answers directly, ``y`` runs over ``<action>NAME</action>`` of all legal names, and whatever else it may say
counts as invalid: with ``Q(invalid)`` as the baseline in place of ``V`` those responses have no weight, and the sum is
exact. Where responses were sampled, their weights estimate ``pi(y|s)``, and the two halves of the sample, each with
advantages of its own, tell how well.

For several players it is the sum over the seats of the gradient of a seat's return by its own decisions, the others'
decisions held fixed, divided by the number of seats, as an episode has that many trajectories. That is what self-play
follows; in a zero-sum game it is not the gradient of any one function.

``rows of a batch -> score gradients -> inner products of rows -> those of episodes``. What an update does with episodes
(draw some, weigh them, divide by something) is linear, so the inner products of the episodes' gradients with each other
and with the exact gradient tell the length and the direction of every update that can be made of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.msgrpo import TokenRow
from agents.msgrpo.credit import Batch, Credit, Floats, StepCredit
from research.credit.instrument.exact.answers import Answers, Response
from research.credit.instrument.exact.solution import Solution
from research.credit.instrument.scores import ScoreModel
from textgames.solving import Indices


class ExactGradient(NamedTuple):
    """The gradient of one trajectory's expected return."""

    vector: Tensor  # (size,) the gradient, or its best estimate
    halves: tuple[Tensor, ...]  # the same from each half of the sampled responses; empty if the gradient is exact

    @property
    def squared_norm(self) -> float:
        """``|g|^2``; of an estimate ``<g_1, g_2>`` of its halves, which noise doesn't enlarge."""
        one, other = self.halves or (self.vector, self.vector)
        return float(one @ other)

    @property
    def reliability(self) -> float:
        """The cosine between the estimates from the two halves; 1 if the gradient is exact."""
        if not self.halves:
            return 1.0
        one, other = self.halves
        return float(one @ other / (one.norm() * other.norm()).clamp_min(1e-300))


def exact_gradient(
    model: ScoreModel, answers: Answers, solution: Solution, halves: Sequence[Solution]
) -> ExactGradient:
    """Return the gradient of a policy's return; ``halves`` are the values under each half of the answers."""
    vector = _gradient(model, answers, answers.responses, solution)
    parts = zip(answers.halves, halves, strict=True)
    return ExactGradient(vector, tuple(_gradient(model, answers, own, values) for own, values in parts))


def _gradient(
    model: ScoreModel, answers: Answers, responses: Sequence[Sequence[Response]], solution: Solution
) -> Tensor:
    graph = solution.graph
    # what each answer adds to the return, ``sum_h sum_s d_h(s) (Q_h(s, a) - baseline)``: one number for each legal
    # action of every question, and a last one for an invalid response
    importance = [np.zeros(len(question.decision.actions) + 1) for question in answers.questions]
    for step, number in np.argwhere(answers.question_of >= 0).tolist():
        decision = graph.decisions[number]
        invalid = solution.invalid_values[step, number]
        baseline = solution.own_values[step, number] if answers.halves else invalid
        values = solution.choice_values[step, decision.first : decision.first + len(decision.actions)]
        visits = solution.visits[step, decision.state] / len(graph.players)
        importance[answers.question_of[step, number]] += visits * (np.append(values, invalid) - baseline)
    rows, weights = [], []
    for prompt, own, worth in zip(answers.prompts, responses, importance, strict=True):
        for response in own:
            # an invalid response has the place -1, which is that of the last column
            weight = response.weight * worth[response.place]
            if weight:
                rows.append(TokenRow(prompt, response.tokens))
                weights.append(weight)
    return model.weighted(rows, weights) if rows else torch.zeros(model.size, dtype=torch.float64)


SCORE_BYTES = 2**30
"""The most memory for the score gradients of rows."""

ROUNDING = 1e-6
"""A sum of gradients that is this much shorter than its parts is what their rounding (to float32) left behind.

Where a policy always does the same, the episodes of a group have the same gradient, and advantages that sum to zero
cancel it. What remains has a direction, but it means nothing.
"""

_COLUMNS = 2**15  # of score gradients that are held in float64 at once


class EpisodeGradients(NamedTuple):
    """The gradients of a batch's N episodes ``f_i = sum_t A_it grad log pi(y_it)``, under one method."""

    products: Floats  # (N, N) ``<f_i, f_j>``
    along: Floats  # (N, references) ``<f_i, reference>``

    def cosine(self, weights: Floats, reference: int, norm: float) -> float:
        """Return the cosine of ``sum_i w_i f_i``, ``weights`` (N,), with a reference of that norm; 0 without an
        update."""
        square = self.square(weights)
        if square == 0 or norm <= 0:
            return 0.0
        return float(weights @ self.along[:, reference] / (square**0.5 * norm))

    def square(self, weights: Floats) -> float:
        """Return ``|sum_i w_i f_i|^2``; exactly 0 if nothing is left of the sum but rounding."""
        found = float(weights @ self.products @ weights)
        length_of_parts = float(np.abs(weights) @ np.sqrt(np.diag(self.products).clip(min=0.0)))
        return found if found > (ROUNDING * length_of_parts) ** 2 else 0.0


@dataclass(frozen=True, eq=False)
class BatchRows:
    """A batch's steps as different rows of tokens."""

    batch: Batch  # the batch
    rows: list[TokenRow]  # different pairs of a prompt and a response, R of them; several batches may share one list
    row_of: list[Indices]  # of every trajectory, (T,) the row of each step
    tokens: Floats  # (N,) response tokens of every trajectory

    def coefficients(self, advantages: Sequence[StepCredit], row_weights: Floats | None = None) -> Floats:
        """Return (N, R) how much of each row's score is in each episode's gradient, times ``row_weights`` (R,) of the
        rows."""
        found = np.zeros((len(self.batch), len(self.rows)))
        for index, (rows, own) in enumerate(zip(self.row_of, advantages, strict=True)):
            np.add.at(found[index], rows, np.asarray(own, dtype=np.float64))
        return found if row_weights is None else found * row_weights

    def gradient(self, model: ScoreModel, credit: Credit) -> Tensor:
        """Return (size,) the mean gradient of all episodes, by one backward pass."""
        weights: dict[int, Tensor] = {}  # of every different row, which is scored once
        for numbers, own in zip(self.row_of, credit.advantages, strict=True):
            for number, each in zip(numbers.tolist(), own, strict=True):
                weights[number] = weights.get(number, 0) + torch.as_tensor(np.asarray(each)) / len(self.batch)
        used = {self.rows[number]: weight for number, weight in weights.items() if bool(weight.any())}
        return model.weighted([*used], [*used.values()])


def numbered(batches: Sequence[Batch], size: int) -> list[list[BatchRows]]:
    """Return the rows of batches, in parts that share a list of rows: batches from the same starts have most in common.

    A part has as many batches as :data:`SCORE_BYTES` hold the gradients of, ``size`` numbers each.
    """
    parts: list[list[BatchRows]] = []
    number: dict[TokenRow, int] = {}
    for batch in batches:
        found = [trajectory.rows for trajectory in batch.trajectories]
        different = {row for own in found for row in own}
        if not parts or (len(number) + len(different - number.keys())) * size * 4 > SCORE_BYTES:
            parts.append([])
            number = {}
        row_of = [np.array([number.setdefault(row, len(number)) for row in own], dtype=np.intp) for own in found]
        rows = parts[-1][0].rows if parts[-1] else []
        rows += list(number)[len(rows) :]
        tokens = np.array([each.tokens for each in batch.trajectories], dtype=np.float64)
        parts[-1].append(BatchRows(batch, rows, row_of, tokens))
    return parts


class RowProducts:
    """The score gradients of R rows, and every method's episodes made of them.

    ``references`` (size, references) are gradients to compare with, the exact one first.
    """

    def __init__(self, model: ScoreModel, rows: Sequence[TokenRow], references: Tensor) -> None:
        self._model, self._references = model, references
        self._scores = torch.empty(len(rows), model.size)
        for numbers, chunk in model.chunks(rows):
            self._scores[numbers] = chunk.float().cpu()
        self._products, self._along = _inner_products(self._scores, references)

    def episodes(self, rows: BatchRows, credit: Credit, row_weights: Floats | None = None) -> EpisodeGradients:
        """Return the gradients of a batch's episodes as a method credits them."""
        if not _is_by_step(credit):
            return episode_by_episode(self._model, rows, credit, self._references)
        coefficients = rows.coefficients(credit.advantages, row_weights)
        used = np.flatnonzero(coefficients.any(axis=0))  # few of the rows that batches share
        own = coefficients[:, used]
        products = own @ self._products[np.ix_(used, used)] @ own.T
        return EpisodeGradients(products, coefficients @ self._along)

    def mean_gradients(self, rows: BatchRows, credits: Sequence[Credit]) -> list[Tensor]:
        """Return the mean of the gradients of a batch's episodes under each of some methods, (size,) in float32."""
        by_step = [i for i, each in enumerate(credits) if _is_by_step(each)]
        found = [torch.empty(0)] * len(credits)
        if by_step:
            means = np.stack([rows.coefficients(credits[i].advantages).mean(axis=0) for i in by_step])
            used = np.flatnonzero(means.any(axis=0))
            weights, columns = torch.from_numpy(means[:, used]), torch.split(self._scores, _COLUMNS, dim=1)
            # the scores are made float64 once for all methods: that takes longer than the products
            parts = [(weights @ each[used].double()).float() for each in columns]
            for i, vector in zip(by_step, torch.cat(parts, dim=1), strict=True):
                found[i] = vector
        for i in set(range(len(credits))) - set(by_step):
            found[i] = rows.gradient(self._model, credits[i]).float()
        return found


def _is_by_step(credit: Credit) -> bool:
    return all(isinstance(each, np.ndarray) for each in credit.advantages)


def episode_by_episode(model: ScoreModel, rows: BatchRows, credit: Credit, references: Tensor) -> EpisodeGradients:
    """Return the gradients of a batch's episodes along ``references``, by a backward pass for each with an advantage.

    The only way if tokens have advantages of their own, and the shorter one if hardly two responses are alike.
    """
    gradients = torch.zeros(len(rows.batch), model.size)
    for index, (numbers, own) in enumerate(zip(rows.row_of, credit.advantages, strict=True)):
        weights = [torch.as_tensor(np.asarray(each)) for each in own]
        if any(bool(each.any()) for each in weights):
            gradients[index] = model.weighted([rows.rows[number] for number in numbers], weights).float()
    return EpisodeGradients(*_inner_products(gradients, references))


def _inner_products(vectors: Tensor, references: Tensor) -> tuple[Floats, Floats]:
    """Return (N, N) of vectors with each other and (N, references) with references.

    Sums are in float64: with weights of both signs they cancel, and what is left must not be rounding.
    """
    products = torch.zeros(len(vectors), len(vectors), dtype=torch.float64)
    along = torch.zeros(len(vectors), references.shape[1], dtype=torch.float64)
    for columns, parts in zip(
        torch.split(vectors, _COLUMNS, dim=1), torch.split(references, _COLUMNS, dim=0), strict=True
    ):
        own = columns.double()
        products += own @ own.T
        along += own @ parts.double()
    return products.numpy(), along.numpy()
