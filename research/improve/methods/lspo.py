"""Latent space policy optimisation of what is said in Werewolf (Xu et al., arXiv 2502.04686).

``own play -> speeches -> clusters -> a finite game -> counterfactual regret -> preferences -> model``, again and again.

It departs from the paper: regrets stand in a table over small information sets; only what is said is optimised, votes
and nights are chosen as the agent was seen to choose; speeches are told apart by their letters; their number of
clusters stays the same; and a cluster is only preferred if its gain can't be chance.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr
from scipy.stats import false_discovery_control

from agents.analysis import TIE
from benchmark import UsageError
from benchmark.play import AgentTable
from benchmark.runs import find_scenarios
from benchmark.score import read_columns
from benchmark.show import RecordedDecision, Source
from research.improve.methods.learning import MODEL, config_of, learnt, own_play, trained
from research.improve.methods.preferences import Pair, check_installed, prefer
from research.improve.methods.village import (
    Choice,
    Decision,
    Listener,
    Speaker,
    Village,
    clustered,
    filled,
    fitted,
    place_of,
    standings,
    targets_of,
    template_of,
    unnamed,
)
from research.improve.task import ImprovementTask
from textgames import Scenario
from textgames.social.werewolf import Phase, Werewolf

Weights = NDArray[np.float64]
PerAction = Mapping[Hashable, Weights]
"""``{what is known: a number for each action}``."""

LONGEST = 64  # decisions of a game for which luck is drawn; later ones meet the same luck again


class Solution(NamedTuple):
    """The outcome of the traversals."""

    policy: PerAction  # the weight of each action, the average over all traversals
    values: PerAction  # what each action got on average, if the others' play led


def solve(game: Any, seats: int, traversals: int, rng: np.random.Generator) -> Solution:
    """Return what came of so many traversals, each of one seat in turn; later ones weigh more in the policy.

    Counterfactual regret minimisation (Zinkevich et al. 2007) of a game that can only be played, sampled (Lanctot et
    al. 2009): one seat walks through the game and, wherever it decides, every action is played to the end once. The
    walk continues with a uniform action, whose probability its later regrets are divided by; all others follow their
    policies. Actions are compared with equal luck, so what makes no difference has no regret at all.

    The ``game`` is one between decisions: ``deal(rng)`` returns a node and draws all of its chances, ``decision(node)``
    whose turn it is, ``None`` if the game is over, ``after(node, action)`` the next node, and ``returns(node)`` what
    every seat has got at the end.
    """
    tables = _Tables(game)
    for number in range(traversals):
        tables.traverse(number % seats, float(number + 1), rng)
    return Solution(
        {known: total / total.sum() for known, total in tables.sums.items() if total.any()},
        {known: total / tables.visits[known] for known, total in tables.values.items()},
    )


class _Tables:
    def __init__(self, game: Any) -> None:
        self.game = game
        self.regrets: dict[Hashable, Weights] = {}
        self.sums: dict[Hashable, Weights] = {}
        self.values: dict[Hashable, Weights] = {}
        self.visits: dict[Hashable, float] = {}

    def traverse(self, seat: int, weight: float, rng: np.random.Generator) -> None:
        game, luck, node = self.game, rng.random(LONGEST).tolist(), self.game.deal(rng)
        reciprocal, played = 1.0, 0  # of the probability of the walk's own actions; decisions so far
        while (found := game.decision(node)) is not None:
            policy = self.policy(found)
            if found.seat == seat:
                children = [game.after(node, action) for action in found.actions]
                values = np.array([self.value(child, seat, luck, played + 1) for child in children])
                self.regrets[found.known] += reciprocal * (values - policy @ values)
                self.values[found.known] = self.values.get(found.known, 0.0) + reciprocal * values
                self.visits[found.known] = self.visits.get(found.known, 0.0) + reciprocal
                reciprocal *= len(found.actions)
                node = children[int(luck[played % LONGEST] * len(children))]
            else:
                self.sums[found.known] += weight * np.array(policy)
                node = game.after(node, found.actions[place_of(luck[played % LONGEST], policy)])
            played += 1

    def value(self, node: Any, seat: int, luck: Sequence[float], played: int) -> float:
        """Return what a seat gets if everybody, itself too, continues by the policies."""
        while (found := self.game.decision(node)) is not None:
            place = place_of(luck[played % LONGEST], self.policy(found))
            node, played = self.game.after(node, found.actions[place]), played + 1
        return float(self.game.returns(node)[seat])

    def policy(self, found: Decision) -> list[float]:
        """Return regret matching: in proportion to the regrets above 0, uniform if there are none."""
        if found.known not in self.regrets:
            self.regrets[found.known], self.sums[found.known] = (np.zeros(len(found.actions)) for _ in range(2))
        above = [max(regret, 0.0) for regret in self.regrets[found.known].tolist()]
        total = sum(above)
        return [regret / total if total > 0 else 1 / len(above) for regret in above]


def improve(
    task: ImprovementTask,
    *,
    episodes: int = 100,
    attempts: int = 4,
    temperature: float = 1.0,
    clusters: int = 4,
    traversals: int = 12_000,
    rounds: int = 2,
    beta: float = 0.1,
    sft: float = 1.0,
    rank: int = 16,
    learning_rate: float = 2e-4,
    passes: int = 10,
) -> AgentTable:
    """Tune what the agent's model says in Werewolf towards a policy over clusters of speeches.

    Args:
        task: the agent has a local model; the scenarios are of Werewolf.
        episodes: training seeds that the agent plays with itself in all seats, of each scenario and in each round.
        attempts: how often it plays each of them, with other samples.
        temperature: of the agent's answers in this play.
        clusters: latent strategies of every role, and what listeners tell apart.
        traversals: of the finite game in each of its solutions, each by one seat.
        rounds: how often all of it is done, as far as the budget reaches.
        beta: of DPO: how much it costs to leave the model that the round began with.
        sft: the weight of the likelihood of the better answers in the loss.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest.
        passes: how often the model goes through the pairs of a round.
    """
    check_installed("lspo")
    scenarios = find_scenarios(task.scenarios)
    if others := [name for name, one in scenarios.items() if not isinstance(one.game(), Werewolf)]:
        raise UsageError(f"lspo is for speeches in Werewolf, got {others[0]}: name werewolf-5 or werewolf-7")
    for name, value in {"clusters": clusters, "traversals": traversals, "rounds": rounds}.items():
        if value < 1:
            raise UsageError(f"{name} is at least 1, got {value}")
    now, said, folder = task, list[Speech](), ""
    for number in range(1, rounds + 1):
        config = config_of(now, episodes, rank=rank, learning_rate=learning_rate, passes=passes)
        player = {**now.agent, "temperature": temperature}
        folders = own_play(now, player, episodes, attempts, needed=number == 1)
        if not folders:
            break
        played = play_in(folders, config.response_mode)
        said = [*played.speeches, *said]
        with task.meter.spending(f"regret-{number}"):
            latent = solved([*scenarios.values()], said, played, clusters, traversals, task.seed)
            preferences = latent.preferences(played.speeches)
        task.say(f"round {number}: {len(played.speeches):,} speeches, {len(preferences):,} pairs of answers")
        if not preferences:
            task.say("no way to speak is surely worth more than another, so there is nothing to prefer")
            break
        folder = MODEL if number == rounds else f"{MODEL}-{number}"
        with task.meter.spending(f"training-{number}"):
            prefer(replace(config, out=str(task.out / folder)), [one.pair for one in preferences], beta, sft)
        now = replace(task, agent=trained(task, str(task.out / folder)))
    return learnt(task, task.agent, folder) if folder else task.agent


SOLUTIONS = 8
FALSE = 0.05  # also the chance that anything is preferred if nothing is better


class Speech(NamedTuple):
    """A speech that was made, with names as its speaker knows them: in what was said, and in the whole response."""

    me: int
    role: str
    words: str
    response: str
    decision: RecordedDecision


class Played(NamedTuple):
    """The decisions of an agent in its games: its speeches, and all others."""

    speeches: list[Speech]
    choices: list[RecordedDecision]


class Preference(NamedTuple):
    """A pair of answers, and which of its role's clusters they are of."""

    role: str
    better: int
    worse: int
    pair: Pair


def play_in(folders: Sequence[Path], mode: str) -> Played:
    """Return what was done in run folders, with responses in a mode; a UsageError without speech."""
    places = ("scenario", "seed", "agent", "round", "player")
    decisions = Source(read_columns(folders), mode, lenient=True).decisions()
    played = Played([], [])
    for one in sorted(decisions, key=lambda one: [one.origin[name] for name in places]):
        if one.state.phase is not Phase.SPEECHES:
            played.choices.append(one)
            continue
        me = one.state.speakers[0]
        words, response = (template_of(text, one.state, me) for text in (one.action, one.response))
        played.speeches.append(Speech(me, one.state.roles[me], words, response, one))
    if not played.speeches or not played.choices:
        raise UsageError(f"nothing that can be read was said, or nobody named, in {', '.join(map(str, folders))}")
    return played


class Latent(NamedTuple):
    """Policies over clusters of speeches, as often as the game was solved."""

    speaker: Speaker
    solutions: list[Solution]
    said: Sequence[Speech]  # what answers are taken from
    seed: int

    def preferences(self, speeches: Sequence[Speech]) -> list[Preference]:
        """Return each speech beside one of another cluster, made with equal knowledge, with the names that fit."""
        rng = np.random.default_rng([self.seed, len(speeches)])
        pool: dict[tuple[object, int], list[Speech]] = {}
        for one in self.said:
            pool.setdefault((self._knows(one)[0], self._cluster(one)), []).append(one)
        gains, found = self.gains(speeches), []
        for one in speeches:
            (known, sayable), own = self._knows(one), self._cluster(one)
            gain = {} if known not in gains else dict(zip(sayable, gains[known][:, sayable.index(own)], strict=True))
            others = [cluster for cluster in sayable if gain.get(cluster) and (known, cluster) in pool]
            if not others:
                continue
            other = int(rng.choice(others))
            near, state = pool[known, other], one.decision.state
            like, order = near[int(rng.integers(len(near)))], rng.permutation(len(state.roles)).tolist()
            there, here = filled(like.response, standings(state, one.me), order), one.decision.response
            if there is None:
                continue
            prompt, wins = one.decision.prompt, gain[other] > 0
            pair = Pair(prompt, there, here) if wins else Pair(prompt, here, there)
            found.append(Preference(one.role, *((other, own) if wins else (own, other)), pair))
        return found

    def gains(self, speeches: Sequence[Speech]) -> Mapping[object, Weights]:
        """Return ``{what is known: gain[i, j]}``: how much more a cluster is worth than another, 0 if that isn't
        sure."""
        known_in = [one.policy.keys() & one.values.keys() for one in self.solutions]
        met = dict.fromkeys(known for known, _ in map(self._knows, speeches) if all(known in one for one in known_in))
        gains, chances = {}, {}
        for known in met:
            weights, values = (
                np.array([part[known] for part in parts]) for parts in zip(*self.solutions, strict=True)
            )  # of shape (solutions, clusters)
            heavier, above = (each[:, :, None] - each[:, None, :] for each in (weights, values))
            gain, error = above.mean(axis=0), above.std(axis=0, ddof=1) + TIE
            chances[known] = 2 * stdtr(len(self.solutions) - 1, -np.abs(gain) / error)
            gains[known] = np.where(gain * heavier.mean(axis=0) > 0, gain, 0.0)
        pairs = {known: np.triu_indices(len(each), 1) for known, each in chances.items()}
        compared = np.concatenate([[], *(chances[known][where] for known, where in pairs.items())])
        limit = max(compared[false_discovery_control(compared) <= FALSE], default=-1.0)
        return {known: np.where(chances[known] <= limit, gain, 0.0) for known, gain in gains.items()}

    def _cluster(self, speech: Speech) -> int:
        return self.speaker.clusters[speech.role].of[speech.words]

    def _knows(self, speech: Speech) -> tuple[object, tuple[int, ...]]:
        return self.speaker.knows(speech.decision.origin["scenario"], speech.decision.state, speech.me)


def solved(
    scenarios: Sequence[Scenario], said: Sequence[Speech], played: Played, clusters: int, traversals: int, seed: int
) -> Latent:
    """Return the policy over what was ``said``, among players that name others as they were seen to in ``played``."""
    words: dict[str, list[str]] = {}
    for one in said:
        words.setdefault(one.role, []).append(one.words)
    by_role = {role: clustered(own, clusters, seed) for role, own in sorted(words.items())}
    speaker = Speaker(by_role, Listener(clustered([unnamed(one.words) for one in said], clusters, seed).of))
    games = {scenario.name: scenario.game() for scenario in scenarios}
    choices, deals = [], []
    for made in played.choices:
        game, names = games[made.origin["scenario"]], made.request.legal_actions
        me = game.players.index(made.origin["player"])
        options = speaker.listener.options(made.state, me, targets_of(game.players, names))
        choices.append(Choice(options, names.index(made.action)))
        deals.append((made.origin["scenario"], made.origin["seed"]))
    places = {deal: place for place, deal in enumerate(dict.fromkeys(deals))}
    solutions = []
    for sample in range(SOLUTIONS):
        rng = np.random.default_rng([seed, sample])
        drawn = np.bincount(rng.integers(len(places), size=len(places)), minlength=len(places))
        village = Village(scenarios, speaker, fitted(choices, [int(drawn[places[deal]]) for deal in deals]))
        solutions.append(solve(village, village.seats, traversals, rng))
    return Latent(speaker, solutions, said, seed)
