"""Methods of credit against figures that were worked out by hand, in one table."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from agents.episode import EpisodeTask
from agents.msgrpo.credit import Batch, Trajectory
from tests.agents.msgrpo.credit.plain import advantages
from tests.agents.msgrpo.hand_made import batch, trajectory

Z = 1 / math.sqrt(2)  # of two returns, 1 and 0: half the gap over its std
HALF = math.sqrt(3) / 2  # z of two ones and two zeros


def of_tokens(lengths: Sequence[int], successes: Sequence[bool], **others: Any) -> list[Trajectory]:
    """Episodes of two steps with so many response tokens in all; a success is paid 1."""
    return [
        trajectory([0.0, float(won)], tokens=[length - 1, 1], success=won, **others)
        for length, won in zip(lengths, successes, strict=True)
    ]


FAILED = batch(trajectory([0.0, 2.0]), trajectory([1.0]))
CUT_OFF = batch(*of_tokens([3], [True]), *of_tokens([9], [False], cut_off=np.array([False, True])))

# k = 1, at B: 1, 3, 5 with a mean of 3 and a population std of sqrt(8/3). k = 2: (A, B) holds 1 and 5, with a mean of 3
# and a std of 2; (C, B) is alone. The weights are 2 and 3. At A, returns-to-go are 1 and 5, too, k = 1.
WAYS = batch(trajectory([0, 1], "AB"), trajectory([0, 3], "CB"), trajectory([0, 5], "AB"))
MIXED = (2 * 2 / math.sqrt(8 / 3) + 3 * 1) / 5

# The seats' mean rewards are 2 and 0; without them -2, 0 | 2 | -1, 1, whose std is sqrt(10 / 4). So divided, and summed
# up from behind: -2, 0 | 2 | 0, 1 in units of that. The seats' means are 0 and 1/2, and -2, 0 | 2 | -1/2, 1/2 have the
# sum 0 and the squares 8.5.
TIC = EpisodeTask.of("tic-tac-toe", 0)
SEATS = batch(
    trajectory([0, 2], player="player_0", task=TIC, group=0), trajectory([4], player="player_0", task=TIC, group=1),
    trajectory([-1, 1], player="player_1", task=TIC, group=2),
)  # fmt: skip
SPREAD = math.sqrt(8.5 / 4)
# One seat with -1, 0 | 0, 1 | 0, beside one of 3, 3 that loses its mean: the std of the seven is sqrt(1 / 3). Summed
# up, the first seat has -1, 0 | 1, 1 | 0 in units of that, whose distinct values have the mean 0, and over steps 1/5.
REPEATED = batch(
    trajectory([-1, 0]), trajectory([0, 1]), trajectory([0]), trajectory([3, 3], player="player_1")
)  # fmt: skip
DISTINCT = np.array([-1, 0, 1, 1, 0, 0, 0]) / math.sqrt(1 / 3)
DISTINCT = (DISTINCT - DISTINCT.mean()) / DISTINCT.std(ddof=1)

# G is 0.5, 1 and 0, 0, so V(A) = 0.25 and V(B) = 0.5; deltas are 0, 0.5 and 0, -0.5.
TWICE = batch(trajectory([0.0, 1.0], "AB"), trajectory([0.0, 0.0], "AB"))
GAE = np.array([0.5 * 0.5 * 0.5, 0.5, -0.5 * 0.5 * 0.5, -0.5]) / math.sqrt((2 * 0.125**2 + 2 * 0.5**2) / 3)
# At A the mean of 1, 0 and 1 is 2/3; left has 1/2 of two visits and right 1 of one: gains -1/6 and 1/3, of which 2/3
# and 1/2 count. Their variance is 1/18, that within left 1/6: a quarter is evidence.
TRIED = batch(trajectory([1.0], "A"), trajectory([0.0], "A"), trajectory([1.0], "A", actions=("right",)))
# Two episodes stop at once, and two continue for 0.3, which costs 1 in the next turn. To continue is worth -0.7, and a
# turn's own reward takes that away from MT-GRPO's first decision, exactly.
DEARLY_BOUGHT = batch(*[trajectory([0.3, -1.0]), trajectory([0.3, -1.0]), trajectory([0.0]), trajectory([0.0])])
# Milestones at the second and the fourth step: what comes after the first is another segment.
MILESTONES = batch(trajectory([0.0, 1.0, 0.0, 0.5]), trajectory([0.0, 0.0]))


def path(letters: str, paid: float, tree: str = "T", sure: float = 0.0) -> Trajectory:
    """An episode of the steps that the letters name, paid at its end; step t has log-probabilities ``-sure * t``."""
    logprobs = tuple(np.full(2, -sure * t) for t in range(len(letters)))
    rewards = [0.0] * (len(letters) - 1) + [paid]
    return trajectory(rewards, list(letters), tree=tree, nodes=tuple(letters), old_logprobs=logprobs)


def branched(sure: float = 0.0, last: float = 0.0) -> Batch:
    """a is followed by b, twice, and by c; d stands alone: ab-e, ab-f, ac, d."""
    return batch(path("abe", 0, sure=sure), path("abf", 1, sure=sure), path("ac", 1, sure=last), path("d", 0))


E, F, C, D = -1.0, 1.0, 1.0, -1.0  # returns 0, 1, 1, 0 of one group, whose mean and population std are 1/2
B = (E + F) / 2
A = (B + C) / 2
ROOT = (A + D) / 2
LEAVES = (E + F + C) / 3
UNSURE = (math.exp(1) * B + math.exp(3) * C) / (math.exp(1) + math.exp(3))  # surprise of c 3, of b 1
PARENT = [[A - ROOT, B - A, E - B], [A - ROOT, B - A, F - B], [A - ROOT, C - A], [D - ROOT]]
WHOLE = [[A - ROOT, B - ROOT, E - ROOT], [A - ROOT, B - ROOT, F - ROOT], [A - ROOT, C - ROOT], [D - ROOT]]
BOTH = [np.add(one, other).tolist() for one, other in zip(PARENT, WHOLE, strict=True)]
FOREST = batch(path("ab", 0, "T"), path("ac", 1, "T"), path("d", 1, "U"))
GROUP, TREE = np.array([-2, 1, 1]) / 3 / math.sqrt(1 / 3), np.array([-Z, Z, 0.0])
ALONE = batch(*[trajectory([0.0, paid], old_logprobs=(np.zeros(2),) * 2) for paid in (0.0, 1.0, 3.0)])
SPACED = (np.array([0.0, 1.0, 3.0]) - 4 / 3) / math.sqrt(7 / 3)

CASES: list[tuple[str, dict[str, Any], Batch, Any]] = [
    ("adora", {}, batch(*of_tokens((6, 5), (True, False))), [Z, -Z]),
    ("adora", {}, batch(*of_tokens((5, 5), (True, False))), [0.1 * Z, -0.1 * Z]),  # longer, not as long
    ("adora", {}, batch(*of_tokens((3, 5), (True, False))), [0.1 * Z, -0.1 * Z]),
    # the longest success and the mean failure: 6 > 5.5
    ("adora", {}, batch(*of_tokens((3, 6, 4, 7), (True, True, False, False))), [HALF, HALF, -HALF, -HALF]),
    ("adora", {}, CUT_OFF, [Z, -Z]),  # a failure that was cut off doesn't count
    ("adora", {}, FAILED, [0.1 * Z, -0.1 * Z]),
    ("adora", {"no_success": 1.0}, FAILED, [Z, -Z]),
    ("hgpo", {"history": 1, "discount": 1.0}, WAYS, [[-1, -MIXED], 0, [1, MIXED]]),
    ("hgpo", {"history": 1, "discount": 1.0, "scale": "none"}, WAYS, [-2, 0, 2]),
    ("marshal", {}, SEATS, [[-2 / SPREAD, 0], 2 / SPREAD, [-0.5 / SPREAD, 0.5 / SPREAD]]),
    ("marshal", {"means": "distinct"}, REPEATED, np.split(DISTINCT, [2, 4, 5])),
    ("gagpo", {"lam": 0.5, "discount": 0.5}, TWICE, np.split(GAE, 2)),
    ("ecpo", {}, TRIED, [1 / 3 - 1 / 36, -2 / 3 - 1 / 36, 1 / 3 + 1 / 24]),
    ("ecpo", {"step_weight": 0.0}, TRIED, [1 / 3, -2 / 3, 1 / 3]),
    ("mt_grpo", {}, DEARLY_BOUGHT, [[0, -HALF], [0, -HALF], 0, 0]),
    ("rtg", {}, DEARLY_BOUGHT, [[-0.7 + 0.7 / 3, 0], [-0.7 + 0.7 / 3, 0], 1.4 / 3, 1.4 / 3]),
    ("beacon", {"discount": 0.5}, MILESTONES, [[0.875, 1.375, 0.625, 0.875], -1.125]),
    ("beacon", {"step_weight": 0.0}, MILESTONES, [0.75, -0.75]),
    ("tree_grpo", {}, FOREST, GROUP + TREE),
    ("tree_grpo", {}, ALONE, SPACED),  # alone in its tree: nothing more than the group's
    ("at2po", {}, ALONE, SPACED * math.sqrt(3 / 2)),
    ("at2po", {"value": "child_mean"}, branched(), [[A, B, E], [A, B, F], [A, C], D]),
    ("at2po", {}, branched(), [[A, B, E], [A, B, F], [A, C], D]),  # all alike sure
    ("at2po", {"value": "leaf_mean"}, branched(), [[LEAVES, B, E], [LEAVES, B, F], [LEAVES, C], D]),
    ("at2po", {}, branched(1.0, 3.0), [[UNSURE, B, E], [UNSURE, B, F], [UNSURE, C], D]),
    ("at2po", {"value": "child_mean", "advantage": "parent"}, branched(), PARENT),
    ("at2po", {"value": "child_mean", "advantage": "root"}, branched(), WHOLE),
    ("at2po", {"value": "child_mean", "advantage": "both"}, branched(), BOTH),
]


@pytest.mark.parametrize(("name", "settings", "given", "expected"), CASES)
def test_advantages_are_those_of_the_hand(name, settings, given, expected):
    """A number stands for all steps of an episode; the 1e-6 that is added to deviations is left out."""
    for own, wanted in zip(advantages(name, given, **settings), expected, strict=True):
        np.testing.assert_allclose(own, np.broadcast_to(wanted, len(own)), rtol=1e-5, atol=1e-5)
