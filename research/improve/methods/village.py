"""Werewolf as a finite game: a speech is the choice of a cluster, and names are chosen as the agent was seen to choose.

``words, state, speaker -> template -> n-grams -> k-means -> cluster``. A template, "I am the seer, and [wolf 1] is a
wolf.", has what the speaker knows of players in the place of their names, so a player of another game can say it that
knows a wolf there. An information set is small: the scenario, the role, how many live, what its player knows of them,
the cluster that was heard last today, whether it was named today, and which clusters it can say. So a player forgets
what it said earlier, and equal roles share their policy: no equilibrium is promised.
"""

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from textgames import Scenario
from textgames.social.werewolf import NOBODY, SEER, SILENCE, WOLF, Phase, WerewolfState

NAME = re.compile(r"player_(\d+)")
SLOT = re.compile(r"⟦([^⟧]*) (\d+)⟧")
SOMEBODY = "⟦⟧"  # what a name is to those who cluster what they hear

DIMENSIONS, RUN, RESTARTS = 512, 3, 8

Vectors = NDArray[np.float64]


@lru_cache(1 << 16)
def named_in(words: str) -> frozenset[int]:
    """Return the players that a speech names."""
    return frozenset(int(number) for number in NAME.findall(words))


def knowledge(state: WerewolfState, me: int, other: int) -> str:
    """Return what a player knows of another one, who may be out, or of itself."""
    if other == me:
        return "me"
    if not state.alive[other]:
        return "out"
    if state.roles[me] == WOLF and state.roles[other] == WOLF:
        return "fellow"
    if state.roles[me] == SEER and any(night.inspected == other for night in state.nights):
        return "wolf" if state.roles[other] == WOLF else "cleared"
    return "other"


def standings(state: WerewolfState, me: int) -> list[str]:
    """Return the same of all players, and which of them was named today."""
    named = {other for _, words in state.days[-1].speeches for other in named_in(words)}
    known = [knowledge(state, me, other) for other in range(len(state.roles))]
    return [
        f"{kind} named" if other in named and kind not in ("me", "out") else kind for other, kind in enumerate(known)
    ]


def template_of(text: str, state: WerewolfState, me: int) -> str:
    """Return a text with what the speaker knows of players in the place of their names."""
    kinds, slots, counts = standings(state, me), dict[int, str](), Counter[str]()

    def slot(found: re.Match[str]) -> str:
        other = int(found[1])
        if other >= len(kinds):
            return found[0]
        if other not in slots:
            counts[kinds[other]] += 1
            slots[other] = f"⟦{kinds[other]} {counts[kinds[other]]}⟧"
        return slots[other]

    return NAME.sub(slot, text)


@lru_cache(1 << 16)
def needs_of(template: str) -> Mapping[str, int]:
    """Return how many players of which standing it takes to say a template."""
    needs: dict[str, int] = {}
    for kind, number in SLOT.findall(template):
        needs[kind] = max(needs.get(kind, 0), int(number))
    return needs


def filled(template: str, kinds: Sequence[str], order: Sequence[int]) -> str | None:
    """Return a template where players stand so, with the first of ``order`` that fit; ``None`` with too few."""
    needs = needs_of(template)
    if not needs:
        return template
    there = {kind: [other for other in order if kinds[other] == kind] for kind in needs}
    if any(len(there[kind]) < count for kind, count in needs.items()):
        return None
    return SLOT.sub(lambda found: f"player_{there[found[1]][int(found[2]) - 1]}", template)


def unnamed(template: str) -> str:
    """Return what is heard of a speech or template, without the names."""
    return NAME.sub(SOMEBODY, SLOT.sub(SOMEBODY, template))


class Clusters(NamedTuple):
    """Texts in groups of what is alike."""

    of: Mapping[str, int]  # ``{text: its cluster}``
    # of every cluster, its texts, the most frequent first, and how often each was said
    members: tuple[tuple[tuple[str, int], ...], ...]


def clustered(texts: Sequence[str], count: int, seed: int) -> Clusters:
    """Return at most ``count`` clusters by k-means, the best of several beginnings; the largest cluster is 0."""
    times = Counter(texts)
    known = sorted(times)
    if len(known) <= count:
        labels = np.arange(len(known))
    else:
        rows = np.repeat(embedded(known), [times[text] for text in known], axis=0)
        rng, best = np.random.default_rng(seed), np.inf
        for _ in range(RESTARTS):
            centres, found = kmeans2(rows, count, minit="++", missing="warn", seed=rng)
            lost = float(((rows - centres[found]) ** 2).sum())
            if lost < best:
                best, labels = lost, found[np.cumsum([0, *(times[text] for text in known[:-1])])]
    groups: dict[int, list[tuple[str, int]]] = {}
    for text, label in zip(known, labels.tolist(), strict=True):
        groups.setdefault(label, []).append((text, times[text]))
    members = [tuple(sorted(group, key=lambda one: (-one[1], one[0]))) for group in groups.values()]
    members.sort(key=lambda group: (-sum(often for _, often in group), group))
    return Clusters({text: place for place, group in enumerate(members) for text, _ in group}, tuple(members))


def embedded(texts: Sequence[str]) -> Vectors:
    """Return counts of runs of three characters, by checksums, as vectors of length 1. Shape (texts, dimensions).

    Not the model's hidden states, which change in training and would move the clusters of what it said before.
    """
    vectors = np.zeros((len(texts), DIMENSIONS))
    for row, text in enumerate(texts):
        padded = f" {text.casefold()} "
        for first in range(len(padded) - RUN + 1):
            vectors[row, crc32(padded[first : first + RUN].encode()) % DIMENSIONS] += 1
    lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


Seen = tuple[Hashable, ...]
"""The features of one target that a chooser sees; each has a weight."""


class Choice(NamedTuple):
    """One choice that was made: what was seen of every target, and which it was."""

    options: tuple[Seen, ...]
    chosen: int


class Listener:
    """Reads what was said last, by ``{speech without its names: cluster}`` of all roles together."""

    def __init__(self, codes: Mapping[str, int]) -> None:
        self._codes = codes
        self._code = lru_cache(1 << 16)(lambda words: self._codes.get(unnamed(words), -1))

    def code(self, words: str) -> int:
        """Return the cluster of a speech as it is heard; -1 for one that isn't among those clustered."""
        return self._code(words)

    def options(self, state: WerewolfState, me: int, targets: Sequence[int]) -> tuple[Seen, ...]:
        """Return what is seen of each target; weights are shared by those of a role in one phase."""
        who = state.phase, state.roles[me]
        seen: dict[int, list[Hashable]] = {target: [] for target in targets}
        for speaker, words in state.days[-1].speeches if state.days else ():
            code = self.code(words)
            if speaker in seen:
                seen[speaker].append((*who, "said", code))
            for named in named_in(words) & seen.keys():
                seen[named].append((*who, "named by me" if speaker == me else "named", code))
        for place, target in enumerate(targets):
            known = "nobody" if target == NOBODY else knowledge(state, me, target)
            seen[target] += [(*who, "place", place), (*who, "known", known)]
        return tuple(tuple(seen[target]) for target in targets)


Weights = Mapping[Hashable, float]


def fitted(choices: Sequence[Choice], times: Sequence[int]) -> Weights:
    """Return the weights of largest posterior probability, if each choice was made so many times."""
    options = [seen for choice in choices for seen in choice.options]
    names = {name: number for number, name in enumerate(dict.fromkeys(name for seen in options for name in seen))}
    ends = np.cumsum([len(seen) for seen in options])
    columns = np.array([names[name] for seen in options for name in seen], dtype=np.int64)
    matrix = csr_matrix((np.ones(len(columns)), columns, np.concatenate([[0], ends])), (len(options), len(names)))
    sizes = np.array([len(choice.options) for choice in choices])
    firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    chosen = firsts + np.array([choice.chosen for choice in choices])
    counts = np.array(times, dtype=float)

    def lost(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        values = matrix @ weights
        values -= np.repeat(np.maximum.reduceat(values, firsts), sizes)
        sums = np.add.reduceat(np.exp(values), firsts)
        likelihood = counts @ (values[chosen] - np.log(sums))
        off = np.exp(values) / np.repeat(sums, sizes) * np.repeat(counts, sizes)
        off[chosen] -= counts
        return weights @ weights / 2 - likelihood, weights + matrix.T @ off

    found = minimize(lost, np.zeros(len(names)), jac=True, method="L-BFGS-B")
    return dict(zip(names, found.x.tolist(), strict=True))


class Decision(NamedTuple):
    """Whose turn it is, what it knows (equal knowledge means equal actions), and what it may choose."""

    seat: int
    known: Hashable
    actions: Sequence[Any]


def place_of(luck: float, weights: Sequence[float]) -> int:
    """Return the place in a list that a uniform number falls on, if places are as large as their weights."""
    left = luck * sum(weights)
    for place, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return place
    return len(weights) - 1


class Luck(NamedTuple):
    """All that is random in an episode, drawn beforehand; by the number of rounds."""

    names: list[list[list[float]]]  # Gumbel, which make a draw of the best; of rounds, players, and whom they name
    members: list[float]  # uniform, which text of a cluster is said
    orders: list[list[int]]  # in which order players are thought of


class Node(NamedTuple):
    """A state between decisions."""

    scenario: str
    state: WerewolfState
    luck: Luck
    rounds: int = 0
    found: Decision | None = None  # of who is to speak
    returns: tuple[float, ...] = ()  # of an episode that is over


class Speaker:
    """The speeches that players can make: the clusters of templates of their role."""

    def __init__(self, clusters: Mapping[str, Clusters], listener: Listener) -> None:
        self.clusters, self.listener = clusters, listener
        self._needs = {
            role: [{tuple(sorted(needs_of(text).items())) for text, _ in members} for members in own.members]
            for role, own in clusters.items()
        }

    def knows(self, scenario: str, state: WerewolfState, me: int) -> tuple[Hashable, tuple[int, ...]]:
        """Return the information set of a player that is to speak, and the clusters that it can say."""
        kinds, role, heard = standings(state, me), state.roles[me], state.days[-1].speeches
        there = Counter(kinds)
        sayable = tuple(
            number
            for number, needs in enumerate(self._needs.get(role, ()))
            if any(all(there[kind] >= count for kind, count in each) for each in needs)
        )
        known = "".join(sorted({kind[0] for kind in kinds}))  # by the first letters, which differ
        last = self.listener.code(heard[-1][1]) if heard else None
        named = any(me in named_in(words) for _, words in heard)
        return (scenario, role, len(state.living), known, last, named, sayable), sayable

    def words(self, state: WerewolfState, cluster: int, luck: float, order: Sequence[int]) -> str:
        """Return a speech of a cluster, drawn as often as it was said, with names that fit."""
        me = state.speakers[0]
        members, kinds = self.clusters[state.roles[me]].members[cluster], standings(state, me)
        first = place_of(luck, [times for _, times in members])
        for text, _ in (*members[first:], *members[:first]):
            if (words := filled(text, kinds, order)) is not None:
                return words
        raise ValueError(f"nobody can say cluster {cluster} here")


class Village:
    """Scenarios of Werewolf as a game that ``regret`` solves; ``weights`` are of what is seen of those to be named."""

    def __init__(self, scenarios: Sequence[Scenario], speaker: Speaker, weights: Weights) -> None:
        self._scenarios = {scenario.name: scenario for scenario in scenarios}
        self._games: dict[str, Any] = {scenario.name: scenario.game() for scenario in scenarios}
        self._speaker, self._weights = speaker, weights
        self.seats = max(len(game.players) for game in self._games.values())

    def deal(self, rng: np.random.Generator) -> Node:
        name = [*self._games][int(rng.integers(len(self._games)))]
        game, rounds = self._games[name], self._scenarios[name].horizon
        players = len(game.players)
        luck = Luck(
            rng.gumbel(size=(rounds, players, players + 1)).tolist(),
            rng.random(rounds).tolist(),
            rng.permuted(np.tile(np.arange(players), (rounds, 1)), axis=1).tolist(),
        )
        return self._to_speech(Node(name, game.initial_state(rng), luck))

    def decision(self, node: Node) -> Decision | None:
        return node.found

    def after(self, node: Node, action: int) -> Node:
        luck = node.luck
        words = self._speaker.words(node.state, action, luck.members[node.rounds], luck.orders[node.rounds])
        return self._to_speech(self._next(node, {self._games[node.scenario].to_move(node.state)[0]: words}))

    def returns(self, node: Node) -> Sequence[float]:
        return (*node.returns, *[0.0] * (self.seats - len(node.returns)))

    def _to_speech(self, node: Node) -> Node:
        """Return the node after the votes, the nights, and the silence of those that know nothing to say."""
        while not node.returns:
            state, chosen = node.state, dict[str, str]()
            if state.phase is Phase.SPEECHES:
                seat = state.speakers[0]
                found = Decision(seat, *self._speaker.knows(node.scenario, state, seat))
                if found.actions:
                    return node._replace(found=found)
                chosen = {self._games[node.scenario].players[seat]: SILENCE}
            node = self._next(node, chosen or self._named(node))
        return node

    def _named(self, node: Node) -> dict[str, str]:
        """Return the player that each one names that is to name one now."""
        game, weigh, chosen = self._games[node.scenario], self._weights.get, {}
        for player in game.to_move(node.state):
            me, luck = game.players.index(player), node.luck.names[node.rounds]
            names = game.legal_actions(node.state, player)
            targets = targets_of(game.players, names)
            values = [  # -1, for none, is the last
                sum([weigh(name, 0.0) for name in seen], luck[me][target])
                for seen, target in zip(self._speaker.listener.options(node.state, me, targets), targets, strict=True)
            ]
            chosen[player] = names[values.index(max(values))]
        return chosen

    def _next(self, node: Node, chosen: Mapping[str, str]) -> Node:
        ((_, state, rewards, over),) = self._games[node.scenario].outcomes(node.state, chosen)
        over = over or node.rounds + 1 == self._scenarios[node.scenario].horizon
        return Node(node.scenario, state, node.luck, node.rounds + 1, returns=tuple(rewards.values()) if over else ())


def targets_of(players: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the numbers of players that may be named."""
    return [players.index(name) if name in players else NOBODY for name in names]
