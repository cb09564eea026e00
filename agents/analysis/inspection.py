"""Inside a policy: its distribution over actions at every step of an episode, and what each action is worth.

Two distributions: what the policy *wants*, ``pi(a | s) = sum over responses y with psi(y) = a of p(y | rho(phi(s)))``
(arXiv 2508.10839, section 4), exact if the response is nothing but the action, else shares of responses drawn anew; and
what is left *after its reasoning*, for local models: every legal action is scored behind the response's own text up to
its ``<action>`` tag. The values are those of the game's search player: exact, or its estimates.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from agents.analysis.action_probabilities import DEFAULT_SAMPLES, Source, sample_actions, score_actions
from agents.baselines.search import SearchPlayer, search_player_of
from agents.episode import Episode, EpisodeTask, Step
from agents.loop.live import environment_of
from agents.loop.rollout import rollout
from agents.turn import Policy, TurnRequest, request_in
from textgames.scenarios import Scenario
from textgames.settings import check_whole
from textgames.texts.actions import OPEN_TAG

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
