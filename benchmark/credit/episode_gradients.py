"""The policy gradients of a batch's episodes under a method of credit, as inner products.

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

from agents.msgrpo.credit.batch import Batch, Credit, Floats, StepCredit
from agents.msgrpo.rows import TokenRow
from benchmark.credit.scores import ScoreModel


class EpisodeGradients(NamedTuple):
    """The gradients of a batch's N episodes ``f_i = sum_t A_it grad log pi(y_it)``, under one method.

    Attributes:
        products: (N, N) ``<f_i, f_j>``.
        along: (N, references) ``<f_i, reference>``.
        mean: (size,) ``1/N sum_i f_i``, in float32.
    """

    products: Floats
    along: Floats
    mean: Tensor

    def cosine(self, weights: Floats, reference: int, norm: float) -> float:
        """The cosine of ``sum_i w_i f_i`` with a reference of that norm; 0 where there is no update.

        ``weights`` is (N,).
        """
        square = float(weights @ self.products @ weights)
        if square <= 0 or norm <= 0:
            return 0.0
        return float(weights @ self.along[:, reference] / (square**0.5 * norm))


@dataclass(frozen=True, eq=False)
class BatchRows:
    """A batch's steps as different rows of tokens.

    Attributes:
        batch: the batch.
        rows: the different pairs of a prompt and a response, R of them.
        row_of: of every trajectory, (T,) the row of each step.
        tokens: (N,) response tokens of every trajectory.
    """

    batch: Batch
    rows: list[TokenRow]
    row_of: list[np.ndarray]
    tokens: Floats

    @classmethod
    def of(cls, batch: Batch) -> "BatchRows":
        number: dict[TokenRow, int] = {}
        row_of = []
        for each in batch.trajectories:
            pairs = zip(each.prompt_ids, each.response_ids, strict=True)
            row_of.append(np.array([number.setdefault(TokenRow(*pair), len(number)) for pair in pairs], dtype=np.intp))
        tokens = np.array([each.tokens for each in batch.trajectories], dtype=np.float64)
        return cls(batch, list(number), row_of, tokens)

    def coefficients(self, advantages: Sequence[StepCredit], row_weights: Floats | None = None) -> Floats:
        """(N, R) how much of each row's score is in each episode's gradient; for advantages per step.

        ``row_weights`` (R,) multiply all advantages of a row.
        """
        found = np.zeros((len(self.batch), len(self.rows)))
        for index, (rows, own) in enumerate(zip(self.row_of, advantages, strict=True)):
            np.add.at(found[index], rows, np.asarray(own, dtype=np.float64))
        return found if row_weights is None else found * row_weights

    def gradient(self, model: ScoreModel, credit: Credit) -> Tensor:
        """(size,) the mean gradient of all episodes, by one backward pass."""
        rows, weights = [], []
        for numbers, own in zip(self.row_of, credit.advantages, strict=True):
            rows += [self.rows[number] for number in numbers]
            weights += [torch.as_tensor(np.asarray(each)) / len(self.batch) for each in own]
        return model.weighted(rows, weights)


class RowProducts:
    """The score gradients of a batch's rows, and every method's episodes made of them.

    Args:
        model: whose scores.
        rows: of the batch.
        references: (size, references) gradients to compare with, the exact one first.
    """

    def __init__(self, model: ScoreModel, rows: BatchRows, references: Tensor) -> None:
        self._model, self._rows, self._references = model, rows, references
        self._scores = torch.empty(len(rows.rows), model.size)
        for numbers, chunk in model.chunks(rows.rows):
            self._scores[numbers] = chunk.float().cpu()
        self._products = (self._scores @ self._scores.T).double().numpy()
        self._along = (self._scores @ references.float()).double()

    def episodes(self, credit: Credit, row_weights: Floats | None = None) -> EpisodeGradients:
        """The gradients of the episodes as a method credits them."""
        if not all(isinstance(each, np.ndarray) for each in credit.advantages):
            return self._token_by_token(credit)
        coefficients = self._rows.coefficients(credit.advantages, row_weights)
        mean = torch.from_numpy(coefficients.mean(axis=0)).float() @ self._scores
        products = coefficients @ self._products @ coefficients.T
        return EpisodeGradients(products, coefficients @ self._along.numpy(), mean)

    def _token_by_token(self, credit: Credit) -> EpisodeGradients:
        """Where tokens have advantages of their own, each episode has a backward pass of its own."""
        found = []
        for numbers, own in zip(self._rows.row_of, credit.advantages, strict=True):
            rows = [self._rows.rows[number] for number in numbers]
            found.append(self._model.weighted(rows, [torch.as_tensor(np.asarray(each)) for each in own]))
        gradients = torch.stack(found)
        return EpisodeGradients(
            (gradients @ gradients.T).numpy(), (gradients @ self._references).numpy(), gradients.mean(dim=0).float()
        )
