"""From recorded play to a policy over clusters of speeches, and from that to pairs of answers.

The finite game is solved several times, each time with the choices of other games, drawn with replacement: regret
matching takes every difference for real, that of chance too. A cluster is preferred to another where the policy gives
it more weight and it is surely worth more: by Student's quantile of :data:`SURE`, with the standard error that the
solutions show. Weights alone would not tell, as they are near 0 or 1 wherever a difference has the same sign.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

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

SURE = 0.995  # one-sided


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


class Solving(NamedTuple):
    """How the finite game is made and solved; see the options of the improver."""

    clusters: int
    traversals: int
    samples: int
    seed: int


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

    def worth(self, speech: Speech) -> tuple[Weights, Weights, tuple[int, ...]] | None:
        """Weights and values where a speech was made, and of which clusters; ``None`` where a solution lacks them.

        Both of shape (solutions, clusters).
        """
        known, sayable = self._knows(speech)
        if not all(known in one.policy and known in one.values for one in self.solutions):
            return None
        weights, values = (np.array([part[known] for part in parts]) for parts in zip(*self.solutions, strict=True))
        return weights, values, sayable

    def pairs(self, speeches: Sequence[Speech]) -> list[Pair]:
        """Each speech beside one of another cluster, made by somebody who knew the same, with the names that fit."""
        rng = np.random.default_rng([self.seed, len(speeches)])
        pool: dict[tuple[object, int], list[Speech]] = {}
        for one in self.said:
            pool.setdefault((self._knows(one)[0], self.cluster(one)), []).append(one)
        return [pair for one in speeches if (pair := self._pair(one, pool, rng)) is not None]

    def _pair(
        self, speech: Speech, pool: dict[tuple[object, int], list[Speech]], rng: np.random.Generator
    ) -> Pair | None:
        if (found := self.worth(speech)) is None:
            return None
        (weights, values, sayable), known, state = found, self._knows(speech)[0], speech.decision.state
        own = [sayable.index(self.cluster(speech))]
        heavier, above = (weights - weights[:, own]).mean(axis=0), values - values[:, own]
        gain = above.mean(axis=0)
        least = stdtrit(len(values) - 1, SURE) * above.std(axis=0, ddof=1) + TIE
        sure = (np.abs(gain) > least) & (gain * heavier > 0)
        others = [place for place, cluster in enumerate(sayable) if sure[place] and (known, cluster) in pool]
        if not others:
            return None
        place = int(rng.choice(others))
        near = pool[known, sayable[place]]
        order = rng.permutation(len(state.roles)).tolist()
        other = filled(near[int(rng.integers(len(near)))].response, standings(state, speech.me), order)
        if other is None:
            return None
        said = speech.decision.response
        better, worse = (other, said) if gain[place] > 0 else (said, other)
        return Pair(speech.decision.prompt, better, worse)

    def told(self, speeches: Sequence[Speech]) -> Iterator[str]:
        """Of every role, the cluster that gained most, for people."""
        for role, clusters in self.speaker.clusters.items():
            said, meant = (np.zeros(len(clusters.members)) for _ in range(2))
            for one in speeches:
                if one.role == role and (found := self.worth(one)) is not None:
                    said[self.cluster(one)] += 1
                    meant[list(found[2])] += found[0].mean(axis=0)
            if said.any():
                best = int(np.argmax(meant - said))
                text, _ = clusters.members[best][0]
                shares = f"{said[best] / said.sum():.2f} said, {meant[best] / said.sum():.2f} in the policy"
                yield f"{role}: {shares}: {text}"

    def cluster(self, speech: Speech) -> int:
        return self.speaker.clusters[speech.role].of[speech.words]

    def _knows(self, speech: Speech) -> tuple[object, tuple[int, ...]]:
        return self.speaker.knows(speech.decision.origin["scenario"], speech.decision.state, speech.me)


def solved(scenarios: Sequence[Scenario], said: Sequence[Speech], played: Played, solving: Solving) -> Latent:
    """The policy over what was ``said``, among players who name others as they were seen to in what was ``played``."""
    codes = clustered([unnamed(one.words) for one in said], solving.clusters, solving.seed).of
    words: dict[str, list[str]] = {}
    for one in said:
        words.setdefault(one.role, []).append(one.words)
    by_role = {role: clustered(own, solving.clusters, solving.seed) for role, own in sorted(words.items())}
    speaker = Speaker(by_role, Listener(codes))
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
    for sample in range(solving.samples):
        rng = np.random.default_rng([solving.seed, sample])
        drawn = np.bincount(rng.integers(len(places), size=len(places)), minlength=len(places))
        village = Village(scenarios, speaker, fitted(choices, [int(drawn[places[deal]]) for deal in deals]))
        solutions.append(solve(village, village.seats, solving.traversals, rng))
    return Latent(speaker, solutions, said, solving.seed)
