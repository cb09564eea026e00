"""From recorded play to a policy over clusters of speeches, and from that to pairs of answers.

The finite game is solved :data:`SOLUTIONS` times, each time with the choices of other games, drawn with replacement:
regret matching takes every difference for real, that of chance too. A cluster is preferred to another where the policy
gives it more weight and it is surely worth more: by Student's test with the standard error that the solutions show, so
that :data:`FALSE` of all that is preferred is expected to be chance (Benjamini and Hochberg, 1995). Weights alone would
not tell, as they are near 0 or 1 wherever a difference has the same sign.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr
from scipy.stats import false_discovery_control

from agents.analysis.inspection import TIE
from benchmark.errors import UsageError
from benchmark.improve.methods.dpo import Pair
from benchmark.improve.methods.lspo.choices import Choice, Listener, fitted
from benchmark.improve.methods.lspo.regret import Solution, Weights, solve
from benchmark.improve.methods.lspo.speeches import clustered, filled, standings, template_of, unnamed
from benchmark.improve.methods.lspo.village import Speaker, Village, targets_of
from benchmark.score.results import read_columns
from benchmark.show.training_data import RecordedDecision, Source
from textgames.scenarios import Scenario
from textgames.social.werewolf.rules import Phase

SOLUTIONS = 8
FALSE = 0.05  # also the chance that anything is preferred where nothing is better


class Speech(NamedTuple):
    """A speech that was made, with names as its speaker knows them: in what was said, and in the whole response."""

    me: int
    role: str
    words: str
    response: str
    decision: RecordedDecision


class Played(NamedTuple):
    """What an agent did in its games: what it said, and its other decisions."""

    speeches: list[Speech]
    choices: list[RecordedDecision]


class Preference(NamedTuple):
    """A pair of answers, and which of its role's clusters they are of."""

    role: str
    better: int
    worse: int
    pair: Pair


def play_in(folders: Sequence[Path], mode: str) -> Played:
    """What was done in run folders, with responses in a mode; in an order of its own, as episodes end in any.

    Raises:
        UsageError: nothing was said.
    """
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
        """Each speech beside one of another cluster, made by somebody who knew the same, with the names that fit."""
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
            near = pool[known, other]
            like, order = near[int(rng.integers(len(near)))], rng.permutation(len(one.decision.state.roles)).tolist()
            there, here = filled(like.response, standings(one.decision.state, one.me), order), one.decision.response
            if there is None:
                continue
            prompt, wins = one.decision.prompt, gain[other] > 0
            pair = Pair(prompt, there, here) if wins else Pair(prompt, here, there)
            found.append(Preference(one.role, *((other, own) if wins else (own, other)), pair))
        return found

    def gains(self, speeches: Sequence[Speech]) -> Mapping[object, Weights]:
        """``{what is known: gain[i, j]}``: how much more one cluster is worth than another, 0 where that isn't sure.

        Of all information sets in which a speech was made, and every solution came.
        """
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

    def told(self, preferences: Sequence[Preference]) -> Iterator[str]:
        """What is preferred most often to what, for people."""
        for (role, *both), times in Counter(one[:3] for one in preferences).most_common(5):
            better, worse = (self.speaker.clusters[role].members[int(cluster)][0][0] for cluster in both)
            yield f"{role}: {better!r} before {worse!r}, {times:,} times"

    def _cluster(self, speech: Speech) -> int:
        return self.speaker.clusters[speech.role].of[speech.words]

    def _knows(self, speech: Speech) -> tuple[object, tuple[int, ...]]:
        return self.speaker.knows(speech.decision.origin["scenario"], speech.decision.state, speech.me)


def solved(
    scenarios: Sequence[Scenario], said: Sequence[Speech], played: Played, clusters: int, traversals: int, seed: int
) -> Latent:
    """The policy over what was ``said``, among players who name others as they were seen to in what was ``played``."""
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
