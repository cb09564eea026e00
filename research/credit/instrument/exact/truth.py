"""The true advantages of a policy in some starts of a game: what methods of credit are compared with."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from agents import Policy
from agents.msgrpo import Method
from agents.msgrpo.credit import Batch, Credit, Floats, Trajectory
from research.credit.instrument.exact.answers import DEFAULT_SAMPLES, INVALID, Answers, Progress, ask, behaviour_of
from research.credit.instrument.exact.solution import MAX_STATES, GameGraph, Solution, expand, solve
from textgames import TSMG, InvalidAction


@dataclass(frozen=True, eq=False)
class Truth:
    """The true values of a policy's steps in a game."""

    graph: GameGraph  # everything that may happen
    answers: Answers  # what the policy may say wherever it is asked
    solution: Solution  # its values; exact, or those of the estimated probabilities
    halves: tuple[Solution, ...]  # the values under each half of the sampled answers; empty if nothing was sampled
    format_penalty: float  # what an invalid response costs
    invalid_action: InvalidAction  # what an invalid response does

    @classmethod
    def of(
        cls,
        policy: Policy,
        game: TSMG[object],
        starts: Sequence[Hashable],
        horizon: int,
        *,
        format_penalty: float = 1.0,
        invalid_action: InvalidAction = "default",
        samples: int = DEFAULT_SAMPLES,
        seed: int = 0,
        max_states: int = MAX_STATES,
        progress: Progress | None = None,
    ) -> "Truth":
        """Compute the true values of a policy without history in every seat of a game with at most ``max_states``.

        Args:
            starts: the states that episodes begin in, each as often as the others.
            horizon: rounds after which an episode is cut off.
            samples: responses to each question, if probabilities have to be estimated.

        Raises:
            ValueError: the game or the policy can't be measured; the message says why, and what can.
            RuntimeError: a provider's error.
        """
        graph = expand(game, starts, horizon, max_states=max_states)
        answers = ask(policy, graph, samples=samples, seed=seed, progress=progress)
        behaviours = [behaviour_of(graph, answers, each) for each in (answers.responses, *answers.halves)]
        how: dict[str, Any] = {"format_penalty": format_penalty, "invalid_action": invalid_action}
        solution, *halves = [solve(graph, each, **how) for each in behaviours]
        return cls(graph, answers, solution, tuple(halves), format_penalty, invalid_action)

    @property
    def is_exact(self) -> bool:
        return not self.halves

    def cells(self, trajectory: Trajectory) -> list[tuple[int, int, int]]:
        """Return ``(steps played, decision, place of the action)`` of every step; place -1 is an invalid response."""
        player = self.graph.players.index(trajectory.player)
        found = []
        for state, steps_left, action, valid in zip(
            trajectory.states, trajectory.steps_left, trajectory.actions, trajectory.valid.tolist(), strict=True
        ):
            decision = self.graph.decision_of[self.graph.space.numbers[state], player]
            place = self.graph.decisions[decision].actions.index(action) if valid else INVALID
            found.append((self.graph.horizon - (steps_left or 0), decision, place))
        return found

    def advantages(self, trajectory: Trajectory, solution: Solution | None = None) -> Floats:
        """Return (T,) the true advantage of every step, under another solution of the graph if one is given."""
        solution = solution or self.solution
        return np.array([solution.advantage(*cell) for cell in self.cells(trajectory)])

    def prompt_values(self, trajectory: Trajectory) -> Floats:
        """Return (T,) the best that a critic can say who reads the prompt alone.

        It is the mean of the true values over all decisions with that prompt, by how often they occur.
        """
        means = self._prompt_means
        return np.array([means[self.answers.question_of[step, number]] for step, number, _ in self.cells(trajectory)])

    def reliability(self, batches: Sequence[Batch]) -> float:
        """Return how well the sampled responses fix the true advantages of the steps played; 1 if they are exact.

        It is the correlation ``r`` of those from the two halves of the responses, brought to the full sample's by
        Spearman's and Brown's ``2 r / (1 + r)``.
        """
        if self.is_exact:
            return 1.0
        trajectories = [each for batch in batches for each in batch.trajectories]
        one, other = [np.concatenate([self.advantages(each, own) for each in trajectories]) for own in self.halves]
        r = float(np.corrcoef(one, other)[0, 1]) if one.std() * other.std() > 0 else 0.0
        return max(0.0, 2 * r / (1 + r))

    def other_forms(self, batches: Sequence[Batch]) -> float:
        """Return the share of valid responses that exact probabilities leave out: they say an action in another
        form."""
        if self.answers.source != "scored":
            return 0.0
        known = {response.tokens for own in self.answers.responses for response in own}
        valid = [
            response in known
            for batch in batches
            for each in batch.trajectories
            for response, valid in zip(each.response_ids, each.valid.tolist(), strict=True)
            if valid
        ]
        return 1 - float(np.mean(valid)) if valid else 0.0

    @cached_property
    def _prompt_means(self) -> Floats:
        asked = self.answers.question_of >= 0
        questions = self.answers.question_of[asked]
        states = self.graph.state_of
        visits = self.solution.visits[:, states][asked] + 1e-12  # so that no mean is of nothing
        count = len(self.answers.questions)
        sums = np.bincount(questions, visits * self.solution.own_values[asked], count)
        return np.asarray(sums / np.bincount(questions, visits, count))


@dataclass(frozen=True)
class Oracle(Method):
    """The true advantage of every step: the best that credit can be."""

    truth: Truth
    needs: ClassVar[frozenset[str]] = frozenset()

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        return Credit.of([self.truth.advantages(trajectory) for trajectory in batch.trajectories])


class Noise(Method):
    """A random number for every step: what knows nothing."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        return Credit.of([rng.standard_normal(len(trajectory)) for trajectory in batch.trajectories])
