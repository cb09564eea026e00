"""The luck in one episode, and returns corrected for it.

``R = V(s_0) + sum_t A_t + L``, without remainder (``docs/research/scores.md``). The values include the horizon:
``V_0 = 0``. The action that the game executes in place of an unreadable response is the player's own doing, and so is
the format penalty; only a random one is a part of luck.

The corrected return is ``R - beta L``. One rule for ``beta`` holds for every agent, so that none is chosen by its
result. Records hold no states, so every episode is played again.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from agents.common.intervals import Array
from agents.episode import Episode
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import MOST_SOLVED, is_final
from benchmark.runs.record import Key, key_of
from benchmark.runs.replay import Replay, ReplayError, replay
from benchmark.score.cache import FolderCache, read_cache, write_cache
from textgames.scenarios import Scenario
from textgames.tsmg import TSMG, Action, Player
from textgames.yardsticks import HeuristicYardstick, Moments, Yardstick, find_yardstick


class EpisodeLuck(NamedTuple):
    """The parts of an episode's return: ``start + skill + luck``."""

    start: float  # V(s_0)
    skill: float  # the sum of A_t, format penalties included
    luck: float  # L
    variance: float  # the sum of the terms' conditional variances, exact


class LuckValues:
    """The fixed values that luck is measured by in one game for one player, and what they expect of actions."""

    def __init__(self, game: TSMG[Any], yardstick: Yardstick) -> None:
        self._game, self._yardstick = game, yardstick
        self.player: Player = game.players[0]
        self.name = f"{yardstick.method}, version {yardstick.version}"
        # a clairvoyant player's worth is exact too, and as good a fixed function of the state: chance moves it by zero
        # on average for any player. Else luck is measured by a guess: it is luck as well, but removes less
        self.exact = yardstick.kind != "reference"

    @classmethod
    def of(cls, game: TSMG[Any]) -> "LuckValues | None":
        """Return the values of a game; ``None`` if its luck is unknown.

        A game needs one player, ``outcomes``, and a yardstick that is exact or a :class:`HeuristicYardstick`.
        """
        if len(game.players) != 1 or not game.has_outcomes:
            return None
        yardstick = find_yardstick(game)
        fixed = yardstick is not None and (yardstick.kind != "reference" or isinstance(yardstick, HeuristicYardstick))
        return cls(game, yardstick) if yardstick is not None and fixed else None

    def value(self, state: Any, steps_left: int | None) -> float:
        """Return ``V_h(s)`` of a state in which the game isn't over; 0 if no round is left."""
        return 0.0 if steps_left == 0 else self._yardstick.value(state, steps_left, self.player)

    def expects(self, state: Any, actions: tuple[Action, ...], steps_left: int | None) -> Moments:
        """Return the mean, ``Q_h(s, a)`` for one action, and the variance of ``actions`` that are equally likely."""
        if isinstance(self._yardstick, HeuristicYardstick):
            each = [self._yardstick.moments(state, action, steps_left, self.player) for action in actions]
            mean = sum(one.mean for one in each) / len(each)
            return Moments(mean, sum(one.variance + (one.mean - mean) ** 2 for one in each) / len(each))
        after = None if steps_left is None else steps_left - 1
        return Moments.of(
            [
                (chance / len(actions), rewards[self.player] + (0.0 if over else self.value(next_state, after)))
                for action in actions
                for chance, next_state, rewards, over in self._game.outcomes(state, {self.player: action})
            ]
        )


def episode_luck(replay: Replay, values: LuckValues) -> EpisodeLuck | None:
    """Split the return of a finished episode into its start's value, its actions' worth and luck.

    ``None`` if a random action stood in for a response and the game doesn't list what it was drawn from, or a round has
    too many outcomes to be listed.
    """
    limit, penalty = replay.rules.max_steps, replay.rules.format_penalty
    with suppress(NotImplementedError):
        start = before = values.value(replay.states[0], limit)
        skill = luck = variance = 0.0
        for number, step in enumerate(replay.steps):
            left = None if limit is None else limit - number
            if not step.action:  # the response ended the episode: what was still to be won is lost, nothing was drawn
                skill += step.reward - before  # giving up may be paid for
                continue
            fee = 0.0 if step.valid else penalty
            legal = replay.asked[number].legal_actions
            substituted = not step.valid and replay.rules.invalid_action == "random"
            if substituted and not legal:
                return None
            expected = values.expects(replay.states[number], legal if substituted else (step.action,), left)
            after = 0.0 if step.out else values.value(replay.states[number + 1], None if left is None else left - 1)
            skill += expected.mean - before - fee
            luck += step.reward + fee + after - expected.mean
            variance += expected.variance
            before = after
        return EpisodeLuck(start, skill, luck, variance)
    return None


LEAST = 20  # episodes; fewer than two in a fold fit no coefficient that is worth having
FOLDS = 10


class Corrected(NamedTuple):
    """The returns of one agent in one scenario, corrected for luck."""

    values: Array  # (episodes,) R - beta L
    ends: tuple[float, float] | None
    """The least and the largest that one more episode may have, besides the values seen.

    ``None`` if unknown: the game states no range of returns, and has no chance or all episodes went alike.
    """
    beta: float | None  # the mean coefficient of the folds; None in a game without chance
    sd_ratio: float | None
    """The standard deviation of ``values - V(s_0)`` over that of ``R - V(s_0)``; ``None`` if the latter is 0."""


def corrected(returns: Array, start: Array, luck: Array, possible: Sequence[float] = ()) -> Corrected | None:
    """Correct returns R for luck L, given the values V(s_0) of their starts, all (episodes,) in the order of seeds.

    ``possible`` are the ends of returns that the game states. ``None`` with fewer than :data:`LEAST` episodes.
    """
    if len(returns) < LEAST:
        return None
    against_start = returns - start
    betas = cross_fitted(against_start, luck)
    values = returns - betas * luck
    gaps = values - start
    plain = float(against_start.std())
    beta, begin = float(betas.mean()), float(start.mean())
    lowest, highest = begin + float(gaps.min()), begin + max(0.0, float(gaps.max()))
    if possible:
        # One more episode may throw everything away; or be played without a mistake, and have all the luck that the
        # coefficient leaves in: R - beta L = V + (1 - beta) (R - V) if no action cost anything.
        lowest = min(lowest, possible[0])
        highest = max(highest, begin + (1 - beta) * (possible[1] - begin))
    known = possible or float(np.ptp(gaps)) > 1e-9
    ends = (lowest, highest) if known else None
    return Corrected(values, ends, beta, float(gaps.std()) / plain if plain > 1e-12 else None)


def cross_fitted(outcome: Array, luck: Array) -> Array:
    """Return each episode's coefficient, (episodes,), fitted on the folds that it isn't in."""
    fold = np.arange(len(luck)) % FOLDS
    betas = np.empty(FOLDS)
    for number in range(FOLDS):
        others = fold != number
        off = luck[others] - luck[others].mean()
        spread = float(off @ off)
        betas[number] = float(off @ outcome[others]) / spread if spread > 1e-12 else 0.0
    # 1 + 1e-16 is 1: an optimal player's corrected return is its start value to the last digit
    betas = np.where(np.abs(betas - 1) < 1e-9, 1.0, betas).clip(0.0, 1.0)
    return betas[fold]


SeedLuck = Mapping[int, EpisodeLuck]
"""The luck of one agent's episodes in one scenario, by seed."""


ToldLuck = dict[Key, EpisodeLuck | None]
"""The luck of single episodes; ``None`` if it is unknown."""


class FolderLuck:
    """The luck of one folder's episodes, found when it is first asked for, and added to ``told``.

    ``places`` are (scenario, seed, byte offset) of its episodes, which may be added until then.
    """

    def __init__(self, folder: RunFolder, places: Sequence[tuple[str, int, int]], told: ToldLuck | None = None) -> None:
        self._folder, self._cache = folder, FolderCache(folder, "score/luck.py")
        self._places, self._told = places, {} if told is None else told
        self._known: dict[str, dict[str, SeedLuck | None]] = {}  # by scenario and agent

    def of(self, agent: str, scenario: Scenario) -> SeedLuck | None:
        """Return the luck of an agent (by its name in the folder) in a scenario.

        ``None`` if the game offers none, an episode doesn't replay to the return on record, or a heuristic would have
        to measure it while the run is being played: it takes long, and the run is looked at again and again.
        """
        values = LuckValues.of(scenario.game()) if scenario.horizon <= MOST_SOLVED else None
        if values is None or not (values.exact or is_final(self._folder.manifest)):
            return None
        if scenario.name not in self._known:
            self._known[scenario.name] = self._found(scenario, values)
        return self._known[scenario.name].get(agent)

    def _found(self, scenario: Scenario, values: LuckValues) -> dict[str, SeedLuck | None]:
        file = self._cache.file("luck", scenario, f" {values.name}")
        if (kept := read_cache(file, _of_json)) is not None:
            return kept
        found: dict[str, Any] = {}
        for record in self._folder.records_at(offset for name, _, offset in self._places if name == scenario.name):
            if record.error is None:
                (agent,), key = record.agents.values(), key_of(record)
                if key not in self._told:
                    self._told[key] = record_luck(record, scenario, values)
                own = found.setdefault(agent, {})
                if self._told[key] is None:
                    found[agent] = None
                elif own is not None:
                    own[record.seed] = self._told[key]
        write_cache(file, found)
        return found


def record_luck(record: Episode, scenario: Scenario, values: LuckValues) -> EpisodeLuck | None:
    """Return the luck of one recorded episode; ``None`` if it doesn't replay to what is on record."""
    try:
        played = replay(record, scenario)
    except ReplayError:
        return None
    return episode_luck(played, values) if played.over and played.episode.returns == record.returns else None


def _of_json(kept: Mapping[str, Any]) -> dict[str, SeedLuck | None]:
    return {
        agent: seeds and {int(seed): EpisodeLuck(*row) for seed, row in seeds.items()} for agent, seeds in kept.items()
    }
