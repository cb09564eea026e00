"""A player's level is found without bias, with intervals that hold it, and in few episodes."""

from collections.abc import Callable

import numpy as np
import pytest

from benchmark.score.levels import BEYOND, LAPSE, SPREADS, STEP, Fit, Found, Seen

Play = Callable[[int, np.random.Generator], float]
LEVELS = range(1, 11)
EVEN = dict.fromkeys(LEVELS, 1.0)


def coin(theta: float, spread: float) -> Play:
    """A player whose episodes are won with the chance that the model has it, but for lapses."""
    return lambda level, rng: float(rng.random() < 1 / (1 + np.exp((level - theta) / spread)))


def fitted(seen: dict[int, list[float]]) -> Fit:
    return Fit({level: Seen(values) for level, values in seen.items()}, LEVELS[0], LEVELS[-1])


def staircase(play: Play, episodes: int, rng: np.random.Generator, batch: int = 4) -> Found:
    seen = {level: [play(level, rng)] for level in LEVELS}
    for _ in range((episodes - len(LEVELS)) // batch):
        level = fitted(seen).next_level(batch, EVEN)
        seen[level] += [play(level, rng) for _ in range(batch)]
    return fitted(seen).found()


def every_level(play: Play, episodes: int, rng: np.random.Generator) -> Found:
    return fitted({level: [play(level, rng) for _ in range(episodes // len(LEVELS))] for level in LEVELS}).found()


def errors(found: list[Found], theta: float) -> np.ndarray:
    return np.array([one.level for one in found]) - theta


@pytest.mark.slow
@pytest.mark.parametrize(("theta", "spread"), [(5.3, 1.0), pytest.param(2.4, 0.6, marks=pytest.mark.slow)])
def test_the_staircase_is_unbiased_and_its_interval_holds_the_level(theta: float, spread: float) -> None:
    rng = np.random.default_rng(3)
    found = [staircase(coin(theta, spread), 50, rng) for _ in range(40)]
    off = errors(found, theta)
    assert abs(off.mean()) < 0.15 + 2.6 * off.std() / np.sqrt(len(off))
    inside = [(one.low is None or one.low <= theta) and (one.high is None or theta <= one.high) for one in found]
    assert np.mean(inside) > 0.87
    assert np.sqrt((off**2).mean()) < 0.75


@pytest.mark.slow
def test_it_takes_fewer_episodes_than_playing_every_level() -> None:
    rng = np.random.default_rng(4)
    near = errors([staircase(coin(5.3, 0.6), 50, rng) for _ in range(40)], 5.3)
    even = errors([every_level(coin(5.3, 0.6), 50, rng) for _ in range(40)], 5.3)
    assert (near**2).mean() < 0.6 * (even**2).mean()


def test_a_level_beyond_the_ladder_has_one_end() -> None:
    below, above = (fitted({level: [value] * 3 for level in LEVELS}).found() for value in (0.0, 1.0))
    assert below.level < 1
    assert below.low is None
    assert below.high is not None
    assert below.high < 2.5
    assert above.level > 10
    assert above.high is None
    assert above.low is not None
    assert above.low > 9


@pytest.mark.parametrize(("wins", "left_out"), [(0, (None, 0.05)), (5, (0.025, 0.025)), (10, (0.05, None))])
def test_ends_leave_out_what_they_say(wins: int, left_out: tuple[float | None, float | None]) -> None:
    """Of the posterior, here by the formula, of coins whose dispersion is theirs."""
    found = fitted({level: [float(level <= wins)] * 3 for level in LEVELS}).found()
    thetas = np.arange(LEVELS[0] - BEYOND, LEVELS[-1] + BEYOND + STEP / 2, STEP)
    curves = [1 / (1 + np.exp((level - thetas[:, None]) / SPREADS)) for level in LEVELS]
    chances = [LAPSE + (1 - 2 * LAPSE) * curve for curve in curves]
    likelihood = np.prod([p if level <= wins else 1 - p for level, p in zip(LEVELS, chances, strict=True)], axis=0) ** 3
    mass = likelihood.sum(axis=1) / likelihood.sum()
    for end, share, beyond in ((found.low, left_out[0], np.less), (found.high, left_out[1], np.greater)):
        assert (end is None) == (share is None)
        if end is not None:
            assert mass[beyond(thetas, end)].sum() == pytest.approx(share, abs=0.006)


def test_one_bad_episode_at_an_easy_level_pulls_nobody_down() -> None:
    seen = {level: [1.0] * 4 if level <= 5 else [0.0] * 4 for level in LEVELS}
    sure = fitted(seen).found()
    lapsed = fitted({**seen, 1: [1.0, 1.0, 1.0, 0.0]}).found()
    assert sure.level == pytest.approx(5.5, abs=0.1)
    assert abs(lapsed.level - sure.level) < 0.4
    terrible = fitted({**seen, 1: [1.0, 1.0, 1.0, -3.0]}).found()  # much worse than play that doesn't read
    assert terrible.level > 3


def test_wide_returns_make_wide_intervals() -> None:
    rng = np.random.default_rng(5)

    def noisy(deviation: float) -> Found:
        seen = {level: list((level < 6) + deviation * rng.standard_normal(6)) for level in LEVELS}
        return fitted(seen).found()

    calm, wild = noisy(0.1), noisy(2.0)
    assert calm.low is not None
    assert calm.high is not None
    assert wild.high is None or wild.low is None or wild.high - wild.low > 2 * (calm.high - calm.low)


def test_the_next_episodes_are_where_the_level_may_be() -> None:
    """And where they count: a level whose episodes say little isn't played, though it is as near."""
    fit = fitted({level: [1.0] * 3 if level <= 6 else [0.0] * 3 for level in LEVELS})
    assert fit.next_level(4, EVEN) in (6, 7)
    assert fit.next_level(4, {**EVEN, 6: 0.01}) == 7
    assert fit.next_level(4, {**EVEN, 7: 0.01}) == 6


def test_episodes_of_no_weight_tell_nothing() -> None:
    told = {level: Seen([1.0] * 4 if level <= 4 else [0.0] * 4) for level in LEVELS}
    with_more = Fit({**told, 9: Seen([1.0] * 40, weight=1e-9)}, 1, 10).found()
    assert with_more.level == pytest.approx(Fit({**told, 9: Seen([0.0])}, 1, 10).found().level, abs=0.3)
