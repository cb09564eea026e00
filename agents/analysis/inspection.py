"""Inside a policy: its distribution over actions at every step of an episode, and what each action is worth.

Two distributions: what the policy *wants*, ``pi(a | s) = sum over responses y with psi(y) = a of p(y | rho(phi(s)))``
(arXiv 2508.10839, section 4), exact if the response is nothing but the action, else shares of responses drawn anew; and
what is left *after its reasoning*, for local models: every legal action is scored behind the response's own text up to
its ``<action>`` tag. The values are those of the game's search player: exact, or its estimates.

:func:`exact_regret` is a policy's exact loss per decision: its action probabilities against a game's exact values. The
positions are those of random legal play from fixed seeds, so the same weights always have the same regret. A policy
that plays itself in a zero-sum game has a mean return of 0 however well it plays; this shows whether it learns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

import textgames
from agents.analysis.action_probabilities import (
    DEFAULT_SAMPLES,
    NOT_SUMMED,
    Source,
    action_probabilities,
    has_local_model,
    plays_legal_only,
    sample_actions,
    score_actions,
)
from agents.baselines.search import SearchPlayer, search_player_of
from agents.common.intervals import half_interval
from agents.episode import Episode, EpisodeTask, Step
from agents.loop.live import environment_of
from agents.loop.rollout import rollout
from agents.policy import LanguageAgentPolicy
from agents.turn import Policy, Prompt, Turn, TurnRequest, request_in
from textgames.rounds import rounds_of_play
from textgames.scenarios import Scenario
from textgames.settings import check_whole
from textgames.texts.actions import OPEN_TAG
from textgames.yardsticks import find_yardstick

TIE = 1e-9
MIXED = 0.01
"""With more than this chance a move of a plan that draws its moves is meant, and no error of its solver."""

_AGAIN = 303  # what the seeds of the samples begin with, so that they meet no decision's


@runtime_checkable
class Inspectable(Protocol):
    """A player with more to show than its answers, which ``textbench inspect`` adds to them."""

    def inspected(self, scenario: Scenario) -> Mapping[str, Mapping[str, Any]]:
        """Return plain data by its name; ``told`` in it is for people, and ``faults`` lists what is wrong."""


@dataclass(frozen=True)
class InspectedStep:
    """One step, seen from inside."""

    step: Step  #: what was played
    probabilities: Mapping[str, float]  #: of every legal action; the rest to 1 is invalid
    source: Source  #: of the probabilities: ``"scored"`` (exact) or ``"sampled"`` (shares of sampled responses)
    after_reasoning: Mapping[str, float] | None  #: exact, behind the response's own reasoning; if it can be computed
    values: Mapping[str, float]  #: ``{action: value}`` of it and the best known play after it
    best: tuple[str, ...]  #: the actions that :func:`best_actions` returns

    @property
    def best_probability(self) -> float:
        return sum(self.probabilities.get(action, 0.0) for action in self.best)

    @property
    def invalid_probability(self) -> float:
        return max(0.0, 1.0 - sum(self.probabilities.values()))

    @property
    def regret(self) -> float:
        """What is lost in expectation against the best action; an invalid response executes the first action."""
        return expected_regret(self.probabilities, self.values)


def best_actions(solver: SearchPlayer, request: TurnRequest, values: Mapping[str, float]) -> tuple[str, ...]:
    """Return the actions of the largest value, and those that the plan mixes: an equilibrium is approximate."""
    most, plan = max(values.values()), solver.plan_probabilities(request) or {}
    return tuple(action for action, value in values.items() if value >= most - TIE or plan.get(action, 0.0) > MIXED)


def expected_regret(probabilities: Mapping[str, float], values: Mapping[str, float]) -> float:
    """Return the expected loss against the best action; the rest to 1 is invalid and executes the first action."""
    invalid = max(0.0, 1.0 - sum(probabilities.values()))
    expected = sum(probability * values[action] for action, probability in probabilities.items())
    return max(0.0, max(values.values()) - expected - invalid * next(iter(values.values())))


@dataclass(frozen=True)
class Inspection:
    """One episode, seen from inside."""

    episode: Episode  #: what was played
    steps: tuple[InspectedStep, ...]  #: of the first player
    value_source: str  #: ``"exact"``, or ``"search"`` for estimates


def inspect_episode(policy: Policy, scenario: Any, seed: int, *, samples: int = DEFAULT_SAMPLES) -> Inspection:
    """Play one episode, and look inside every step, by ``samples`` responses if its distribution has to be sampled.

    A ValueError for a game without a search player, a RuntimeError if the episode can't be played to its end.
    """
    check_whole("samples", samples, 1, None)
    task = EpisodeTask.of(scenario, seed)
    game = environment_of(task).game
    solver = search_player_of(game)
    if not isinstance(solver, SearchPlayer):
        raise ValueError(
            f"{type(solver).__name__} plays {type(game).__name__} but has no action values: make it a subclass of "
            "agents.baselines.search.SearchPlayer with values(request)"
        )
    (episode,) = rollout(policy, [task])
    if episode.error is not None:
        raise RuntimeError(f"the episode with seed {seed} could not be played: {episode.error}")
    player = game.players[0]
    steps, requests = episode.steps_of(player), list[TurnRequest]()
    for number, step in enumerate(steps):
        request = request_in(game, step.state, player, step.steps_left, (_AGAIN, seed, step.index))
        earlier = steps[:number]
        request = replace(
            request,
            history=tuple((each.observation, each.turn.response) for each in earlier),
            history_steps_left=tuple(each.steps_left for each in earlier),
            moves_listed=task.moves_listed,
        )
        requests.append(request)
    scored: list[dict[str, float] | None] = [None]
    listed = all(request.legal_actions for request in requests)
    if listed and all(step.turn.response.startswith(OPEN_TAG) for step in steps):
        scored = [
            score_actions(policy, step.turn.prompt, "", request.legal_actions)
            for step, request in zip(steps, requests, strict=True)
        ]
    source: Source = "sampled" if None in scored else "scored"
    wanted = [one for one in scored if one is not None]
    if source == "sampled":
        wanted = sample_actions(policy, requests, samples)
    inspected = []
    for step, request, probabilities in zip(steps, requests, wanted, strict=True):
        reasoning, tag, _ = step.turn.response.rpartition(OPEN_TAG)  # the one behind the last thought
        actions, after = request.legal_actions, None
        if tag and actions:
            after = score_actions(policy, step.turn.prompt, reasoning + tag, actions)
        values = solver.values(request)
        best = best_actions(solver, request, values)
        legal = {action: share for action, share in probabilities.items() if action in values}
        inspected.append(InspectedStep(step, legal, source, after, values, best))
    return Inspection(episode, tuple(inspected), "exact" if solver.exact else "search")


class Position(NamedTuple):
    """One decision: its request, what its actions are worth, and the episode's seed."""

    request: TurnRequest
    values: Mapping[str, float]
    seed: int


class ExactRegret(NamedTuple):
    """The mean regret per decision, in units of the return."""

    mean: float  #: over the positions; 0 for a perfect player
    low: float  #: of the 95% interval (normal, over the episodes that the positions come from)
    high: float  #: likewise
    uniform: float  #: the regret of uniform play on the same positions
    invalid: float  #: the mean probability of a response that names no legal action
    positions: int  #: how many there are; equal ones count as often as they came up


def random_positions(tasks: Sequence[EpisodeTask]) -> list[Position]:
    """Return every decision in random play of episodes of one scenario, which has an exact yardstick."""
    env = textgames.parallel_env(tasks[0].env_id, **tasks[0].kwargs)
    game, limit, yardstick = env.game, env.rules.max_steps, find_yardstick(env.game)
    if yardstick is None or not yardstick.exact:
        raise ValueError(f"{tasks[0].scenario} has no exact yardstick that regret could be measured with")
    positions = []
    for task in tasks:
        # the moves have a generator of their own, so that the starts are those of the scenario's episodes
        state, rng = game.initial_state(np.random.default_rng(task.seed)), np.random.default_rng([task.seed, 1])
        for played, here, joint_action, *_ in rounds_of_play(game, state, limit, rng):
            left = None if limit is None else limit - played
            for player in joint_action:
                request = request_in(game, here, player, left)
                positions.append(Position(request, yardstick.values(here, left, player), task.seed))
    return positions


class DirectAnswers:
    """A policy with a local model that answers with the action alone, and so knows its own probabilities.

    They are kept by prompt: make a new one when the weights have changed.
    """

    def __init__(self, policy: LanguageAgentPolicy) -> None:
        if policy.prompt_map.mode == "think" or not has_local_model(policy):
            raise ValueError(
                f"{policy.name}'s action probabilities can't be computed: that takes a model of this process that "
                f"answers with the action alone; its mode is {policy.prompt_map.mode}"
            )
        if plays_legal_only(policy):
            raise ValueError(f"{policy.name} plays legal-only, where {NOT_SUMMED}")
        self.name, self._policy = policy.name, policy
        self._known: dict[tuple[Prompt, tuple[str, ...]], dict[str, float]] = {}

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return self._policy.act(requests)

    def action_probabilities(self, request: TurnRequest) -> dict[str, float]:
        prompt = self._policy.prompt_map(request)
        key = prompt, request.legal_actions
        if key not in self._known:
            self._known[key] = score_actions(self._policy, prompt, "", request.legal_actions) or {}
        return self._known[key]


def exact_regret(policy: Policy, positions: Sequence[Position]) -> ExactRegret:
    """Return the mean regret of a policy; a ValueError if its action probabilities aren't known."""
    if not positions:
        raise ValueError("there are no positions to measure regret on")
    found = action_probabilities(policy, [position.request for position in positions], samples=1)
    if found.samples is not None:
        raise ValueError(f"{policy.name}'s action probabilities aren't known, so its regret would not be exact")
    values = [list(position.values.values()) for position in positions]
    regrets = [
        expected_regret(probabilities, position.values)
        for probabilities, position in zip(found.probabilities, positions, strict=True)
    ]
    mean, half = float(np.mean(regrets)), half_interval(regrets, [position.seed for position in positions])
    return ExactRegret(
        mean=mean,
        low=mean - half,
        high=mean + half,
        uniform=float(np.mean([max(each) - np.mean(each) for each in values])),
        invalid=float(np.mean([max(0.0, 1.0 - sum(each.values())) for each in found.probabilities])),
        positions=len(positions),
    )
