"""The multi-armed bandit: find out which of several arms pays best, and use it, within a known number of rounds.

Settings in the manner of EVOLvE (Nie et al., "EVOLvE: Evaluating and Optimizing LLMs For Exploration", arXiv
2410.06238), which took them from Krishnamurthy et al., "Can large language models explore in-context?" (arXiv
2403.15371). Differences: a player is told what the means are drawn from, so that there is a best way to play; the
number of rounds is part of the problem and is told; and what can't be read is not a random pull.
"""

import math
import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from operator import mul
from typing import NamedTuple

from numpy.random import Generator

from textgames.bases import OnePlayerGame
from textgames.rounds import at_most
from textgames.settings import check_number, check_one_of, check_whole
from textgames.solving.fixed_policies import chances_of
from textgames.tsmg import Action, JointAction, Outcome, Player
from textgames.yardsticks import FixedPolicy, Yardstick

PRIORS = ("gap", "uniform", "gaussian")
STYLES = ("summary", "raw")


class Story(NamedTuple):
    """The names for a problem: what the arms are called."""

    scene: str  # what the player is and what it chooses every round; two sentences
    thing: str  # what an arm is: ``"button"``
    chosen: str  # what is done to it: ``"pressed"``
    success: str  # when the reward is 1 and not 0, as part of a sentence: ``"it lights up"``
    names: str  # of the arms, the actions; as many as there can be arms, separated by spaces


STORIES: dict[str, Story] = {
    name: Story(**told)
    for name, told in tomllib.loads(
        files("textgames").joinpath("exploration/stories.toml").read_text(encoding="utf-8")
    ).items()
}
MOST_ARMS = min(len(story.names.split()) for story in STORIES.values())


class BanditState(NamedTuple):
    """What the rules know; players don't see ``means``."""

    means: tuple[float, ...]  # expected reward of every arm
    pulls: tuple[int, ...]  # how often every arm was chosen
    sums: tuple[float, ...]  # what every arm paid in all
    last: tuple[int, ...]  # the round, from 1, in which every arm was chosen last; 0 for never
    log: tuple[tuple[int, float], ...] = ()  # ``(arm, reward)`` of every round; kept only if observations show it


def number(reward: float) -> str:
    """Return a reward as players read it: two decimals, none if it is whole."""
    text = str(int(reward)) if reward == int(reward) else f"{reward:.2f}"
    return "0.00" if text == "-0.00" else text


@lru_cache(maxsize=4096)
def arm_line(name: str, chosen: str, pulls: int, total: float) -> str:
    """Return the evidence about one arm."""
    if not pulls:
        return f"{name}: not {chosen} yet"
    times = "1 time" if pulls == 1 else f"{pulls} times"
    return f"{name}: {chosen} {times}, total reward {number(total)}, average {total / pulls:.2f}"


_ARM = re.compile(r"^([a-z]+): [a-z]+ (\d+) times?, total reward (-?[\d.]+), ", re.MULTILINE)
_ROUND = re.compile(r"^Round \d+: ([a-z]+), reward (-?[\d.]+)$", re.MULTILINE)


class Evidence(NamedTuple):
    """What an observation shows: how often every arm was chosen and what it paid in all, in the order of the names."""

    pulls: tuple[int, ...]
    sums: tuple[float, ...]


def read_evidence(observation: str, names: tuple[str, ...]) -> Evidence:
    """Return the evidence in an observation of either style; a ValueError if the text is none."""
    if not observation.startswith(("Round ", "All ")):
        raise ValueError(f"not an observation of a bandit: {observation[:80]!r}")
    pulls, sums = dict.fromkeys(names, 0), dict.fromkeys(names, 0.0)
    for name, times, total in _ARM.findall(observation):
        pulls[name], sums[name] = int(times), float(total)
    for name, reward in _ROUND.findall(observation):
        pulls[name] += 1
        sums[name] += float(reward)
    return Evidence(tuple(pulls.values()), tuple(sums.values()))


def exploration_bonuses(evidence: Evidence, scale: float = 1.0) -> list[float]:
    """Return ``scale * sqrt(.5 ln t / n)`` of every arm after ``t`` rounds; infinity for one that wasn't chosen yet.

    An arm's mean so far and its bonus are its upper confidence bound (Auer et al. 2002) for rewards from 0 to 1.
    """
    width = 0.5 * math.log(max(1, sum(evidence.pulls)))
    return [scale * math.sqrt(width / n) if n else math.inf for n in evidence.pulls]


class Bandit(OnePlayerGame[BanditState]):
    """Choose one of several arms in every round; each pays at random around a mean of its own that is hidden.

    Args:
        num_arms: 2 to 20.
        rounds: after which the game is over; players are told.
        prior: what the means are drawn from in every episode. ``"gap"``: rewards 0 or 1, one arm of mean ``.5 + gap/2``
            and all others ``.5 - gap/2``. ``"uniform"``: rewards 0 or 1, means uniform on [0, 1]. ``"gaussian"``:
            rewards with normal noise of standard deviation ``scale`` around means that are normal with mean 0 and
            standard deviation ``scale``.
        gap: between the best arm and the others, in (0, 1).
        scale: above 0.
        story: ``"buttons"``, ``"ads"``, ``"videos"`` or ``"clothes"``: names for the same problem.
        observation: ``"summary"`` shows the number of choices, the total and the average of every arm; ``"raw"`` shows
            the log of all rounds.
        tell_prior: whether the instructions say what the means are drawn from. Without it the exact optimum is still
            that of a player who knows.
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
        self._nothing = (0,) * self.num_arms, (0.0,) * self.num_arms, (0,) * self.num_arms

    def initial_state(self, rng: Generator) -> BanditState:
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

    def act(self, state: BanditState, action: Action, rng: Generator) -> tuple[BanditState, float, bool]:
        mean = state.means[self.actions.index(action)]
        if self.prior == "gaussian":
            return self._paid(state, action, float(rng.normal(mean, self.scale)))
        return self._paid(state, action, 1.0 if rng.random() < mean else 0.0)

    def _paid(self, state: BanditState, action: Action, reward: float) -> tuple[BanditState, float, bool]:
        arm, (means, pulls, sums, last, log) = self.actions.index(action), state
        after = BanditState(
            means,
            (*pulls[:arm], pulls[arm] + 1, *pulls[arm + 1 :]),
            (*sums[:arm], sums[arm] + reward, *sums[arm + 1 :]),
            (*last[:arm], sum(pulls) + 1, *last[arm + 1 :]),
            (*log, (arm, reward)) if self._raw else (),
        )
        return after, reward, self.rounds_left(after) == 0

    @property
    def has_outcomes(self) -> bool:
        return self.prior != "gaussian"

    def outcomes(self, state: BanditState, joint_action: JointAction) -> list[Outcome[BanditState]]:
        if not self.has_outcomes:
            raise NotImplementedError("normal rewards are drawn from a continuum, they can't be listed")
        return super().outcomes(state, joint_action)

    def chances(self, state: BanditState, action: Action) -> list[tuple[float, BanditState, float, bool]]:
        mean = state.means[self.actions.index(action)]
        chances = (mean, 1.0), (1 - mean, 0.0)
        return [(chance, *self._paid(state, action, reward)) for chance, reward in chances if chance > 0]

    def is_playing(self, state: BanditState, player: Player) -> bool:
        return self.rounds_left(state) > 0

    def forfeit(self, state: BanditState, player: Player, rounds_left: float) -> dict[Player, float]:
        """Return nothing if rewards are 0 or 1, else what the worst arm pays on average in the rounds that are left."""
        worst = min(0.0, *state.means) if self.prior == "gaussian" else 0.0
        return {player: worst * self.rounds_left(state)}

    def rounds_left(self, state: BanditState) -> int:
        return self.rounds - sum(state.pulls)

    def metrics(self, state: BanditState, player: Player) -> dict[str, float]:
        """Return the ``regret``, the ``suffix_failure`` and the ``best_arm_share`` over the rounds played.

        The regret is the pseudo-regret ``sum_t (mu* - mu_{a_t})``; a suffix failure is 1 if no best arm was chosen in
        the second half of the rounds (arXiv 2403.15371, section 3.2).
        """
        best, played = max(state.means), sum(state.pulls)
        lost = sum(pulls * (best - mean) for pulls, mean in zip(state.pulls, state.means, strict=True))
        last = max(when for when, mean in zip(state.last, state.means, strict=True) if mean == best)
        good = sum(pulls for pulls, mean in zip(state.pulls, state.means, strict=True) if mean == best)
        return {
            "regret": float(lost),
            "suffix_failure": float(2 * last <= played),
            "best_arm_share": good / max(played, 1),
        }

    def observe(self, state: BanditState, player: Player) -> str:
        played = sum(state.pulls)
        now = f"Round {played + 1} of {self.rounds}." if played < self.rounds else f"All {played} rounds are over."
        if not played:
            return f"{now} Nothing was {self.story.chosen} yet."
        first = f"{now} Total reward so far: {number(sum(state.sums))}."
        if self._raw:
            log = enumerate(state.log, 1)
            lines = [f"Round {index}: {self.actions[arm]}, reward {number(reward)}" for index, (arm, reward) in log]
        else:
            arms = zip(self.actions, state.pulls, state.sums, strict=True)
            lines = [arm_line(name, self.story.chosen, pulls, total) for name, pulls, total in arms]
        return "\n".join([first, *lines])

    def instructions(self, player: Player) -> str:
        story, thing = self.story, self.story.thing
        if self.prior == "gaussian":
            told = f"Every {thing} gives a random reward around an average of its own, which you don't know."
            prior = (
                f" The averages were drawn from a normal distribution with mean 0 and standard deviation "
                f"{self.scale:g}; rewards vary around them with standard deviation {self.scale:g}."
            )
        else:
            told = f"The reward of a round is 1 if {story.success}, else 0."
            told += f" Every {thing} has a probability of its own to give 1, which you don't know."
            good, bad = 0.5 + self.gap / 2, 0.5 - self.gap / 2
            prior = " The probabilities were drawn at random, each one evenly between 0 and 1."
            if self.prior == "gap":
                prior = f" One {thing}, chosen at random, has the probability {good:g}; each of the others has {bad:g}."
        lines = [
            f"{story.scene} There are {self.rounds} rounds.",
            f"Actions, one for every {thing}: {', '.join(self.actions)}.",
            told + prior * self.tells_prior,
            "The order of the names says nothing, and nothing changes from round to round. "
            f"Your goal is the largest total reward over all {self.rounds} rounds.",
        ]
        return "\n".join(lines)

    def told(self, state: BanditState, action: Action, after: BanditState) -> str:
        arm = self.actions.index(action)
        lost = max(state.means) - state.means[arm]
        paid = f"{action} gave {number(after.sums[arm] - state.sums[arm])}"
        return f"{paid}; {lost:.2f} below the best on average" if lost else f"{paid}; no other is better on average"

    def describe(self, state: BanditState) -> str:
        width = max(map(len, self.actions))
        best = max(state.means)
        return "\n".join(
            f"{name:<{width}}  mean {mean:5.2f}{'*' if mean == best else ' '} {'#' * pulls}{' ' * bool(pulls)}"
            f"{pulls} {self.story.chosen}, total {number(total)}"
            for name, mean, pulls, total in zip(self.actions, state.means, state.pulls, state.sums, strict=True)
        )


class BanditOracle(Yardstick):
    """The values for a player who knows the means: the best arm in every round that is left.

    They serve the luck-free score and the regret; :mod:`textgames.solving.bayes_bandit` has what can be reached
    otherwise.
    """

    kind = "clairvoyant"
    method = "known means"

    def values(self, state: BanditState, steps_left: int | None, player: Player) -> dict[Action, float]:
        left = at_most(self._game.rounds_left(state), steps_left)
        later = (left - 1) * max(state.means)
        return {name: mean + later if left else 0.0 for name, mean in zip(self._game.actions, state.means, strict=True)}

    def blind_value(self, state: BanditState, steps_left: int | None, player: Player, policy: FixedPolicy) -> float:
        shares = chances_of(policy, self._game.actions)
        return float(at_most(self._game.rounds_left(state), steps_left) * sum(map(mul, shares, state.means)))
