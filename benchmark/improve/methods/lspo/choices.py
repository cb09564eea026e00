"""Whom an agent names in votes and at night, as its own play shows it: a conditional logit (McFadden, 1974).

``P(target) ~ exp(sum of the weights of what the chooser sees of it)``: where it stands in the list, what is known of
it, what it said last and in what speeches it was named. So a speech counts for as much as this agent heeds it. The
weights have a normal prior around 0, which is an agent that heeds nothing.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from benchmark.improve.methods.lspo.speeches import knowledge, named_in, unnamed
from textgames.social.werewolf.rules import NOBODY, WerewolfState

Seen = tuple[Hashable, ...]
"""What a chooser sees of one target; each has a weight."""


class Choice(NamedTuple):
    """One choice that was made: what was seen of every target, and which it was."""

    options: tuple[Seen, ...]
    chosen: int


class Listener:
    """Reads what was said last.

    Args:
        codes: ``{speech without its names: cluster}``, of all roles together: a listener doesn't know who speaks.
    """

    def __init__(self, codes: Mapping[str, int]) -> None:
        self._codes = codes
        self._code = lru_cache(1 << 16)(lambda words: self._codes.get(unnamed(words), -1))

    def code(self, words: str) -> int:
        """The cluster of a speech as it is heard; -1 for one that nobody has said in what was clustered."""
        return self._code(words)

    def options(self, state: WerewolfState, me: int, targets: Sequence[int]) -> tuple[Seen, ...]:
        """What is seen of each target; weights are shared by those of a role in one phase."""
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
    """The weights of largest posterior probability, where each choice was made so many times."""
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
