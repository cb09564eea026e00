"""Credit by values: bi-level GAE and HiPER against sums written out, and their place among the tokens."""

import math
from typing import Any

import numpy as np
import pytest

from agents.msgrpo.credit import METHODS, Batch, Segment, Trajectory
from tests.agents.msgrpo.hand_made import batch, trajectory

RNG = np.random.default_rng(0)


def ragged_turns() -> Batch:
    """Four episodes of one to four turns of one to five tokens, with a random value for each token."""
    rng = np.random.default_rng(0)
    episodes = []
    for lengths in ((3, 1, 5), (2,), (1,), (1, 4, 2, 2)):
        values = {"token": [rng.normal(size=length) for length in lengths]}
        rewards = rng.normal(size=len(lengths)) * (rng.random(len(lengths)) < 0.5)  # turns without a reward are turns
        episodes.append(trajectory(rewards.tolist(), tokens=lengths, head_values=values))
    return batch(*episodes)


def summed(deltas: list[float], decay: float) -> list[float]:
    return [sum(decay ** (u - t) * deltas[u] for u in range(t, len(deltas))) for t in range(len(deltas))]


def by_sums(rewards: Any, values: list[Any], gamma_turn: float, gamma: float, lam: float) -> list[list[float]]:
    """First the turns, then the tokens of each turn, with every sum written out."""
    ends = [own[-1] for own in values]
    following = [*ends[1:], 0.0]
    turns = summed([r + gamma_turn * n - v for r, n, v in zip(rewards, following, ends, strict=True)], gamma_turn * lam)
    result = []
    for own, turn, end in zip(values, turns, ends, strict=True):
        deltas = [gamma * own[k + 1] - own[k] for k in range(len(own) - 1)] + [turn + end - own[-1]]
        result.append(summed(deltas, gamma * lam))
    return result


@pytest.mark.parametrize(("gamma_turn", "gamma", "lam"), [(0.8, 0.9, 0.7), (1.0, 0.5, 0.0)])
def test_advantages_and_targets_are_those_of_the_formula(gamma_turn, gamma, lam):
    given = ragged_turns()
    wanted = [by_sums(t.rewards, list(t.head_values["token"]), gamma_turn, gamma, lam) for t in given.trajectories]
    flat = np.array([x for episode in wanted for turn in episode for x in turn])
    settings = {"discount": gamma_turn, "token_discount": gamma, "lam": lam}
    values = np.concatenate([turn for t in given.trajectories for turn in t.head_values["token"]])
    for whiten in (False, True):
        credit = METHODS.make("ppo_bilevel", settings | {"whiten": whiten}).assign(given, RNG)
        got, targets = (
            [turn for episode in table for turn in episode]
            for table in (credit.advantages, credit.value_targets["token"])
        )
        assert [len(turn) for turn in got] == [len(y) for t in given.trajectories for y in t.response_ids]
        scaled = (flat - flat.mean()) / (flat.std(ddof=1) + 1e-6) if whiten else flat
        np.testing.assert_allclose(np.concatenate(got), scaled, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(np.concatenate(targets), flat + values, rtol=1e-10, atol=1e-12)


SWITCH = (Segment("switch", 0, 2, "SWITCH"), Segment("subgoal", 2, 4, "the corner"), Segment("action", 4, 6, "up"))
KEEP = (Segment("switch", 0, 2, "KEEP"), Segment("action", 2, 4, "up"))
NOTHING: tuple[Segment, ...] = ()
LENGTHS = {SWITCH: 7, KEEP: 4, NOTHING: 3}
"""Tokens of such a response: a SWITCH has one behind its action tag."""
PLACES = {SWITCH: 4, KEEP: 2, NOTHING: 0}
"""Where V_low is read: behind the subgoal, behind the switch, or at the first token."""


def episode(kinds: list[tuple[Segment, ...]], rng: np.random.Generator) -> Trajectory:
    lengths = [LENGTHS[kind] for kind in kinds]
    values = {
        "low": [rng.normal(size=length) for length in lengths],
        "high": rng.normal(size=len(kinds)),
        "term": rng.normal(size=len(kinds)),
    }
    rewards = rng.normal(size=len(kinds)).tolist()
    return trajectory(rewards, tokens=lengths, segments=tuple(kinds), head_values=values, values=values["term"])


def ragged() -> Batch:
    """Options of one to three steps; one episode begins without a SWITCH, one has a single step."""
    rng = np.random.default_rng(0)
    kinds = ([SWITCH, KEEP, KEEP, SWITCH, SWITCH, KEEP], [KEEP, NOTHING, SWITCH], [SWITCH], [NOTHING, KEEP])
    return batch(*[episode(each, rng) for each in kinds])


def plain(each: Trajectory, gamma: float, lam: float, lam_options: float, penalty: float) -> dict[str, list[float]]:
    """Advantages and targets of the levels, with every sum written out."""
    kinds, steps = each.segments or (), len(each)
    starts = [t for t in range(steps) if t == 0 or kinds[t] is SWITCH]
    rewards = [float(r) - (0 if t in starts else penalty) for t, r in enumerate(each.rewards)]
    told = each.head_values
    low = [float(told["low"][t][PLACES[kinds[t]]]) for t in range(steps)]
    high, term = [list(map(float, told[name])) for name in ("high", "term")]
    end_of = [min([s for s in starts if s > t], default=steps) for t in range(steps)]
    after = [high[end] if end < steps else 0.0 for end in end_of]

    deltas = [rewards[t] + gamma * (low[t + 1] if t + 1 < end_of[t] else after[t]) - low[t] for t in range(steps)]
    a_low = [sum((gamma * lam) ** (u - t) * deltas[u] for u in range(t, end_of[t])) for t in range(steps)]
    to_go = [
        sum(gamma ** (u - t) * rewards[u] for u in range(t, end_of[t])) + gamma ** (end_of[t] - t) * after[t]
        for t in range(steps)
    ]
    delta_high = {s: to_go[s] - high[s] for s in starts}
    # an option's weight in an earlier one's advantage: gamma for each step between, lam for each option
    a_high = {
        s: sum(gamma ** (u - s) * lam_options ** starts[starts.index(s) :].index(u) * delta_high[u]
               for u in starts if u >= s)
        for s in starts
    }  # fmt: skip
    return {
        "low": a_low,
        "high": [a_high.get(t, math.nan) for t in range(steps)],
        "term": [g - v for g, v in zip(to_go, term, strict=True)],
        "low target": [a + v for a, v in zip(a_low, low, strict=True)],
        "high target": [a_high[t] + high[t] if t in starts else math.nan for t in range(steps)],
        "term target": to_go,
    }


def standardised(numbers: list[float]) -> dict[float, float]:
    """``{number: z}`` with the population's standard deviation; the numbers are random, so no two are equal."""
    mean = sum(numbers) / len(numbers)
    std = math.sqrt(sum((x - mean) ** 2 for x in numbers) / len(numbers)) + 1e-8
    return {x: (x - mean) / std for x in numbers}


@pytest.mark.parametrize(("gamma", "lam", "lam_options", "penalty"), [(0.95, 0.95, 0.95, 0.0), (0.8, 0.5, 0.3, 0.3)])
def test_every_token_has_its_level_s_advantage_and_every_head_its_target(gamma, lam, lam_options, penalty):
    given = ragged()
    settings = {"discount": gamma, "lam": lam, "lam_options": lam_options, "keep_penalty": penalty}
    credit = METHODS.make("hiper", settings).assign(given, RNG)
    wanted = [plain(each, gamma, lam, lam_options, penalty) for each in given.trajectories]
    targets: Any = credit.value_targets
    # every response has a token of its action's level; a subgoal is written at a SWITCH, a switch wherever there is one
    steps = [(i, t) for i, each in enumerate(given.trajectories) for t in range(len(each))]
    kind = {(i, t): given.trajectories[i].segments[t] for i, t in steps}  # type: ignore[index]
    low = standardised([wanted[i]["low"][t] for i, t in steps])
    high = standardised([wanted[i]["high"][t] for i, t in steps if kind[i, t] is SWITCH])
    term = standardised([wanted[i]["term"][t] for i, t in steps if kind[i, t] is not NOTHING])
    for i, t in steps:
        a = low[wanted[i]["low"][t]]
        expected = [a] * LENGTHS[kind[i, t]]
        if kind[i, t] is not NOTHING:
            expected[0:2] = [term[wanted[i]["term"][t]]] * 2
        if kind[i, t] is SWITCH:
            expected[2:4] = [high[wanted[i]["high"][t]]] * 2
        np.testing.assert_allclose(credit.advantages[i][t], expected, rtol=1e-7, atol=1e-9)
        tokens = targets["low"][i][t]
        assert len(tokens) == LENGTHS[kind[i, t]]
        assert tokens[PLACES[kind[i, t]]] == pytest.approx(wanted[i]["low target"][t])
        assert np.isnan(np.delete(tokens, PLACES[kind[i, t]])).all()
    for name in ("high", "term"):
        for own, each in zip(targets[name], wanted, strict=True):
            np.testing.assert_allclose(own, each[f"{name} target"], atol=1e-12)
    assert credit.metrics == {"switch_rate": 3 / 8}  # of the steps after the first ones


def test_a_subgoal_written_where_it_is_kept_gets_nothing():
    wordy = (Segment("switch", 0, 1, " keep\n"), Segment("subgoal", 1, 3, "again"))
    values = {"low": [np.zeros(4)] * 2, "high": np.zeros(2), "term": np.zeros(2)}
    given = batch(trajectory([0.0, 1.0], tokens=4, segments=(SWITCH[:2], wordy), head_values=values))
    credit = METHODS.make("hiper").assign(given, RNG)
    assert credit.advantages[0][1][1:3].tolist() == [0.0, 0.0]
    assert credit.metrics == {"switch_rate": 0.0}
    # without any token behind the subgoal, V_low is read behind the switch; the first subgoal ends with the response
    places = [int(np.flatnonzero(~np.isnan(tokens))[0]) for tokens in credit.value_targets["low"][0]]  # type: ignore[index]
    assert places == [2, 3]
    with pytest.raises(ValueError, match="the trajectory has no segments"):
        METHODS.make("hiper").assign(batch(trajectory([1.0])), RNG)
