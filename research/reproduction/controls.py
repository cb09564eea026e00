"""Controls of a language agent: does it use what it reads, and is what it says true?

* *Shuffled observation*: the agent is shown the observation of another episode in place of its own. An agent that
  reads its board plays worse then, and chooses its own board's action less often than when it is only asked again.
* *Truth*: the share of the statements in its reasoning that hold on the board that it was shown.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from agents import Episode, EpisodeTask, Policy, Turn, TurnRequest, rollout
from research.reproduction.settings import PROTOCOL
from research.reproduction.tiny.statements import check
from textgames import SCENARIOS

_DRAW, _AGAIN = 101, 202  # what the seeds of the controls' own draws end in, so that they meet no decision's


class ControlResult(NamedTuple):
    """What the controls of one agent on one scenario say."""

    scenario: str  # the name of the scenario that it played
    episodes: int  # how many it played with its own observations
    decisions: int  # how many decisions it took in those
    returned: float  # mean return with its own observations
    returned_shuffled: float  # mean return with another episode's observations
    agreement_again: float  # share of decisions in which it chooses the same action when asked again with other noise
    agreement_shuffled: float  # the same, when asked with another episode's observation
    truth: float  # share of true statements in its reasoning
    unreadable: float  # share of the reasoning's parts that aren't statements
    truth_shuffled: float  # share of true statements about its own board when it was shown another one


class ShuffledObservations:
    """Shows a policy observations of other episodes: one of the donors, each with the seed of its episode."""

    def __init__(self, policy: Policy, donors: Sequence[tuple[int, str]]) -> None:
        self.policy, self.name = policy, f"{policy.name}, shuffled observations"
        self._donors = list(donors)

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        """Return the other policy's turns; the donor of a decision depends on the decision's seed alone."""
        asked = [request if isinstance(request, TurnRequest) else TurnRequest(request) for request in requests]
        return self.policy.act([replace(one, observation=self.donor(one.seed)) for one in asked])

    def donor(self, seed: tuple[int, ...]) -> str:
        """Return an observation of another episode than the one that ``seed`` (of a decision) belongs to."""
        rng = np.random.default_rng([*seed, _DRAW])
        own = seed[0] if seed else None
        others = [observation for episode, observation in self._donors if episode != own]
        if not others:
            raise ValueError("shuffling takes observations of at least two episodes")
        return others[int(rng.integers(len(others)))]


def control(policy: Policy, scenario: str, episodes: int, *, first_episode: int = 0) -> ControlResult:
    """Play ``episodes`` (2 or more) with and without exchanged observations, and check the reasoning."""
    game, horizon = SCENARIOS[scenario].game(), SCENARIOS[scenario].horizon
    seeds = [SCENARIOS[scenario].seed(first_episode + k) for k in range(episodes)]
    tasks = [EpisodeTask.of(scenario, seed, protocol=PROTOCOL) for seed in seeds]
    state = game.initial_state(np.random.default_rng(0))

    def played(by: Policy) -> list[Episode]:
        return sorted(rollout(by, tasks, max_concurrency=256), key=lambda episode: episode.seed)

    def mean_return(of: Sequence[Episode]) -> float:
        return float(np.mean([next(iter(episode.returns.values())) for episode in of]))

    def agreement(turns: Sequence[Turn]) -> float:  # an unreadable one counts as the default action, as in the game
        named = [game.interpret(turn.response, state, game.players[0]) or game.actions[0] for turn in turns]
        return float(np.mean([step.action == other for (_, step), other in zip(decisions, named, strict=True)]))

    own = played(policy)
    decisions = [(episode, step) for episode in own for step in episode.steps]
    shuffled = ShuffledObservations(policy, [(episode.seed, step.observation) for episode, step in decisions])
    requests = [
        TurnRequest(
            step.observation,
            game.instructions(step.player),
            game.actions,
            player=step.player,
            steps_left=horizon - step.index,
            game=game,
            seed=(episode.seed, step.index, _AGAIN),
        )
        for episode, step in decisions
    ]
    again, exchanged = policy.act(requests), shuffled.act(requests)  # with other noise, which is the same in both
    truth, unreadable = _truth([(step.turn.response, step.observation) for _, step in decisions])
    about_own = [(turn.response, step.observation) for (_, step), turn in zip(decisions, exchanged, strict=True)]
    return ControlResult(
        scenario=scenario,
        episodes=episodes,
        decisions=len(decisions),
        returned=mean_return(own),
        returned_shuffled=mean_return(played(shuffled)),
        agreement_again=agreement(again),
        agreement_shuffled=agreement(exchanged),
        truth=truth,
        unreadable=unreadable,
        truth_shuffled=_truth(about_own)[0],
    )


def _truth(pairs: Sequence[tuple[str, str]]) -> tuple[float, float]:
    """Shares of true and of unreadable parts over all reasonings; NaN if nothing is stated."""
    counts = np.array([tuple(check(response, observation)) for response, observation in pairs], float).sum(axis=0)
    total = counts.sum()
    if not total:
        return float("nan"), float("nan")
    return float(counts[0] / total), float(counts[2] / total)
