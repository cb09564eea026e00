"""Monte-Carlo tree search, by which ``search(AGENT)`` ranks proposals: ``rank_by=tree``.

A simulation walks down the tree by an upper bound of each action's mean return (Kocsis and Szepesvari 2006, UCT), which
at the root is weighted by how many proposals name the action (PUCT, Silver et al. 2017). It adds one node and plays at
random below it. Chance is sampled anew in each simulation. The action with most visits is the best.
"""

import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from agents import TurnRequest
from research.improve.around.questions import Asking
from research.improve.around.worlds import World

EXPLORATION = 1.25
"""The weight of the bound in units of the spread of the returns that were seen."""


class Node:
    """One state with so many steps left: for each action its prior, its visits and the sum of the returns after it."""

    def __init__(self, mover: str, priors: Mapping[str, float]) -> None:
        self.mover, self.actions, self.priors = mover, list(priors), list(priors.values())
        self.visits, self.totals = [0] * len(priors), [0.0] * len(priors)

    def choose(self, low: float, high: float, rng: np.random.Generator) -> int:
        """Return the place of the action with the highest bound, at random among equals.

        Means are scaled by the lowest and the highest return seen; an action never tried counts as the node's own mean.
        """
        every, spread = sum(self.visits), (high - low) or 1.0
        own = sum(self.totals) / every if every else low
        wide = EXPLORATION * math.sqrt(every + 1)
        bounds = [
            ((total / tried if tried else own) - low) / spread + wide * prior / (1 + tried) if every else prior
            for prior, tried, total in zip(self.priors, self.visits, self.totals, strict=True)
        ]
        highest = max(bounds)
        equal = [place for place, bound in enumerate(bounds) if bound == highest]
        return equal[0] if len(equal) == 1 else equal[int(rng.integers(len(equal)))]


def searched(
    world: World, request: TurnRequest, proposed: Mapping[str, int], simulations: int, depth: int
) -> Asking[dict[str, tuple[int, float]]]:
    """Return ``{action: (visits, mean return)}`` of the proposed actions, each with the number of its proposals."""
    limit = depth if request.steps_left is None else min(depth, request.steps_left)
    named = sum(proposed.values())
    root = Node(request.player, {action: count / named for action, count in proposed.items()})
    nodes, low, high = {(world.start, limit): root}, math.inf, -math.inf
    for number in range(simulations):
        rng = np.random.default_rng([*request.seed, number])
        walked: list[tuple[Node | None, int, Mapping[str, float]]] = []
        state, left, grown = world.start, limit, False
        while state is not None and left:
            node = nodes.get((state, left))
            if node is None:
                mover, actions = world.moves(state)
                if not actions:
                    break
                if not grown:
                    node = nodes[state, left] = Node(mover, dict.fromkeys(actions, 1 / len(actions)))
                    grown = True
            place = int(rng.integers(len(actions))) if node is None else node.choose(low, high, rng)
            action = actions[place] if node is None else node.actions[place]
            came = yield from world.step(state, action, rng)
            walked.append((node, place, came.paid))
            state, left = came.state, left - 1
        returns: defaultdict[str, float] = defaultdict(float)
        for node, place, paid in reversed(walked):
            for player, reward in paid.items():
                returns[player] += reward
            if node is not None:
                own = returns[node.mover]
                node.visits[place] += 1
                node.totals[place] += own
                low, high = min(low, own), max(high, own)
    tried = zip(root.actions, root.visits, root.totals, strict=True)
    return {action: (visits, total / max(visits, 1)) for action, visits, total in tried}
