"""The true advantages of a policy in some starts of a game, and returns that are drawn from its exact chances."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agents import Policy
from agents.msgrpo import Method
from agents.msgrpo.credit import Batch, Credit, Floats, Start, Trajectory
from research.credit.instrument.exact.answers import DEFAULT_SAMPLES, INVALID, Answers, Progress, ask, behaviour_of
from research.credit.instrument.exact.solution import (
    MAX_STATES,
    GameGraph,
    Solution,
    expand,
    joint,
    solve,
    stand_ins_for,
    stood_in_by,
)
from textgames import TSMG, InvalidAction
from textgames.solving import END, Indices, joint_actions


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


class Chances:
    """What episodes are drawn from: a truth whose probabilities are exact."""

    def __init__(self, truth: Truth) -> None:
        self.truth, self.graph = truth, truth.graph
        behaviour = behaviour_of(truth.graph, truth.answers, truth.answers.responses)
        self._stood_in = stood_in_by(truth.graph, behaviour, stand_ins_for(truth.graph, truth.invalid_action))
        self._executed = behaviour.choices + self._stood_in
        self.outcome_sums = np.cumsum(truth.graph.space.chances)

    @cached_property
    def outcome_rewards(self) -> Floats:
        """(outcomes, players) what each outcome pays; the state space knows only their means."""
        graph = self.graph
        paid = [
            [rewards[player] for player in graph.players]
            for state, decisions in zip(graph.states, graph.space.decisions, strict=False)
            for joint_action in joint_actions(decisions)
            for _, _, rewards, _ in graph.game.outcomes(state, joint_action)
        ]
        return np.array(paid, dtype=np.float64).reshape(-1, len(graph.players))

    @cached_property
    def answer_tokens(self) -> Floats:
        """(questions,) the expected length of a response, as far as responses are known."""
        means = []
        for responses in self.truth.answers.responses:
            weights = sum(each.weight for each in responses)
            means.append(sum(each.weight * len(each.tokens) for each in responses) / weights if weights else 0.0)
        return np.array(means)

    def step(self, number: int) -> tuple[Floats, Floats]:
        """Return (rounds,) running sums of their probabilities at their states, and (choices,) how probably an invalid
        response was behind an executed choice."""
        executed = self._executed[number]
        shares = np.divide(self._stood_in[number], executed, out=np.zeros_like(executed), where=executed > 0)
        return np.cumsum(joint(self.graph, executed)), shares


class DrawnReturns:
    """Fresh rollouts for a method of credit without play; ``tokens`` are the expected response tokens so far.

    They have the distribution of played ones, hundreds of times as fast: a round from the probabilities of everybody's
    choices, what comes of it from the game's chances, step by step for all episodes at once.
    """

    def __init__(self, policy: Policy, chances: Chances, rng: np.random.Generator) -> None:
        self.policy, self.tokens = policy, 0
        self._chances, self._rng = chances, rng

    def returns_from(self, starts: Sequence[Start], count: int) -> Floats:
        """Return (S, count) undiscounted returns of each start's player from there on, in independent episodes."""
        chances, graph, space = self._chances, self._chances.graph, self._chances.graph.space
        states = np.array([space.numbers[each.state] for each in starts], dtype=np.intp).repeat(count)
        elapsed = np.array([each.elapsed_steps for each in starts], dtype=np.intp).repeat(count)
        player = np.array([graph.players.index(each.player) for each in starts], dtype=np.intp).repeat(count)
        returns = np.zeros((len(states), len(graph.players)))
        tokens = 0.0
        for number in range(int(elapsed.min(initial=graph.horizon)), graph.horizon):
            here = np.flatnonzero((states != END) & (elapsed <= number))
            if not len(here):
                continue
            now, (sums, invalid_share) = states[here], chances.step(number)
            questions = chances.truth.answers.question_of[number]
            lengths = np.where(questions >= 0, chances.answer_tokens[questions], 0.0)
            tokens += float(np.bincount(graph.state_of, lengths, len(graph.states))[now].sum())  # of all responses
            rounds, left_over = _drawn(sums, space.first_round, now, self._rng)
            penalty = chances.truth.format_penalty
            if left_over.any() and chances.truth.invalid_action != "terminate":
                raise ValueError(f"a state was to be played from that can't be reached after {number} steps")
            returns[here[left_over], 0] -= penalty  # an invalid response that ends the episode of the only player
            states[here[left_over]] = END
            here, rounds = here[~left_over], rounds[~left_over]
            for choices in graph.round_choices[rounds].T:
                invalid = (choices >= 0) & (self._rng.random(len(choices)) < invalid_share[choices])
                returns[here[invalid], graph.player_of[graph.choice_decision[choices[invalid]]]] -= penalty
            outcomes, _ = _drawn(chances.outcome_sums, space.first_outcome, rounds, self._rng)
            returns[here] += chances.outcome_rewards[outcomes]
            states[here] = space.successors[outcomes]
        self.tokens += round(tokens)
        return np.asarray(returns[np.arange(len(returns)), player].reshape(len(starts), count))


def _drawn(sums: Floats, first: Indices, rows: Indices, rng: np.random.Generator) -> tuple[Indices, NDArray[np.bool_]]:
    """Return an entry of each row, by their probabilities, and whether it was none of them.

    Row r has the entries ``first[r] .. first[r + 1] - 1`` of a list whose running sums are given.
    """
    before = np.concatenate([[0.0], sums])
    low, high = before[first[rows]], before[first[rows + 1]]
    at = rng.random(len(rows))
    none = at > high - low + 1e-9  # probabilities that sum to 1 do so but for rounding
    found = np.searchsorted(sums, low + at, side="right")
    return np.clip(found, first[rows], first[rows + 1] - 1), none
