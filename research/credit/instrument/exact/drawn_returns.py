"""Fresh rollouts without play: returns drawn from the exact chances of a game and a policy.

They have the distribution of played ones, hundreds of times as fast: a round from the probabilities of everybody's
choices, what comes of it from the game's chances, step by step for all episodes at once.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agents import Policy
from agents.msgrpo.credit import Floats, Start
from research.credit.instrument.exact.answers import behaviour_of
from research.credit.instrument.exact.solution import joint, stand_ins_for, stood_in_by
from research.credit.instrument.exact.truth import Truth
from textgames.solving import END, Indices, joint_actions


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
    """Fresh rollouts for a method of credit, drawn; ``tokens`` are the expected response tokens so far."""

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
