"""The exact gradient of what a policy expects, by the weights of its model.

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
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.msgrpo import TokenRow
from research.credit.instrument.exact.answers import Answers, Response
from research.credit.instrument.exact.solution import Solution
from research.credit.instrument.gradients.scores import ScoreModel


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
