"""Methods of credit against figures that were worked out by hand: a table, and those that learn from batch to batch."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from agents.episode import EpisodeTask
from agents.msgrpo import ConfigError
from agents.msgrpo.credit import METHODS, Batch, Trajectory
from tests.agents.msgrpo.credit.test_advantages import advantages
from tests.agents.msgrpo.credit.test_methods import of_returns
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
# With alpha = 2 the weights are 4 and 9, and 1 of the returns, whose std over the six steps is sqrt(16/5).
BASE = 2 / math.sqrt(16 / 5)
WITH_BASE = [(BASE + 4 * 1) / 5, (BASE + 4 * 2 / math.sqrt(8 / 3) + 9 * 1) / 14]

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
# Rounds pay 0, 1 | 0, and to go is 1/2, 1 | 0, so V is 1/2 of A and of B. With what follows steps are worth 1/4, 1 | 0:
# among those in one state 0, 1/2 | -1/2, and -1/4, 1/2 | -1/2 more than V, whose mean is -1/12.
GRAPH = batch(trajectory([0.0, 1.0], "AB"), trajectory([0.0], "B"))
GAINS, GAIN_STD = np.array([-2, 7, -5]) / 12, math.sqrt(13 / 48)
# z is 3/2, -1/2, -1/2, -1/2. Two episodes go left from A to B; the third's answer there is no word, the fourth's right.
EDGES = batch(
    trajectory([0.0, 1.0], "AB", actions=("left", "up")),
    trajectory([0.0, 0.0], "AB", actions=("left", "up")),
    trajectory([0.0, 0.0], "AB", actions=("left", "up"), valid=np.array([False, True])),
    trajectory([0.0, 0.0], "AB", actions=("right", "up"), terminated=False),
)
# At A the mean of 1, 0 and 1 is 2/3; left has 1/2 of two visits and right 1 of one: gains -1/6 and 1/3, of which 2/3
# and 1/2 count. Their variance is 1/18, that within left 1/6: a quarter is evidence.
TRIED = batch(trajectory([1.0], "A"), trajectory([0.0], "A"), trajectory([1.0], "A", actions=("right",)))
# Two episodes stop at once, and two continue for 0.3, which costs 1 in the next turn. To continue is worth -0.7, and a
# turn's own reward takes that away from MT-GRPO's first decision, exactly.
DEARLY_BOUGHT = batch(*[trajectory([0.3, -1.0]), trajectory([0.3, -1.0]), trajectory([0.0]), trajectory([0.0])])
# Of the entropies 1, 0 | 1/2 exp(-h) is 1/e, 1 | 1/sqrt(e); a bonus of half of it for what a step leads to.
SURE = batch(
    trajectory([0.0, 1.0], entropies=np.array([1.0, 0.0])), trajectory([0.0], entropies=np.array([0.5]))
)  # fmt: skip
G = np.array([math.exp(-1), 1.0, math.exp(-0.5)])
MODULATED = np.array([Z, Z, -Z]) * G / G.mean() + [0.5, 0.0, 0.0]
MODULATED = MODULATED - MODULATED.mean()
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
    # the longest success and the mean failure: 6 > 5.5
    ("adora", {}, batch(*of_tokens((3, 6, 4, 7), (True, True, False, False))), [HALF, HALF, -HALF, -HALF]),
    ("adora", {}, CUT_OFF, [Z, -Z]),  # a failure that was cut off doesn't count
    ("adora", {}, FAILED, [0.1 * Z, -0.1 * Z]),
    ("adora", {"no_success": 1.0}, FAILED, [Z, -Z]),
    ("hgpo", {"history": 1, "discount": 1.0}, WAYS, [[-1, -MIXED], 0, [1, MIXED]]),
    ("hgpo", {"history": 1, "discount": 1.0, "scale": "none"}, WAYS, [-2, 0, 2]),
    ("hgpo", {"history": 1, "discount": 1.0, "base": True, "alpha": 2.0}, WAYS, [np.negative(WITH_BASE), 0, WITH_BASE]),
    ("g2po", {"discount": 0.5}, GRAPH, [[1 / 2 + GAINS[0], 1 + GAINS[1]], -1 + GAINS[2]]),
    (
        "g2po",
        {"discount": 0.5, "scale": "group_std"},
        GRAPH,
        [[Z + GAINS[0] / GAIN_STD, 2 * Z + GAINS[1] / GAIN_STD], -2 * Z + GAINS[2] / GAIN_STD],
    ),
    ("salt", {}, EDGES, [[0.5, 1.5], [0.5, -0.5], -0.5, -0.5]),
    ("salt", {}, batch(trajectory([0, 0, 1], "AAA"), trajectory([0, 0], "AA")), [[0, 0, Z], [0, -Z]]),  # each once
    ("empg", {"zeta": 0.5}, SURE, np.split(MODULATED, [2])),
    ("marshal", {}, SEATS, [[-2 / SPREAD, 0], 2 / SPREAD, [-0.5 / SPREAD, 0.5 / SPREAD]]),
    ("marshal", {"means": "distinct"}, REPEATED, np.split(DISTINCT, [2, 4, 5])),
    ("gagpo", {"lam": 0.5, "discount": 0.5}, TWICE, np.split(GAE, 2)),
    ("ecpo", {}, TRIED, [1 / 3 - 1 / 36, -2 / 3 - 1 / 36, 1 / 3 + 1 / 24]),
    ("ecpo", {"step_weight": 0.0}, TRIED, [1 / 3, -2 / 3, 1 / 3]),
    ("mt_grpo", {}, DEARLY_BOUGHT, [[0, -HALF], [0, -HALF], 0, 0]),
    ("mt_grpo", {"turn_weight": 0.5}, DEARLY_BOUGHT, [[-HALF / 2, -HALF], [-HALF / 2, -HALF], HALF / 2, HALF / 2]),
    ("rtg", {}, DEARLY_BOUGHT, [[-0.7 + 0.7 / 3, 0], [-0.7 + 0.7 / 3, 0], 1.4 / 3, 1.4 / 3]),
    ("beacon", {"discount": 0.5}, MILESTONES, [[0.875, 1.375, 0.625, 0.875], -1.125]),
    ("beacon", {"step_weight": 0.0}, MILESTONES, [0.75, -0.75]),
    ("tree_grpo", {}, FOREST, GROUP + TREE),
    ("tree_grpo", {}, ALONE, SPACED),  # alone in its tree: nothing more than the group's
    ("at2po", {}, ALONE, SPACED * math.sqrt(3 / 2)),
    ("at2po", {"value": "child_mean"}, branched(), [[A, B, E], [A, B, F], [A, C], D]),
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


@pytest.mark.parametrize("unit", [1.0, 0.06])
def test_hgpo_takes_rounding_for_nothing(unit):
    """At B the first episode has the mean of the six: k = 1 says nothing of it, in whatever unit rewards are paid."""
    paid = zip([3, 1, 4, 4, 2, 4], ["AB", "AB", *["CB"] * 4], strict=True)
    found = advantages("hgpo", batch(*[trajectory([0, unit * each], own) for each, own in paid]), discount=1.0)
    assert found[0][1] == pytest.approx(1.0, abs=1e-4)


RNG = np.random.default_rng(0)


def test_riskpo():
    """Scores 0, 2, 4 with lo = 1 and hi = 3 so far.

    The quantiles move first: a third of the scores is below 1, two thirds below 3, so
    lo = 1 + 0.1 (0.2 - 1/3) = 0.98667 and hi = 3 + 0.1 (0.9 - 2/3) = 3.02333.
    Score 0: tail = -0.98667 / 0.2 = -4.93333, middle = (0.98667 - 3.02333) / 0.7 = -2.90952, mixed
    (1.5 * -4.93333 - 2.90952) / 2.5 = -4.12381. Score 2: tail 0, middle (2 - 3.02333) / 0.7 = -1.46190, mixed
    -0.58476. Score 4: middle (4 - lo) - (4 - hi) + lo - hi = 0. The standard deviation is 2, of scores and of returns
    alike, and divides once.
    """
    method = METHODS.make("riskpo", {"groups_per_bundle": 1})
    method.load_state_dict({"quantiles": [1.0, 3.0]})  # type: ignore[attr-defined]
    credit = method.assign(of_returns([0, 2, 4]), RNG)
    found = [float(each[0]) for each in credit.advantages]
    np.testing.assert_allclose(found, [-4.1238095 / 2, -0.5847619 / 2, 0], atol=1e-7)
    assert credit.metrics == pytest.approx({"riskpo_low": 0.9866667, "riskpo_high": 3.0233333})
    # it begins with the quantiles of its first batch: 0.2 of the way is 0.4 of the first gap, 0.9 is 0.8 of the second
    credit = METHODS.make("riskpo", {"groups_per_bundle": 1}).assign(of_returns([0, 2, 4]), RNG)
    assert credit.metrics == pytest.approx({"riskpo_low": 0.8, "riskpo_high": 3.6})
    with pytest.raises(ConfigError, match=r"\[credit.riskpo\] low = 0.9 is not below high = 0.5"):
        METHODS.make("riskpo", {"low": 0.9, "high": 0.5})


def test_riskpo_bundles():
    """Groups a, b, c of 2, 3 and 2 episodes in bundles of 2: a and b have the sums 0 + 1 = 1 and 2 + 3 = 5.

    c is alone in its bundle, so its returns 1 and 2 count as 2 and 4. lo = 1 and hi = 5 stay where they are at a rate
    that is next to nothing. Sum 1: (1 - 5) / 0.7 / 2.5 = -2.285714; sum 5: 0; 2 gives -1.714286, 4 gives -0.571429.
    Then divided by the sums' std (4 / sqrt 2 and 2 / sqrt 2), and in the bundle of two by the group's own: a sqrt 2,
    b 2.
    """
    given = of_returns([0, 2, 1, 3, 5, 1, 2], "aabbbcc")
    method = METHODS.make("riskpo", {"groups_per_bundle": 2, "rate": 1e-12})
    method.load_state_dict({"quantiles": [1.0, 5.0]})  # type: ignore[attr-defined]
    found = [float(each[0]) for each in method.assign(given, RNG).advantages]
    wide = 4 / math.sqrt(2)
    expected = [-2.285714 / wide / math.sqrt(2), 0, -2.285714 / wide / 2, 0, 0]
    np.testing.assert_allclose(found, [*expected, -1.714286 / math.sqrt(2), -0.571429 / math.sqrt(2)], atol=1e-6)


def test_rae_has_a_mean_for_every_seat():
    """Means begin at 0 and move by a twentieth after each episode: first seat 0, 0.05, 0.0475; second 0, -0.05.

    Another game's first seat is another seat.
    """
    tic, kuhn = EpisodeTask.of("tic-tac-toe", 0), EpisodeTask.of("kuhn-poker", 0)
    plays = [
        ("player_0", tic, 1.0), ("player_1", tic, -1.0), ("player_0", tic, 0.0), ("player_0", kuhn, 2.0),
        ("player_1", tic, 1.0), ("player_0", tic, 1.0),
    ]  # fmt: skip
    given = batch(*[trajectory([value], player=player, task=task) for player, task, value in plays])
    method = METHODS.make("rae")
    found = method.assign(given, RNG)
    np.testing.assert_allclose([each[0] for each in found.advantages], [1, -1, -0.05, 2, 1.05, 1 - 0.0475])
    after = {"tic-tac-toe_player_0": 0.95 * 0.0475 + 0.05, "tic-tac-toe_player_1": 0.0025}
    assert found.metrics == pytest.approx(
        {f"baseline_{k}": v for k, v in (after | {"kuhn-poker_player_0": 0.1}).items()}
    )
