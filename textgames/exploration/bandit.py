"""The multi-armed bandit: find out which of several arms pays best, and use it, within a known number of rounds.

Settings in the manner of EVOLvE (Nie et al., "EVOLvE: Evaluating and Optimizing LLMs For Exploration", arXiv
2410.06238), which took them from Krishnamurthy et al., "Can large language models explore in-context?" (arXiv
2403.15371). Differences: a player is told what the means are drawn from, so that there is a best way to play; the
number of rounds is part of the problem and is told; and what can't be read is not a random pull.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from operator import mul
from typing import NamedTuple

import numpy as np

from textgames.exploration.bandit_stories import MOST_ARMS, STORIES, Story
from textgames.rounds import at_most
from textgames.settings import check_number, check_one_of, check_whole
from textgames.solving.fixed_policies import chances_of
from textgames.tsmg import TSMG, Action, Outcome, Player, action_index
from textgames.yardsticks import Yardstick

PRIORS = ("gap", "uniform", "gaussian")
STYLES = ("summary", "raw")

# ---------------------------------------------------------------- rules


class BanditState(NamedTuple):
    """What the rules know; players don't see ``means``.

    Attributes:
        means: expected reward of every arm.
        pulls: how often every arm was chosen.
        sums: what every arm paid in all.
        last: the round, from 1, in which every arm was chosen last; 0 for never.
        log: ``(arm, reward)`` of every round; kept only where observations show it.
    """

    means: tuple[float, ...]
    pulls: tuple[int, ...]
    sums: tuple[float, ...]
    last: tuple[int, ...]
    log: tuple[tuple[int, float], ...] = ()


def pull(state: BanditState, arm: int, reward: float, keep_log: bool) -> BanditState:
    """The state after a round in which ``arm`` paid ``reward``."""
    means, pulls, sums, last, log = state
    return BanditState(
        means,
        (*pulls[:arm], pulls[arm] + 1, *pulls[arm + 1 :]),
        (*sums[:arm], sums[arm] + reward, *sums[arm + 1 :]),
        (*last[:arm], sum(pulls) + 1, *last[arm + 1 :]),
        (*log, (arm, reward)) if keep_log else (),
    )


def pseudo_regret(state: BanditState) -> float:
    """``sum_t (mu* - mu_{a_t})``: what the choices lost in expectation, free of the noise of the rewards."""
    best = max(state.means)
    return float(sum(pulls * (best - mean) for pulls, mean in zip(state.pulls, state.means, strict=True)))


def suffix_failure(state: BanditState) -> bool:
    """Whether no best arm was chosen in the second half of the rounds played (arXiv 2403.15371, section 3.2)."""
    best, played = max(state.means), sum(state.pulls)
    last = max(when for when, mean in zip(state.last, state.means, strict=True) if mean == best)
    return 2 * last <= played


# ---------------------------------------------------------------- texts


def number(reward: float) -> str:
    """A reward as players read it: two decimals, none where it is whole."""
    text = str(int(reward)) if reward == int(reward) else f"{reward:.2f}"
    return "0.00" if text == "-0.00" else text


@lru_cache(maxsize=4096)
def arm_line(name: str, chosen: str, pulls: int, total: float) -> str:
    """The evidence about one arm."""
    if not pulls:
        return f"{name}: not {chosen} yet"
    times = "1 time" if pulls == 1 else f"{pulls} times"
    return f"{name}: {chosen} {times}, total reward {number(total)}, average {total / pulls:.2f}"


@lru_cache(maxsize=4096)
def log_line(round_: int, name: str, reward: float) -> str:
    """One round as the log shows it."""
    return f"Round {round_}: {name}, reward {number(reward)}"


_ARM = re.compile(r"^([a-z]+): [a-z]+ (\d+) times?, total reward (-?[\d.]+), ", re.MULTILINE)
_ROUND = re.compile(r"^Round \d+: ([a-z]+), reward (-?[\d.]+)$", re.MULTILINE)


class Evidence(NamedTuple):
    """What an observation shows: how often every arm was chosen and what it paid in all, in the order of the names."""

    pulls: tuple[int, ...]
    sums: tuple[float, ...]


def read_evidence(observation: str, names: tuple[str, ...]) -> Evidence:
    """The evidence in an observation of either style; a ValueError where the text is none."""
    if not observation.startswith(("Round ", "All ")):
        raise ValueError(f"this is not an observation of a bandit: {observation[:80]!r}")
    pulls, sums = dict.fromkeys(names, 0), dict.fromkeys(names, 0.0)
    for name, times, total in _ARM.findall(observation):
        pulls[name], sums[name] = int(times), float(total)
    for name, reward in _ROUND.findall(observation):
        pulls[name] += 1
        sums[name] += float(reward)
    return Evidence(tuple(pulls.values()), tuple(sums.values()))


# ---------------------------------------------------------------- the game


class Bandit(TSMG[BanditState]):
    """Choose one of several arms in every round; each pays at random around a mean of its own that is hidden.

    Args:
        num_arms: 2 to 20.
        rounds: after which the game is over; players are told.
        prior: what the means are drawn from in every episode. ``"gap"``: rewards 0 or 1, one arm of mean
            ``.5 + gap/2`` and all others ``.5 - gap/2``. ``"uniform"``: rewards 0 or 1, means uniform on [0, 1].
            ``"gaussian"``: rewards with normal noise of standard deviation ``scale`` around means that are normal
            with mean 0 and standard deviation ``scale``.
        gap: between the best arm and the others, in (0, 1).
        scale: above 0.
        story: ``"buttons"``, ``"ads"``, ``"videos"`` or ``"clothes"``: names for the same problem.
        observation: ``"summary"`` shows the number of choices, the total and the average of every arm; ``"raw"`` shows
            the log of all rounds.
        tell_prior: whether the instructions say what the means are drawn from. Without it the exact optimum is still
            that of a player who knows.

    Raises:
        ValueError: a setting outside of its range; the message names it.
    """

    hidden_information = True

    def __init__(
        self,
        *,
        num_arms: int = 5,
        rounds: int = 25,
        prior: str = "gap",
        gap: float = 0.5,
        scale: float = 1.0,
        story: str = "buttons",
        observation: str = "summary",
        tell_prior: bool = True,
    ) -> None:
        check_whole("num_arms", num_arms, 2, MOST_ARMS)
        check_whole("rounds", rounds, 1)
        check_one_of("prior", prior, PRIORS)
        check_one_of("story", story, STORIES)
        check_one_of("observation", observation, STYLES)
        check_number("gap", gap, 0, 1, open_ends=True)
        check_number("scale", scale, 0, float("inf"), open_ends=True)
        self.num_arms, self.rounds, self.prior = int(num_arms), int(rounds), prior
        self.gap, self.scale = float(gap), float(scale)
        self.story: Story = STORIES[story]
        self.actions = tuple(self.story.names.split()[: self.num_arms])
        self.longest_episode = self.rounds
        self.return_range = None if prior == "gaussian" else (0.0, float(self.rounds))
        self._raw, self.tells_prior = observation == "raw", bool(tell_prior)
        self._arms = {name: arm for arm, name in enumerate(self.actions)}
        self._nothing = (0,) * self.num_arms, (0.0,) * self.num_arms, (0,) * self.num_arms

    def initial_state(self, rng: np.random.Generator) -> BanditState:
        if self.prior == "gap":
            return BanditState(self._gap_means(int(rng.integers(self.num_arms))), *self._nothing)
        means = rng.random(self.num_arms) if self.prior == "uniform" else rng.normal(0, self.scale, self.num_arms)
        return BanditState(tuple(means.tolist()), *self._nothing)

    @property
    def has_initial_outcomes(self) -> bool:
        return self.prior == "gap"

    def initial_outcomes(self) -> list[tuple[float, BanditState]]:
        if self.prior != "gap":
            raise NotImplementedError(f"means of the prior {self.prior!r} are drawn from a continuum")
        arms = range(self.num_arms)
        return [(1 / self.num_arms, BanditState(self._gap_means(best), *self._nothing)) for best in arms]

    def _gap_means(self, best: int) -> tuple[float, ...]:
        return tuple([0.5 + (self.gap if arm == best else -self.gap) / 2 for arm in range(self.num_arms)])

    def transition(
        self, state: BanditState, joint_action: Mapping[Player, Action], rng: np.random.Generator
    ) -> tuple[BanditState, dict[Player, float], bool]:
        arm = action_index(joint_action, "player_0", self._arms)
        if self.rounds_left(state) == 0:
            return state, {"player_0": 0.0}, True
        if self.prior == "gaussian":
            reward = float(rng.normal(state.means[arm], self.scale))
        else:
            reward = 1.0 if rng.random() < state.means[arm] else 0.0
        after = pull(state, arm, reward, self._raw)
        return after, {"player_0": reward}, self.rounds_left(after) == 0

    @property
    def has_outcomes(self) -> bool:
        return self.prior != "gaussian"

    def outcomes(self, state: BanditState, joint_action: Mapping[Player, Action]) -> list[Outcome[BanditState]]:
        if not self.has_outcomes:
            raise NotImplementedError("normal rewards are drawn from a continuum, they can't be listed")
        arm = action_index(joint_action, "player_0", self._arms)
        if self.rounds_left(state) == 0:
            return [(1.0, state, {"player_0": 0.0}, True)]
        mean, over = state.means[arm], self.rounds_left(state) == 1
        return [
            (chance, pull(state, arm, reward, self._raw), {"player_0": reward}, over)
            for chance, reward in ((mean, 1.0), (1 - mean, 0.0))
            if chance > 0
        ]

    def forfeit(self, state: BanditState, player: Player, rounds_left: float) -> dict[Player, float]:
        """Nothing where rewards are 0 or 1, else what the worst arm pays on average in the rounds that are left."""
        worst = min(0.0, *state.means) if self.prior == "gaussian" else 0.0
        return {player: worst * self.rounds_left(state)}

    def rounds_left(self, state: BanditState) -> int:
        return self.rounds - sum(state.pulls)

    def metrics(self, state: BanditState, player: Player) -> dict[str, float]:
        """``regret``: the pseudo-regret; ``suffix_failure``: 1 where the best arm was given up; ``best_arm_share``."""
        best, played = max(state.means), max(sum(state.pulls), 1)
        good = sum(pulls for pulls, mean in zip(state.pulls, state.means, strict=True) if mean == best)
        return {
            "regret": pseudo_regret(state),
            "suffix_failure": float(suffix_failure(state)),
            "best_arm_share": good / played,
        }

    def observe(self, state: BanditState, player: Player) -> str:
        played = sum(state.pulls)
        now = f"Round {played + 1} of {self.rounds}." if played < self.rounds else f"All {played} rounds are over."
        if not played:
            return f"{now} Nothing was {self.story.chosen} yet."
        first = f"{now} Total reward so far: {number(sum(state.sums))}."
        if self._raw:
            names = self.actions
            lines = [log_line(index, names[arm], reward) for index, (arm, reward) in enumerate(state.log, 1)]
        else:
            arms = zip(self.actions, state.pulls, state.sums, strict=True)
            lines = [arm_line(name, self.story.chosen, pulls, total) for name, pulls, total in arms]
        return "\n".join([first, *lines])

    def instructions(self, player: Player) -> str:
        story = self.story
        told = [
            f"{story.scene} There are {self.rounds} rounds.",
            f"Actions, one for every {story.thing}: {', '.join(self.actions)}.",
            self._rewards(),
            "The order of the names says nothing, and nothing changes from round to round. "
            f"Your goal is the largest total reward over all {self.rounds} rounds.",
        ]
        return "\n".join(told)

    def _rewards(self) -> str:
        thing = self.story.thing
        if self.prior == "gaussian":
            told = f"Every {thing} gives a random reward around an average of its own, which you don't know."
            prior = (
                f" The averages were drawn from a normal distribution with mean 0 and standard deviation "
                f"{self.scale:g}; rewards vary around them with standard deviation {self.scale:g}."
            )
            return told + prior * self.tells_prior
        told = f"The reward of a round is 1 if {self.story.success}, else 0."
        told += f" Every {thing} has a probability of its own to give 1, which you don't know."
        if self.prior == "gap":
            good, bad = 0.5 + self.gap / 2, 0.5 - self.gap / 2
            prior = f" One {thing}, chosen at random, has the probability {good:g}; each of the others has {bad:g}."
        else:
            prior = " The probabilities were drawn at random, each one evenly between 0 and 1."
        return told + prior * self.tells_prior

    def what_happened(
        self, state: BanditState, joint_action: Mapping[Player, Action], next_state: BanditState, player: Player
    ) -> str:
        arm = action_index(joint_action, "player_0", self._arms)
        if next_state.pulls == state.pulls:
            return ""
        lost = max(state.means) - state.means[arm]
        paid = f"{self.actions[arm]} gave {number(next_state.sums[arm] - state.sums[arm])}"
        return f"{paid}; {lost:.2f} below the best on average" if lost else f"{paid}; no other is better on average"

    def describe(self, state: BanditState) -> str:
        """A bar of choices for every arm, with its hidden mean, which only spectators see."""
        width = max(map(len, self.actions))
        best = max(state.means)
        return "\n".join(
            f"{name:<{width}}  mean {mean:5.2f}{'*' if mean == best else ' '} {'#' * pulls}{' ' * bool(pulls)}"
            f"{pulls} {self.story.chosen}, total {number(total)}"
            for name, mean, pulls, total in zip(self.actions, state.means, state.pulls, state.sums, strict=True)
        )


class BanditOracle(Yardstick):
    """The values for somebody who knows the means: the best arm in every round that is left.

    They serve the luck-free score and the regret. What a player can reach who doesn't know the means is another
    question: :mod:`textgames.solving.bayes_bandit`.
    """

    kind = "clairvoyant"
    method = "known means"

    def __init__(self, game: Bandit) -> None:
        self._game = game

    def values(self, state: BanditState, steps_left: int | None, player: Player) -> dict[Action, float]:
        left = at_most(self._game.rounds_left(state), steps_left)
        later = (left - 1) * max(state.means)
        return {name: mean + later if left else 0.0 for name, mean in zip(self._game.actions, state.means, strict=True)}

    def blind_value(
        self, state: BanditState, steps_left: int | None, player: Player, policy: Mapping[Action, float]
    ) -> float:
        shares = chances_of(policy, self._game.actions)
        return float(at_most(self._game.rounds_left(state), steps_left) * sum(map(mul, shares, state.means)))
