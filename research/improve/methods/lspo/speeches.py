"""Speeches as latent strategies: names give way to what the speaker knows of their players, and the rest is clustered.

``words, state, speaker -> template -> n-grams -> k-means -> cluster``. A template, "I am the seer, and [wolf 1] is a
wolf.", can be said again in another game by a player that knows a wolf there.
"""

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from textgames.social.werewolf import NOBODY, SEER, WOLF, WerewolfState

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
"""What a chooser sees of one target; each has a weight."""


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
