"""Bi-level GAE against sums written out over turns and tokens, on ragged batches."""

from typing import Any

import numpy as np
import pytest

from agents.msgrpo.credit import METHODS, Batch
from tests.agents.msgrpo.hand_made import batch, trajectory

RNG = np.random.default_rng(0)


def ragged(seed: int = 0) -> Batch:
    """Four episodes of one to four turns of one to five tokens, with a random value for each token."""
    rng = np.random.default_rng(seed)
    episodes = []
    for lengths in ((3, 1, 5), (2,), (1,), (1, 4, 2, 2)):
        values = {"token": [rng.normal(size=length) for length in lengths]}
        rewards = rng.normal(size=len(lengths)) * (rng.random(len(lengths)) < 0.5)  # turns without a reward are turns
        episodes.append(trajectory(rewards.tolist(), tokens=lengths, head_values=values))
    return batch(*episodes)


def summed(deltas: list[float], decay: float) -> list[float]:
    return [sum(decay ** (u - t) * deltas[u] for u in range(t, len(deltas))) for t in range(len(deltas))]


def plain(rewards: Any, values: list[Any], gamma_turn: float, gamma: float, lam: float) -> list[list[float]]:
    """First the turns, then the tokens of each turn, with every sum written out."""
    ends = [own[-1] for own in values]
    following = [*ends[1:], 0.0]
    turns = summed([r + gamma_turn * n - v for r, n, v in zip(rewards, following, ends, strict=True)], gamma_turn * lam)
    result = []
    for own, turn, end in zip(values, turns, ends, strict=True):
        deltas = [gamma * own[k + 1] - own[k] for k in range(len(own) - 1)] + [turn + end - own[-1]]
        result.append(summed(deltas, gamma * lam))
    return result


@pytest.mark.parametrize(("gamma_turn", "gamma", "lam"), [(0.95, 1.0, 1.0), (0.8, 0.9, 0.7), (1.0, 0.5, 0.0)])
def test_advantages_and_targets_are_those_of_the_formula(gamma_turn, gamma, lam):
    given = ragged()
    wanted = [plain(t.rewards, list(t.head_values["token"]), gamma_turn, gamma, lam) for t in given.trajectories]
    flat = np.array([x for episode in wanted for turn in episode for x in turn])
    settings = {"discount": gamma_turn, "token_discount": gamma, "lam": lam}
    for whiten in (False, True):
        credit = METHODS.make("ppo_bilevel", settings | {"whiten": whiten}).assign(given, RNG)
        got = [turn for episode in credit.advantages for turn in episode]
        assert [len(turn) for turn in got] == [len(y) for t in given.trajectories for y in t.response_ids]
        scaled = (flat - flat.mean()) / (flat.std(ddof=1) + 1e-6) if whiten else flat
        np.testing.assert_allclose(np.concatenate(got), scaled, rtol=1e-10, atol=1e-12)
        targets = [turn for episode in credit.value_targets["token"] for turn in episode]
        values = [turn for t in given.trajectories for turn in t.head_values["token"]]
        np.testing.assert_allclose(np.concatenate(targets), flat + np.concatenate(values), rtol=1e-10, atol=1e-12)
