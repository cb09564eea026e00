"""A critic beside imitation: recorded decisions are judged by what their actions are worth, not by how episodes ended.

``A(s, a) = Q(s, a) - max_b Q(s, b)`` over the legal actions, 0 at best. ``filtered`` imitates the decisions of the
largest advantages, ``weighted`` all of them with ``exp(A / beta)``, at most 20, A in standard deviations, and
``return`` tells in the prompt what the critic expects after the decision in the place of the episode's return, which
may have been lost later. Our reading of a critic beside a decision transformer (arXiv 2106.01345), whose returns join
no two episodes.
"""

from collections.abc import Sequence
from math import log
from typing import Any

import numpy as np

from agents import SearchPlayer
from benchmark import UsageError

MOST_WEIGHT = 20.0


def criticised(episodes: Sequence[Any], critic: SearchPlayer, *, advantages: bool) -> list[Any]:
    """Return every decision as an episode of its own, whose result is its advantage, or its value, by a critic."""
    found = []
    for one in episodes:
        for decision in one.decisions:
            if advantages and not decision.request.legal_actions:
                raise UsageError(f"{one.scenario} lists no legal actions, which a critic compares: --set method=return")
            values = critic.values_with(decision.request, decision.request.legal_actions or (decision.action,))
            baseline = max(values.values()) if advantages else 0.0
            found.append(one._replace(decisions=[decision], result=values[decision.action] - baseline))
    return found


def weights_of(advantages: Sequence[float], beta: float) -> list[float]:
    """Return ``exp(A / (beta sd(A)))``, at most 20, of mean 1."""
    return exponential(advantages, beta * (float(np.std(advantages)) or 1.0))


def exponential(advantages: Sequence[float], beta: float, decisions: Sequence[int] | None = None) -> list[float]:
    """Return ``exp(A / beta)``, at most 20, of mean 1 over the decisions of each; equally many when not given."""
    weights = np.exp(np.minimum(np.asarray(advantages, float) / beta, log(MOST_WEIGHT)))
    return [float(weight) for weight in weights / np.average(weights, weights=decisions)]
